"""Operators that onnxruntime's optimiser writes into a saved model, spelled out in ONNX's own of opset 20."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.opsets.after_20 import Spelling, decompose_rms_norm
from mrt.frontend.onnx.quantized.integer_operators import OF_MICROSOFT
from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS

DOMAIN = "com.microsoft"
FIRST_LAYER_NORM = 17  # the opset; in older models the optimiser puts its own operator into the default domain


def set_domain(proto: onnx.ModelProto, opset: int) -> None:
    """Name the domain of what the optimiser leaves in the default one, and leave out results that nobody reads."""
    own = {"SimplifiedLayerNormalization"} | (
        {"LayerNormalization"} if opset < FIRST_LAYER_NORM else set()
    )
    read = {name for node in proto.graph.node for name in node.input} | {
        value.name for value in proto.graph.output
    }
    found = False
    for node in proto.graph.node:
        if node.op_type in own and node.domain in DEFAULT_DOMAINS:
            node.domain, found = DOMAIN, True
        while (
            node.domain == DOMAIN
            and len(node.output) > 1
            and node.output[-1] not in read
        ):
            node.output.pop()
    if found and not any(entry.domain == DOMAIN for entry in proto.opset_import):
        proto.opset_import.add(domain=DOMAIN, version=1)


_KINDS = onnx.AttributeProto
_TYPES = {
    **dict.fromkeys(("activation", "auto_pad"), _KINDS.STRING),
    **dict.fromkeys(("dilations", "kernel_shape", "pads", "strides"), _KINDS.INTS),
    **dict.fromkeys(
        (
            "axis",
            "ceil_mode",
            "channels_last",
            "count_include_pad",
            "group",
            "opset",
            "stash_type",
            "transA",
            "transB",
            "transBatchA",
            "transBatchB",
        ),
        _KINDS.INT,
    ),
    **dict.fromkeys(
        (
            "activation_alpha",
            "activation_beta",
            "activation_gamma",
            "alpha",
            "beta",
            "epsilon",
        ),
        _KINDS.FLOAT,
    ),
    "activation_params": _KINDS.FLOATS,
}


def is_spelled(node: onnx.NodeProto) -> bool:
    """Whether a node of the domain has operands and attributes that are known here."""
    needed, most = OPERANDS.get(node.op_type, (1, 0))
    wanted = [bool(name) for name in node.input[:needed]]
    typed = all(
        _TYPES.get(item.name) == item.type and not item.ref_attr_name
        for item in node.attribute
    )
    return (
        len(wanted) == needed
        and all(wanted)
        and len(node.input) <= most
        and typed
        and bool(node.output[:1])
    )


def decompose_microsoft(model: ir.Model) -> None:
    """Replace them by operators of opset 20 that mean the same; raise Unsupported for forms that have none."""
    for node in [node for node in model.graph if node.domain == DOMAIN]:
        node.domain = ""
        MICROSOFT[node.op_type](node)


def _refuse(node: ir.Node, trouble: str) -> Unsupported:
    return Unsupported(
        [f"{node.name or node.outputs[0].name} ({node.op_type}): {trouble}"]
    )


def _operand(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _real(node: ir.Node, name: str, default: float) -> float:
    return node.attributes[name].as_float() if name in node.attributes else default


def _integer(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default


def _number(s: Spelling, value: float) -> ir.Value:
    return s.constant(np.array(value, np.float32))


def _gelu(node: ir.Node) -> None:
    """Of x, or of x and a bias; FastGelu by the hyperbolic tangent."""
    s, bias, fast = Spelling(node), _operand(node, 1), node.op_type == "FastGelu"
    s.finish("Gelu", s.x if bias is None else s.add("Add", s.x, bias))
    node.attributes["approximate"] = ir.AttrString(
        "approximate", "tanh" if fast else "none"
    )


def _quick_gelu(node: ir.Node) -> None:
    """x * Sigmoid(alpha * x)."""
    s = Spelling(node)
    s.finish(
        "Mul",
        s.x,
        s.add("Sigmoid", s.add("Mul", s.x, _number(s, _real(node, "alpha", 1.702)))),
    )


def _matmul(node: ir.Node) -> None:
    """alpha * a @ b, either of them with its last two axes changed for each other."""
    s = Spelling(node)
    if _integer(node, "transBatchA", 0) or _integer(node, "transBatchB", 0):
        raise _refuse(node, "transBatchA or transBatchB is 1; expected 0")
    a, b = (
        _turned(s, value) if _integer(node, name, 0) else value
        for name, value in (("transA", s.x), ("transB", node.inputs[1]))
    )
    s.finish("Mul", s.add("MatMul", a, b), _number(s, _real(node, "alpha", 1.0)))


def _turned(s: Spelling, value: ir.Value | None) -> ir.Value:
    """The last two axes of however many."""
    return s.add("Einsum", value, equation="...ij->...ji")


_ACTIVATIONS: dict[str, tuple[tuple[str, float], ...]] = {
    "Relu": (), "Sigmoid": (), "Tanh": (), "LeakyRelu": (("alpha", 0.01),),
    "HardSigmoid": (("alpha", 0.2), ("beta", 0.5)),
}  # fmt: skip


def _activated(
    node: ir.Node,
    s: Spelling,
    value: ir.Value,
    name: str | None,
    parameters: tuple[float, ...],
) -> None:
    """The activation that was fused becomes the node itself."""
    if name is None:
        s.finish("Identity", value)
    elif name == "Clip" and len(parameters) == 2:
        s.finish("Clip", value, *(_number(s, limit) for limit in parameters))
    elif name in _ACTIVATIONS:
        s.finish(name, value)
        defaults = _ACTIVATIONS[name]
        given = (*parameters, *(default for _, default in defaults[len(parameters) :]))
        for (key, _), number in zip(defaults, given, strict=False):
            node.attributes[key] = ir.AttrFloat32(key, number)
    else:
        raise _refuse(
            node,
            f"activation={name}; expected {', '.join(sorted({*_ACTIVATIONS, 'Clip'}))}",
        )


def _word(node: ir.Node, name: str) -> str | None:
    return node.attributes[name].as_string() if name in node.attributes else None


def _conv(node: ir.Node) -> None:
    """An activation of a convolution, to which another value may be added."""
    s, other = Spelling(node), _operand(node, 3)
    name = _word(node, "activation")
    parameters = (
        tuple(node.attributes["activation_params"].as_floats())
        if "activation_params" in node.attributes
        else ()
    )
    value = s.add("Conv", s.x, node.inputs[1], _operand(node, 2))
    _copy(
        node, value, "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"
    )
    _activated(
        node,
        s,
        value if other is None else s.add("Add", value, other),
        name,
        parameters,
    )


def _gemm(node: ir.Node) -> None:
    s, name = Spelling(node), _word(node, "activation")
    keys = [
        key
        for key in ("activation_alpha", "activation_beta", "activation_gamma")
        if key in node.attributes
    ]
    value = s.add("Gemm", s.x, node.inputs[1], _operand(node, 2))
    _copy(node, value, "alpha", "beta", "transA", "transB")
    _activated(node, s, value, name, tuple(_real(node, key, 0.0) for key in keys))


def _copy(node: ir.Node, value: ir.Value, *names: str) -> None:
    maker = value.producer()
    assert maker is not None
    maker.attributes.update(
        {name: node.attributes[name] for name in names if name in node.attributes}
    )


def _layer_norm(node: ir.Node) -> None:
    """The optimiser's own, before ONNX had one: the same operands and attributes."""
    for name in [name for name in node.attributes if name not in ("axis", "epsilon")]:
        node.attributes.pop(name)


