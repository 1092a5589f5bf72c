"""The ONNX operators that are accepted, with the attributes that each may have.

Every node that is not accepted is refused here, all of them in one error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.ml.operators import DOMAIN as ML_DOMAIN
from mrt.frontend.onnx.ml.operators import ML_OPERATORS
from mrt.frontend.onnx.opsets.experimental import EXPERIMENTAL, LEFT
from mrt.frontend.onnx.opsets.microsoft import DOMAIN as MICROSOFT_DOMAIN
from mrt.frontend.onnx.opsets.microsoft import OPERANDS, is_decomposable
from mrt.frontend.onnx.quantized.qonnx import is_qonnx, qonnx_problem
from mrt.frontend.onnx.read.functions import COMPOSED
from mrt.frontend.onnx.refused import (
    reason,
    reason_of_domain,
    reason_of_sequence,
    text_problem,
)
from mrt.frontend.onnx.resolve.if_both import append_of
from mrt.frontend.onnx.resolve.loop_scan import TOO_LONG
from mrt.graph.values import inputs_behind, operand

Attributes = Mapping[str, Any]
Check = Callable[[ir.Node, Attributes], str | None]

HINT = "supported operators: mrt operators --frontend onnx"


def _need(**allowed: tuple[Any, ...]) -> Check:
    """Make a check that attributes, where present, have one of the allowed values."""

    def check(node: ir.Node, attributes: Attributes) -> str | None:
        for name, values in allowed.items():
            if name in attributes and attributes[name] not in values:
                expected = " or ".join(str(value) for value in values)
                return f"{name}={attributes[name]}; expected {expected}"
        return None

    return check


def _up_to_three_dimensional(
    node: ir.Node, attributes: Attributes
) -> str | None:
    kernel = attributes.get("kernel_shape")
    if kernel is None or len(kernel) in (1, 2, 3):
        return None
    return f"kernel_shape={kernel}; expected 1 to 3 dimensions"


def _one_output(node: ir.Node, attributes: Attributes) -> str | None:
    extra = [value.name for value in node.outputs[1:] if value.name]
    if not extra:
        return None
    return f"second output '{extra[0]}'; expected one output"


_ELEMENTWISE = """
Abs Acos Acosh Add Asin Asinh Atan Atanh Ceil Celu Clip Cos Cosh Div Elu Erf Exp Floor
Gelu HardSigmoid HardSwish LeakyRelu Log Max Mean Min Mish Mul Neg PRelu Pow Reciprocal
Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan
Tanh ThresholdedRelu
"""
_MOVEMENT = """
Concat Flatten Identity Reshape Slice Split Squeeze Transpose Unsqueeze DepthToSpace
SpaceToDepth
"""
_REDUCTIONS = """
ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
ReduceSum ReduceSumSquare
"""
_NORMALIZATION = """
GroupNormalization InstanceNormalization LRN LayerNormalization
MeanVarianceNormalization
"""
# These disappear where their operands are known at conversion. Those that stay are
# refused by name after folding.
_SHAPE_ARITHMETIC = """
And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike CenterCropPad
Compress Constant ConstantOfShape CumSum Equal Expand EyeLike Gather DequantizeLinear
GatherElements GatherND Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Mod NonZero
Not Or QuantizeLinear Range Scatter ScatterElements ScatterND Shape Size Tile Trilu
Unique Where Xor
"""
_OTHERS_WITHOUT_CHECK = """
AffineGrid ArgMax ArgMin BlackmanWindow Col2Im DFT Einsum GRU Gemm GlobalAveragePool
GlobalLpPool GlobalMaxPool HammingWindow HannWindow Hardmax LSTM LogSoftmax MatMul
MatMulInteger MaxUnpool MelWeightMatrix OneHot QLinearMatMul RMSNormalization RNN ReverseSequence STFT
Softmax TopK
"""
_WITHOUT_CHECK = (
    _ELEMENTWISE,
    _MOVEMENT,
    _REDUCTIONS,
    _NORMALIZATION,
    _SHAPE_ARITHMETIC,
    _OTHERS_WITHOUT_CHECK,
)

_RESIZE: dict[str, tuple[Any, ...]] = {
    "coordinate_transformation_mode": (
        "align_corners",
        "asymmetric",
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "tf_crop_and_resize",
    ),
    "mode": ("nearest", "linear", "cubic"),
    "nearest_mode": (
        "floor",
        "ceil",
        "round_prefer_floor",
        "round_prefer_ceil",
    ),
    "antialias": (0, 1),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
}

_GRID: dict[str, tuple[Any, ...]] = {
    "mode": ("bilinear", "linear", "nearest", "bicubic", "cubic"),
    "padding_mode": ("zeros", "border", "reflection"),
}

_PADDING = _need(auto_pad=("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))


def _experimental(node: ir.Node, attributes: Attributes) -> str | None:
    """Refuse a form that `decompose_experimental` could not decompose."""
    return (
        f"an experimental operator, which ONNX dropped with opset {LEFT}; "
        "expected an older model, and its form there"
    )


def _composed(node: ir.Node, attributes: Attributes) -> str | None:
    """Refuse a form that `inline_composed` could not inline."""
    return (
        "a form that ONNX does not define by other operators; export the model with "
        "those, or end in front of it with --outputs"
    )


OPERATORS: dict[str, tuple[Check, ...]] = {
    **dict.fromkeys(" ".join(_WITHOUT_CHECK).split(), ()),
    "AveragePool": (_PADDING, _up_to_three_dimensional),
    "BatchNormalization": (
        _need(spatial=(1,), training_mode=(0,)),
        _one_output,
    ),
    "Conv": (_PADDING, _up_to_three_dimensional),
    "ConvInteger": (_PADDING, _up_to_three_dimensional),
    "ConvTranspose": (_PADDING, _up_to_three_dimensional),
    "DepthToSpace": (_need(mode=("DCR", "CRD")),),
    "Dropout": (_one_output,),
    "Gelu": (_need(approximate=("none", "tanh")),),
    "GridSample": (_need(**_GRID),),
    "LpNormalization": (_need(p=(1, 2)),),
    "LpPool": (_PADDING, _up_to_three_dimensional),
    "MaxPool": (_PADDING, _up_to_three_dimensional, _need(storage_order=(0,))),
    "NonMaxSuppression": (_need(center_point_box=(0, 1)),),
    "Pad": (_need(mode=("constant", "edge", "reflect", "wrap")),),
    "QLinearConv": (_PADDING, _up_to_three_dimensional),
    "Resize": (_need(**_RESIZE),),
    "Upsample": (_need(mode=("nearest", "linear")),),
    **dict.fromkeys(EXPERIMENTAL, (_experimental,)),
    **dict.fromkeys(COMPOSED, (_composed,)),
}

_OTHERS: dict[str, Iterable[str]] = {
    ML_DOMAIN: ML_OPERATORS,
    MICROSOFT_DOMAIN: OPERANDS,
}
MOST_NAMED = 3  # inputs in a message
_OTHERWISE = "export the model without it, or end in front of it with --outputs"
_NO_LOOP = (
    "how often it runs is not known at conversion; "
    f"fix shapes with {{shapes}}, {_OTHERWISE}"
)
_WITH_GRAPHS = {
    "If": "its condition is only known when it runs, and its branches have no one "
    "shape that is known now, so that both cannot be computed; fix shapes with {shapes}, "
    "an input with --value, or end in front of it with --outputs",
    "Loop": _NO_LOOP,
    "Scan": _NO_LOOP,
}
_APPENDS = (
    "it appends to a list where its condition, which is only known when it runs, is true, and every shape of a "
    "program is fixed; keep all rows and multiply them by 0 or 1 instead (PyTorch: nn.Embedding and a mask "
    "in place of nn.EmbeddingBag with padding_idx), or end in front of it with --outputs"
)


def refuse_unsupported(
    model: ir.Model, opset: int, open_shapes: str = ""
) -> None:
    """Raise Unsupported with a line for each function, node and input that is not accepted.

    `open_shapes` are the options that give inputs the shapes that are not known yet.
    """
    shapes = open_shapes or "--shape"
    problems = [
        f"function '{function.domain}:{function.name}': "
        "functions of a model's own are not supported"
        for function in model.functions.values()
    ]
    for index, node in enumerate(model.graph):
        place = _place(node, index)
        problems += [
            f"{place}: {problem}" for problem in _problems(node, opset, shapes)
        ]
    for value in model.graph.inputs:
        problem = _input_problem(value)
        if problem is not None:
            problems.append(f"input '{value.name}': {problem}")
    if problems:
        raise Unsupported(problems, HINT)


def _place(node: ir.Node, index: int) -> str:
    output = node.outputs[0].name if node.outputs else ""
    return f"{node.name or output or f'#{index}'} ({node.op_type})"


def _problems(node: ir.Node, opset: int, shapes: str) -> list[str]:
    """Return why a node is not accepted, most basic reasons first."""
    if node.domain == MICROSOFT_DOMAIN and is_decomposable(ir.to_proto(node)):
        return []
    if is_qonnx(node):
        problem = qonnx_problem(node)
        return [] if problem is None else [problem]
    if node.domain:
        others = _OTHERS.get(node.domain, ())
        return [reason_of_domain(node.domain, node.op_type, others)]
    if node.op_type in _WITH_GRAPHS:
        if TOO_LONG in node.metadata_props:
            return [f"{node.metadata_props[TOO_LONG]}: {_OTHERWISE}"]
        problem = _WITH_GRAPHS[node.op_type].format(shapes=shapes)
        if node.op_type == "If" and append_of(node):
            problem = _APPENDS
        return [problem + _deciding_inputs(node)]
    of_sequence = reason_of_sequence(node)
    if of_sequence is not None:
        return [of_sequence]
    if node.op_type not in OPERATORS:
        return [reason(node.op_type, opset)]
    if problems := _attribute_problems(node, opset):
        return problems
    if problem := text_problem(node):
        return [problem]
    if node.op_type != "Constant" and operand(node, 0) is None:
        return ["its first operand is missing"]
    attributes = {
        name: _plain(value) for name, value in node.attributes.items()
    }
    results = [check(node, attributes) for check in OPERATORS[node.op_type]]
    return [problem for problem in results if problem is not None]


def _deciding_inputs(node: ir.Node) -> str:
    """Return which inputs of the model decide the first operand of a node, where they are few."""
    value = operand(node, 0)
    names = [] if value is None else inputs_behind(value)
    if not 1 <= len(names) <= MOST_NAMED:
        return ""
    listed = ", ".join(f"'{name}'" for name in names)
    return f"; that depends on input {listed} alone"


def _attribute_problems(node: ir.Node, opset: int) -> list[str]:
    if mistyped := _mistyped(node, opset):
        return mistyped
    attributes = node.attributes.values()
    unreadable = [
        f"{attribute.name}: attributes that are graphs or references are not supported"
        for attribute in attributes
        if attribute.is_ref() or attribute.type in _GRAPHS
    ]
    if unreadable:
        return unreadable
    return [
        f"attribute {attribute.name} is no text"
        for attribute in attributes
        if attribute.type == ir.AttributeType.STRING
        and isinstance(attribute.value, bytes)
    ]


def _plain(attribute: ir.Attr) -> Any:
    """Return an attribute's value, with a list in place of a tuple."""
    value = attribute.value
    return list(value) if isinstance(value, tuple) else value


