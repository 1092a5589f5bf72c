"""Find the roundings of biases that a model quantizes by the scale of each sample's values."""

from __future__ import annotations

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
    return _Biases(proto).roundings()


class _Biases:
    """The nodes of a model by what they make, and the numbers that were computed of them."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self._nodes = proto.graph.node
        self._opsets = proto.opset_import
        self._makers = {
            name: node for node in self._nodes for name in node.output
        }
        self._stored = {
            tensor.name: tensor
            for tensor in proto.graph.initializer
            if not tensor.dims
        }
        self._scales = self._find_scales()
        self._known: dict[str, Array | None] = {}
        self._found: dict[str, set[str]] = {}

    def roundings(self) -> set[str]:
        """Return the roundings of all biases."""
        sums = {
            name
            for name, node in self._makers.items()
            if is_operator(node, "ConvInteger")
            or is_operator(node, "MatMulInteger")
        }
        roundings = set[str]()
        for node in self._nodes:
            if is_operator(node, "Add") and sums & set(node.input):
                for name in set(node.input) - sums:
                    roundings |= self._of_bias(name)
        return roundings

    def _find_scales(self) -> set[str]:
        """Return the scales of all DynamicQuantizeLinear nodes, and their products."""
        scales = set[str]()
        for node in self._nodes:
            if is_operator(node, "DynamicQuantizeLinear"):
                scales.update(node.output[1:2])
            elif is_operator(node, "Mul") and scales & set(node.input):
                scales.update(node.output)
        return scales

    def _of_bias(self, name: str) -> set[str]:
        """Return the roundings between this value and its quotient by one of the scales, found once."""
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def _search(self, name: str) -> set[str]:
        """Return none if there is anything but roundings and movement between the two."""
        roundings, steps = set[str](), 0
        while (node := self._makers.get(name)) is not None and node.input:
            if node.op_type in _ROUNDINGS or self._is_idle_clip(node):
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
            and node.input[1] in self._scales
        )
        return roundings if quotient else set()

    def _is_idle_clip(self, node: onnx.NodeProto) -> bool:
        """Return whether a node is a Clip whose limits are those of i32 or wider."""
        if not is_operator(node, "Clip") or len(node.input) != 3:
            return False
        least, most = (self._number(name) for name in node.input[1:])
        if least is None or most is None:
            return False
        return bool(np.all(least <= _LEAST) and np.all(most >= _MOST))

    def _number(self, name: str) -> Array | None:
        """Return a number that follows from other numbers by arithmetic, computed once; None for another value."""
        if name not in self._known:
            self._known[name] = self._computed(name)
        return self._known[name]

    def _computed(self, name: str) -> Array | None:
        nodes: list[onnx.NodeProto] = []
        needed: list[onnx.TensorProto] = []
        waiting = [name]
        while waiting:
            source = waiting.pop()
            maker = self._makers.get(source)
            if source in self._stored:
                needed.append(self._stored[source])
            elif (
                maker is not None
                and _computes_a_number(maker)
                and len(nodes) < MOST_NODES
            ):
                nodes.append(maker)
                waiting += maker.input
            else:
                return None
        outputs = [helper.make_empty_tensor_value_info(name)]
        graph = helper.make_graph(nodes[::-1], "limit", [], outputs, needed)
        model = helper.make_model(graph, opset_imports=self._opsets)
        return value_or_none(
            lambda: np.asarray(
                next(iter(ReferenceEvaluator(model).run(None, {})))
            )
        )


def _computes_a_number(node: onnx.NodeProto) -> bool:
    """Return whether a node gives one number if it is given numbers."""
    if is_operator(node, "Constant"):
        tensors = [it.t for it in node.attribute if it.name == "value"]
        return all(not tensor.dims for tensor in tensors)
    return any(is_operator(node, name) for name in _ARITHMETIC)
