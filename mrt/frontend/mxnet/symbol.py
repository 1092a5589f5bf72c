"""Read an MXNet symbol file as a graph, in an order in which every node follows its inputs.

Every version from 0.8 to 1.9 is read, as strictly as by MXNet: an unknown key is refused.
What MXNet would accept unnoticed (cycles, several variables of one name, duplicate keys)
is refused too.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from mrt.errors import BadModel
from mrt.frontend.limits import COUNTING, MOST_NODES, weight

MAX_BYTES = 64 * 2**20
MAX_NAME = 10_000
MAX_SHOWN = 100  # the most characters of a text in a message
NEXT_MAJOR_VERSION = 20_000
NO_VERSION = 800  # a file without a version was written by 0.8.0
FIRST_WITH_AUXILIARY_INPUTS = 900
# Inputs that 0.8 left out of the file: its loader adds variables of these names.
AUXILIARY_INPUTS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "BatchNorm": (3, ("moving_mean", "moving_var"))
}
# Up to 0.9.4 an axis of -1 meant that none was given; now it is the last one.
FIRST_WITH_LAST_AXIS = 905
WITHOUT_AXIS = ("argmax", "argmin")
# Keys of users, not attributes of operators, in old files; they stand alone or end a
# longer key.
USER_KEYS = (
    "ctx_group",
    "lr_mult",
    "wd_mult",
    "force_mirroring",
    "mirror_stage",
)
FUSED = "_sg_"  # operators of backends hold a subgraph; one message refuses them all by name
TOP_KEYS = {"nodes", "arg_nodes", "heads", "node_row_ptr", "attrs"}
NODE_KEYS = {
    "op",
    "name",
    "inputs",
    "attr",
    "attrs",
    "param",
    "backward_source_id",
    "control_deps",
    "subgraphs",
}


@dataclass(frozen=True)
class Edge:
    """One output of a node."""

    node: int
    output: int


@dataclass(frozen=True)
class SymbolNode:
    """A variable (operator None) or a use of an operator.

    `hidden` holds the keys of the form __x__, without underscores.
    """

    id: int
    operator: str | None
    name: str
    attributes: Mapping[str, str]
    hidden: Mapping[str, str]
    inputs: tuple[Edge, ...]


@dataclass(frozen=True)
class Symbol:
    """`nodes` by id; `order` lists the ids, inputs first; `heads` are the outputs of the model."""

    nodes: Mapping[int, SymbolNode]
    order: tuple[int, ...]
    heads: tuple[Edge, ...]
    version: int


def read_symbol(data: bytes, source: str) -> Symbol:
    """Read a symbol file.

    Raise BadModel with a message that starts with `source` and names the node.
    """
    try:
        top = _parse(data)
        _refuse_unknown_keys(
            top, TOP_KEYS, {"nodes", "arg_nodes", "heads"}, "the file"
        )
        version = _read_version(top.get("attrs", {}))
        entries = _list(top["nodes"], "nodes")
        _refuse_many_nodes(len(entries))
        nodes = {
            index: _read_node(index, entry, len(entries))
            for index, entry in enumerate(entries)
        }
        _refuse_many_nodes(
            sum(weight(len(node.inputs)) for node in nodes.values())
        )
        if version < FIRST_WITH_AUXILIARY_INPUTS:
            nodes = _add_auxiliary_inputs(nodes)
        if version < FIRST_WITH_LAST_AXIS:
            nodes = {
                index: _without_old_axis(node) for index, node in nodes.items()
            }
        _refuse_repeated_variables(nodes)
        heads = tuple(
            _read_edge(entry, len(entries), "heads")
            for entry in _list(top["heads"], "heads")
        )
        if not heads:
            _refuse("no heads: the graph has no output")
        _list(top["arg_nodes"], "arg_nodes")
        return Symbol(nodes, _inputs_first(nodes), heads, version)
    except _MalformedError as error:
        raise BadModel(f"{source}: {error}") from None


class _MalformedError(Exception):
    """The problem in the file, and its position."""


def _refuse(problem: str) -> NoReturn:
    raise _MalformedError(problem)


def _refuse_many_nodes(count: int) -> None:
    if count > MOST_NODES:
        _refuse(f"{count} nodes ({COUNTING}); at most {MOST_NODES} are read")


def _parse(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_BYTES:
        _refuse(
            f"more than {MAX_BYTES} bytes, which is the most that a symbol file may have"
        )
    try:
        top = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError:
        _refuse("not UTF-8 text; expected an MXNet symbol file (JSON)")
    except RecursionError:
        _refuse("nested too deeply; expected an MXNet symbol file")
    except ValueError as error:
        _refuse(f"not JSON: {error}" if data else "the file is empty")
    content = _dict(top, "the file")
    if "nodes" not in content:
        _refuse(
            "not an MXNet symbol, which has 'nodes', 'arg_nodes' and 'heads'; give the model's -symbol.json"
        )
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) != len(pairs):
        repeated = next(
            name
            for name, times in Counter(name for name, _ in pairs).items()
            if times > 1
        )
        _refuse(f"key {repeated[:MAX_SHOWN]!r} occurs twice in one object")
    return keys


def _refuse_constant(text: str) -> NoReturn:
    _refuse(f"{text} is not JSON")


def _dict(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(f"{where}: expected an object, found {type(value).__name__}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        _refuse(f"{where}: expected a list, found {type(value).__name__}")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        _refuse(f"{where}: expected text, found {type(value).__name__}")
    if len(value) > MAX_NAME:
        _refuse(
            f"{where}: {len(value)} characters; at most {MAX_NAME} are read"
        )
    if any("\ud800" <= character <= "\udfff" for character in value):
        _refuse(f"{where}: half a character (a lone surrogate)")
    return value


def _refuse_unknown_keys(
    fields: Mapping[str, Any],
    known_keys: set[str],
    required: set[str],
    where: str,
) -> None:
    if unknown := sorted(set(fields) - known_keys):
        _refuse(
            f"{where}: unknown key {unknown[0][:MAX_SHOWN]!r}; expected {', '.join(sorted(known_keys))}"
        )
    if missing := sorted(required - set(fields)):
        _refuse(f"{where}: key {missing[0]!r} is missing")


def _read_version(value: Any) -> int:
    attributes = _dict(value, "attrs")
    if _typed_integer(attributes, "is_np_shape", 0):
        _refuse(
            "written with numpy semantics (is_np_shape), which give other shapes; only the classic ones are read"
        )
    version = _typed_integer(attributes, "mxnet_version", NO_VERSION)
    if not 0 <= version < NEXT_MAJOR_VERSION:
        _refuse(
            f"mxnet_version is {version}; versions 800 (0.8.0) to {NEXT_MAJOR_VERSION - 1} (1.x) are read"
        )
    return version


def _typed_integer(
    attributes: Mapping[str, Any], key: str, default: int
) -> int:
    """Read a graph attribute, which is written with its type: ["int", 10901]."""
    match attributes.get(key, ["int", default]):
        case [str(), int() as value] if not isinstance(value, bool):
            return value
    _refuse(f'attrs: {key}: expected ["int", number]')


def _read_node(index: int, fields: Any, count: int) -> SymbolNode:
    where = f"node {index}"
    fields = _dict(fields, where)
    _refuse_unknown_keys(fields, NODE_KEYS, {"op", "name", "inputs"}, where)
    name = _text(fields["name"], f"{where}: name")
    operator = _text(fields["op"], f"{where}: op")
    where = f"node {index} {name!r}"
    for key in ("subgraphs", "control_deps"):
        if fields.get(key) and not operator.startswith(FUSED):
            _refuse(f"{where}: {key} are not supported")
    texts: dict[str, str] = {}
    for key in (
        "param",
        "attr",
        "attrs",
    ):  # where these disagree, the later one holds
        attributes = _dict(fields.get(key, {}), f"{where}: {key}")
        texts |= {
            name: _text(text, f"{where}: {key} {name!r}")
            for name, text in attributes.items()
        }
    inputs = tuple(
        _read_edge(edge, count, f"{where}: inputs")
        for edge in _list(fields["inputs"], f"{where}: inputs")
    )
    if operator == "null" and inputs:
        _refuse(f"{where}: a variable has inputs")
    hidden = {
        key.strip("_"): text for key, text in texts.items() if _is_hidden(key)
    }
    visible = {
        key: text
        for key, text in texts.items()
        if not _is_hidden(key) and not _is_user_key(key)
    }
    if operator == "null":
        return SymbolNode(index, None, name, {}, hidden, ())
    return SymbolNode(index, operator, name, visible, hidden, inputs)


def _is_hidden(key: str) -> bool:
    return len(key) > 4 and key.startswith("__") and key.endswith("__")


def _is_user_key(key: str) -> bool:
    return any(
        key == user_key or key.endswith("_" + user_key)
        for user_key in USER_KEYS
    )


def _read_edge(value: Any, count: int, where: str) -> Edge:
    """Read [node, output] or [node, output, version]; the version is no data dependency."""
    numbers = _list(value, where)
    if len(numbers) not in (2, 3) or any(
        type(number) is not int or number < 0 for number in numbers
    ):
        _refuse(
            f"{where}: expected [node, output, version], found {json.dumps(value)[:60]}"
        )
    if numbers[0] >= count:
        _refuse(f"{where}: node {numbers[0]} does not exist; there are {count}")
    return Edge(numbers[0], numbers[1])


def _add_auxiliary_inputs(
    nodes: dict[int, SymbolNode],
) -> dict[int, SymbolNode]:
    """Append the variables that 0.8 left out of the file."""
    completed = dict(nodes)
    for node in nodes.values():
        written, names = AUXILIARY_INPUTS.get(node.operator or "", (-1, ()))
        if len(node.inputs) != written:
            continue
        first = len(completed)
        for offset, name in enumerate(names):
            completed[first + offset] = SymbolNode(
                first + offset, None, f"{node.name}_{name}", {}, {}, ()
            )
        inputs = (
            *node.inputs,
            *(Edge(first + offset, 0) for offset in range(len(names))),
        )
        completed[node.id] = SymbolNode(
            node.id,
            node.operator,
            node.name,
            node.attributes,
            node.hidden,
            inputs,
        )
    return completed


def _without_old_axis(node: SymbolNode) -> SymbolNode:
    if (
        node.operator not in WITHOUT_AXIS
        or node.attributes.get("axis", "").strip() != "-1"
    ):
        return node
    return replace(
        node,
        attributes={
            key: text for key, text in node.attributes.items() if key != "axis"
        },
    )


def _refuse_repeated_variables(nodes: Mapping[int, SymbolNode]) -> None:
    ids: dict[str, int] = {}
    for node in nodes.values():
        if node.operator is None and node.name in ids:
            _refuse(
                f"nodes {ids[node.name]} and {node.id} are both variables named {node.name!r}"
            )
        if node.operator is None:
            ids[node.name] = node.id


def _inputs_first(nodes: Mapping[int, SymbolNode]) -> tuple[int, ...]:
    """Return the order of the file if it has inputs first; otherwise the order nearest to it."""
    users: dict[int, list[int]] = {index: [] for index in nodes}
    waiting = {index: len(node.inputs) for index, node in nodes.items()}
    for index, node in nodes.items():
        for edge in node.inputs:
            users[edge.node].append(index)
    ready = [index for index, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready))
        for user in users[order[-1]]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, user)
    if len(order) < len(nodes):
        stuck = next(index for index in nodes if waiting[index])
        _refuse(
            f"node {stuck} {nodes[stuck].name!r} depends on itself (a cycle)"
        )
    return tuple(order)
