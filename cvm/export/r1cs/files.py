"""Constraints and witness as iden3's binary files, over the scalar field of the curve BN254."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from cvm.export.r1cs.circuit import Circuit
from cvm.export.r1cs.field import BYTES, PRIME, WORDS, field_elements
from cvm.export.r1cs.secret import Secret
from cvm.export.r1cs.system import merged
from cvm.program import IntArray

CHUNK = 2**18  # terms written at a time


def r1cs(circuit: Circuit) -> bytes:
    """The constraints: no byte depends on the sample."""
    system = circuit.system
    header = struct.pack("<I", BYTES) + PRIME.to_bytes(BYTES, "little")
    header += struct.pack(
        "<IIIIQI",
        system.wires,
        circuit.public,
        0,  # public inputs
        circuit.private,
        system.wires,  # labels
        system.rows,
    )
    labels = np.arange(system.wires, dtype="<u8").tobytes()
    sections = [(1, header), (2, _rows(circuit)), (3, labels)]
    return b"r1cs" + struct.pack("<II", 1, len(sections)) + _joined(sections)


def witness(circuit: Circuit) -> bytes:
    """The value of every wire for the sample."""
    system = circuit.system
    header = struct.pack("<I", BYTES) + PRIME.to_bytes(BYTES, "little")
    header += struct.pack("<I", system.wires)
    values = b"".join(
        field_elements(array).tobytes() for array in system.values
    )
    sections = [(1, header), (2, values)]
    return b"wtns" + struct.pack("<II", 2, len(sections)) + _joined(sections)


def _joined(sections: Sequence[tuple[int, bytes]]) -> bytes:
    return b"".join(
        struct.pack("<IQ", kind, len(content)) + content
        for kind, content in sections
    )


def _rows(circuit: Circuit) -> bytes:
    """For each row its three combinations: how many terms, then wire and factor of each."""
    chunks: list[bytes] = []
    for block in circuit.system.blocks:
        count = len(block[0].constants)
        wide = max(combination.factors.shape[-1] + 1 for combination in block)
        step = max(CHUNK // (3 * wide), 1)
        for start in range(0, count, step):
            rows = slice(start, start + step)
            chunks.append(
                _chunk([combination.at(rows) for combination in block])
            )
    return b"".join(chunks)


def _chunk(block: Sequence[Secret]) -> bytes:
    count = len(block[0].constants)
    columns: list[list[IntArray]] = [[], [], []]
    for place, combination in enumerate(block):
        for column, array in zip(columns, _terms(combination), strict=True):
            column.append(3 * array + place if column is columns[0] else array)
    rows, wires, factors = merged(*map(np.concatenate, columns))
    terms = np.bincount(rows, minlength=3 * count)
    # The words of a combination: its count, then 1 + 8 for each term.
    stops = np.cumsum(1 + (1 + WORDS) * terms)
    heads = stops - (1 + (1 + WORDS) * terms)
    words = np.zeros(int(stops[-1]), "<u4")
    words[heads] = terms
    firsts = np.cumsum(terms) - terms
    within = np.arange(len(rows)) - firsts[rows]
    places = heads[rows] + 1 + (1 + WORDS) * within
    words[places] = wires
    inner = places[:, None] + 1 + np.arange(WORDS)
    words[inner] = field_elements(factors)
    return words.tobytes()


def _terms(combination: Secret) -> tuple[IntArray, IntArray, IntArray]:
    """Rows, wires and factors of each term; a constant is a factor of wire 0."""
    count, terms = combination.factors.shape
    rows = np.repeat(np.arange(count), terms + 1)
    wires = np.concatenate(
        [combination.wires, np.zeros((count, 1), np.int64)], axis=1
    )
    factors = np.concatenate(
        [combination.factors, combination.constants[:, None]], axis=1
    )
    return rows, wires.reshape(-1), factors.reshape(-1)
