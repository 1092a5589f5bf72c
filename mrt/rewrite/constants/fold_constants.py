"""Folds nodes whose operands are constants.

Only exactly rounded operators are folded, so that every machine has the same results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from mrt.graph.patch import Patch, replace_by_constant
from mrt.graph.values import (
    Array,
    constant,
    first,
    int_attribute,
    nodes,
    shape_of,
)

# What folding may add to the weights that the model came with, in elements: as many
# again, or this many.
MOST_ADDED = 1 << 27
_MOST_HELD = "fold_constants.most_held"  # key in graph.meta

# A result larger than this and than all operands together is computed at run time, so
# that it does not fill the converter's memory.
LARGEST_RESULT = 1 << 22

_NAMES_OF_EXACT = """
Cast Ceil Clip Concat Constant ConstantOfShape DepthToSpace Equal Expand Flatten Floor Gather GatherElements GatherND
Greater GreaterOrEqual Identity Less LessOrEqual Max Min Neg Abs Not And Or Xor OneHot Pad Range ReduceMax ReduceMin
Relu Reshape Round ScatterElements ScatterND Sign Slice SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze Where
"""
EXACT = frozenset(_NAMES_OF_EXACT.split())
EXACTLY_ROUNDED = frozenset({"Add", "Sub", "Mul", "Div", "Sqrt", "Reciprocal"})
INTEGERS_ONLY = frozenset(
    {"Mod", "ReduceSum", "ReduceProd", "CumSum", "Sum", "MatMul", "Pow"}
)
CHOICES = frozenset({"ArgMax", "ArgMin"})
FOLDABLE = EXACT | EXACTLY_ROUNDED | INTEGERS_ONLY | CHOICES


def fold_constants(model: ir.Model) -> int:
    """Operator of constants -> constant; Shape and Size of a known shape -> constant.

    IsNaN and IsInf -> false where `lower_is_nan` found no comparison for them:
    calibration refuses a model that has such values, and a program has none. A constant
    output of the graph stays the result of a Reshape.

    Applies to movement, comparisons, integer arithmetic and the exactly rounded float
    operators, on results of known and bounded size. Safe because none of these depends
    on the order of a sum or on a mathematics library.
    """
    count = 0
    space = _space(model.graph)
    for node in nodes(model, *_OF_A_SHAPE, *sorted(FOLDABLE)):
        if _is_held(node) or _results_size(node) > space:
            continue
        results = (
            _shape(node) if node.op_type in _OF_A_SHAPE else _evaluate(node)
        )
        if results is None:
            continue
        put_constant(node, *results)
        space -= sum(result.size for result in results)
        count += 1
    return count


def _space(graph: ir.Graph) -> int:
    """Return how many more elements all constants together may have.

    The limit is that of the model as it came: one that grew with its constants would be
    none, since each Concat of two constants makes a larger one.
    """
    held = sum(
        value.const_value.size
        for value in graph.initializers.values()
        if value.const_value is not None
    )
    if _MOST_HELD not in graph.meta:
        graph.meta[_MOST_HELD] = held + max(held, MOST_ADDED)
    return int(graph.meta[_MOST_HELD]) - held


def _results_size(node: ir.Node) -> int:
    """Count the elements of a node's results; those of an unknown shape are refused elsewhere."""
    shapes = [shape_of(output) for output in node.outputs]
    return sum(math.prod(shape) for shape in shapes if shape is not None)


def put_constant(node: ir.Node, *results: Array) -> None:
    """Replace a node by initializers; outputs that the file leaves out have no name, and need none."""
    for output, result in zip(node.outputs, results, strict=True):
        if not output.name:
            continue
        if output.is_graph_output():
            _hold(node, output, result)
        else:
            replace_by_constant(output, result)
    assert node.graph is not None
    node.graph.remove(node, safe=True)


def _is_held(node: ir.Node) -> bool:
    """Whether a node is a Reshape that `_hold` made."""
    return (
        node.op_type == "Reshape" and node.outputs[0].is_graph_output() and constant(first(node)) is not None
        and constant(node.inputs[1]) is not None
    )  # fmt: skip


def _hold(node: ir.Node, output: ir.Value, result: Array) -> None:
    """Make a constant output the result of a Reshape to its own shape.

    An output of the graph must be the result of a node.
    """
    patch = Patch(node, output)
    output.shape = ir.Shape(result.shape)
    output.type = ir.TensorType(ir.DataType.from_numpy(result.dtype))
    patch.take_over(
        patch.add(
            "Reshape",
            patch.constant(result, "value"),
            patch.axes(result.shape, "shape"),
            allowzero=0,
        )
    )


_OF_A_SHAPE = (
    "Shape",
    "Size",
    "EyeLike",
    "IsNaN",
    "IsInf",
)  # these depend on the shape of their operand alone


def _shape(node: ir.Node) -> list[Array] | None:
    shape = shape_of(node.inputs[0])
    if shape is None:
        return None
    if node.op_type == "EyeLike":
        return _identity_matrix(node, shape)
    if node.op_type in ("IsNaN", "IsInf"):
        return (
            [np.zeros(shape, np.bool_)]
            if math.prod(shape) <= LARGEST_RESULT
            else None
        )
    if node.op_type == "Size":
        return [np.array(math.prod(shape), np.int64)]
    start = int_attribute(node, "start", 0)
    end = int_attribute(node, "end", len(shape))
    return [np.array(shape[start:end], np.int64)]


