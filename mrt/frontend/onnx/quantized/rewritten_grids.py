"""Read the FakeQuantize nodes of a file that `mrt rewrite` wrote, as the Quant nodes of QONNX."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mrt.frontend.onnx.quantized.qonnx import DOMAINS, MOST_BITS, interval
from mrt.graph.values import OWN_DOMAIN

NAME = "FakeQuantize"
ATTRIBUTES = {"scale", "zero_point", "least", "most"}


def read_rewritten_grids(proto: onnx.ModelProto) -> None:
    """FakeQuantize(x) -> Quant(x, scale, zero point, bits), in place.

    It must happen before the functions of a file are inlined, behind which no grid is
    recognized. A node with other attributes stays a call of its function.
    """
    nodes = list(proto.graph.node)
    written = [_written(node, proto.graph) for node in nodes]
    if written == nodes:
        return
    copies = [
        onnx.NodeProto.FromString(node.SerializeToString()) for node in written
    ]
    del proto.graph.node[:]
    proto.graph.node.extend(copies)
    used = {
        node.op_type for node in proto.graph.node if node.domain == OWN_DOMAIN
    }
    for function in list(proto.functions):
        if function.domain == OWN_DOMAIN and function.name not in used:
            proto.functions.remove(function)


def _written(node: onnx.NodeProto, graph: onnx.GraphProto) -> onnx.NodeProto:
    """Return the Quant in the place of a FakeQuantize; any other node as it is."""
    numbers = {attribute.name: attribute.f for attribute in node.attribute}
    is_one = node.op_type == NAME and node.domain == OWN_DOMAIN
    is_one = is_one and len(node.input) == len(node.output) == 1
    if not is_one or numbers.keys() != ATTRIBUTES:
        return node
    bounds = numbers["least"], numbers["most"]
    if bounds not in _KINDS:
        return node
    signed, narrow, bits = _KINDS[bounds]
    operands = (numbers["scale"], numbers["zero_point"], float(bits))
    names = [f"{node.output[0]}.grid{place}" for place in range(3)]
    for name, number in zip(names, operands, strict=True):
        array = np.array(number, np.float32)
        graph.initializer.append(numpy_helper.from_array(array, name))
    return helper.make_node(
        "Quant",
        [node.input[0], *names],
        node.output,
        name=node.name,
        domain=DOMAINS[1],
        signed=signed,
        narrow=narrow,
    )


_KINDS = {
    interval(signed, narrow, bits): (signed, narrow, bits)
    for bits in range(1, MOST_BITS + 1)
    for narrow in (0, 1)
    for signed in (0, 1)
}
"""The signedness, narrowness and bits of a Quant, by the least and the greatest integer."""
