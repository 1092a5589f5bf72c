"""What of an ONNX graph is known before it runs: values that follow from constants and from the shapes of others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

Array = npt.NDArray[Any]
Shapes = Mapping[str, tuple[int, ...]]

LARGEST = 4096  # elements of a condition's operands
MOST_ROUNDS = 20  # of shapes that tell values that tell shapes
_NAMES_OF_ARITHMETIC = """
Add And Cast Concat Constant ConstantOfShape Div Equal Gather Greater GreaterOrEqual Identity Less LessOrEqual Max Min Mod
Mul Neg Not Or Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape Slice Squeeze Sub Transpose Unsqueeze Where Xor
"""
_SHAPE_ARITHMETIC = frozenset(_NAMES_OF_ARITHMETIC.split())
_NAMES_OF_BROADCAST = """
Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Or Sub Where Xor
"""
_BROADCAST = frozenset(_NAMES_OF_BROADCAST.split())


class Known:
    """Values that follow from constants and from the shapes of other values; without `shapes`, from constants alone."""

    def __init__(self, proto: onnx.ModelProto, shapes: Shapes | None) -> None:
        self._makers = {
            name: node for node in proto.graph.node for name in node.output if name
        }
        self._constants = {tensor.name: tensor for tensor in proto.graph.initializer}
        self._shapes: Shapes = {}
        self._opsets = list(proto.opset_import)
        self._found: dict[str, Array | None] = {}
        if shapes is not None:
            self._find_shapes(proto, shapes)

    def _find_shapes(self, proto: onnx.ModelProto, shapes: Shapes) -> None:
        """Those that follow from inputs' and from values that others tell, as the pads of a computed list do."""
        values: dict[str, Array] = {}
        for _ in range(MOST_ROUNDS):
            found = _inferred(_with_values(proto, values), shapes)
            if len(found) <= len(self._shapes):
                return
            self._shapes, self._found = found, {}
            new = self._computed_operands(proto)
            if new.keys() <= values.keys():
                return
            values |= new

    def _computed_operands(self, proto: onnx.ModelProto) -> dict[str, Array]:
        """What is known of the operands that may decide a shape not known yet: computed numbers behind the first."""
        open_nodes = [
            node
            for node in proto.graph.node
            if any(name not in self._shapes for name in node.output if name)
        ]
        later = {name for node in open_nodes for name in node.input[1:]}
        made = {
            name
            for name in later & self._makers.keys()
            if self._makers[name].op_type != "Constant"
        }
        values = {name: self.value(name) for name in sorted(made)}
        return {
            name: array
            for name, array in values.items()
            if array is not None and array.dtype.kind in "iu"
        }

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a value, where every size is known."""
        return self._shapes.get(name)

    def value(self, wanted: str) -> Array | None:
        """The array of a value, if it is known and small; operands first, without recursion."""
        waiting = [wanted]
        while waiting:
            name = waiting[-1]
            node = self._makers.get(name)
            missing = (
                []
                if name in self._found or node is None
                else [i for i in self._operands(node) if i not in self._found]
            )
            if (
                missing and len(waiting) <= LARGEST
            ):  # a circle would make it grow for ever
                waiting += missing
                continue
            waiting.pop()
            if name not in self._found:
                self._found[name] = (
                    self._constant(name)
                    if node is None
                    else None
                    if missing
                    else self._computed(node, name)
                )
        return self._found[wanted]

    def _operands(self, node: onnx.NodeProto) -> list[str]:
        return (
            [name for name in node.input if name]
            if node.op_type in _SHAPE_ARITHMETIC and not node.domain
            else []
        )

    def _constant(self, name: str) -> Array | None:
        tensor = self._constants.get(name)
        external = (
            tensor is not None and tensor.data_location == onnx.TensorProto.EXTERNAL
        )
        if tensor is None or external or not is_small(tensor):
            return None
        return _quietly(lambda: numpy_helper.to_array(tensor))

    def _computed(self, node: onnx.NodeProto, name: str) -> Array | None:
        if node.op_type in ("Shape", "Size") and not node.domain:
            return self._of_shape(node)
        operands = {item: self._found[item] for item in self._operands(node)}
        arrays = {item: array for item, array in operands.items() if array is not None}
        if (
            node.op_type not in _SHAPE_ARITHMETIC
            or node.domain
            or len(arrays) != len(operands)
        ):
            return None
        if sum(array.size for array in arrays.values()) > LARGEST or not _stays_small(
            node, arrays
        ):
            return None
        inputs = [onnx.helper.make_empty_tensor_value_info(item) for item in arrays]
        graph = onnx.helper.make_graph(
            [node], "g", inputs, [onnx.helper.make_empty_tensor_value_info(name)]
        )
        model = onnx.helper.make_model(graph, opset_imports=self._opsets)
        return _quietly(
            lambda: np.asarray(
                next(iter(ReferenceEvaluator(model).run([name], arrays)))
            )
        )

    def _of_shape(self, node: onnx.NodeProto) -> Array | None:
        shape = self._shapes.get(node.input[0] if node.input else "")
        if shape is None:
            return None
        if node.op_type == "Size":
            return np.array(int(np.prod(shape, dtype=object)) if shape else 1, np.int64)
        ends = {item.name: item.i for item in node.attribute}
        return np.array(
            shape[slice(ends.get("start", 0), ends.get("end", len(shape)))], np.int64
        )


def _stays_small(node: onnx.NodeProto, arrays: Mapping[str, Array]) -> bool:
    """Some operators make much of a few numbers."""
    numbers = [arrays[name] for name in node.input if name in arrays]
    if node.op_type in _BROADCAST:
        lengths = zip_longest(*(array.shape[::-1] for array in numbers), fillvalue=1)
        return bool(math.prod(map(max, lengths)) <= LARGEST)
    if node.op_type == "Gather" and len(numbers) == 2:
        axis = next((item.i for item in node.attribute if item.name == "axis"), 0)
        length = (
            numbers[0].shape[axis] if -numbers[0].ndim <= axis < numbers[0].ndim else 1
        )
        return numbers[1].size * (numbers[0].size // max(length, 1)) <= LARGEST
    if node.op_type == "ConstantOfShape":
        return bool(np.prod([float(size) for size in numbers[0].ravel()]) <= LARGEST)
    if node.op_type == "Range" and len(numbers) == 3 and numbers[2].any():
        start, stop, step = (float(number.reshape(-1)[0]) for number in numbers)
        return abs((stop - start) / step) <= LARGEST
    return node.op_type != "Range" and sum(array.size for array in numbers) <= LARGEST


def _quietly(compute: Any) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            result: Array = compute()
            return result
    except Exception:  # whatever cannot be computed here is not known
        return None


def _with_values(
    proto: onnx.ModelProto, values: Mapping[str, Array]
) -> onnx.ModelProto:
    """What shapes follow from, with these values as constants."""
    copy = _without_weights(proto)
    kept = [node for node in copy.graph.node if not values.keys() & set(node.output)]
    del copy.graph.node[:]
    copy.graph.node.extend(kept)
    copy.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in values.items()
    )
    return copy


def _inferred(copy: onnx.ModelProto, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """The shapes of values, with inputs as `fix_inputs` will settle them; stated ones may speak of unknown sizes."""
    for value in copy.graph.input:
        dims = value.type.tensor_type.shape.dim
        wanted = shapes.get(value.name, tuple(dim.dim_value for dim in dims))
        if len(wanted) != len(dims) or not value.type.tensor_type.HasField("shape"):
            continue
        for place, (dim, size) in enumerate(zip(dims, wanted, strict=True)):
            if size > 0 or place == 0:
                dim.dim_value = size if size > 0 else 1
    try:
        copy = onnx.shape_inference.infer_shapes(copy, data_prop=True)
    except Exception:  # nothing is known then; what is wrong is said when the shapes are inferred in earnest
        return {}
    return dict(
        _static((*copy.graph.value_info, *copy.graph.input, *copy.graph.initializer))
    )


def is_small(tensor: onnx.TensorProto) -> bool:
    """Whether what a tensor holds may decide a shape or a condition."""
    return bool(np.prod([float(size) for size in tensor.dims]) <= LARGEST)


def _without_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of what shapes follow from: of large initializers their own shape alone."""
    copy = onnx.ModelProto(ir_version=proto.ir_version)
    copy.opset_import.extend(proto.opset_import)
    copy.graph.node.extend(proto.graph.node)
    copy.graph.input.extend(proto.graph.input)
    copy.graph.output.extend(proto.graph.output)
    for tensor in proto.graph.initializer:
        if is_small(tensor):
            copy.graph.initializer.add().CopyFrom(tensor)
        else:
            copy.graph.initializer.add(
                name=tensor.name, data_type=tensor.data_type, dims=tensor.dims
            )
    return copy


def _static(
    values: Iterable[onnx.ValueInfoProto | onnx.TensorProto],
) -> Iterator[tuple[str, tuple[int, ...]]]:
    for value in values:
        if isinstance(value, onnx.TensorProto):
            yield value.name, tuple(value.dims)
        elif value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            if all(dim.HasField("dim_value") for dim in dims):
                yield value.name, tuple(dim.dim_value for dim in dims)