def _mistyped(node: ir.Node, opset: int) -> list[str]:
    """Return the attributes whose type is not the one that the operator declares.

    Their values would be of a type that no check expects.
    """
    if not onnx.defs.has(node.op_type):
        return []
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        return [f"ONNX opset {opset} has no such operator"]
    problems = []
    for name, attribute in node.attributes.items():
        if name not in schema.attributes:
            continue
        declared = str(schema.attributes[name].type)  # AttrType.INTS
        expected = declared.rpartition(".")[2]
        kind = ir.AttributeType(attribute.type).name
        if kind != expected:
            problems.append(
                f"attribute {name} is of type {kind}; expected {expected}"
            )
    return problems


_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
_INPUTS = (
    ir.DataType.FLOAT,
    ir.DataType.FLOAT16,
    ir.DataType.DOUBLE,
    ir.DataType.BOOL,
    ir.DataType.INT8,
    ir.DataType.INT16,
    ir.DataType.INT32,
    ir.DataType.INT64,
    ir.DataType.UINT8,
    ir.DataType.UINT16,
    ir.DataType.UINT32,
    ir.DataType.UINT64,
)


def refuse_inputs_of_text(model: ir.Model) -> None:
    """Raise Unsupported, naming every input that holds text, of which there are no integers."""
    problems = [
        f"input '{value.name}': {_input_problem(value)}"
        for value in model.graph.inputs
        if value.dtype == ir.DataType.STRING
    ]
    if problems:
        raise Unsupported(problems)


def _input_problem(value: ir.Value) -> str | None:
    if not isinstance(value.type, ir.TensorType):
        return "not a tensor"
    if value.dtype in _INPUTS:
        return None
    kind = value.type.dtype.name.lower()
    return f"holds {kind}; expected floats, bool or integers"
