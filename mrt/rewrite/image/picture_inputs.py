"""Makes an input a picture: the bytes of an image.

The scaling that was done outside of the model becomes the graph's first operators. The
new input has the metadata "mrt.bytes", which calibration and quantization read, with
the order of axes of the original model. Its numbers are 0..255, as floats here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.names import fresh_name
from mrt.graph.notes import set_picture_layout
from mrt.graph.patch import add_constant, set_attributes
from mrt.graph.values import (
    CHANNELS_FIRST,
    CHANNELS_LAST,
    Array,
    Attribute,
    shape_of,
)
from mrt.rewrite.canonical_operators import BACKWARDS


@dataclass(frozen=True)
class Pixels:
    """The model's input for byte b in channel c: b * scale[c] + shift[c].

    c counts as in the model: in BGR order if `is_bgr`.
    """

    scale: tuple[float, ...]
    shift: tuple[float, ...]
    is_bgr: bool  # the model takes BGR, the picture is in RGB
    channels_last: bool  # the model's own input is [1,H,W,C]


def take_pictures(model: ir.Model, name: str, pixels: Pixels) -> None:
    """Replace the input `name`, [1,C,H,W] or [1,H,W,C] reals, by [1,H,W,C] bytes.

    Operators in front of the graph compute the reals. The channels are reversed last,
    next to the model, so that its first convolution can absorb that.
    """
    old = next(value for value in model.graph.inputs if value.name == name)
    sizes = shape_of(old)
    assert sizes is not None and len(sizes) == 4
    shape = (
        sizes
        if pixels.channels_last
        else tuple(sizes[axis] for axis in CHANNELS_LAST)
    )
    picture = ir.Value(name=name, shape=ir.Shape(shape), type=old.type)
    set_picture_layout(picture, "NHWC" if pixels.channels_last else "NCHW")
    old.name = None
    model.graph.inputs[list(model.graph.inputs).index(old)] = picture
    front = _Front(model.graph, picture)
    scale, shift = (
        np.array(numbers, np.float32)
        for numbers in (pixels.scale, pixels.shift)
    )
    if pixels.is_bgr:
        scale, shift = scale[::-1], shift[::-1]
    value = front.add("Transpose", picture, perm=CHANNELS_FIRST)
    if (scale != 1).any():
        value = front.add(
            "Mul", value, front.constant(scale.reshape(1, -1, 1, 1), "scale")
        )
    if (shift != 0).any():
        value = front.add(
            "Add", value, front.constant(shift.reshape(1, -1, 1, 1), "shift")
        )
    if pixels.is_bgr:
        integer_axis = (
            ("starts", -1),
            ("ends", BACKWARDS),
            ("axes", 1),
            ("steps", -1),
        )
        value = front.add(
            "Slice",
            value,
            *(
                front.constant(np.array([n], np.int64), role)
                for role, n in integer_axis
            ),
        )
    if pixels.channels_last:
        value = front.add("Transpose", value, perm=CHANNELS_LAST)
    old.replace_all_uses_with(value, replace_graph_outputs=True)


class _Front:
    """Adds new nodes in front of all others, in the order of the calls."""

    def __init__(self, graph: ir.Graph, picture: ir.Value) -> None:
        self._graph, self._picture = graph, picture
        self._behind = next(iter(graph), None)

    def constant(self, array: Array, role: str) -> ir.Value:
        return add_constant(self._graph, array, f"{self._picture.name}.{role}")

    def add(
        self,
        operator: str,
        value: ir.Value,
        *constants: ir.Value,
        **attributes: Attribute,
    ) -> ir.Value:
        name = fresh_name(
            self._graph, f"{self._picture.name}.{operator.lower()}"
        )
        node = ir.Node("", operator, (value, *constants), name=name)
        set_attributes(node, **attributes)
        result, sizes = node.outputs[0], shape_of(value)
        assert sizes is not None
        perm = attributes.get("perm", range(4))
        assert isinstance(perm, tuple | range)
        result.name = name
        result.type = value.type
        result.shape = ir.Shape([sizes[axis] for axis in perm])
        if self._behind is None:
            self._graph.append(node)
        else:
            self._graph.insert_before(self._behind, node)
        return result
