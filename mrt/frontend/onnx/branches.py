"""An If whose condition is known once shapes are, as exporters write one for a squeeze, becomes the branch it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

Array = npt.NDArray[Any]

MOST_BRANCHES = 1000  # of an ordinary model a few; each costs an inference of all shapes
LARGEST = 4096  # elements of a condition's operands
_NAMES_OF_ARITHMETIC = """
Add And Cast Concat Constant ConstantOfShape Div Equal Gather Greater GreaterOrEqual Identity Less LessOrEqual Max Min Mod
Mul Neg Not Or Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape Slice Squeeze Sub Unsqueeze Where Xor
"""
_SHAPE_ARITHMETIC = frozenset(_NAMES_OF_ARITHMETIC.split())


def settle_branches(proto: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Replace each If of a known condition by the nodes of its branch, the first ones first: others may follow from them.

    What stays is refused with the other operators.
    """
    for _ in range(MOST_BRANCHES):
        if not any(node.op_type == "If" for node in proto.graph.node) or not _settle_one(proto, shapes):
            return


def _settle_one(proto: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    known = _Known(proto, shapes)
    for index, node in enumerate(proto.graph.node):
        if node.op_type != "If" or node.domain or not node.input:
            continue
        condition = known.value(node.input[0])
        if condition is None or condition.size != 1:
            continue
        wanted = "then_branch" if condition.reshape(()) else "else_branch"
        branches = [item.g for item in node.attribute if item.name == wanted]
        if len(branches) == 1 and len(branches[0].output) == len(node.output):
            _take(proto.graph, index, branches[0])
            return True
    return False


class _Known:
    """Values that follow from constants and from the shapes of other values."""

    def __init__(self, proto: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._makers = {name: node for node in proto.graph.node for name in node.output if name}
        self._constants = {tensor.name: tensor for tensor in proto.graph.initializer}
        self._shapes = _inferred(proto, shapes)
        self._opsets = list(proto.opset_import)
        self._found: dict[str, Array | None] = {}

    def value(self, wanted: str) -> Array | None:
        """The array of a value, if it is known and small; operands first, without recursion."""
        waiting = [wanted]
        while waiting:
            name = waiting[-1]
            node = self._makers.get(name)
            missing = (
                [] if name in self._found or node is None else [i for i in self._operands(node) if i not in self._found]
            )
            if missing and len(waiting) <= LARGEST:  # a circle would make it grow for ever
                waiting += missing
                continue
            waiting.pop()
            if name not in self._found:
                self._found[name] = (
                    self._constant(name) if node is None else None if missing else self._computed(node, name)
                )
        return self._found[wanted]

    def _operands(self, node: onnx.NodeProto) -> list[str]:
        return [name for name in node.input if name] if node.op_type in _SHAPE_ARITHMETIC and not node.domain else []

    def _constant(self, name: str) -> Array | None:
        tensor = self._constants.get(name)
        external = tensor is not None and tensor.data_location == onnx.TensorProto.EXTERNAL
        if tensor is None or external or np.prod([float(size) for size in tensor.dims]) > LARGEST:
            return None
        return _quietly(lambda: numpy_helper.to_array(tensor))

    def _computed(self, node: onnx.NodeProto, name: str) -> Array | None:
        if node.op_type in ("Shape", "Size") and not node.domain:
            return self._of_shape(node)
        operands = {item: self._found[item] for item in self._operands(node)}
        arrays = {item: array for item, array in operands.items() if array is not None}
        if node.op_type not in _SHAPE_ARITHMETIC or node.domain or len(arrays) != len(operands):
            return None
        if sum(array.size for array in arrays.values()) > LARGEST or not _stays_small(node, arrays):
            return None
        inputs = [onnx.helper.make_empty_tensor_value_info(item) for item in arrays]
        graph = onnx.helper.make_graph([node], "g", inputs, [onnx.helper.make_empty_tensor_value_info(name)])
        model = onnx.helper.make_model(graph, opset_imports=self._opsets)
        return _quietly(lambda: np.asarray(next(iter(ReferenceEvaluator(model).run([name], arrays)))))

    def _of_shape(self, node: onnx.NodeProto) -> Array | None:
        shape = self._shapes.get(node.input[0] if node.input else "")
        if shape is None:
            return None
        if node.op_type == "Size":
            return np.array(int(np.prod(shape, dtype=object)) if shape else 1, np.int64)
        ends = {item.name: item.i for item in node.attribute}
        return np.array(shape[slice(ends.get("start", 0), ends.get("end", len(shape)))], np.int64)


def _stays_small(node: onnx.NodeProto, arrays: Mapping[str, Array]) -> bool:
    """Two operators make much of a few numbers."""
    numbers = [arrays[name] for name in node.input if name in arrays]
    if node.op_type == "ConstantOfShape":
        return bool(np.prod([float(size) for size in numbers[0].ravel()]) <= LARGEST)
    if node.op_type == "Range" and len(numbers) == 3 and numbers[2].any():
        start, stop, step = (float(number.reshape(-1)[0]) for number in numbers)
        return abs((stop - start) / step) <= LARGEST
    return node.op_type != "Range"


def _quietly(compute: Any) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            result: Array = compute()
            return result
    except Exception:  # whatever cannot be computed here is not known
        return None


def _inferred(proto: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The shapes of values, with inputs as `fix_inputs` will settle them; stated ones may speak of unknown sizes."""
    copy = _without_weights(proto)
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
    return dict(_static((*copy.graph.value_info, *copy.graph.input, *proto.graph.initializer)))


def _without_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of what shapes follow from: of large initializers their own shape alone."""
    copy = onnx.ModelProto(ir_version=proto.ir_version)
    copy.opset_import.extend(proto.opset_import)
    copy.graph.node.extend(proto.graph.node)
    copy.graph.input.extend(proto.graph.input)
    copy.graph.output.extend(proto.graph.output)
    for tensor in proto.graph.initializer:
        if np.prod([float(size) for size in tensor.dims]) > LARGEST:
            copy.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        else:
            copy.graph.initializer.add().CopyFrom(tensor)
    return copy


def _static(values: Iterable[onnx.ValueInfoProto | onnx.TensorProto]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for value in values:
        if isinstance(value, onnx.TensorProto):
            yield value.name, tuple(value.dims)
        elif value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            if all(dim.HasField("dim_value") for dim in dims):
                yield value.name, tuple(dim.dim_value for dim in dims)


def _take(graph: onnx.GraphProto, index: int, branch: onnx.GraphProto) -> None:
    """The branch's nodes in the place of the If, under names that nobody has; its results have the If's."""
    node = graph.node[index]
    inner = {name for item in branch.node for name in item.output} | {tensor.name for tensor in branch.initializer}
    taken = {name for item in graph.node for name in (*item.input, *item.output)} | {t.name for t in graph.initializer}
    prefix = f"{node.output[0]}."
    while any(f"{prefix}{name}" in taken for name in inner):
        prefix += "_"
    names = {name: f"{prefix}{name}" for name in inner if name}
    made = [onnx.NodeProto.FromString(item.SerializeToString()) for item in branch.node]
    for item in made:
        _rename(item, names)
    for result, own in zip(branch.output, node.output, strict=True):
        made.append(
            onnx.helper.make_node("Identity", [names.get(result.name, result.name)], [own], name=f"{own}.taken")
        )
    for tensor in branch.initializer:
        graph.initializer.add().CopyFrom(tensor)
        graph.initializer[-1].name = names[tensor.name]
    nodes = [onnx.NodeProto.FromString(item.SerializeToString()) for item in graph.node]
    nodes[index : index + 1] = made
    del graph.node[:]
    graph.node.extend(nodes)


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Values of the branch, also where graphs inside it read them."""
    waiting = [node]
    while waiting:
        item = waiting.pop()
        for values in (item.input, item.output):
            values[:] = [names.get(name, name) for name in values]
        for attribute in item.attribute:
            for graph in (*attribute.graphs, attribute.g):
                waiting += graph.node
                for value in graph.output:
                    value.name = names.get(value.name, value.name)
