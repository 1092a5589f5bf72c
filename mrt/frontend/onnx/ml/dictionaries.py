"""Read the dictionaries that scikit-learn's converters write around scores as tensors; refuse any other."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from mrt.errors import Unsupported
from mrt.frontend.onnx.ml.operators import DOMAIN


def read_dictionaries(proto: onnx.ModelProto) -> None:
    """Give what ZipMap writes, a list of {class: score}, the type of its tensor of scores, in place.

    It must happen before the graph becomes one of onnx_ir, which has no such type. The node itself is
    replaced with the others of its domain. Raises Unsupported for dictionaries that come from elsewhere.
    """
    graph = proto.graph
    zipped = {
        name
        for node in graph.node
        if node.op_type == "ZipMap" and node.domain == DOMAIN
        for name in node.output
    }
    for value in (*graph.output, *graph.value_info):
        if value.name in zipped:
            value.type.Clear()
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    if others := list(_dictionaries(graph)):
        raise Unsupported(others)


def _dictionaries(graph: onnx.GraphProto) -> Iterator[str]:
    places = {
        "input": graph.input,
        "output": graph.output,
        "value": graph.value_info,
    }
    for place, values in places.items():
        for value in values:
            if _holds_dictionary(value.type):
                yield (
                    f"{place} '{value.name}': holds dictionaries; expected tensors: "
                    "export the model for arrays, or end in front of it with --outputs"
                )


def _holds_dictionary(kind: onnx.TypeProto) -> bool:
    while kind.HasField("sequence_type") or kind.HasField("optional_type"):
        inner = kind.WhichOneof("value")
        kind = getattr(kind, str(inner)).elem_type
    return bool(kind.HasField("map_type"))
