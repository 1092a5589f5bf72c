"""Fix the shapes of a model's inputs, so that no dimension is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from mrt.errors import BadModel
from mrt.graph.open_shapes import (
    BATCH,
    OR_DATA,
    Shape,
    Sizes,
    counts_samples,
    has_meaning,
    is_open_inside,
)

Shapes = Mapping[str, Shape]
MOST_IN_A_LINE = 4  # shapes in one line of a message; more have a line each


def drop_initializers_from_inputs(model: ir.Model) -> None:
    """Remove initializers from the inputs, where files of old IR versions list them too."""
    for value in list(model.graph.inputs):
        if value.is_initializer():
            model.graph.inputs.remove(value)


def input_names(model: ir.Model) -> set[str]:
    """Return the names of the model's inputs."""
    return {value.name or "" for value in model.graph.inputs}


def fix_inputs(model: ir.Model, shapes: Shapes) -> dict[str, Shape]:
    """Fix the shape of every input from `shapes` or the file; a batch is 1.

    Return the shapes of the inputs whose open batch was taken as 1. BadModel names all
    inputs of which more is unknown.

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
    _require_known([value for value in inputs if value.name not in shapes])
    assumed: dict[str, Shape] = {}
    for value in inputs:
        user_shape, stated = shapes.get(value.name or ""), stated_shape(value)
        fixed = _fixed_shape(value, user_shape)
        value.shape = ir.Shape(fixed)
        if user_shape is None and stated and not stated[0]:
            assumed[str(value.name)] = fixed
    forget_shapes(model)
    return assumed


def forget_shapes(model: ir.Model) -> None:
    """Drop the shapes of computed values, which inference finds again."""
    for node in model.graph:
        for output in node.outputs:
            output.shape = None


def stated_shape(value: ir.Value) -> Sizes:
    """Return an input's sizes, with None for an unknown one; return None if it has no shape.

    A first dimension that is named as a batch is BATCH.
    """
    if value.shape is None:
        return None
    sizes = [
        size if isinstance(size, int) and size > 0 else None
        for size in value.shape
    ]
    if sizes and sizes[0] is None and counts_samples(_first_name(value)):
        sizes[0] = BATCH
    return tuple(sizes)


def _first_name(value: ir.Value) -> str | None:
    """The name of an input's first dimension, if that is open and has one."""
    first = None if not value.shape else value.shape[0]
    return first.value if isinstance(first, ir.SymbolicDim) else None


def stated_sizes(model: ir.Model) -> dict[str, Sizes]:
    """Return the sizes that the file states for each input, by name."""
    return {
        value.name or "": stated_shape(value) for value in model.graph.inputs
    }


def _fixed_shape(value: ir.Value, user_shape: Shape | None) -> Shape:
    stated = stated_shape(value)
    if user_shape is None:
        assert stated is not None, "required before"
        return tuple(size or 1 for size in stated)
    rank = len(user_shape) if stated is None else len(stated)
    if len(user_shape) != rank or any(size < 1 for size in user_shape):
        text = ",".join(map(str, user_shape))
        raise BadModel(
            f"--shape {value.name}={text}: expected {rank} dimensions, each 1 or more"
        )
    return user_shape


def _require_known(inputs: Sequence[ir.Value]) -> None:
    """Raise BadModel, naming all inputs whose shape cannot be known: only a batch may be open."""
    unknown = [value for value in inputs if _must_be_asked(value)]
    if not unknown:
        return
    missing = "unknown dimensions"
    numbers = ", numbers for each ?"
    if all(value.shape is None for value in unknown):
        missing, numbers = "no shape", ""
    shapes = [f"--shape {value.name}={_example(value)}" for value in unknown]
    behind = f"{numbers}, {OR_DATA}{_hint(unknown)}"
    if len(unknown) > MOST_IN_A_LINE:
        raise BadModel(
            f"{len(unknown)} inputs have {missing}; add these{behind}", shapes
        )
    names = ", ".join(f"'{value.name}'" for value in unknown)
    subject = f"input {names} has"
    if len(unknown) > 1:
        subject = f"inputs {names} have"
    raise BadModel(f"{subject} {missing}; add {' '.join(shapes)}{behind}")


def options_of_open_shapes(model: ir.Model, shapes: Shapes) -> str:
    """Return the options to complete for inputs of which more than a batch is unknown."""
    unknown = [
        value
        for value in model.graph.inputs
        if value.name not in shapes and _must_be_asked(value)
    ]
    return " ".join(
        f"--shape {value.name}={_example(value)}" for value in unknown
    )


def _must_be_asked(value: ir.Value) -> bool:
    stated = stated_shape(value)
    if stated is None or is_open_inside(stated):
        return True
    return stated[:1] == (None,) and has_meaning(_first_name(value))


def _example(value: ir.Value) -> str:
    """The shape to complete, with ? for what is unknown."""
    stated = stated_shape(value)
    if stated is None:
        return "..."
    sizes = list(stated)
    if not _may_count_others(value):
        sizes[:1] = [size or 1 for size in sizes[:1]]
    return ",".join("?" if size is None else str(size or 1) for size in sizes)


def _may_count_others(value: ir.Value) -> bool:
    """Whether an open first dimension may be no batch: it is named for something else, or nothing is known of any."""
    stated = stated_shape(value)
    if not stated or stated[0] is not None:
        return False
    return has_meaning(_first_name(value)) or not any(stated)


def _hint(unknown: Sequence[ir.Value]) -> str:
    """Return a hint about first dimensions that may be the batch."""
    for value in unknown:
        if _may_count_others(value):
            name = _first_name(value)
            first = f"'{name}'" if has_meaning(name) else "the first"
            return f"; if {first} counts samples, it is 1"
    return ""
