"""The form that each operator of the canonical graph must have, as `canonical_operators` describes it in words."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from mrt.graph.operators import BOOLEANS
from mrt.graph.values import (
    constant,
    constant_integers,
    first,
    float_attribute,
    int_attribute,
    ints_attribute,
    operand,
    rank_of,
    scalar,
    shape_of,
    string_attribute,
)
from mrt.rewrite.canonical_operators import BACKWARDS, INTEGER_NUMBERS


def has_canonical_form(node: ir.Node) -> bool:
    """Whether the operands and attributes of a canonical operator have its form."""
    return _FORMS.get(node.op_type, _is_unary)(node)


def _is_sum_of_products(node: ir.Node) -> bool:
    weights, bias = constant(operand(node, 1)), constant(operand(node, 2))
    if (
        weights is None
        or bias is None
        or weights.dtype != "float32"
        or bias.dtype != "float32"
    ):
        return False
    group = int_attribute(node, "group", 0)
    transposed = node.op_type == "ConvTranspose"
    inputs = weights.shape[0] if transposed else weights.shape[1] * group
    outputs = weights.shape[1] * group if transposed else weights.shape[0]
    return (
        rank_of(first(node)) == weights.ndim == 4
        and (shape_of(first(node)) or ())[1:2] == (inputs,)
        and bias.shape == (outputs,)
        and ints_attribute(node, "kernel_shape") == weights.shape[2:]
        and _has_window(node)
        and (
            not transposed
            or (
                ints_attribute(node, "dilations") == (1, 1)
                and len(ints_attribute(node, "output_padding") or ()) == 2
            )
        )
        and "output_shape" not in node.attributes
    )


def _has_window(node: ir.Node) -> bool:
    lengths = {"kernel_shape": 2, "strides": 2, "dilations": 2, "pads": 4}
    return (
        rank_of(first(node)) == 4
        and all(
            len(ints_attribute(node, name) or ()) == length
            for name, length in lengths.items()
        )
        and min(ints_attribute(node, "pads") or (0,)) >= 0
        and "auto_pad" not in node.attributes
    )


def _is_pool(node: ir.Node) -> bool:
    return (
        _has_window(node)
        and ints_attribute(node, "dilations") == (1, 1)
        and int_attribute(node, "ceil_mode", 0) == 0
    )


def _is_average_pool(node: ir.Node) -> bool:
    return (
        _is_pool(node)
        and any(ints_attribute(node, "pads") or ())
        and int_attribute(node, "count_include_pad", 0) == 0
    )


def _is_gemm(node: ir.Node) -> bool:
    weights, bias = constant(operand(node, 1)), constant(operand(node, 2))
    return (
        weights is not None
        and bias is not None
        and rank_of(first(node)) == 2
        and bias.shape == weights.shape[:1]
        and (int_attribute(node, "transA", 1), int_attribute(node, "transB", 0))
        == (0, 1)
        and (
            float_attribute(node, "alpha", 0.0),
            float_attribute(node, "beta", 0.0),
        )
        == (1.0, 1.0)
    )


def _is_matmul(node: ir.Node) -> bool:
    computed = all(constant(value) is None for value in node.inputs)
    return len(node.inputs) == 2 and (
        computed or (rank_of(node.outputs[0]) or 0) > 2
    )


def _is_binary(node: ir.Node) -> bool:
    return len(node.inputs) == 2 and all(
        value is not None for value in node.inputs
    )


def _is_clip(node: ir.Node) -> bool:
    limits = [constant(operand(node, index)) for index in (1, 2)]
    return len(node.inputs) == 3 and all(
        limit is not None and limit.shape == () for limit in limits
    )


def _is_unary(node: ir.Node) -> bool:
    """Whether every operand but one is a constant scalar: a function of one element."""
    computed = [value for value in node.inputs if constant(value) is None]
    return len(computed) == 1 and all(
        scalar(value) is not None
        for value in node.inputs
        if value is not computed[0]
    )


def _is_reduction(node: ir.Node) -> bool:
    axes, rank = constant_integers(operand(node, 1)), rank_of(first(node)) or 0
    return (
        bool(axes)
        and all(0 <= axis < rank for axis in axes or ())
        and int_attribute(node, "keepdims", 0) == 1
    )


def _is_softmax(node: ir.Node) -> bool:
    return int_attribute(node, "axis", -1) == (rank_of(first(node)) or 0) - 1


def _is_layer_norm(node: ir.Node) -> bool:
    shape, axis = shape_of(first(node)) or (), int_attribute(node, "axis", -1)
    parameters = [constant(operand(node, index)) for index in (1, 2)]
    return 0 <= axis < len(shape) and all(
        parameter is not None and parameter.shape == shape[axis:]
        for parameter in parameters
    )


def _is_instance_norm(node: ir.Node) -> bool:
    shape = shape_of(first(node)) or ()
    parameters = [constant(operand(node, index)) for index in (1, 2)]
    return len(shape) > 2 and all(
        parameter is not None and parameter.shape == shape[1:2]
        for parameter in parameters
    )


def _is_response(node: ir.Node) -> bool:
    positive = (
        float_attribute(node, "alpha", 1e-4) >= 0
        and float_attribute(node, "bias", 1.0) > 0
    )
    return (
        rank_of(first(node)) == 4
        and int_attribute(node, "size", 0) % 2 == 1
        and positive
    )


def _is_concat(node: ir.Node) -> bool:
    return int_attribute(node, "axis", -1) >= 0


def _is_reshape(node: ir.Node) -> bool:
    if (
        constant(first(node)) is not None
        and not node.outputs[0].is_graph_output()
    ):
        return (
            False  # only an output of the graph may be a Reshape of a constant
        )
    return (
        constant_integers(operand(node, 1)) == shape_of(node.outputs[0])
        and int_attribute(node, "allowzero", 0) == 0
    )


def _is_transpose(node: ir.Node) -> bool:
    return sorted(ints_attribute(node, "perm") or ()) == list(
        range(rank_of(first(node)) or 0)
    )


def _is_slice(node: ir.Node) -> bool:
    shape = shape_of(first(node)) or ()
    constants = [
        constant_integers(operand(node, index)) for index in range(1, 5)
    ]
    if any(numbers is None for numbers in constants):
        return False
    starts, ends, axes, steps = (numbers or () for numbers in constants)
    if steps == (-1,):
        return (
            starts == (-1,)
            and ends == (BACKWARDS,)
            and 0 <= axes[0] < len(shape)
        )
    return all(
        0 <= axis < len(shape) and 0 <= start < end <= shape[axis] and step >= 1
        for start, end, axis, step in zip(
            starts, ends, axes, steps, strict=True
        )
    )


def _is_pad(node: ir.Node) -> bool:
    pads = constant_integers(operand(node, 1))
    return (
        pads is not None
        and len(pads) == 2 * (rank_of(first(node)) or 0)
        and min(pads) >= 0
        and len(node.inputs) == 3
        and scalar(operand(node, 2)) is not None
        and string_attribute(node, "mode", "") == "constant"
    )


def _is_choice(node: ir.Node) -> bool:
    return len(node.inputs) == 3 and any(
        constant(value) is None for value in node.inputs
    )


def _is_arg_max(node: ir.Node) -> bool:
    return (
        int_attribute(node, "axis", -1) >= 0
        and int_attribute(node, "select_last_index", 0) == 0
    )


def _is_top_k(node: ir.Node) -> bool:
    k = constant_integers(operand(node, 1))
    return (
        k is not None
        and len(k) == 1
        and int_attribute(node, "axis", -1) >= 0
        and int_attribute(node, "sorted", 0) == 1
    )


def _is_gather(node: ir.Node) -> bool:
    computed = [value for value in node.inputs if constant(value) is None]
    return bool(computed) and int_attribute(node, "axis", -1) >= 0


def _is_modulus(node: ir.Node) -> bool:
    if first(node).dtype in INTEGER_NUMBERS:
        return len(node.inputs) == 2
    return int_attribute(node, "fmod", 0) == 1 and scalar(
        operand(node, 1)
    ) not in (
        None,
        0.0,
    )


def _is_resize(node: ir.Node) -> bool:
    x = shape_of(first(node))
    y = shape_of(node.outputs[0])
    sizes = constant_integers(operand(node, 3))
    return (
        string_attribute(node, "mode", "") == "linear"
        and string_attribute(node, "coordinate_transformation_mode", "")
        in ("align_corners", "half_pixel", "asymmetric")
        and x is not None
        and len(x) == 4
        and sizes == y
        and sizes is not None
        and x[:2] == sizes[:2]
        and int_attribute(node, "antialias", 0) == 0
    )


TAKE_CONSTANT_FIRST = (
    "Reshape",
    "Div",
    "Pow",
    "Concat",
    "MatMul",
    "Where",
    "Gather",
    "GatherElements",
)
_FORMS: dict[str, Callable[[ir.Node], bool]] = {
    "Conv": _is_sum_of_products,
    "ConvTranspose": _is_sum_of_products,
    "Gemm": _is_gemm,
    "MatMul": _is_matmul,
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "Div", "Max", "Min", *BOOLEANS - {"Not"}),
        _is_binary,
    ),
    "Where": _is_choice,
    "ArgMax": _is_arg_max,
    "TopK": _is_top_k,
    "Gather": _is_gather,
    "GatherElements": _is_gather,
    "Mod": _is_modulus,
    "Resize": _is_resize,
    "Clip": _is_clip,
    "MaxPool": _is_pool,
    "AveragePool": _is_average_pool,
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin"), _is_reduction),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _is_softmax),
    "LayerNormalization": _is_layer_norm,
    "InstanceNormalization": _is_instance_norm,
    "LRN": _is_response,
    "Concat": _is_concat,
    "Reshape": _is_reshape,
    "Transpose": _is_transpose,
    "Slice": _is_slice,
    "Pad": _is_pad,
}
