"""Upgrade nodes of opsets 1 to 6 to opset 7.

onnxruntime runs none of these; their meaning is taken from ONNX's own documents.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.graph.patch import Patch, drop_attributes, set_attributes
from mrt.graph.values import first, float_attribute, int_attribute

FIRST = 7  # the first opset that broadcasts as numpy does


def _broadcast(node: ir.Node) -> None:
    """Append axes of 1 to the second operand, whose axes match the first's from `axis` on.

    Without `axis`, they match the last axes, as in numpy.
    """
    axis = int_attribute(node, "axis", -1)
    drop_attributes(node, "broadcast", "axis")
    if axis == -1:
        return
    if axis < 0:
        raise Unsupported([f"{_name(node)}: axis={axis}; expected 0 or more"])
    patch = Patch(node, typed=False)
    a, b = node.inputs[0], node.inputs[1]
    end = patch.add("Add", _rank(patch, b), patch.axes([axis]))
    missing = patch.add("Sub", _rank(patch, a), end)
    shape = patch.add(
        "Concat", patch.add("Shape", b), _ones(patch, missing), axis=0
    )
    node.replace_input_with(1, patch.add("Reshape", b, shape))


def _rank(patch: Patch, value: ir.Value | None) -> ir.Value:
    """Write the rank of a value, as a computed list of one number."""
    return patch.add("Shape", patch.add("Shape", value))


def _ones(patch: Patch, count: ir.Value) -> ir.Value:
    """Write a computed list of so many ones."""
    one = ir.tensor(np.array([1], np.int64))
    return patch.add("ConstantOfShape", count, value=one)


def _slope_of_channels(node: ir.Node) -> None:
    """Append axes of 1 to a PRelu's slopes if there is one for each channel, the second axis.

    A single slope stays as it is.
    """
    slope = node.inputs[1]
    if slope is None or (
        slope.const_value is not None and slope.const_value.size == 1
    ):
        return
    patch = Patch(node, typed=False)
    missing = patch.add("Sub", _rank(patch, first(node)), patch.axes([2]))
    channels = patch.axes([-1], "channels")
    shape = patch.add("Concat", channels, _ones(patch, missing), axis=0)
    node.replace_input_with(1, patch.add("Reshape", slope, shape))


def _cast(node: ir.Node) -> None:
    """Write the type as a number; before, it was a word."""
    to = node.attributes["to"]
    if to.type != ir.AttributeType.STRING:
        return
    word = to.as_string()
    if word.upper() not in ir.DataType.__members__:
        raise Unsupported(
            [f"{_name(node)}: to={word}; expected the name of a type"]
        )
    set_attributes(node, to=int(ir.DataType[word.upper()]))


def _reshape(node: ir.Node) -> None:
    """Turn the shape, which was an attribute, into an operand."""
    shape = node.attributes.pop("shape", None)
    if shape is not None:
        patch = Patch(node, typed=False)
        node.resize_inputs(2)
        node.replace_input_with(1, patch.axes(list(shape.as_ints()), "shape"))


def _concat(node: ir.Node) -> None:
    """Write the axis, which by default was 1."""
    set_attributes(node, axis=int_attribute(node, "axis", 1))


def _pad(node: ir.Node) -> None:
    """Rename `paddings` to `pads`."""
    paddings = node.attributes.pop("paddings", None)
    if paddings is not None:
        set_attributes(node, pads=tuple(paddings.as_ints()))


def _upsample(node: ir.Node) -> None:
    """Join the scales of height and width, which were attributes of their own."""
    if "scales" in node.attributes:
        return
    height = node.attributes.pop("height_scale").as_float()
    width = node.attributes.pop("width_scale").as_float()
    set_attributes(node, scales=(1.0, 1.0, height, width))


def _selu(node: ir.Node) -> None:
    """Write the default constants, which had fewer digits."""
    alpha = float_attribute(node, "alpha", 1.6732)
    gamma = float_attribute(node, "gamma", 1.0507)
    set_attributes(node, alpha=alpha, gamma=gamma)


def _integer_power(node: ir.Node) -> None:
    """Write the p of a norm as an integer; before, it was a float."""
    p = node.attributes.get("p")
    if p is None or p.type != ir.AttributeType.FLOAT:
        return
    power = p.as_float()
    if power != round(power):
        raise Unsupported([f"{_name(node)}: p={power}; expected an integer"])
    set_attributes(node, p=round(power))


def _drop(*names: str) -> Callable[[ir.Node], None]:
    def change(node: ir.Node) -> None:
        drop_attributes(node, *names)

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
# operators whose oldest forms are not read, with the first opset that is
CHANGED = {"Split": 2, "Tile": 6}


def upgrade_to_opset_7(model: ir.Model) -> None:
    """Upgrade a model of opset 1 to 6 to opset 7."""
    imports = model.graph.opset_imports
    opset = imports.get("", imports.get("ai.onnx", FIRST))
    if opset >= FIRST:
        return
    for node in list(model.graph):
        drop_attributes(node, "consumed_inputs")
        expected = CHANGED.get(node.op_type, 1)
        if opset < expected:
            place = f"{_name(node)}: in opset {opset}"
            raise Unsupported([f"{place}; expected opset {expected} or newer"])
        if node.op_type in BEFORE_7:
            BEFORE_7[node.op_type](node)
