"""Models whose weights are integers and whose values are quantised anew for each sample: read with float values again."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mrt.frontend.onnx.experimental import Nodes
from mrt.frontend.onnx.read import DEFAULT_DOMAINS, add_note

NOTE = (
    "values that the model quantises for each sample (DynamicQuantizeLinear) are read as they are: "
    "the program has scales of its own, the same for every sample"
)
_MOVEMENT = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def read_dynamic(proto: onnx.ModelProto) -> None:
    """DynamicQuantizeLinear(x) -> x, of scale 1 and zero point 0; MatMulInteger(x, w) and ConvInteger(x, w) in floats.

    Applies to integers that come from a DynamicQuantizeLinear; others stay, and are refused with the other operators.
    """
    if not any(_is(node, "DynamicQuantizeLinear") for node in proto.graph.node):
        return
    reader = _Reader(proto)
    nodes = [made for node in proto.graph.node for made in reader.read(node)]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del proto.graph.node[:]
    proto.graph.node.extend(copies)
    del proto.graph.value_info[:]  # they speak of integers
    add_note(proto, NOTE)


def _is(node: onnx.NodeProto, operator: str) -> bool:
    return bool(node.op_type == operator and node.domain in DEFAULT_DOMAINS)


class _Reader:
    """Which values are floats in the place of integers."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.floats: set[str] = set()
        self.ranks = {tensor.name: len(tensor.dims) for tensor in proto.graph.initializer}
        self.taken = {name for node in proto.graph.node for name in (*node.input, *node.output)} | set(self.ranks)
        self.made: list[onnx.NodeProto] = []

    def read(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The nodes in the place of one."""
        self.made = []
        if _is(node, "DynamicQuantizeLinear"):
            self._quantized(node)
            return self.made
        if node.input and node.input[0] in self.floats:
            if node.op_type in _MOVEMENT:
                self.floats.update(node.output)
            for operator in ("MatMul", "Conv"):
                if _is(node, f"{operator}Integer") and len(node.input) > 1:
                    self._product(node, operator)
                    return self.made
        return [node]

    def _quantized(self, node: onnx.NodeProto) -> None:
        q, scale, zero = [*node.output, "", "", ""][:3]
        self.floats.add(q)
        self.made.append(helper.make_node("Identity", [node.input[0]], [q], name=node.name))
        for name, number in ((scale, np.array(1, np.float32)), (zero, np.array(0, np.uint8))):
            if name:
                self.made.append(
                    helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(number))
                )

    def _product(self, node: onnx.NodeProto, operator: str) -> None:
        """Of weights without their zero point; that of the values is 0."""
        nodes = Nodes(node, self.taken)
        weights = nodes.add("Cast", node.input[1], to=onnx.TensorProto.FLOAT)
        if len(node.input) > 3 and node.input[3]:
            zero = nodes.add("Cast", node.input[3], to=onnx.TensorProto.FLOAT)
            if operator == "Conv" and self.ranks.get(node.input[3], 0) == 1:
                shape = numpy_helper.from_array(np.array([-1, *[1] * (self.ranks.get(node.input[1], 4) - 1)], np.int64))
                zero = nodes.add("Reshape", zero, nodes.add("Constant", value=shape))
            weights = nodes.add("Sub", weights, zero)
        made = helper.make_node(operator, [node.input[0], weights], node.output, name=node.name)
        made.attribute.extend(node.attribute)
        self.made += [*nodes.made, made]
