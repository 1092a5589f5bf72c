"""The pair of files: `symbol`, which is JSON, and `params`, which is binary and little-endian."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

import numpy as np

from cvm.export.cortex.graph import CortexNode

LIST_MAGIC = 0xF7E58D4F05049CB7
TENSOR_MAGIC = 0xDD5E40F096B4A13F
PROCESSOR, INTEGER = 1, 0


def symbol(
    nodes: Sequence[CortexNode], heads: Sequence[int], storage: Sequence[int]
) -> str:
    """The graph. Every node has one result, so a value has the number of its node."""
    names = names_of(nodes)
    written = [
        _node(node, name) for node, name in zip(nodes, names, strict=True)
    ]
    content = {
        "nodes": written,
        "arg_nodes": [
            index for index, node in enumerate(nodes) if not node.operator
        ],
        "node_row_ptr": list(range(len(nodes) + 1)),
        "heads": [[head, 0, 0] for head in heads],
        "attrs": {
            "op_attrs": ["list_str", [json.dumps(n.attributes) for n in nodes]],
            "shape": ["list_shape", [list(node.shape) for node in nodes]],
            "storage_id": ["list_int", list(storage)],
            "precision": ["list_int", [node.precision for node in nodes]],
            "dltype": ["list_str", ["int32"] * len(nodes)],
            "device_index": ["list_int", []],
        },
        "version": "cvm_1.0.0",
        "postprocess": "",
    }
    return json.dumps(content, separators=(",", ":")) + "\n"


def names_of(nodes: Sequence[CortexNode]) -> list[str]:
    """The input is `data`, as the runtime demands."""
    names = [f"{node.operator or 'p'}_{i}" for i, node in enumerate(nodes)]
    names[0] = "data"
    return names


def _node(node: CortexNode, name: str) -> dict[str, object]:
    if not node.operator:
        return {"op": "null", "name": name, "inputs": []}
    return {
        "op": "cvm_op",
        "name": name,
        "inputs": [[index, 0, 0] for index in node.inputs],
        "attrs": {
            "func_name": node.operator,
            "num_inputs": str(len(node.inputs)),
            "num_outputs": "1",
            "flatten_data": "0",
        },
    }


def params(nodes: Sequence[CortexNode]) -> bytes:
    """All parameters by name: in a byte each if they have at most 8 bits, else in four."""
    named = [
        (name.encode(), node)
        for name, node in zip(names_of(nodes), nodes, strict=True)
        if node.array is not None
    ]
    count = struct.pack("<Q", len(named))
    parts = [struct.pack("<QQ", LIST_MAGIC, 0), count]
    for name, _ in named:
        parts += [struct.pack("<Q", len(name)), name]
    parts.append(count)
    for _, node in named:
        parts.append(_tensor(node))
    return b"".join(parts)


def _tensor(node: CortexNode) -> bytes:
    assert node.array is not None
    width = 1 if node.precision <= 8 else 4
    data = node.array.astype(f"<i{width}").tobytes()
    rank = len(node.shape)
    head = struct.pack("<QQii", TENSOR_MAGIC, 0, PROCESSOR, 0)
    kind = struct.pack("<iBBH", rank, INTEGER, 8 * width, 1)
    shape = struct.pack(f"<{rank}q", *node.shape)
    return b"".join([head, kind, shape, struct.pack("<q", len(data)), data])


def as_input(array: np.ndarray, node: CortexNode) -> bytes:
    """The input's integers as the runtime takes them."""
    width = 1 if node.precision <= 8 else 4
    return array.astype(f"<i{width}").tobytes()


def as_output(
    arrays: Sequence[np.ndarray], heads: Sequence[CortexNode]
) -> bytes:
    """The outputs' integers as the runtime gives them, one after the other."""
    width = 1 if max(node.precision for node in heads) <= 8 else 4
    return b"".join(array.astype(f"<i{width}").tobytes() for array in arrays)
