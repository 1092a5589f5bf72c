"""Reads iden3's .r1cs and .wtns files from their description alone, and checks rows in Python's integers.

https://github.com/iden3/r1csfile/blob/master/doc/r1cs_bin_format.md
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

BN254 = 0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001
Terms = list[tuple[int, int]]  # wire, factor


@dataclass
class Constraints:
    wires: int
    public_outputs: int
    public_inputs: int
    private_inputs: int
    rows: list[tuple[Terms, Terms, Terms]]


def sections(data: bytes, magic: bytes, version: int) -> dict[int, bytes]:
    assert data[:4] == magic
    assert struct.unpack_from("<I", data, 4) == (version,)
    (count,) = struct.unpack_from("<I", data, 8)
    found, at = {}, 12
    for _ in range(count):
        kind, size = struct.unpack_from("<IQ", data, at)
        assert kind not in found
        found[kind] = data[at + 12 : at + 12 + size]
        at += 12 + size
    assert at == len(data)
    return found


def read_constraints(data: bytes) -> Constraints:
    parts = sections(data, b"r1cs", 1)
    header = parts[1]
    assert struct.unpack_from("<I", header) == (32,)
    assert int.from_bytes(header[4:36], "little") == BN254
    wires, outputs, public, private, labels, count = struct.unpack_from(
        "<IIIIQI", header, 36
    )
    assert labels == wires
    numbers = struct.unpack(f"<{wires}Q", parts[3])
    assert numbers == tuple(range(wires))
    rows, at = [], 0
    for _ in range(count):
        row = []
        for _ in range(3):
            (size,) = struct.unpack_from("<I", parts[2], at)
            at += 4
            terms = []
            for _ in range(size):
                (wire,) = struct.unpack_from("<I", parts[2], at)
                factor = int.from_bytes(parts[2][at + 4 : at + 36], "little")
                assert wire < wires and 0 < factor < BN254
                terms.append((wire, factor))
                at += 36
            assert [w for w, _ in terms] == sorted({w for w, _ in terms})
            row.append(terms)
        rows.append((row[0], row[1], row[2]))
    assert at == len(parts[2])
    return Constraints(wires, outputs, public, private, rows)


def read_witness(data: bytes) -> list[int]:
    parts = sections(data, b"wtns", 2)
    assert struct.unpack_from("<I", parts[1]) == (32,)
    assert int.from_bytes(parts[1][4:36], "little") == BN254
    (count,) = struct.unpack_from("<I", parts[1], 36)
    values = [
        int.from_bytes(parts[2][at : at + 32], "little")
        for at in range(0, 32 * count, 32)
    ]
    assert len(values) == count and max(values) < BN254
    return values


def broken(
    found: Constraints,
    witness: list[int],
    numbers: Sequence[int] | None = None,
) -> list[int]:
    """Return which rows, of all or of these, do not hold."""

    def value(terms: Terms) -> int:
        return sum(factor * witness[wire] for wire, factor in terms) % BN254

    chosen = range(len(found.rows)) if numbers is None else numbers
    wrong = []
    for number in chosen:
        a, b, c = (value(terms) for terms in found.rows[number])
        if (a * b - c) % BN254:
            wrong.append(number)
    return wrong


def rows_with(found: Constraints) -> list[list[int]]:
    """Return, for each wire, the rows that have it."""
    rows: list[list[int]] = [[] for _ in range(found.wires)]
    for number, row in enumerate(found.rows):
        for wire in {wire for terms in row for wire, _ in terms}:
            rows[wire].append(number)
    return rows


def free_wires(
    found: Constraints, witness: list[int], others: Sequence[int]
) -> list[int]:
    """Return the wires that can take another value, alone: one more or less, 0, 1, -x, or any of `others`."""
    rows, free = rows_with(found), []
    for wire in range(1, len(witness)):
        right = witness[wire]
        for wrong in (right + 1, right - 1, 0, 1, -right, *others):
            if wrong % BN254 == right:
                continue
            witness[wire] = wrong % BN254
            if not broken(found, witness, rows[wire]):
                free.append(wire)
        witness[wire] = right
    return free


def signed(number: int) -> int:
    return number - BN254 if number > BN254 // 2 else number
