"""Writes MXNet files for tests as MXNet does.

Parameter files are written byte by byte, symbols from a few rows.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

FLAGS = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "uint8": 3,
    "int32": 4,
    "int8": 5,
    "int64": 6,
    "bool": 7,
    "int16": 8,
}


def array_bytes(array: np.ndarray) -> bytes:
    """Return an array of version 2 with its device and dtype."""
    shape = struct.pack("<i", array.ndim) + struct.pack(
        f"<{array.ndim}q", *array.shape
    )
    head = (
        struct.pack("<Ii", 0xF993FAC9, 0)
        + shape
        + struct.pack("<iii", 1, 0, FLAGS[array.dtype.name])
    )
    return head + array.tobytes()


def params_bytes(arrays: Sequence[bytes], names: Sequence[str]) -> bytes:
    """Return a parameter file of arrays that are already bytes."""
    encoded = [name.encode() for name in names]
    head = (
        struct.pack("<QQQ", 0x112, 0, len(arrays))
        + b"".join(arrays)
        + struct.pack("<Q", len(encoded))
    )
    return head + b"".join(
        struct.pack("<Q", len(name)) + name for name in encoded
    )


def write_params(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    path.write_bytes(
        params_bytes(
            [array_bytes(array) for array in arrays.values()], list(arrays)
        )
    )


def variable(name: str, **attributes: str) -> dict:
    return {"op": "null", "name": name, "inputs": [], "attrs": attributes}


def node(
    operator: str,
    name: str,
    inputs: Sequence[int | tuple[int, int]],
    **attributes: str,
) -> dict:
    """Return one use of an operator.

    An input is the number of a node, or that and the number of the node's output.
    """
    edges = [
        [edge, 0, 0] if isinstance(edge, int) else [*edge, 0] for edge in inputs
    ]
    return {"op": operator, "name": name, "inputs": edges, "attrs": attributes}


def symbol_json(
    nodes: Sequence[dict], heads: Sequence[int | tuple[int, int]] | None = None
) -> dict:
    """Return a file of version 1.9.1; its head is the last node unless heads are given."""
    edges = [
        [head, 0, 0] if isinstance(head, int) else [*head, 0]
        for head in heads or [len(nodes) - 1]
    ]
    arguments = [
        index for index, item in enumerate(nodes) if item["op"] == "null"
    ]
    attributes = {"mxnet_version": ["int", 10901]}
    return {
        "nodes": list(nodes),
        "arg_nodes": arguments,
        "heads": edges,
        "attrs": attributes,
    }


def write_symbol(
    path: Path,
    nodes: Sequence[dict],
    heads: Sequence[int | tuple[int, int]] | None = None,
) -> None:
    path.write_text(json.dumps(symbol_json(nodes, heads)))
