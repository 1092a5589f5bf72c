"""Nodes of opsets 1 to 6 take the form of opset 7. onnxruntime runs none of these; ONNX's own documents say what they mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.opsets.after_20 import Spelling

FIRST = 7  # the first opset that broadcasts as numpy does


def _broadcast(node: ir.Node) -> None:
    """The second operand lay along the first from `axis` on: it gets ones behind. Without `axis`, it lay at the end."""
    node.attributes.pop("broadcast", None)
    axis = node.attributes.pop("axis", None)
    if axis is None or axis.as_int() == -1:
        return
    if axis.as_int() < 0:
        raise Unsupported([f"{_name(node)}: axis={axis.as_int()}; expected 0 or more"])
    a, b = node.inputs[0], node.inputs[1]
    s = Spelling(node)
    shape, ranks = (
        s.add("Shape", b),
        [s.add("Shape", s.add("Shape", value)) for value in (a, b)],
    )
    left = s.add("Sub", ranks[0], s.add("Add", ranks[1], s.integers(axis.as_int())))
    ones = s.add("ConstantOfShape", left, value=ir.tensor(np.array([1], np.int64)))
    node.replace_input_with(
        1, s.add("Reshape", b, s.add("Concat", shape, ones, axis=0))
    )


def _slope_of_channels(node: ir.Node) -> None:
    """A PRelu had one slope, or one for each channel: the second axis."""
    slope = node.inputs[1]
    if slope is None or (slope.const_value is not None and slope.const_value.size == 1):
        return
    s = Spelling(node)
    rank = s.add("Shape", s.add("Shape", s.x))
    ones = s.add(
        "ConstantOfShape",
        s.add("Sub", rank, s.integers(2)),
        value=ir.tensor(np.array([1], np.int64)),
    )
    node.replace_input_with(
        1, s.add("Reshape", slope, s.add("Concat", s.integers(-1), ones, axis=0))
    )


def _cast(node: ir.Node) -> None:
    """The type was a word."""
    to = node.attributes["to"]
    if to.type == ir.AttributeType.STRING:
        word = to.as_string().upper()
        if word not in ir.DataType.__members__:
            raise Unsupported(
                [f"{_name(node)}: to={to.as_string()}; expected the name of a type"]
            )
        node.attributes["to"] = ir.AttrInt64("to", int(ir.DataType[word]))


def _reshape(node: ir.Node) -> None:
    """The shape was an attribute."""
    shape = node.attributes.pop("shape", None)
    if shape is not None:
        s = Spelling(node)
        node.resize_inputs(2)
        node.replace_input_with(1, s.integers(*shape.as_ints()))


def _concat(node: ir.Node) -> None:
    if "axis" not in node.attributes:
        node.attributes["axis"] = ir.AttrInt64("axis", 1)


def _pad(node: ir.Node) -> None:
    if "paddings" in node.attributes:
        node.attributes["pads"] = ir.AttrInt64s(
            "pads", list(node.attributes.pop("paddings").as_ints())
        )


def _upsample(node: ir.Node) -> None:
    """Height and width had a scale each."""
    if "scales" not in node.attributes:
        scales = [
            node.attributes.pop(name).as_float()
            for name in ("height_scale", "width_scale")
        ]
        node.attributes["scales"] = ir.AttrFloat32s("scales", [1.0, 1.0, *scales])


def _selu(node: ir.Node) -> None:
    for name, value in (("alpha", 1.6732), ("gamma", 1.0507)):
        if name not in node.attributes:
            node.attributes[name] = ir.AttrFloat32(name, value)


def _integer_power(node: ir.Node) -> None:
    """The p of a norm was a float."""
    p = node.attributes.get("p")
    if p is not None and p.type == ir.AttributeType.FLOAT:
        if p.as_float() != round(p.as_float()):
            raise Unsupported(
                [f"{_name(node)}: p={p.as_float()}; expected a whole number"]
            )
        node.attributes["p"] = ir.AttrInt64("p", round(p.as_float()))


def _drop(*names: str) -> Callable[[ir.Node], None]:
    def change(node: ir.Node) -> None:
        for name in names:
            node.attributes.pop(name, None)

    return change


def _name(node: ir.Node) -> str:
    return f"{node.name or node.outputs[0].name} ({node.op_type})"


_BROADCAST = (
    "Add",
    "And",
    "Div",
    "Equal",
    "Greater",
    "Less",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Xor",
)

BEFORE_7: dict[str, Callable[[ir.Node], None]] = {
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _drop("output_sequence")),
    **dict.fromkeys(("GlobalLpPool", "LpPool"), _integer_power),
    "BatchNormalization": _drop("is_test"),
    "Cast": _cast,
    "Concat": _concat,
    "Dropout": _drop("is_test"),
    "Gemm": _drop("broadcast"),
    "PRelu": _slope_of_channels,
    "Pad": _pad,
    "Reshape": _reshape,
    "Selu": _selu,
    "Upsample": _upsample,
}
# Of these nothing is known here but that they changed.
CHANGED = {"Split": 2, "Tile": 6}


def upgrade_to_opset_7(model: ir.Model) -> None:
    """Bring a model of opset 1 to 6 to opset 7."""
    opset = model.graph.opset_imports.get(
        "", model.graph.opset_imports.get("ai.onnx", FIRST)
    )
    if opset >= FIRST:
        return
    for node in list(model.graph):
        node.attributes.pop("consumed_inputs", None)
        if opset < CHANGED.get(node.op_type, 1):
            raise Unsupported(
                [
                    f"{_name(node)}: in opset {opset}; expected opset {CHANGED[node.op_type]} or newer"
                ]
            )
        if node.op_type in BEFORE_7:
            BEFORE_7[node.op_type](node)