def _skip_layer_norm(node: ir.Node) -> None:
    """A norm of x + skip + bias, which sum may be read too."""
    s, simple = Spelling(node), node.op_type.startswith("SkipSimplified")
    total, epsilon = s.add("Add", s.x, node.inputs[1]), _real(node, "epsilon", 1e-12)
    bias = _operand(node, 3 if simple else 4)
    if bias is not None:
        total = s.add("Add", total, bias)
    scale, shift = node.inputs[2], None if simple else _operand(node, 3)
    if len(node.outputs) == 4:
        name, node.outputs[3].name = node.outputs[3].name, None
        node.outputs[3].replace_all_uses_with(total, replace_graph_outputs=True)
        total.name = name
    node.resize_outputs(1)
    s.finish("LayerNormalization", total, scale, *([] if shift is None else [shift]))
    node.attributes["epsilon"] = ir.AttrFloat32("epsilon", epsilon)
    if simple:
        node.op_type = "RMSNormalization"
        decompose_rms_norm(node)


MICROSOFT: dict[str, Callable[[ir.Node], None]] = {
    **dict.fromkeys(("BiasGelu", "FastGelu", "Gelu"), _gelu),
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), _matmul),
    **dict.fromkeys(
        ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _skip_layer_norm
    ),
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "LayerNormalization": _layer_norm,
    "QuickGelu": _quick_gelu,
    "SimplifiedLayerNormalization": decompose_rms_norm,
}

# The least and the most of their operands.
OPERANDS: dict[str, tuple[int, int]] = {
    "BiasGelu": (2, 2),
    "FastGelu": (1, 2),
    "FusedConv": (2, 4),
    "FusedGemm": (2, 3),
    "FusedMatMul": (2, 2),
    "Gelu": (1, 1),
    "LayerNormalization": (2, 3),
    "QuickGelu": (1, 1),
    "SimplifiedLayerNormalization": (2, 2),
    "SkipLayerNormalization": (3, 5),
    "SkipSimplifiedLayerNormalization": (3, 4),
    "TransposeMatMul": (2, 2),
    **OF_MICROSOFT,
}
