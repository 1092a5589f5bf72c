"""Inline a model's own functions where they are called; exporters write modules as functions.

This happens on the protobuf, by the onnx library's own inliner: onnx_ir's pass has no
bodies for the functions that ONNX itself defines, and it names the values otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx
import onnx.inliner

from mrt.errors import BadModel
from mrt.frontend.limits import COUNTING, MOST_NODES
from mrt.frontend.onnx.read.read import DEFAULT_DOMAINS
from mrt.frontend.onnx.read.sizes import nodes_with_bodies, weight_of

COMPOSED = (
    "Attention",
    "CausalConvWithState",
    "LinearAttention",
    "RotaryEmbedding",
    "SwiGLU",
)
Key = tuple[str, str, str]
Bodies = dict[Key, onnx.FunctionProto]
Sizes = dict[Key, int]


def inline_functions(proto: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """Return the same model with its functions inlined wherever that is possible.

    What stays is refused with the unsupported operators. A function that calls itself,
    and calls that multiply beyond MOST_NODES, are refused before anything is inlined.
    """
    if not proto.functions:
        return proto
    _refuse_endless_calls(proto, path)
    _give_default_attributes(proto)
    try:
        inlined = onnx.inliner.inline_local_functions(proto)
    except (
        Exception
    ) as error:  # the library has no error type for a model that it refuses
        cause = " ".join(str(error).split())[:300]
        raise BadModel(
            f"{path}: its functions cannot be inlined: {cause}"
        ) from None
    called = {_called(node) for node in nodes_with_bodies(inlined.graph.node)}
    kept = [
        function for function in inlined.functions if _key(function) in called
    ]
    del inlined.functions[:]
    inlined.functions.extend(kept)
    return inlined


def _refuse_endless_calls(proto: onnx.ModelProto, path: Path) -> None:
    bodies = {_key(function): function for function in proto.functions}
    sizes: Sizes = {}
    for key in bodies:
        _measure(key, bodies, sizes, path)
    total = _size(proto.graph.node, sizes)
    if total > MOST_NODES:
        raise BadModel(
            f"{path}: {total} nodes once its functions are inlined ({COUNTING}); "
            f"at most {MOST_NODES} are read"
        )


def _give_default_attributes(proto: onnx.ModelProto) -> None:
    """Write the default attributes of functions into the calls that leave them out.

    The inliner drops them: an operator within would have its own default.
    """
    defaults = {
        _key(function): function.attribute_proto for function in proto.functions
    }
    bodies = [proto.graph.node]
    bodies += [function.node for function in proto.functions]
    for body in bodies:
        for node in nodes_with_bodies(body):
            given = {attribute.name for attribute in node.attribute}
            for default in defaults.get(_called(node), ()):
                if default.name not in given:
                    node.attribute.append(default)


def _key(function: onnx.FunctionProto) -> Key:
    return _normalized(function.domain, function.name, function.overload)


def _called(node: onnx.NodeProto) -> Key:
    """Return the key of the function that a node would call."""
    return _normalized(node.domain, node.op_type, node.overload)


def _normalized(domain: str, name: str, overload: str) -> Key:
    return ("" if domain in DEFAULT_DOMAINS else domain, name, overload)


def _measure(start: Key, bodies: Bodies, sizes: Sizes, path: Path) -> None:
    """Count the nodes that a call becomes.

    There is no recursion, because a file may nest calls to any depth.
    """
    waiting = [start]
    open_calls = set[Key]()
    while waiting:
        key = waiting[-1]
        missing: list[Key] = []
        if key not in sizes:
            missing = _unmeasured_calls(bodies[key], bodies, sizes)
        if not missing:
            waiting.pop()
            open_calls.discard(key)
            if key not in sizes:
                sizes[key] = _size(bodies[key].node, sizes)
            continue
        open_calls.add(key)
        for call in missing:
            if call in open_calls:
                raise BadModel(
                    f"{path}: function '{call[0]}:{call[1]}' calls itself"
                )
        waiting += missing


def _unmeasured_calls(
    function: onnx.FunctionProto, bodies: Bodies, sizes: Sizes
) -> list[Key]:
    calls = [_called(node) for node in nodes_with_bodies(function.node)]
    return [call for call in calls if call in bodies and call not in sizes]


def _size(nodes: Iterable[onnx.NodeProto], sizes: Sizes) -> int:
    """Count the nodes, with their operands, once the measured functions are inlined."""
    return sum(
        sizes[call] if (call := _called(node)) in sizes else weight_of(node)
        for node in nodes_with_bodies(nodes)
    )


def inline_composed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the same model without the operators in COMPOSED.

    ONNX itself defines these as functions of other operators, and they have no other
    form here. Forms for which the library has no body stay, and are refused with the
    unsupported operators.
    """
    if not any(_is_composed(node) for node in proto.graph.node):
        return proto
    names = [(domain, name) for domain in DEFAULT_DOMAINS for name in COMPOSED]
    stated = len(proto.graph.value_info)
    # The library does not infer the types of constants itself, and asks for one of an operand that is left out.
    proto.graph.value_info.extend(_types_of_constants(proto.graph))
    proto.graph.value_info.append(_type_of_left_out())
    try:
        inlined = onnx.inliner.inline_selected_functions(
            proto, names, inline_schema_functions=True
        )
    except Exception:  # the library has no error type for a form without a body
        inlined = proto
    del inlined.graph.value_info[stated:]
    return inlined


def _is_composed(node: onnx.NodeProto) -> bool:
    return node.op_type in COMPOSED and node.domain in DEFAULT_DOMAINS


def _type_of_left_out() -> onnx.ValueInfoProto:
    """Return a type for '', which names an operand that is left out: no body reads it."""
    return onnx.helper.make_tensor_value_info("", onnx.TensorProto.FLOAT, None)


def _types_of_constants(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    typed = {value.name for value in (*graph.input, *graph.value_info)}
    return [
        onnx.helper.make_tensor_value_info(
            tensor.name, tensor.data_type, tensor.dims
        )
        for tensor in graph.initializer
        if tensor.name not in typed
    ]
