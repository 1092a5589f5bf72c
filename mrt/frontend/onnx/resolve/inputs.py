"""Fix the shapes of a model's inputs, so that no dimension is unknown."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from mrt.errors import BadModel
from mrt.graph.open_shapes import OR_DATA, Shape, Sizes, is_open

Shapes = Mapping[str, Shape]


def drop_initializers_from_inputs(model: ir.Model) -> None:
    """Remove initializers from the inputs, where files of old IR versions list them too."""
    for value in list(model.graph.inputs):
        if value.is_initializer():
            model.graph.inputs.remove(value)


def fix_inputs(model: ir.Model, shapes: Shapes) -> None:
    """Fix the shape of every input from `shapes` or the file; an unknown first dimension is 1.

    Shapes that the file states for other values are forgotten, since they may depend on
    the unknown dimensions.
    """
    inputs = list(model.graph.inputs)
    names = [value.name or "" for value in inputs]
    for name in shapes:
        if name not in names:
            raise BadModel(
                f"--shape {name}: the model has no input of that name; "
                f"it has {', '.join(names) or 'none'}"
            )
    for value in inputs:
        wanted = shapes.get(value.name or "")
        fixed = _fixed_shape(value, wanted)
        value.shape = ir.Shape(fixed)
    forget_shapes(model)


def forget_shapes(model: ir.Model) -> None:
    """Drop the shapes of computed values, which inference finds again."""
    for node in model.graph:
        for output in node.outputs:
            output.shape = None


def stated_shape(value: ir.Value) -> Sizes:
    """Return an input's sizes, with None for an unknown one; return None if it has no shape."""
    if value.shape is None:
        return None
    return tuple(
        size if isinstance(size, int) and size > 0 else None
        for size in value.shape
    )


def stated_sizes(model: ir.Model) -> dict[str, Sizes]:
    """Return the sizes that the file states for each input, by name."""
    return {
        value.name or "": stated_shape(value) for value in model.graph.inputs
    }


def _fixed_shape(value: ir.Value, wanted: Shape | None) -> Shape:
    stated = stated_shape(value)
    if wanted is None:
        return _shape_without_unknowns(value.name or "", stated)
    rank = len(wanted) if stated is None else len(stated)
    if len(wanted) != rank or any(size < 1 for size in wanted):
        text = ",".join(map(str, wanted))
        raise BadModel(
            f"--shape {value.name}={text}: expected {rank} dimensions, each 1 or more"
        )
    return wanted


def _shape_without_unknowns(name: str, stated: Sizes) -> Shape:
    if stated is None:
        raise BadModel(
            f"input '{name}' has no shape; add --shape {name}=..., {OR_DATA}"
        )
    if is_open(stated):
        sizes = [stated[0] or 1, *stated[1:]]
        example = ",".join("?" if size is None else str(size) for size in sizes)
        raise BadModel(
            f"input '{name}' has unknown dimensions; add --shape {name}={example}, "
            f"numbers for each ?, {OR_DATA}"
        )
    return tuple(size or 1 for size in stated)
