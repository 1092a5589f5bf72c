"""Known values of an ONNX graph: they follow from constants and from the shapes of other values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

import numpy as np
import onnx_ir as ir

from mrt.frontend.onnx.read.library import ShapeInference, evaluate
from mrt.frontend.onnx.resolve.bodies import int_or
from mrt.frontend.onnx.resolve.inputs import Shapes
from mrt.graph.open_shapes import Shape
from mrt.graph.values import Array, constant, operand

LARGEST = 4096  # the most elements of a condition's operands
MOST_ROUNDS = 20  # the most rounds in which values follow from shapes, and shapes from these values
_NAMES_OF_ARITHMETIC = """
Add And Cast CastLike Concat Constant ConstantOfShape Div Equal Gather Greater
GreaterOrEqual Identity Less LessOrEqual Max Min Mod Mul Neg Not Or Range ReduceMax
ReduceMin ReduceProd ReduceSum Reshape Slice Squeeze Sub Transpose Unsqueeze Where Xor
"""
_SHAPE_ARITHMETIC = frozenset(_NAMES_OF_ARITHMETIC.split())
_NAMES_OF_BROADCAST = """
Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Or Sub Where
Xor
"""
_BROADCAST = frozenset(_NAMES_OF_BROADCAST.split())


class KnownValues:
    """Values that follow from constants and from the shapes of other values.

    Without `shapes` they follow from constants alone.
    """

    def __init__(self, model: ir.Model, shapes: Shapes | None) -> None:
        self._graph = model.graph
        self._shapes: Shapes = {}
        self._arrays: dict[ir.Value, Array | None] = {}
        if shapes is not None:
            self._infer_shapes(ShapeInference(model, shapes, _is_large))

    def _infer_shapes(self, inference: ShapeInference) -> None:
        """Infer shapes from those of the inputs and from values that follow from other shapes.

        Pads in a list that the model computes are such values.
        """
        arrays: dict[str, Array] = {}
        for _ in range(MOST_ROUNDS):
            shapes = inference.shapes(arrays)
            if len(shapes) <= len(self._shapes):
                return
            self._shapes = shapes
            self._arrays = {}
            new = self._computed_operands()
            if new.keys() <= arrays.keys():
                return
            arrays |= new

    def _computed_operands(self) -> dict[str, Array]:
        """Compute the integers from which a shape that is still unknown may follow."""
        arrays: dict[str, Array] = {}
        for value in self._operands_of_open_nodes():
            array = self.array(value)
            if array is None or not value.name:
                continue
            if array.dtype.kind in "iu":
                arrays[value.name] = array
        return arrays

    def _operands_of_open_nodes(self) -> Iterator[ir.Value]:
        """Yield computed operands, except the first, of nodes with an output without a shape."""
        for node in self._graph:
            if all(map(self._has_shape, node.outputs)):
                continue
            for value in node.inputs[1:]:
                if value is not None and _is_computed(value):
                    yield value

    def _has_shape(self, output: ir.Value) -> bool:
        return not output.name or output.name in self._shapes

    def shape(self, value: ir.Value | None) -> Shape | None:
        """Return the shape of a value, where every size is known."""
        if value is None or value.name is None:
            return None
        return self._shapes.get(value.name)

    def single(self, value: ir.Value | None) -> int | None:
        """Return the one integer or boolean of a value, if it is known."""
        if value is None:
            return None
        array = self.array(value)
        if array is None or array.size != 1:
            return None
        if array.dtype.kind not in "biu":
            return None
        return int(array.reshape(()))

    def array(self, wanted: ir.Value) -> Array | None:
        """Return the array of a value, if it is known and small.

        Operands are computed first, without recursion.
        """
        waiting = [wanted]
        while waiting:
            value = waiting[-1]
            missing: list[ir.Value] = []
            if value not in self._arrays:
                missing = self._unknown_operands(value)
            # In a circle the list would grow forever.
            if missing and len(waiting) <= LARGEST:
                waiting += missing
                continue
            waiting.pop()
            if value not in self._arrays:
                self._arrays[value] = None if missing else self._compute(value)
        return self._arrays[wanted]

    def _unknown_operands(self, value: ir.Value) -> list[ir.Value]:
        node = value.producer()
        if node is None or not _is_shape_arithmetic(node):
            return []
        operands = _operands(node)
        return [value for value in operands if value not in self._arrays]

    def _compute(self, value: ir.Value) -> Array | None:
        """Compute a value whose operands are computed."""
        node = value.producer()
        if node is None:
            return _small_constant(value)
        if node.op_type in ("Shape", "Size") and not node.domain:
            return self._compute_shape(node)
        if not _is_shape_arithmetic(node):
            return None
        operands: dict[str, Array] = {}
        for source in _operands(node):
            array = self._arrays[source]
            if array is None or source.name is None:
                return None
            operands[source.name] = array
        return value_or_none(lambda: self._evaluate(node, value, operands))

    def _evaluate(
        self, node: ir.Node, value: ir.Value, operands: dict[str, Array]
    ) -> Array | None:
        total = sum(array.size for array in operands.values())
        if total > LARGEST:
            return None
        inputs = [operands[source.name or ""] for source in _operands(node)]
        if not _stays_small(node, inputs):
            return None
        name = value.name or ""
        opsets = self._graph.opset_imports
        return evaluate(node, name, operands, opsets)

    def _compute_shape(self, node: ir.Node) -> Array | None:
        """Compute a Shape or a Size."""
        shape = self.shape(operand(node, 0))
        if shape is None:
            return None
        if node.op_type == "Size":
            return value_or_none(lambda: np.array(math.prod(shape), np.int64))
        start = int_or(node, "start", 0)
        end = int_or(node, "end", len(shape))
        return np.array(shape[start:end], np.int64)


def _is_large(tensor: ir.TensorProtocol) -> bool:
    """Return whether a tensor has too many elements to decide a shape or a condition."""
    return tensor.size > LARGEST


def _is_computed(value: ir.Value) -> bool:
    node = value.producer()
    return node is not None and node.op_type != "Constant"


def _is_shape_arithmetic(node: ir.Node) -> bool:
    return node.op_type in _SHAPE_ARITHMETIC and not node.domain


def _operands(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.inputs if value is not None]


def _small_constant(value: ir.Value) -> Array | None:
    tensor = value.const_value
    if tensor is None or _is_large(tensor):
        return None
    return value_or_none(lambda: constant(value))


def _stays_small(node: ir.Node, inputs: Sequence[Array]) -> bool:
    """Return whether the result is small too; some operators make many numbers of few."""
    if node.op_type in _BROADCAST:
        shapes = [array.shape[::-1] for array in inputs]
        sizes = zip_longest(*shapes, fillvalue=1)
        lengths: list[int] = [max(axis) for axis in sizes]
        return math.prod(lengths) <= LARGEST
    if node.op_type == "Gather" and len(inputs) == 2:
        return _gathered(node, *inputs) <= LARGEST
    if node.op_type == "ConstantOfShape":
        shape = inputs[0].astype(np.float64)
        return bool(shape.prod() <= LARGEST)
    if node.op_type == "Range":
        return len(inputs) == 3 and _steps_of_range(*inputs) <= LARGEST
    return sum(array.size for array in inputs) <= LARGEST


def _gathered(node: ir.Node, data: Array, indices: Array) -> int:
    """Count the elements of a Gather."""
    axis = int_or(node, "axis", 0)
    if not -data.ndim <= axis < data.ndim:
        return int(indices.size * data.size)
    length = max(data.shape[axis], 1)
    return int(indices.size * (data.size // length))


def _steps_of_range(start: Array, stop: Array, step: Array) -> float:
    if not step.any():
        return math.inf
    begin = float(start.reshape(-1)[0])
    end = float(stop.reshape(-1)[0])
    difference = float(step.reshape(-1)[0])
    return abs((end - begin) / difference)


def value_or_none(compute: Callable[[], Array | None]) -> Array | None:
    """Return what is computed; None where the library cannot compute it."""
    try:
        with np.errstate(all="ignore"):
            return compute()
    except Exception:  # a value that cannot be computed here is not known
        return None
