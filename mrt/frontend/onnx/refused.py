"""The reasons why ONNX operators are refused, with what to do instead.

In the message, a reason follows the name of the operator.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx
import onnx_ir as ir

from mrt.frontend.onnx.opsets.microsoft import DOMAIN as MICROSOFT_DOMAIN

QUANTIZED = "integers in a form that is not read; convert the float model that this one was made from"
_END_EARLIER = "end in front of it with --outputs"
_OF_TRAINING = f"a loss, which belongs to training; {_END_EARLIER}"
_RANDOM = (
    "random numbers, which no program draws; export the model for inference, "
    f"make them an input, or {_END_EARLIER}"
)
_TEXT = "text, of which no program is made; prepare it outside, and let the model begin with numbers"
_SEQUENCE = (
    "sequences and optionals whose length is only known when it runs; "
    f"export without them, or {_END_EARLIER}"
)
_INTEGER_PRODUCT = (
    f"a product of so many numbers leaves every range; {_END_EARLIER}"
)
_REGIONS = (
    "pooling of regions, which no program does; "
    f"{_END_EARLIER}, and pool the regions outside"
)


def _each(names: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


REASONS: dict[str, str] = {
    **_each("DynamicQuantizeLinear", QUANTIZED),
    **_each(
        "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
        _RANDOM,
    ),
    **_each(
        "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss Adagrad Adam Momentum Gradient",
        _OF_TRAINING,
    ),
    **_each(
        "RegexFullMatch StringConcat StringNormalizer StringSplit",
        _TEXT,
    ),
    "TfIdfVectorizer": "it counts words, or sequences of tokens, which no program does; count them outside, "
    "and let the model begin with the counts",
    "ImageDecoder": "compressed pictures, of which no program is made; decode them outside",
    **_each(
        "Optional OptionalGetElement OptionalHasElement SequenceErase SequenceInsert SequenceLength SequenceMap",
        _SEQUENCE,
    ),
    **_each(
        "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SplitToSequence",
        _SEQUENCE,
    ),
    **_each("CumProd Det", _INTEGER_PRODUCT),
    "DeformConv": f"it reads at positions that are computed for each pixel; {_END_EARLIER}",
    **_each("MaxRoiPool RoiAlign", _REGIONS),
    "TensorScatter": f"it writes at positions that are computed; {_END_EARLIER}",
    "BitCast": f"single bits of numbers; {_END_EARLIER}",
}

_UNOPTIMISED = (
    "convert the model from before that, "
    "or save it with optimisation level basic"
)
_LAID_OUT = f"written by onnxruntime's optimiser; {_UNOPTIMISED}"
_ORT = (
    f"one of onnxruntime's own; if its optimiser wrote it, {_UNOPTIMISED}; "
    f"if not, {_END_EARLIER}"
)
_FRAMEWORK = (
    "an operator of the framework, for which its exporter found no ONNX"
)
_UNTRANSLATED = f"ONNX has none of this name; export the model with operators of ONNX, or {_END_EARLIER}"
_DOMAINS = {
    MICROSOFT_DOMAIN: _ORT,
    "com.microsoft.nchwc": _LAID_OUT,
    "com.ms.internal.nhwc": _LAID_OUT,
    "org.pytorch.aten": f"{_FRAMEWORK}; export with a newer opset, or {_END_EARLIER}",
    "org.pytorch._caffe2": f"{_FRAMEWORK}; export with a newer opset, or {_END_EARLIER}",
    "ai.onnx.ml": f"a classical model or its preparation; {_END_EARLIER}",
    "ai.onnx.training": _OF_TRAINING,
    "ai.onnx.preview.training": _OF_TRAINING,
    "qonnx.custom_op.general": QUANTIZED,
    "finn.custom_op.general": QUANTIZED,
    "onnx.brevitas": QUANTIZED,
}


def reason(operator: str, opset: int) -> str:
    """Return the refusal of an operator of the default domain."""
    why = REASONS.get(operator, _END_EARLIER)
    if not onnx.defs.has(operator):
        why = _UNTRANSLATED
    return f"unsupported operator (ONNX opset {opset}): {why}"


def reason_of_sequence(node: ir.Node) -> str | None:
    """Return the refusal of a sequence of values that is an output; None for other nodes."""
    graph = node.graph
    if node.op_type != "SequenceConstruct" or graph is None:
        return None
    if not (node.outputs and node.outputs[0].is_graph_output()):
        return None
    result = node.outputs[0]
    names = [str(value.name) for value in node.inputs if value is not None]
    output_names = ",".join(
        name
        for output in graph.outputs
        for name in (names if output is result else [str(output.name)])
    )
    return (
        f"output '{result.name}' is a sequence, and outputs of a program are arrays; "
        f"name its elements with --outputs {output_names}"
    )


def reason_of_domain(
    domain: str, operator: str, supported: Iterable[str]
) -> str:
    """Return the refusal of an operator of another domain; `supported` are its others."""
    refusal = f"operator of the domain '{domain}'"
    if operator in supported:
        return (
            f"{refusal} with operands or attributes that it does not have there"
        )
    why = _DOMAINS.get(
        domain,
        f"its author's own; export the model with operators of ONNX, or {_END_EARLIER}",
    )
    return f"{refusal}: {why}"


def text_problem(node: ir.Node) -> str:
    """Return what is wrong with a node that reads texts which the file holds; nothing if it reads none."""
    for value in node.inputs:
        if value is not None and _holds_text(value):
            return f"it reads the texts in '{value.name}', of which no program is made; {_END_EARLIER}"
    return ""


def _holds_text(value: ir.Value) -> bool:
    tensor = value.const_value
    maker = value.producer()
    if tensor is None and maker is not None and maker.op_type == "Constant":
        attributes = maker.attributes
        if "value" not in attributes:
            return not attributes.keys().isdisjoint(_TEXT_ATTRIBUTES)
        tensor = attributes["value"].as_tensor()
    return tensor is not None and tensor.dtype == ir.DataType.STRING


_TEXT_ATTRIBUTES = {"value_string", "value_strings"}
