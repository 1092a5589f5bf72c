"""Read models whose values are quantized anew for each sample, with float values instead.

Their weights are integers; DynamicQuantizeLinear makes integers of the values.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mrt.frontend.onnx.opsets.microsoft import DOMAIN as MICROSOFT
from mrt.frontend.onnx.opsets.proto_patch import ProtoPatch
from mrt.frontend.onnx.quantized.dynamic_biases import (
    MOVEMENT,
    is_operator,
    rounded_biases,
)
from mrt.frontend.onnx.read.read import add_note
from mrt.graph.names import Names

NOTE = (
    "values that the model quantizes for each sample (DynamicQuantizeLinear) are read as they are: "
    "the program has scales of its own, the same for every sample"
)
FUSED = {
    "DynamicQuantizeLSTM": 11,
    "DynamicQuantizeMatMul": 2,
    "MatMulIntegerToFloat": 3,
}  # the last operand needed


def read_dynamic(proto: onnx.ModelProto) -> None:
    """DynamicQuantizeLinear(x) -> x, with scale 1 and zero point 0, and products of floats.

    MatMulInteger(x, w) and ConvInteger(x, w) become a MatMul and a Conv if their integers
    come from a DynamicQuantizeLinear. Others stay, and are refused with the other
    operators. Fused operators of onnxruntime (DynamicQuantizeLSTM and its like) become
    the operator of floats.
    """
    if not any(
        is_operator(node, "DynamicQuantizeLinear") or _is_fused(node)
        for node in proto.graph.node
    ):
        return
    reader = _Reader(proto)
    nodes = [added for node in proto.graph.node for added in reader.read(node)]
    copies = [
        onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes
    ]
    del proto.graph.node[:]
    proto.graph.node.extend(copies)
    del proto.graph.value_info[:]  # they state the types of integers
    add_note(proto, NOTE)


def _is_fused(node: onnx.NodeProto) -> bool:
    return bool(
        node.domain == MICROSOFT
        and len(node.input) > FUSED.get(node.op_type, len(node.input))
    )


class _Reader:
    """The rewriting of nodes in order; it tracks which values are floats in place of integers."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.floats: set[str] = set()
        self.sums: set[str] = set()  # products of matrices of these values
        self.zeros = {""}  # the zero points of these values, or none
        self.ranks = _ranks(proto)
        self.numbers = {  # scales of one number
            tensor.name
            for tensor in proto.graph.initializer
            if set(tensor.dims) <= {1}
        }
        of_nodes = {
            name
            for node in proto.graph.node
            for name in (*node.input, *node.output)
        }
        self.taken = Names(of_nodes | self.ranks.keys())
        self.unrounded = rounded_biases(proto)
        self.added: list[onnx.NodeProto] = []

    def read(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Return the nodes in the place of one."""
        self.added = []
        if not (node.input and node.output):
            return [node]  # malformed, or what makes something of nothing
        if is_operator(node, "Mul") and self.numbers >= set(node.input):
            self.numbers.update(node.output)
        if node.op_type in ("Mul", "Div"):
            self._has_rank_of(node.output[0], *node.input)
        if node.output[0] in self.unrounded:
            self._has_rank_of(node.output[0], node.input[0])
            return [
                helper.make_node(
                    "Identity", node.input[:1], node.output, name=node.name
                )
            ]
        if is_operator(node, "DynamicQuantizeLinear"):
            self._quantized(node)
            return self.added
        if node.input[0] in self.floats:
            if node.op_type in MOVEMENT:
                self.floats.update(node.output)
            for operator in ("MatMul", "Conv"):
                if (
                    is_operator(node, f"{operator}Integer")
                    and len(node.input) > 1
                ):
                    self._product(node, operator)
                    return self.added
        if self.sums & set(node.input):
            return [self._of_sum(node)]
        if _is_fused(node) and (
            node.op_type != "MatMulIntegerToFloat" or self._reads_floats(node)
        ):
            if node.op_type == "DynamicQuantizeLSTM":
                self._fused_lstm(node)
            else:
                self._fused_product(node)
            return self.added
        return [node]

    def _reads_floats(self, node: onnx.NodeProto) -> bool:
        """Return whether A holds values of a DynamicQuantizeLinear, with the zero point of one.

        The operands are A, B, their scales, their zero points.
        """
        zero = node.input[4] if len(node.input) > 4 else ""
        return node.input[0] in self.floats and zero in self.zeros

    def _quantized(self, node: onnx.NodeProto) -> None:
        integers, scale, zero = [*node.output, "", "", ""][:3]
        self.floats.add(integers)
        self.zeros.add(zero)
        self.numbers.add(scale)
        self.ranks[scale] = 0
        self._has_rank_of(integers, node.input[0])
        self.added.append(
            helper.make_node(
                "Identity", [node.input[0]], [integers], name=node.name
            )
        )
        for name, number in (
            (scale, np.array(1, np.float32)),
            (zero, np.array(0, np.uint8)),
        ):
            if name:
                self.added.append(
                    helper.make_node(
                        "Constant",
                        [],
                        [name],
                        name=name,
                        value=numpy_helper.from_array(number),
                    )
                )

    def _product(self, node: onnx.NodeProto, operator: str) -> None:
        """Write the product by weights less their zero point; the zero point of the values is 0."""
        patch = ProtoPatch(node, self.taken)
        weights = patch.add("Cast", node.input[1], to=onnx.TensorProto.FLOAT)
        if len(node.input) > 3 and node.input[3]:
            zero = patch.add("Cast", node.input[3], to=onnx.TensorProto.FLOAT)
            if operator == "Conv" and self.ranks.get(node.input[3], 0) == 1:
                shape = numpy_helper.from_array(
                    np.array(
                        [-1, *[1] * (self.ranks.get(node.input[1], 4) - 1)],
                        np.int64,
                    )
                )
                zero = patch.add(
                    "Reshape", zero, patch.add("Constant", value=shape)
                )
            weights = patch.add("Sub", weights, zero)
        added = helper.make_node(
            operator, [node.input[0], weights], node.output, name=node.name
        )
        added.attribute.extend(node.attribute)
        self.added += [*patch.added, added]
        if operator == "MatMul":
            self.sums.update(node.output)
            if self.ranks.get(node.input[1]) == 2:
                self._has_rank_of(node.output[0], node.input[0])

    def _has_rank_of(self, name: str, *others: str) -> None:
        """Note the greatest rank of the others as that of a value, if all are known."""
        if all(other in self.ranks for other in others):
            self.ranks[name] = max(self.ranks[other] for other in others)

    def _of_sum(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """Return what reads a sum of products, a DequantizeLinear as the product by its scale that it is.

        Several scales are taken where they are along the last axis.
        """
        if is_operator(node, "Add") and self.unrounded & set(node.input):
            self.sums.update(node.output)
            self._has_rank_of(node.output[0], *node.input)
        elif is_operator(node, "DequantizeLinear") and self._multiplies(node):
            return helper.make_node(
                "Mul", node.input[:2], node.output, name=node.name
            )
        return node

    def _multiplies(self, node: onnx.NodeProto) -> bool:
        """Return whether a DequantizeLinear has no zero point, and one scale or several along the last axis."""
        if len(node.input) < 2 or any(node.input[2:]):
            return False
        axes = [it.i for it in node.attribute if it.name == "axis"] or [1]
        last = self.ranks.get(node.input[0], 0) - 1
        return node.input[1] in self.numbers or axes == [last]

    def _fused_lstm(self, node: onnx.NodeProto) -> None:
        """Write an LSTM with float weights.

        The operands are X, W, R, B, lengths, h, c, P, then scale and zero point of W and
        of R: [D], or [D,4H] for each column. W [D,I,4H] and R [D,H,4H] are stored with
        their last two axes exchanged against the LSTM's own.
        """
        patch = ProtoPatch(node, self.taken)
        beside = numpy_helper.from_array(
            np.array([0, 1, -1], np.int64)
        )  # [D,1,1] or [D,1,4H]
        shape = patch.add("Constant", value=beside)
        inputs = [*node.input[:8]]
        for place, first in ((1, 8), (2, 10)):
            scale, zero = (
                patch.add("Reshape", name, shape)
                for name in node.input[first : first + 2]
            )
            inputs[place] = patch.add(
                "Transpose",
                _reals(patch, inputs[place], scale, zero),
                perm=[0, 2, 1],
            )
        added = helper.make_node("LSTM", inputs, node.output, name=node.name)
        added.attribute.extend(node.attribute)
        self.added += [*patch.added, added]

    def _fused_product(self, node: onnx.NodeProto) -> None:
        """Write a MatMul with float weights, and an Add of the bias if there is one.

        The operands are A, B, then scale, zero point and bias; MatMulIntegerToFloat has
        A's scale and zero point in front of B's. Its scales are those of a product, in
        any order: A's may hold the scale of the weights.
        """
        patch = ProtoPatch(node, self.taken)
        operands = [*node.input[1:], "", "", "", "", ""]
        of_both = node.op_type == "MatMulIntegerToFloat"
        weights, scale, zero, bias = (
            operands[place]
            for place in ((0, 2, 4, 5) if of_both else (0, 1, 2, 3))
        )
        reals = _reals(patch, weights, scale, zero)
        if of_both:
            reals = patch.add("Mul", reals, operands[1])
        if bias:
            product = patch.add("MatMul", node.input[0], reals)
            added = helper.make_node(
                "Add", [product, bias], node.output, name=node.name
            )
        else:
            added = helper.make_node(
                "MatMul", [node.input[0], reals], node.output, name=node.name
            )
        self.added += [*patch.added, added]


def _ranks(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the ranks that the file states."""
    graph = proto.graph
    ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            ranks[value.name] = len(value.type.tensor_type.shape.dim)
    return ranks


def _reals(patch: ProtoPatch, integers: str, scale: str, zero: str) -> str:
    """Write scale * (integers - zero)."""
    reals = patch.add("Cast", integers, to=onnx.TensorProto.FLOAT)
    if zero:
        reals = patch.add(
            "Sub", reals, patch.add("Cast", zero, to=onnx.TensorProto.FLOAT)
        )
    return patch.add("Mul", reals, scale)