def _identity_matrix(
    node: ir.Node, shape: tuple[int, ...]
) -> list[Array] | None:
    kind = node.inputs[0].dtype if node.inputs[0] is not None else None
    kind = ir.DataType(
        int_attribute(node, "dtype", int(kind or ir.DataType.FLOAT))
    )
    if len(shape) != 2 or math.prod(shape) > LARGEST_RESULT:
        return None
    return [
        np.eye(shape[0], shape[1], int_attribute(node, "k", 0)).astype(
            kind.numpy()
        )
    ]


def _evaluate(node: ir.Node) -> list[Array] | None:
    operands = {
        value.name or "": constant(value)
        for value in node.inputs
        if value is not None
    }
    arrays = [array for array in operands.values() if array is not None]
    if (
        node.op_type == "Range"
        and len(arrays) == 3
        and arrays[0].dtype.kind == "f"
    ):
        return _count(node, *(float(array.reshape(())) for array in arrays))
    if (
        len(arrays) != len(operands)
        or not _is_exact(node, arrays)
        or not _is_bounded(node, arrays)
    ):
        return None
    if node.op_type == "GatherElements":
        data, indices = (constant(value) for value in node.inputs)
        return _gather_elements(node, data, indices)
    return _run_alone(node, operands)


def _run_alone(
    node: ir.Node, operands: Mapping[str, Array | None]
) -> list[Array] | None:
    """Return the results of a node by onnx's reference evaluator; None if it has none, or one is not finite."""
    proto = ir.to_proto(node)
    opset = (
        node.graph.opset_imports.get("", 20) if node.graph is not None else 20
    )
    inputs = [
        onnx.helper.make_empty_tensor_value_info(name) for name in operands
    ]
    outputs = [
        onnx.helper.make_empty_tensor_value_info(value.name or "")
        for value in node.outputs
    ]
    graph = onnx.helper.make_graph([proto], "fold", inputs, outputs)
    single = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", opset)]
    )
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(single).run(None, dict(operands))
    except (
        Exception
    ):  # an unsupported node stays in the graph; canonical.check names it
        return None
    arrays = [np.asarray(result) for result in results]
    return arrays if all(_is_finite(array) for array in arrays) else None


def _gather_elements(
    node: ir.Node, data: Array | None, indices: Array | None
) -> list[Array] | None:
    """Compute a GatherElements; None where an index lies outside.

    That of onnx.reference is wrong along axes of more than 64 (onnx 1.23).
    """
    assert data is not None and indices is not None
    axis = int_attribute(node, "axis", 0) % data.ndim
    size = data.shape[axis]
    if indices.size and not (-size <= indices.min() and indices.max() < size):
        return None
    within = tuple(
        slice(None) if place == axis else slice(length)
        for place, length in enumerate(indices.shape)
    )
    return [np.take_along_axis(data[within], indices % max(size, 1), axis)]


def _count(
    node: ir.Node, start: float, limit: float, delta: float
) -> list[Array] | None:
    """Compute a Range of floats as start + i * delta in float64.

    A machine that adds up delta would add an error with every step.
    """
    length = (
        math.ceil((limit - start) / delta)
        if delta and math.isfinite((limit - start) / delta)
        else 0
    )
    if not 0 < length <= LARGEST_RESULT or node.outputs[0].dtype is None:
        return None
    return [
        (start + np.arange(length, dtype=np.float64) * delta).astype(
            node.outputs[0].dtype.numpy()
        )
    ]


def _is_exact(node: ir.Node, arrays: list[Array]) -> bool:
    """Whether the results are exact, or rounded once.

    Powers and float sums of more than two terms are not, so these need integers. Processors
    make different integers of a float that is too large for the type, or NaN.
    """
    if node.op_type == "Cast" and arrays[0].dtype.kind == "f":
        return _fits(arrays[0], node.outputs[0].dtype)
    if node.op_type in INTEGERS_ONLY:
        return all(array.dtype.kind in "iub" for array in arrays)
    return True


def _fits(array: Array, kind: ir.DataType | None) -> bool:
    """Whether a cast means the same everywhere; that of minus infinity is the least integer."""
    if kind is None or not kind.is_integer() or kind.bitwidth < 8:
        return True
    limits = np.iinfo(kind.numpy())
    least = -np.inf if limits.bits >= 32 and limits.min < 0 else limits.min
    truncated = np.trunc(array.astype(np.float64))
    # In float64, the end of int64 is 2^63.
    return bool(
        ((truncated >= least) & (truncated < float(limits.max) + 1)).all()
    )


def _is_bounded(node: ir.Node, arrays: list[Array]) -> bool:
    limit = max(LARGEST_RESULT, sum(array.size for array in arrays))
    shapes = [shape_of(output) for output in node.outputs]
    return all(
        shape is not None and math.prod(shape) <= limit for shape in shapes
    )


def _is_finite(array: Array) -> bool:
    """Whether no number is NaN. Infinities, as in masks and bounds, are allowed.

    A folded NaN would hide the node that made it.
    """
    return array.dtype.kind != "f" or not np.isnan(array).any()
