"""Finds outputs that hold no classes.

They are as long as an input that may have any length, have the shape of an input of many numbers,
hold one number for each row of an input, or come from a layer that describes a sample and gives no
scores: a recurrence, a layer normalization, or one that gives rows the length 1.
Other layers, Tanh among them, give descriptions and scores alike. Nor do scikit-learn's regressors give scores,
which are known before they are decomposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from mrt.frontend.onnx.read.library import ShapeInference, is_above_small
from mrt.graph.open_shapes import Shape, Sizes
from mrt.graph.values import first, int_attribute, shape_of, source_of_moves

REGRESSORS = ("LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor")
DESCRIBING = ("LSTM", "GRU", "RNN", "LayerNormalization")
LONG = 128
"""Numbers of an input of which an output of the same shape is taken for another wave, spectrum or picture."""
_CHOICES = ("Gather", "Slice", "Split")
_MOVES = ("Squeeze", "Unsqueeze", "Reshape", "Transpose", "Identity", *_CHOICES)
_OF_LENGTHS = ("Clip", "Max", "Add", "Expand", "Unsqueeze")
"""What exporters write between the length of a row and the division by it."""


def class_free_outputs(
    model: ir.Model, stated: Mapping[str, Sizes]
) -> set[str]:
    """Return the names of the outputs that hold no classes, of a model with known shapes.

    `stated` has the sizes of inputs as the file leaves them open.
    """
    names = {
        str(value.name) for value in model.graph.outputs if _describes(value)
    }
    names |= _like_inputs(model)
    return names | _along_open_axes(model, stated) | _of_rows(model)


def _like_inputs(model: ir.Model) -> set[str]:
    """Return the outputs of one long axis that have the shape of an input of real numbers.

    Filters, envelopes and autoencoders give them, and hardly any class is that of one of so many inputs.
    """
    shapes = {
        shape_of(value)
        for value in model.graph.inputs
        if value.dtype == ir.DataType.FLOAT
    }
    return {
        str(value.name)
        for value in model.graph.outputs
        if _is_vector(value)
        and max(shape_of(value) or ()) >= LONG
        and shape_of(value) in shapes
    }


def outputs_of_regressors(model: ir.Model) -> set[str]:
    """Return the names of the outputs that regressors give, at most moved or cast."""
    names: set[str] = set()
    for output in model.graph.outputs:
        node = source_of_moves(output, (*_MOVES, "Cast")).producer()
        if node is not None and node.op_type in REGRESSORS:
            names.add(str(output.name))
    return names


def _describes(output: ir.Value) -> bool:
    """Return whether all numbers come from layers that give no scores, at most moved or joined."""
    waiting, seen = [output], set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.producer()
        if node is None:
            return False
        if node.op_type in _MOVES:
            waiting.append(first(node))
        elif node.op_type == "Concat":
            waiting += [part for part in node.inputs if part is not None]
        elif node.op_type not in DESCRIBING and not _has_length_one(node):
            return False
    return True


def _has_length_one(node: ir.Node) -> bool:
    """Return whether rows are divided by their Euclidean length, as descriptions are and shares of classes are not."""
    if node.op_type == "LpNormalization":
        return int_attribute(node, "p", 2) == 2
    if node.op_type != "Div" or (divisor := node.inputs[1]) is None:
        return False
    maker = divisor.producer()
    while maker is not None and maker.op_type in _OF_LENGTHS:
        maker = first(maker).producer()
    return (
        maker is not None
        and maker.op_type == "ReduceL2"
        and first(maker) is node.inputs[0]
    )


def _along_open_axes(model: ir.Model, stated: Mapping[str, Sizes]) -> set[str]:
    """Return the outputs of one long axis that becomes longer if an open axis of the inputs does.

    One axis is made longer at a time, of all inputs: weights fix the size of others that a file leaves open.
    """
    vectors = [value for value in model.graph.outputs if _is_vector(value)]
    rank = max((len(sizes or ()) for sizes in stated.values()), default=0)
    names: set[str] = set()
    for axis in range(rank if vectors else 0):
        longer = {
            str(value.name): sizes
            for value in model.graph.inputs
            if (sizes := _longer(value, stated.get(str(value.name)), axis))
        }
        if longer:
            names |= _that_follow(model, vectors, longer)
    return names


def _of_rows(model: ir.Model) -> set[str]:
    """Return the outputs [..,L,1] that hold one number for each of the L rows of an input, which the file may state.

    They become longer with the input, as no number of classes does, or come from a layer of one column, which weighs
    each row alone.
    """
    names: set[str] = set()
    for value in model.graph.outputs:
        shape = shape_of(value) or ()
        if len(shape) < 3 or not _is_vector(value) or shape[-2] == 1:
            continue
        longer = {
            str(it.name): _doubled(sizes, len(shape) - 2)
            for it in model.graph.inputs
            if _has_rows(sizes := shape_of(it) or (), shape)
        }
        if longer and _is_of_one_column(value):
            names.add(str(value.name))
        elif longer:
            names |= _that_follow(model, [value], longer)
    return names


def _is_of_one_column(output: ir.Value) -> bool:
    """Return whether a product with one column gives the numbers, which are at most changed one by one."""
    shape, waiting, seen = shape_of(output), [output], set[ir.Value]()
    while waiting:
        value = waiting.pop()
        node = value.producer()
        if value in seen or node is None or shape_of(value) != shape:
            continue
        seen.add(value)
        if node.op_type == "MatMul":
            return True
        waiting += [part for part in node.inputs if part is not None]
    return False


def _has_rows(sizes: Shape, shape: Shape) -> bool:
    """Return whether an input has as many rows as an output of one column, and more columns."""
    return len(sizes) == len(shape) and sizes[-2] == shape[-2] and sizes[-1] > 1


def _doubled(shape: Shape, axis: int) -> Shape:
    return *shape[:axis], 2 * shape[axis], *shape[axis + 1 :]


def _that_follow(
    model: ir.Model, vectors: Sequence[ir.Value], longer: Mapping[str, Shape]
) -> set[str]:
    """Return the outputs whose long axis has another size with longer inputs."""
    shapes = ShapeInference(model, longer, is_above_small).shapes({})
    return {
        name
        for value in vectors
        if (name := str(value.name)) in shapes
        and not _is_as_long(shape_of(value) or (), shapes[name])
    }


def _longer(value: ir.Value, stated: Sizes, axis: int) -> Shape | None:
    """Return the shape of an input with twice the size along an axis; None where that is a batch, or the file states it."""
    shape = shape_of(value)
    if shape is None or stated is None or len(stated) != len(shape):
        return None
    is_batch = axis == 0 and shape[:1] == (1,)
    if axis >= len(shape) or stated[axis] is not None or is_batch:
        return None
    return _doubled(shape, axis)


def _is_vector(value: ir.Value) -> bool:
    return sum(size > 1 for size in shape_of(value) or ()) == 1


def _is_as_long(shape: Shape, longer: Shape) -> bool:
    """Whether the long axis has the size that it had."""
    pairs = zip(shape, longer, strict=True)
    return all(size == other for size, other in pairs if size > 1)
