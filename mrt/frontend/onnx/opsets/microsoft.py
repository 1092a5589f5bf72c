"""Decompose operators of onnxruntime's domain into ONNX's own of opset 20.

Its optimizer writes most of them into the models that it saves; skl2onnx writes CDist.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.opsets.after_20 import decompose_rms_norm
from mrt.frontend.onnx.opsets.few_bits import decompose_few_bits
from mrt.frontend.onnx.quantized.integer_operators import OF_MICROSOFT
from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS
from mrt.graph.patch import Patch, copy_attributes, drop_attributes
from mrt.graph.values import (
    first,
    float_attribute,
    int_attribute,
    operand,
    string_attribute,
)

DOMAIN = "com.microsoft"
# The first opset with LayerNormalization. In models of older opsets, the optimizer writes
# its own operator of that name into the default domain.
FIRST_LAYER_NORM = 17


def set_domain(proto: onnx.ModelProto, opset: int) -> None:
    """Set the domain of the optimizer's nodes that lack it, and drop results that nothing reads."""
    op_types = {"SimplifiedLayerNormalization"} | (
        {"LayerNormalization"} if opset < FIRST_LAYER_NORM else set()
    )
    read = {name for node in proto.graph.node for name in node.input} | {
        value.name for value in proto.graph.output
    }
    changed = False
    for node in proto.graph.node:
        if node.op_type in op_types and node.domain in DEFAULT_DOMAINS:
            node.domain, changed = DOMAIN, True
        while (
            node.domain == DOMAIN
            and len(node.output) > 1
            and node.output[-1] not in read
        ):
            node.output.pop()
    if changed and not any(
        entry.domain == DOMAIN for entry in proto.opset_import
    ):
        proto.opset_import.add(domain=DOMAIN, version=1)


