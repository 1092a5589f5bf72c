"""An independent reader of the files that Cortex's runtime loads, and its execution, from the document of its formats alone.

It is stricter than the runtime: where that would clamp, wrap, or read what another value left in a shared block, it fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from tests.support.cortex_operators import (
    OPERATORS,
    Array,
    attributes_of,
    limit,
)

TOP = {"nodes", "heads", "attrs", "arg_nodes", "node_row_ptr"}
OPTIONAL = {"version", "postprocess"}
NODE_KEYS = {"op", "name", "inputs", "attrs", "precision"}
TAGS = {
    "op_attrs": "list_str",
    "shape": "list_shape",
    "storage_id": "list_int",
    "precision": "list_int",
    "dltype": "list_str",
    "device_index": "list_int",
}
IN_PLACE = {
    *("flatten", "relu", "expand_dims", "reshape", "squeeze", "abs"),
    *("cvm_precision", "elemwise_add", "elemwise_sub", "nagetive", "clip"),
    *("cvm_clip", "cvm_right_shift", "cvm_left_shift"),
}


@dataclass
class Cursor:
    """Bytes read from the front."""

    data: bytes
    place: int = 0

    def integer(self, width: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(width), "little", signed=signed)

    def take(self, count: int) -> bytes:
        part = self.data[self.place : self.place + count]
        assert len(part) == count, "truncated"
        self.place += count
        return part


def read_params(data: bytes) -> dict[str, Array]:
    cursor = Cursor(data)
    assert cursor.integer(8) == 0xF7E58D4F05049CB7
    assert cursor.integer(8) == 0
    count = cursor.integer(8)
    names = [cursor.take(cursor.integer(8)).decode() for _ in range(count)]
    assert cursor.integer(8) == count and len(set(names)) == count
    found = {name: _read_tensor(cursor) for name in names}
    assert cursor.place == len(data)
    return found


def _read_tensor(cursor: Cursor) -> Array:
    assert cursor.integer(8) == 0xDD5E40F096B4A13F
    assert cursor.integer(8) == 0
    assert (cursor.integer(4), cursor.integer(4)) == (1, 0)
    rank = cursor.integer(4, signed=True)
    code, width, lanes = (cursor.integer(size) for size in (1, 1, 2))
    assert code == 0 and width in (8, 32) and lanes == 1
    shape = [cursor.integer(8, signed=True) for _ in range(rank)]
    size = cursor.integer(8, signed=True)
    assert size == prod(shape) * width // 8
    array = np.frombuffer(cursor.take(size), f"<i{width // 8}")
    return array.astype(np.int64).reshape(shape)


@dataclass(frozen=True)
class Runtime:
    """A loaded pair of files."""

    nodes: list[dict[str, Any]]
    heads: list[int]
    attrs: dict[str, list[Any]]
    params: Mapping[str, Array]

    @classmethod
    def load(cls, symbol: str, params: bytes) -> Runtime:
        content = json.loads(symbol)
        assert content.keys() >= TOP and content.keys() <= TOP | OPTIONAL
        assert content["version"] == "cvm_1.0.0"
        assert content["postprocess"] == ""
        attrs = {}
        for key, (tag, payload) in content["attrs"].items():
            assert TAGS[key] == tag
            attrs[key] = payload
        nodes = content["nodes"]
        assert attrs.pop("device_index") == []
        assert all(len(payload) == len(nodes) for payload in attrs.values())
        assert content["node_row_ptr"] == list(
            accumulate([1] * len(nodes), initial=0)
        )
        heads = []
        for node, index, version in content["heads"]:
            assert 0 <= node < len(nodes) and index == version == 0
            heads.append(node)
        loaded = cls(nodes, heads, attrs, read_params(params))
        loaded._check_nodes(content["arg_nodes"])
        return loaded

    def _check_nodes(self, arguments: list[int]) -> None:
        variables = []
        for number, node in enumerate(self.nodes):
            assert node.keys() <= NODE_KEYS
            assert 1 <= self.attrs["precision"][number] <= 32
            assert self.attrs["dltype"][number] == "int32"
            shape = self.attrs["shape"][number]
            assert 1 <= len(shape) <= 6
            assert all(1 <= size <= 2**24 for size in shape)
            assert prod(shape) <= 2**30
            if node["op"] == "null":
                assert node["inputs"] == []
                variables.append(number)
            else:
                assert node["op"] == "cvm_op"
                assert all(isinstance(v, str) for v in node["attrs"].values())
            for source, index, _ in node["inputs"]:
                assert 0 <= source < number and index == 0
        assert arguments == variables
        names = [self.nodes[number]["name"] for number in variables]
        assert names[0] == "data" and variables[0] == 0
        assert sorted(names[1:]) == sorted(self.params)
        assert len(set(names)) == len(names)

    @property
    def input_width(self) -> int:
        """The bytes of an integer of the input."""
        return 1 if self.attrs["precision"][0] <= 8 else 4

    @property
    def output_width(self) -> int:
        """The bytes of an integer of the answer."""
        most = max(self.attrs["precision"][head] for head in self.heads)
        return 1 if most <= 8 else 4

    def run(self, data: bytes) -> bytes:
        """The answer's bytes to an input's bytes."""
        shape, precisions = self.attrs["shape"], self.attrs["precision"]
        width = self.input_width
        assert len(data) == width * prod(shape[0])
        given = np.frombuffer(data, f"<i{width}").astype(np.int64)
        assert np.abs(given).max() <= limit(precisions[0])
        blocks: dict[int, tuple[int, Array]] = {}
        for number, node in enumerate(self.nodes):
            if node["op"] == "null":
                array = given.reshape(shape[0]) if number == 0 else None
                if array is None:
                    array = self.params[node["name"]]
            else:
                array = self._computed(number, node, blocks)
            assert list(array.shape) == shape[number], node
            assert np.abs(array).max() <= limit(precisions[number]), node
            blocks[self.attrs["storage_id"][number]] = number, array
        return self._answer(blocks)

    def _computed(
        self, number: int, node: dict[str, Any], blocks: dict[int, Any]
    ) -> Array:
        name = re.sub(r"_\d+$", "", node["attrs"]["func_name"])
        sources = [source for source, _, _ in node["inputs"]]
        storage = self.attrs["storage_id"]
        arrays = []
        for source in sources:
            holder, array = blocks[storage[source]]
            assert holder == source, "another value lies there"
            arrays.append(array)
            if name not in IN_PLACE:
                assert storage[source] != storage[number]
        precisions = [self.attrs["precision"][source] for source in sources]
        texts = json.loads(self.attrs["op_attrs"][number])
        assert all(isinstance(text, str) for text in texts.values())
        operator = OPERATORS[name][0]
        found, precision = operator(
            arrays, precisions, attributes_of(name, texts)
        )
        assert 1 <= precision <= 32, (name, precision)
        assert precision == self.attrs["precision"][number], (name, precision)
        return found

    def _answer(self, blocks: dict[int, tuple[int, Array]]) -> bytes:
        found, storage = [], self.attrs["storage_id"]
        for head in self.heads:
            holder, array = blocks[storage[head]]
            assert holder == head
            found.append(array.reshape(-1, array.shape[-1]))
        assert len({len(array) for array in found}) == 1
        joined = np.concatenate(found, -1)
        return joined.astype(f"<i{self.output_width}").tobytes()
