"""The inputs of a model get shapes without unknowns."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from mrt.errors import BadModel

Shapes = Mapping[str, tuple[int, ...]]


def fix_inputs(model: ir.Model, shapes: Shapes) -> None:
    """Initializers cease to be inputs; an unknown first dimension becomes 1; `shapes` settles the rest.

    Shapes that the file states for other values are forgotten, since they may speak of the unknown dimensions.
    """
    graph = model.graph
    inputs = [value for value in graph.inputs if not value.is_initializer()]
    graph.inputs.clear()
    graph.inputs.extend(inputs)
    names = [value.name or "" for value in inputs]
    for name in shapes:
        if name not in names:
            raise BadModel(
                f"--shape {name}: the model has no input of that name; it has {', '.join(names) or 'none'}"
            )
    for value in inputs:
        value.shape = ir.Shape(_requantized(value, shapes.get(value.name or "")))
    forget_shapes(model)


def forget_shapes(model: ir.Model) -> None:
    """Leave the shapes of computed values to inference."""
    for node in model.graph:
        for output in node.outputs:
            output.shape = None


def _requantized(value: ir.Value, wanted: tuple[int, ...] | None) -> tuple[int, ...]:
    name = value.name or ""
    if value.shape is None:
        if wanted is None:
            raise BadModel(f"input '{name}' has no shape; add --shape {name}=...")
        stated: list[int | None] = [None] * len(wanted)
    else:
        stated = [
            dimension if isinstance(dimension, int) and dimension > 0 else None
            for dimension in value.shape
        ]
    if wanted is None:
        if None in stated[1:]:
            example = ",".join(
                "?" if size is None else str(size)
                for size in [stated[0] or 1, *stated[1:]]
            )
            raise BadModel(
                f"input '{name}' has unknown dimensions; add --shape {name}={example}, numbers for each ?"
            )
        return tuple(size or 1 for size in stated)
    if len(wanted) != len(stated) or any(size < 1 for size in wanted):
        raise BadModel(
            f"--shape {name}={','.join(map(str, wanted))}: expected {len(stated)} dimensions, each 1 or more"
        )
    return wanted
