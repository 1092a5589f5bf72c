"""Find the roundings of biases that a model quantizes by the scale of each sample's values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS
from mrt.frontend.onnx.resolve.known_values import value_or_none
from mrt.graph.values import Array

MOST_STEPS = 20  # between a bias and its quotient; a circle has no end
MOST_NODES = 20  # that compute a limit
MOVEMENT = (
    "Flatten",
    "Identity",
    "Reshape",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
_ROUNDINGS = ("Cast", "Ceil", "Floor", "Round")
# What makes one number of some, and so takes no memory whatever the file has.
_ARITHMETIC = ("Add", "Cast", "CastLike", "Mul", "Neg", "Pow", "Sub")
_LEAST, _MOST = -(2**31), 2**31 - 1  # of i32


def is_operator(node: onnx.NodeProto, operator: str) -> bool:
    """Return whether a node is this operator of ONNX's own."""
    return bool(node.op_type == operator and node.domain in DEFAULT_DOMAINS)


def rounded_biases(proto: onnx.ModelProto) -> set[str]:
    """Return the roundings in Cast(Floor(bias / scale)), where this is added to integers.

    A Clip to what i32 holds is one of them. There the bias is in steps of the values'
    scale. This scale is 1 here, so that rounding would leave nothing of most biases.
    """
    makers = {name: node for node in proto.graph.node for name in node.output}
    sums = {
        name
        for name, node in makers.items()
        if is_operator(node, "ConvInteger")
        or is_operator(node, "MatMulInteger")
    }
    scales = _scales(proto)
    roundings = set[str]()
    for node in proto.graph.node:
        if is_operator(node, "Add") and sums & set(node.input):
            for name in set(node.input) - sums:
                roundings |= _roundings(name, makers, scales, proto)
    return roundings


def _scales(proto: onnx.ModelProto) -> set[str]:
    """Return the scales of all DynamicQuantizeLinear nodes, and their products."""
    scales = set[str]()
    for node in proto.graph.node:
        if is_operator(node, "DynamicQuantizeLinear"):
            scales.update(node.output[1:2])
        elif is_operator(node, "Mul") and scales & set(node.input):
            scales.update(node.output)
    return scales


def _roundings(
    name: str,
    makers: Mapping[str, onnx.NodeProto],
    scales: set[str],
    proto: onnx.ModelProto,
) -> set[str]:
    """Return the roundings between this value and its quotient by one of the scales.

    Return none if there is anything but roundings and movement between the two.
    """
    roundings, steps = set[str](), 0
    while (node := makers.get(name)) is not None and node.input:
        if node.op_type in _ROUNDINGS or _is_idle_clip(node, makers, proto):
            roundings.add(name)
        elif node.op_type not in MOVEMENT:
            break
        name, steps = node.input[0], steps + 1
        if steps > MOST_STEPS:
            return set()
    quotient = (
        node is not None
        and is_operator(node, "Div")
        and len(node.input) == 2
        and node.input[1] in scales
    )
    return roundings if quotient else set()


def _is_idle_clip(
    node: onnx.NodeProto,
    makers: Mapping[str, onnx.NodeProto],
    proto: onnx.ModelProto,
) -> bool:
    """Return whether a node is a Clip whose limits are those of i32 or wider."""
    if not is_operator(node, "Clip") or len(node.input) != 3:
        return False
    least, most = (_known(name, makers, proto) for name in node.input[1:])
    if least is None or most is None:
        return False
    return bool(np.all(least <= _LEAST) and np.all(most >= _MOST))


def _known(
    name: str, makers: Mapping[str, onnx.NodeProto], proto: onnx.ModelProto
) -> Array | None:
    """Compute a number that follows from other numbers by arithmetic; None for another value."""
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    needed: list[onnx.TensorProto] = []
    waiting = [name]
    while waiting:
        source = waiting.pop()
        if source in stored and not stored[source].dims:
            needed.append(stored[source])
        elif _computes_a_number(makers.get(source)) and len(nodes) < MOST_NODES:
            nodes.append(makers[source])
            waiting += makers[source].input
        else:
            return None
    outputs = [helper.make_empty_tensor_value_info(name)]
    graph = helper.make_graph(nodes[::-1], "limit", [], outputs, needed)
    model = helper.make_model(graph, opset_imports=proto.opset_import)
    return value_or_none(
        lambda: np.asarray(next(iter(ReferenceEvaluator(model).run(None, {}))))
    )


def _computes_a_number(node: onnx.NodeProto | None) -> bool:
    """Return whether a node gives one number if it is given numbers."""
    if node is None:
        return False
    if is_operator(node, "Constant"):
        tensors = [it.t for it in node.attribute if it.name == "value"]
        return all(not tensor.dims for tensor in tensors)
    return any(is_operator(node, name) for name in _ARITHMETIC)
