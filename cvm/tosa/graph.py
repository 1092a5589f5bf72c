"""A TOSA file as plain data: one block of operators on named tensors and shapes; to bytes and back."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cvm.errors import BadInput, Malformed
from cvm.tosa.read_tables import Values, decode
from cvm.tosa.schema import ATTRIBUTES, DTYPES, OPERATORS
from cvm.tosa.write_tables import encode

MAX_BYTES = 2**31 - 1  # which distances of 32 bits reach
VERSION = {"major": 1, "minor": 0, "patch": 0, "draft": False}
VERSIONS_READ = ((1, 0), (1, 1))


@dataclass(frozen=True)
class TosaTensor:
    """A named tensor; `data` holds its elements if it is a constant."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes = b""


@dataclass(frozen=True)
class TosaShape:
    """A named list of integers, known when the file was written; `values` is None where it was not."""

    name: str
    rank: int
    values: tuple[int, ...] | None


@dataclass(frozen=True)
class TosaOperator:
    """One operator; it names what it reads and defines."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TosaGraph:
    """Operators in order, with the tensors and shapes that they name."""

    tensors: tuple[TosaTensor, ...]
    shapes: tuple[TosaShape, ...]
    operators: tuple[TosaOperator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def to_bytes(graph: TosaGraph) -> bytes:
    """The file, of TOSA 1.0."""
    size = sum(len(tensor.data) for tensor in graph.tensors)
    if size > MAX_BYTES - 2**28:
        raise BadInput(
            f"a TOSA file holds less than 2 GB; the constants of this program have {size:,} bytes"
        )
    block = {
        "name": "main",
        "operators": [
            _operator_values(operator) for operator in graph.operators
        ],
        "tensors": [_tensor_values(tensor) for tensor in graph.tensors],
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "shapes": [_shape_values(shape) for shape in graph.shapes],
    }
    region = {"name": "main", "blocks": [block]}
    return encode("TosaGraph", {"version": VERSION, "regions": [region]})


def _operator_values(operator: TosaOperator) -> Values:
    number = OPERATORS.index(operator.name)
    fields = ATTRIBUTES.get(operator.name, ())
    return {
        "op": number,
        "attribute_type": number,
        "attribute": (fields, operator.attributes),
        "inputs": operator.inputs,
        "outputs": operator.outputs,
    }


def _tensor_values(tensor: TosaTensor) -> Values:
    values = {
        "name": tensor.name,
        "shape": tensor.shape,
        "type": DTYPES.index(tensor.dtype),
    }
    return {**values, "data": tensor.data} if tensor.data else values


def _shape_values(shape: TosaShape) -> Values:
    assert shape.values is not None
    data = struct.pack(f"<{shape.rank}q", *shape.values)
    return {"name": shape.name, "rank": shape.rank, "data": data}


def from_bytes(data: bytes) -> TosaGraph:
    """The one block of a file; Malformed if there is none, BadInput for what only other files have."""
    values = decode("TosaGraph", data)
    version = values.get("version", {})
    number = (version.get("major", -1), version.get("minor", -1))
    if number not in VERSIONS_READ:
        listed = ".".join(map(str, number))
        raise BadInput(f"TOSA version {listed}; 1.0 and 1.1 are read")
    blocks = [
        block
        for region in values.get("regions", [])
        for block in region.get("blocks", [])
    ]
    if len(blocks) != 1:
        raise BadInput(f"{len(blocks)} blocks of operators; one is read")
    (block,) = blocks
    return TosaGraph(
        tuple(_tensor_of(table) for table in block.get("tensors", [])),
        tuple(_shape_of(table) for table in block.get("shapes", [])),
        tuple(_operator_of(table) for table in block.get("operators", [])),
        tuple(block.get("inputs", ())),
        tuple(block.get("outputs", ())),
    )


def _operator_of(values: Values) -> TosaOperator:
    return TosaOperator(
        _word(OPERATORS, values.get("op", 0)),
        tuple(values.get("inputs", ())),
        tuple(values.get("outputs", ())),
        values.get("attribute", {}),
    )


def _tensor_of(values: Values) -> TosaTensor:
    name = values.get("name", "")
    for field_name in (
        "variable",
        "is_unranked",
        "offset",
        "size",
        "scale_type",
    ):
        if values.get(field_name):
            raise BadInput(
                f"tensor {name!r} has {field_name}, which is not read"
            )
    return TosaTensor(
        name,
        _word(DTYPES, values.get("type", 0)),
        tuple(values.get("shape", ())),
        values.get("data", b""),
    )


def _shape_of(values: Values) -> TosaShape:
    name, rank = values.get("name", ""), values.get("rank", 0)
    data = values.get("data", b"")
    padded = not rank and data == bytes(8)  # as Arm's serializer has it
    if data and not padded and len(data) != 8 * rank:
        raise Malformed(
            f"shape {name!r} of rank {rank} has {len(data)} bytes; expected {8 * rank}"
        )
    has_numbers = data or not rank
    numbers = struct.unpack_from(f"<{rank}q", data) if has_numbers else None
    return TosaShape(name, rank, numbers)


def _word(words: Sequence[str], number: int) -> str:
    return words[number] if number < len(words) else f"number {number}"
