"""Decompose experimental operators, which left ONNX with opset 10.

Converters of Core ML wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from mrt.errors import Unsupported
from mrt.frontend.onnx.opsets.proto_patch import ProtoPatch
from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS
from mrt.graph.names import Names

LEFT = 10  # the first opset without them

Attributes = Mapping[str, Any]

_TYPES = {
    "alpha": (onnx.AttributeProto.FLOAT,),
    "beta": (onnx.AttributeProto.FLOAT,),
    "bias": (onnx.AttributeProto.FLOATS,),
    "border": (onnx.AttributeProto.INTS,),
    "scale": (onnx.AttributeProto.FLOAT, onnx.AttributeProto.INTS),
}


def _scaled(patch: ProtoPatch, x: str, factor: float) -> str:
    return patch.add("Mul", x, patch.real(factor))


def _number(patch: ProtoPatch, attributes: Attributes) -> float:
    scale = attributes.get("scale", 1.0)
    if isinstance(scale, float):
        return scale
    raise Unsupported(
        [
            f"{patch.node.name or patch.node.output[0]} ({patch.node.op_type}): scale={list(scale)}; expected a number"
        ]
    )


def _affine(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write alpha * x + beta."""
    patch.add(
        "Add",
        _scaled(patch, patch.x, attributes.get("alpha", 1.0)),
        patch.real(attributes.get("beta", 0.0)),
    )


def _scale(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write scale * x."""
    _scaled(patch, patch.x, _number(patch, attributes))


def _image_scaler(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write scale * x + bias, with one bias for each channel of NCHW."""
    bias = attributes.get("bias") or [0.0]
    patch.add(
        "Add",
        _scaled(patch, patch.x, _number(patch, attributes)),
        patch.real(*bias, axes=2),
    )


def _crop(patch: ProtoPatch, attributes: Attributes) -> None:
    """Slice off a border of left, top, right and bottom.

    With a scale, take that height and width instead, beginning at the top and left
    border.
    """
    border, size = attributes.get("border", ()), attributes.get("scale", ())
    size = () if isinstance(size, float) else size
    if (
        len(border) != 4
        or len(size) not in (0, 2)
        or min((*border, *size), default=0) < 0
    ):
        raise Unsupported([f"{patch.node.name or patch.node.output[0]} (Crop): border={list(border)}, scale={list(size)}; "
                           "expected 4 numbers and 0 or 2, none of them negative"])  # fmt: skip
    left, top, right, bottom = border
    x = patch.x
    for axis, start, end in ((2, top, bottom), (3, left, right)):
        last = start + size[axis - 2] if size else -end
        if start or last:
            x = patch.add(
                "Slice",
                x,
                axes=[axis],
                starts=[start],
                ends=[last or np.iinfo(np.int32).max],
            )
    if x == patch.x:
        patch.add("Identity", x)


def _parametric_softplus(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write alpha * ln(1 + exp(beta * x))."""
    _scaled(
        patch,
        patch.add(
            "Softplus", _scaled(patch, patch.x, attributes.get("beta", 1.0))
        ),
        attributes.get("alpha", 1.0),
    )


def _scaled_tanh(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write alpha * tanh(beta * x)."""
    _scaled(
        patch,
        patch.add("Tanh", _scaled(patch, patch.x, attributes.get("beta", 1.0))),
        attributes.get("alpha", 1.0),
    )


EXPERIMENTAL: dict[str, Callable[[ProtoPatch, Attributes], None]] = {
    "Affine": _affine,
    "Crop": _crop,
    "ImageScaler": _image_scaler,
    "ParametricSoftplus": _parametric_softplus,
    "Scale": _scale,
    "ScaledTanh": _scaled_tanh,
}


def decompose_experimental(proto: onnx.ModelProto, opset: int) -> None:
    """Replace experimental nodes by operators of their opset.

    From opset 10 on, a node of such a name is another operator.
    """
    nodes = proto.graph.node
    if opset >= LEFT or not any(_is_experimental(node) for node in nodes):
        return
    names = Names(
        name for node in nodes for name in (*node.input, *node.output)
    )
    replaced: list[onnx.NodeProto] = []
    for node in nodes:
        if _is_experimental(node):
            patch = ProtoPatch(node, names)
            attributes = {
                attribute.name: helper.get_attribute_value(attribute)
                for attribute in node.attribute
            }
            EXPERIMENTAL[node.op_type](patch, attributes)
            replaced += patch.finish()
        else:
            replaced.append(onnx.NodeProto.FromString(node.SerializeToString()))
    del nodes[:]
    nodes.extend(replaced)


def _is_experimental(node: onnx.NodeProto) -> bool:
    complete = (
        len(node.input) == 1
        and len(node.output) == 1
        and bool(node.input[0] and node.output[0])
    )
    typed = all(
        attribute.type in _TYPES.get(attribute.name, ())
        for attribute in node.attribute
    )
    return (
        node.op_type in EXPERIMENTAL
        and node.domain in DEFAULT_DOMAINS
        and complete
        and typed
    )
