"""A model's own functions are written out where they are called, as exporters of today write whole modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
import onnx.inliner

from mrt.errors import BadModel
from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS

MOST_NODES = 1 << 17
COMPOSED = (
    "Attention",
    "CausalConvWithState",
    "LinearAttention",
    "RotaryEmbedding",
    "SwiGLU",
)
Key = tuple[str, str, str]


def write_out_functions(proto: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """The same model without the functions that can be written out; those left are refused with the other operators.

    A function that calls itself, or calls that multiply beyond what a model has, are refused before anything is written.
    """
    if not proto.functions:
        return proto
    bodies = {
        _key(function.domain, function.name, function.overload): function
        for function in proto.functions
    }
    sizes: dict[Key, int] = {}
    for key in bodies:
        _measure(key, bodies, sizes, path)
    calls = (sizes.get(_called(node), 1) for node in _all_nodes(proto.graph.node))
    if (total := sum(calls)) > MOST_NODES:
        raise BadModel(
            f"{path}: {total} nodes once its functions are written out; at most {MOST_NODES} are read"
        )
    try:
        written = onnx.inliner.inline_local_functions(proto)
    except Exception as error:  # the library names no type for what it cannot take
        raise BadModel(
            f"{path}: its functions cannot be written out: {' '.join(str(error).split())[:300]}"
        ) from None
    called = {_called(node) for node in _all_nodes(written.graph.node)}
    kept = [
        item
        for item in written.functions
        if _key(item.domain, item.name, item.overload) in called
    ]
    del written.functions[:]
    written.functions.extend(kept)
    return written


def _key(domain: str, name: str, overload: str) -> Key:
    return ("" if domain == "ai.onnx" else domain, name, overload)


def _called(node: onnx.NodeProto) -> Key:
    return _key(node.domain, node.op_type, node.overload)


def _all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes and those of their subgraphs."""
    waiting = [nodes]
    while waiting:
        for node in waiting.pop():
            yield node
            for attribute in node.attribute:
                waiting += [graph.node for graph in (*attribute.graphs, attribute.g)]


def _measure(
    start: Key, bodies: dict[Key, onnx.FunctionProto], sizes: dict[Key, int], path: Path
) -> None:
    """The nodes that a call becomes, without recursion: a file may nest calls as deep as it likes."""
    waiting, open_calls = [start], set[Key]()
    while waiting:
        key = waiting[-1]
        nodes = [] if key in sizes else list(_all_nodes(bodies[key].node))
        missing = [
            call
            for node in nodes
            if (call := _called(node)) in bodies and call not in sizes
        ]
        if key in sizes or not missing:
            waiting.pop()
            open_calls.discard(key)
            sizes.setdefault(key, sum(sizes.get(_called(node), 1) for node in nodes))
            continue
        open_calls.add(key)
        if circular := [call for call in missing if call in open_calls]:
            raise BadModel(
                f"{path}: function '{circular[0][0]}:{circular[0][1]}' calls itself"
            )
        waiting += missing


def write_out_composed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The same model without the operators that ONNX itself defines as functions of others, and that have no other form here."""
    if not any(
        node.op_type in COMPOSED and node.domain in DEFAULT_DOMAINS
        for node in proto.graph.node
    ):
        return proto
    names = [(domain, name) for domain in DEFAULT_DOMAINS for name in COMPOSED]
    stated = len(proto.graph.value_info)
    proto.graph.value_info.extend(
        _types_of_constants(proto.graph)
    )  # which the library does not look up itself
    try:
        written = onnx.inliner.inline_selected_functions(
            proto, names, inline_schema_functions=True
        )
    except (
        Exception
    ):  # forms that the library has no body for are refused with the other operators
        written = proto
    del written.graph.value_info[stated:]
    return written


def _types_of_constants(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    known = {value.name for value in (*graph.input, *graph.value_info)}
    return [
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in graph.initializer
        if tensor.name not in known
    ]