_KINDS = onnx.AttributeProto
_TYPES = {
    **dict.fromkeys(("activation", "auto_pad", "metric"), _KINDS.STRING),
    **dict.fromkeys(
        ("dilations", "kernel_shape", "pads", "strides"), _KINDS.INTS
    ),
    **dict.fromkeys(
        (
            "K",
            "N",
            "accuracy_level",
            "axis",
            "bits",
            "block_size",
            "ceil_mode",
            "channels_last",
            "count_include_pad",
            "gather_axis",
            "group",
            "opset",
            "quantize_axis",
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


def is_decomposable(node: onnx.NodeProto) -> bool:
    """Return whether a node of the domain has operands and attributes that are supported here."""
    needed, most = OPERANDS.get(node.op_type, (1, 0))
    present = [bool(name) for name in node.input[:needed]]
    typed = all(
        _TYPES.get(attribute.name) == attribute.type
        and not attribute.ref_attr_name
        for attribute in node.attribute
    )
    return (
        len(present) == needed
        and all(present)
        and len(node.input) <= most
        and typed
        and bool(node.output[:1])
    )


def decompose_microsoft(model: ir.Model) -> None:
    """Replace all nodes of the domain by operators of opset 20 with the same meaning.

    Raise Unsupported for forms that have none.
    """
    for node in [node for node in model.graph if node.domain == DOMAIN]:
        _refuse_other_outputs(node)
        node.domain = ""
        MICROSOFT[node.op_type](node)


def _refuse(node: ir.Node, problem: str) -> Unsupported:
    return Unsupported(
        [f"{node.name or node.outputs[0].name} ({node.op_type}): {problem}"]
    )


def _refuse_other_outputs(node: ir.Node) -> None:
    """Refuse a reader of what onnxruntime computes for training alone: a mean, an inverse deviation.

    Those of LayerNormalization are ONNX's own, and what they are is decided later.
    """
    if node.op_type == "LayerNormalization":
        return
    supported = (0, 3) if node.op_type.startswith("Skip") else (0,)
    for place, output in enumerate(node.outputs):
        if place not in supported and (
            output.uses() or output.is_graph_output()
        ):
            expected = " and ".join(str(index + 1) for index in supported)
            raise _refuse(
                node,
                f"its output {place + 1}, '{output.name}', is read; expected readers of output {expected} alone",
            )


def _gelu(node: ir.Node) -> None:
    """Gelu of x, or of x and a bias -> Add of the bias, Gelu.

    FastGelu becomes the Gelu that is approximated by tanh.
    """
    patch, x, bias = Patch(node, typed=False), first(node), operand(node, 1)
    approximate = "tanh" if node.op_type == "FastGelu" else "none"
    biased = x if bias is None else patch.add("Add", x, bias)
    patch.become("Gelu", biased, approximate=approximate)


def _quick_gelu(node: ir.Node) -> None:
    """QuickGelu -> x * Sigmoid(alpha * x)."""
    patch, x = Patch(node, typed=False), first(node)
    alpha = patch.number(float_attribute(node, "alpha", 1.702), "alpha")
    sigmoid = patch.add("Sigmoid", patch.add("Mul", x, alpha))
    patch.become("Mul", x, sigmoid)


def _matmul(node: ir.Node) -> None:
    """FusedMatMul -> alpha * a @ b; transA and transB exchange the last two axes of an operand."""
    patch = Patch(node, typed=False)
    if int_attribute(node, "transBatchA", 0) or int_attribute(
        node, "transBatchB", 0
    ):
        raise _refuse(node, "transBatchA or transBatchB is 1; expected 0")
    a: ir.Value | None = first(node)
    b = node.inputs[1]
    if int_attribute(node, "transA", 0):
        a = _transposed(patch, a)
    if int_attribute(node, "transB", 0):
        b = _transposed(patch, b)
    alpha = patch.number(float_attribute(node, "alpha", 1.0), "alpha")
    patch.become("Mul", patch.add("MatMul", a, b), alpha)


def _transposed(patch: Patch, value: ir.Value | None) -> ir.Value:
    """Exchange the last two axes of a value of unknown rank."""
    return patch.add("Einsum", value, equation="...ij->...ji")


_ACTIVATIONS: dict[str, tuple[tuple[str, float], ...]] = {
    "Relu": (), "Sigmoid": (), "Tanh": (), "LeakyRelu": (("alpha", 0.01),),
    "HardSigmoid": (("alpha", 0.2), ("beta", 0.5)),
}  # fmt: skip


def _activate(
    patch: Patch, value: ir.Value, name: str, parameters: tuple[float, ...]
) -> None:
    """Turn the node itself into its fused activation; an empty name is none."""
    if not name:
        patch.become("Identity", value)
    elif name == "Clip" and len(parameters) == 2:
        low = patch.number(parameters[0], "low")
        high = patch.number(parameters[1], "high")
        patch.become("Clip", value, low, high)
    elif name in _ACTIVATIONS:
        numbers = dict(_ACTIVATIONS[name])
        numbers.update(zip(numbers, parameters, strict=False))
        patch.become(name, value, **numbers)
    else:
        expected = ", ".join(sorted({*_ACTIVATIONS, "Clip"}))
        raise _refuse(patch.node, f"activation={name}; expected {expected}")


_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_GEMM = ("alpha", "beta", "transA", "transB")
_GEMM_PARAMETERS = ("activation_alpha", "activation_beta", "activation_gamma")


def _conv(node: ir.Node) -> None:
    """FusedConv -> Conv, Add of a fourth operand if there is one, the activation."""
    patch, addend = Patch(node, typed=False), operand(node, 3)
    activation = string_attribute(node, "activation", "")
    parameters: tuple[float, ...] = ()
    if "activation_params" in node.attributes:
        parameters = tuple(node.attributes["activation_params"].as_floats())
    value = patch.add("Conv", first(node), node.inputs[1], operand(node, 2))
    copy_attributes(node, value, *_CONV)
    if addend is not None:
        value = patch.add("Add", value, addend)
    _activate(patch, value, activation, parameters)


def _gemm(node: ir.Node) -> None:
    """FusedGemm -> Gemm, the activation."""
    patch = Patch(node, typed=False)
    activation = string_attribute(node, "activation", "")
    names = [name for name in _GEMM_PARAMETERS if name in node.attributes]
    parameters = tuple(float_attribute(node, name, 0.0) for name in names)
    value = patch.add("Gemm", first(node), node.inputs[1], operand(node, 2))
    copy_attributes(node, value, *_GEMM)
    _activate(patch, value, activation, parameters)


def _layer_norm(node: ir.Node) -> None:
    """Drop the attributes that the optimizer's older LayerNormalization has besides ONNX's own."""
    extra = set(node.attributes) - {"axis", "epsilon"}
    drop_attributes(node, *extra)


def _skip_layer_norm(node: ir.Node) -> None:
    """SkipLayerNormalization -> Add, Add of a bias if there is one, LayerNormalization.

    The fourth output is the sum, which may have readers of its own.
    """
    patch = Patch(node, typed=False)
    is_simplified = node.op_type.startswith("SkipSimplified")
    epsilon = float_attribute(node, "epsilon", 1e-12)
    scale = node.inputs[2]
    shift = None if is_simplified else operand(node, 3)
    bias = operand(node, 3 if is_simplified else 4)
    total = patch.add("Add", first(node), node.inputs[1])
    if bias is not None:
        total = patch.add("Add", total, bias)
    if len(node.outputs) == 4:
        Patch(node, node.outputs[3], typed=False).take_over(total)
    node.resize_outputs(1)
    operands = [total, scale] if shift is None else [total, scale, shift]
    patch.become("LayerNormalization", *operands, epsilon=epsilon)
    if is_simplified:
        node.op_type = "RMSNormalization"
        decompose_rms_norm(node)


_FIRST, _MIDDLE, _LAST = (np.array([axis], np.int64) for axis in (0, 1, -1))


def _few_bits(node: ir.Node) -> None:
    """MatMulNBits -> MatMul by the weights as reals."""
    if problem := decompose_few_bits(node):
        raise _refuse(node, problem)


def _distances(node: ir.Node) -> None:
    """CDist of two tables -> the length of each row's difference to each of the other's rows; sqeuclidean squares it."""
    patch = Patch(node, typed=False)
    metric = string_attribute(node, "metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise _refuse(
            node, f"metric={metric}; expected euclidean or sqeuclidean"
        )
    rows = patch.add(
        "Unsqueeze", first(node), patch.constant(_MIDDLE, "middle")
    )
    others = patch.add(
        "Unsqueeze", node.inputs[1], patch.constant(_FIRST, "first")
    )
    operands = (patch.add("Sub", rows, others), patch.constant(_LAST, "last"))
    if metric == "sqeuclidean":
        patch.become("ReduceSumSquare", *operands, keepdims=0)
    else:
        patch.become("ReduceL2", *operands, keepdims=0)


MICROSOFT: dict[str, Callable[[ir.Node], None]] = {
    **dict.fromkeys(("BiasGelu", "FastGelu", "Gelu"), _gelu),
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), _matmul),
    **dict.fromkeys(
        ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
        _skip_layer_norm,
    ),
    "CDist": _distances,
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "LayerNormalization": _layer_norm,
    "MatMulNBits": _few_bits,
    "QuickGelu": _quick_gelu,
    "SimplifiedLayerNormalization": decompose_rms_norm,
}

# for each operator, the least and the greatest number of operands
OPERANDS: dict[str, tuple[int, int]] = {
    "BiasGelu": (2, 2),
    "CDist": (2, 2),
    "FastGelu": (1, 2),
    "FusedConv": (2, 4),
    "FusedGemm": (2, 3),
    "FusedMatMul": (2, 2),
    "Gelu": (1, 1),
    "LayerNormalization": (2, 3),
    "MatMulNBits": (3, 6),
    "QuickGelu": (1, 1),
    "SimplifiedLayerNormalization": (2, 2),
    "SkipLayerNormalization": (3, 5),
    "SkipSimplifiedLayerNormalization": (3, 4),
    "TransposeMatMul": (2, 2),
    **OF_MICROSOFT,
}
