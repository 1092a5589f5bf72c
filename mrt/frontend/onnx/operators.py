"""Which ONNX operators are accepted, and under which attributes. What is refused is refused here, all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx

from mrt.errors import Unsupported
from mrt.frontend.onnx.ml.operators import DOMAIN as ML_DOMAIN
from mrt.frontend.onnx.ml.operators import ML_OPERATORS
from mrt.frontend.onnx.opsets.experimental import EXPERIMENTAL, LEFT
from mrt.frontend.onnx.opsets.microsoft import DOMAIN as MICROSOFT_DOMAIN
from mrt.frontend.onnx.opsets.microsoft import OPERANDS, is_spelled
from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS
from mrt.frontend.onnx.refused import reason, reason_of_domain
from mrt.frontend.onnx.resolve.functions import COMPOSED
from mrt.frontend.onnx.resolve.loop_scan import MOST_STEPS

Attributes = Mapping[str, Any]
Check = Callable[[onnx.NodeProto, Attributes], str | None]

HINT = "supported operators: mrt operators --frontend onnx"


def _need(**allowed: tuple[Any, ...]) -> Check:
    """Attributes that may only have one of the given values, where present."""

    def check(node: onnx.NodeProto, attributes: Attributes) -> str | None:
        for name, values in allowed.items():
            if name in attributes and attributes[name] not in values:
                expected = " or ".join(_show(value) for value in values)
                return f"{name}={_show(attributes[name])}; expected {expected}"
        return None

    return check


def _up_to_three_dimensional(
    node: onnx.NodeProto, attributes: Attributes
) -> str | None:
    kernel = attributes.get("kernel_shape")
    return (
        None
        if kernel is None or len(kernel) in (1, 2, 3)
        else f"kernel_shape={_show(kernel)}; expected 1 to 3 dimensions"
    )


def _one_output(node: onnx.NodeProto, attributes: Attributes) -> str | None:
    extra = [name for name in node.output[1:] if name]
    return f"second output '{extra[0]}'; expected one output" if extra else None


def _all(*checks: Check) -> tuple[Check, ...]:
    return checks


def _show(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


_ELEMENTWISE = (
    "Abs Acos Acosh Add Asin Asinh Atan Atanh Ceil Celu Clip Cos Cosh Div Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu "
    "Log Max Mean Min Mish Mul Neg PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign "
    "Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu"
)
_MOVEMENT = "Concat Flatten Identity Reshape Slice Split Squeeze Transpose Unsqueeze DepthToSpace SpaceToDepth"
_REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
_NORMALISATION = "GroupNormalization InstanceNormalization LRN LayerNormalization MeanVarianceNormalization"
# Nothing of these is left when their operands are known at conversion; what is left is refused after folding, by name.
_PLUMBING = (
    "And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike CenterCropPad Compress Constant "
    "ConstantOfShape CumSum Equal Expand EyeLike Gather DequantizeLinear GatherElements GatherND Greater "
    "GreaterOrEqual IsInf IsNaN Less LessOrEqual Mod NonZero Not Or QuantizeLinear Range Scatter ScatterElements ScatterND Shape "
    "Size Tile Trilu Unique Where Xor"
)
_ORDER = (
    "AffineGrid ArgMax ArgMin BlackmanWindow DFT Einsum GlobalLpPool HammingWindow HannWindow Hardmax MelWeightMatrix OneHot "
    "ReverseSequence STFT TopK"
)

_RESIZE: dict[str, tuple[Any, ...]] = {
    "coordinate_transformation_mode": (
        b"align_corners",
        b"asymmetric",
        b"half_pixel",
        b"half_pixel_symmetric",
        b"pytorch_half_pixel",
        b"tf_crop_and_resize",
    ),
    "mode": (b"nearest", b"linear", b"cubic"),
    "nearest_mode": (b"floor", b"ceil", b"round_prefer_floor", b"round_prefer_ceil"),
    "antialias": (0, 1),
    "keep_aspect_ratio_policy": (b"stretch", b"not_larger", b"not_smaller"),
}

_GRID: dict[str, tuple[Any, ...]] = {
    "mode": (b"bilinear", b"linear", b"nearest", b"bicubic", b"cubic"),
    "padding_mode": (b"zeros", b"border", b"reflection"),
}

_PADDING = _need(auto_pad=(b"NOTSET", b"SAME_UPPER", b"SAME_LOWER", b"VALID"))

OPERATORS: dict[str, tuple[Check, ...]] = {
    **dict.fromkeys(
        f"{_ELEMENTWISE} {_MOVEMENT} {_REDUCTIONS} {_NORMALISATION} {_PLUMBING} {_ORDER}".split(),
        (),
    ),
    "AveragePool": _all(_PADDING, _up_to_three_dimensional),
    "BatchNormalization": _all(_need(spatial=(1,), training_mode=(0,)), _one_output),
    "Col2Im": (),
    "Conv": _all(_PADDING, _up_to_three_dimensional),
    "ConvTranspose": _all(_PADDING, _up_to_three_dimensional),
    "DepthToSpace": _all(_need(mode=(b"DCR", b"CRD"))),
    "Dropout": _all(_one_output),
    "Gelu": _all(_need(approximate=(b"none", b"tanh"))),
    "Gemm": (),
    "GridSample": _all(_need(**_GRID)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), ()),
    "GlobalAveragePool": (),
    "GlobalMaxPool": (),
    "LogSoftmax": (),
    "LpNormalization": _all(_need(p=(1, 2))),
    "LpPool": _all(_PADDING, _up_to_three_dimensional),
    "MatMul": (),
    "MaxPool": _all(_PADDING, _up_to_three_dimensional, _need(storage_order=(0,))),
    "MaxUnpool": (),
    "NonMaxSuppression": _all(_need(center_point_box=(0, 1))),
    "Pad": _all(_need(mode=(b"constant", b"edge", b"reflect", b"wrap"))),
    "QLinearConv": _all(_PADDING, _up_to_three_dimensional),
    "QLinearMatMul": (),
    "RMSNormalization": (),
    "Resize": _all(_need(**_RESIZE)),
    "Softmax": (),
    "Upsample": _all(_need(mode=(b"nearest", b"linear"))),
}


def _experimental(node: onnx.NodeProto, attributes: Attributes) -> str | None:
    """What `decompose_experimental` left."""
    return f"an experimental operator, which ONNX dropped with opset {LEFT}; expected an older model, and its form there"


OPERATORS.update(dict.fromkeys(EXPERIMENTAL, (_experimental,)))


def _composed(node: onnx.NodeProto, attributes: Attributes) -> str | None:
    """What `write_out_composed` left."""
    return "a form that ONNX does not define by other operators; export the model with those, or end in front of it with --outputs"


OPERATORS.update(dict.fromkeys(COMPOSED, (_composed,)))


_OTHERS: dict[str, Iterable[str]] = {
    ML_DOMAIN: ML_OPERATORS,
    MICROSOFT_DOMAIN: OPERANDS,
}
_NO_LOOP = (
    f"how often it runs is not known at conversion, or more than {MOST_STEPS} times; fix shapes with --shape, export the "
    "model without it, or end in front of it with --outputs"
)
_WITH_GRAPHS = {
    "If": "its condition is only known when it runs; fix shapes with --shape, an input with --value, "
    "or end in front of it with --outputs",
    "Loop": _NO_LOOP,
    "Scan": _NO_LOOP,
}


def refuse_unsupported(proto: onnx.ModelProto, opset: int) -> None:
    """Raise Unsupported with one line for each function, node and attribute that is not accepted."""
    problems = [
        f"function '{function.domain}:{function.name}': functions of a model's own are not supported"
        for function in proto.functions
    ]
    for index, node in enumerate(proto.graph.node):
        problems += [
            f"{_place(node, index)}: {trouble}" for trouble in _troubles(node, opset)
        ]
    problems += [
        f"input '{name}': {trouble}" for name, trouble in _input_troubles(proto)
    ]
    if proto.graph.sparse_initializer:
        problems += [
            f"initializer '{sparse.values.name}': it is sparse"
            for sparse in proto.graph.sparse_initializer
        ]
    if problems:
        raise Unsupported(problems, HINT)


def _place(node: onnx.NodeProto, index: int) -> str:
    name = node.name or (node.output[0] if node.output else "") or f"#{index}"
    return f"{name} ({node.op_type})"


def _troubles(node: onnx.NodeProto, opset: int) -> list[str]:
    if node.domain == MICROSOFT_DOMAIN and is_spelled(node):
        return []
    if node.domain not in DEFAULT_DOMAINS:
        return [
            reason_of_domain(node.domain, node.op_type, _OTHERS.get(node.domain, ()))
        ]
    if node.op_type in _WITH_GRAPHS:
        return [_WITH_GRAPHS[node.op_type]]
    if node.op_type not in OPERATORS:
        return [reason(node.op_type, opset)]
    subgraphs = [a.name for a in node.attribute if a.HasField("g") or a.graphs]
    references = [a.name for a in node.attribute if a.ref_attr_name]
    if subgraphs or references:
        return [
            f"{name}: attributes that are graphs or references are not supported"
            for name in subgraphs + references
        ]
    if node.op_type != "Constant" and not (node.input and node.input[0]):
        return ["its first operand is missing"]
    if mistyped := _mistyped(node, opset):
        return mistyped
    if garbled := [a.name for a in node.attribute if not _is_text(a.s)]:
        return [f"attribute {name} is no text" for name in garbled]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    found = [check(node, attributes) for check in OPERATORS[node.op_type]]
    return [trouble for trouble in found if trouble is not None]


def _mistyped(node: onnx.NodeProto, opset: int) -> list[str]:
    """Attributes of another type than the operator declares: reading them would give what no check expects."""
    if not onnx.defs.has(node.op_type):
        return []
    try:
        declared = onnx.defs.get_schema(node.op_type, opset, "").attributes
    except onnx.defs.SchemaError:
        return [f"ONNX opset {opset} has no such operator"]
    wanted = {
        name: str(attribute.type).rpartition(".")[2]
        for name, attribute in declared.items()
    }  # AttrType.INTS
    found = {
        a.name: onnx.AttributeProto.AttributeType.Name(a.type) for a in node.attribute
    }
    return [
        f"attribute {name} is of type {kind}; expected {wanted[name]}"
        for name, kind in found.items()
        if kind != wanted.get(name, kind)
    ]


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_INPUTS = (
    onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE, onnx.TensorProto.BOOL,
    onnx.TensorProto.INT8, onnx.TensorProto.INT16, onnx.TensorProto.INT32, onnx.TensorProto.INT64,
    onnx.TensorProto.UINT8, onnx.TensorProto.UINT16, onnx.TensorProto.UINT32, onnx.TensorProto.UINT64,
)  # fmt: skip


def _input_troubles(proto: onnx.ModelProto) -> list[tuple[str, str]]:
    constants = {tensor.name for tensor in proto.graph.initializer}
    found = []
    for entry in proto.graph.input:
        if entry.name in constants:
            continue
        if not entry.type.HasField("tensor_type"):
            found.append((entry.name, "not a tensor"))
        elif entry.type.tensor_type.elem_type not in _INPUTS:
            kind = _type_name(entry.type.tensor_type.elem_type)
            found.append(
                (entry.name, f"holds {kind}; expected floats, bool or integers")
            )
    return found


def _type_name(kind: int) -> str:
    known = onnx.TensorProto.DataType
    return known.Name(kind).lower() if kind in known.values() else f"type {kind}"
