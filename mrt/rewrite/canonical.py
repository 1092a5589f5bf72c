"""The canonical graph: what `rewrite` promises and `quantize` relies on.

The graph has opset 20, operators of the default domain (and those of OWN_OPERATORS) in
the forms that CANONICAL_OPERATORS describes, and no subgraphs. Every shape is static,
known and of at most 6 dimensions. Constants are initializers, value names are unique,
and attributes are always written out. Values are float32, except that inputs, and
results of the operators in GIVE_OTHERS, may be integers of any integer type (indices,
counts) or booleans (bool).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.graph.operators import BOOLEANS
from mrt.graph.values import (
    MOST_ELEMENTS,
    OWN_DOMAIN,
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
from mrt.rewrite.canonical_operators import (
    BACKWARDS,
    CANONICAL_OPERATORS,
    GIVE_OTHERS,
    INTEGER_NUMBERS,
    MOST_DIMENSIONS,
    MOVE_ANYTHING,
    OWN_OPERATORS,
)
from mrt.rewrite.linear.affine import negative_variance
from mrt.rewrite.not_lowered import reason_not_lowered, reason_of_unknown_shape

__all__ = [
    "CANONICAL_OPERATORS",
    "INTEGER_NUMBERS",
    "MOST_DIMENSIONS",
    "MOVE_ANYTHING",
    "OWN_OPERATORS",
    "check",
]


def check(model: ir.Model) -> None:
    """Raise Unsupported with every node and value that is not in canonical form.

    The message has its name, its operator and the reason.
    """
    graph = model.graph
    problems = (
        []
        if graph.opset_imports.get("") == 20
        else [f"opset {graph.opset_imports.get('')}; expected 20"]
    )
    names = Counter(value.name for node in graph for value in node.outputs)
    names.update(
        value.name for value in (*graph.inputs, *graph.initializers.values())
    )
    problems += [
        f"value '{name}': {count} values have this name"
        for name, count in names.items()
        if count > 1
    ]
    problems += [
        f"input '{value.name}': {problem}"
        for value in graph.inputs
        if (problem := _value_problem(value, others=True))
    ]
    problems += [
        f"output '{value.name}': it is constant or an input"
        for value in graph.outputs
        if not value.producer()
    ]
    for node in graph:
        problem = _node_problem(node)
        if problem:
            problems.append(
                f"{node.name or node.outputs[0].name} ({node.op_type}): {problem}"
            )
    if problems:
        raise Unsupported(problems)


def _node_problem(node: ir.Node) -> str | None:
    if node.domain == OWN_DOMAIN and node.op_type in OWN_OPERATORS:
        return (
            None
            if shape_of(node.outputs[0]) is not None
            else "the shape of its result is not known"
        )
    if (
        node.domain == ""
        and node.op_type == "BatchNormalization"
        and (problem := negative_variance(node))
    ):
        return problem
    if node.op_type == "Where" and (problem := _nan_to_choose(node)):
        return problem
    if node.domain != "" or node.op_type not in CANONICAL_OPERATORS:
        return reason_not_lowered(node)
    if any(
        attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
        for attribute in node.attributes.values()
    ):
        return "it has a graph of its own"
    if len(node.outputs) != 1 and node.op_type != "TopK":
        return f"{len(node.outputs)} outputs; expected one"
    for output in node.outputs:
        if problem := _value_problem(
            output, others=node.op_type in GIVE_OTHERS
        ):
            return problem
    if not node.inputs or node.inputs[0] is None:
        return "it has no first operand"
    if constant(node.inputs[0]) is not None:
        return (
            "its first operand is constant"
            if node.op_type not in _TAKE_CONSTANT_FIRST
            else _form_problem(node)
        )
    return _form_problem(node)


def _nan_to_choose(node: ir.Node) -> str | None:
    """Return what is wrong with a Where that may choose NaN out of a constant."""
    for value in node.inputs[1:]:
        array = constant(value)
        if (
            array is not None
            and array.dtype.kind == "f"
            and np.isnan(array).any()
        ):
            name = "" if value is None else value.name
            return (
                f"it may choose NaN of '{name}', which no integer stands for; "
                "end in front of it with --outputs"
            )
    return None


def _form_problem(node: ir.Node) -> str | None:
    return (
        None
        if _FORMS.get(node.op_type, _is_unary)(node)
        else f"expected {CANONICAL_OPERATORS[node.op_type]}"
    )


def _value_problem(value: ir.Value, *, others: bool) -> str | None:
    shape = shape_of(value)
    if shape is None:
        producer = value.producer()
        if producer is None:
            return "its shape is not known"
        return reason_of_unknown_shape(producer)
    if min(shape, default=1) < 1:
        return f"shape {list(shape)} has no elements"
    if len(shape) > MOST_DIMENSIONS:
        return f"shape {list(shape)} has more than 6 dimensions"
    if math.prod(shape) > MOST_ELEMENTS:
        return f"shape {list(shape)} has more than {MOST_ELEMENTS} elements"
    allowed = {
        ir.DataType.FLOAT,
        *((ir.DataType.BOOL, *INTEGER_NUMBERS) if others else ()),
    }
    if value.dtype not in allowed:
        return f"its result is {'unknown' if value.dtype is None else value.dtype.name.lower()}; expected float"
    return None


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


_TAKE_CONSTANT_FIRST = (
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
