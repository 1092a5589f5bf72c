"""Poseidon of four elements of the field, the hash of this name in circom's library and in snarkjs.

https://eprint.iacr.org/2019/458: five cells, the first of which is 0 and then holds the digest; 8 full rounds, in which each cell
is raised to the fifth power, about 60 partial ones, in which the first is. The constants are those that the authors' generator
gives, made here in the same way: by the shift register of the cipher Grain, which begins with the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from cvm.export.r1cs.field import PRIME

CELLS = 5
RATE = CELLS - 1
FULL_ROUNDS = 8
PARTIAL_ROUNDS = 60
FIELD_BITS = 254
WARM_UP = 160  # bits that Grain gives away first


@dataclass(frozen=True)
class PoseidonConstants:
    """What is added to the cells before each round, and the matrix that mixes them after it."""

    added: tuple[tuple[int, ...], ...]
    mixing: tuple[tuple[int, ...], ...]


def is_full(number: int) -> bool:
    """Whether every cell is raised in this round: in the first and the last four."""
    half = FULL_ROUNDS // 2
    return not half <= number < half + PARTIAL_ROUNDS


@cache
def constants() -> PoseidonConstants:
    """The constants from the generator: numbers below the prime for the rounds, then 1 / (x + y) for the matrix."""
    bits = _grain()
    rounds = FULL_ROUNDS + PARTIAL_ROUNDS
    added = tuple(
        tuple(_below_prime(bits) for _ in range(CELLS)) for _ in range(rounds)
    )
    numbers: list[int] = []
    while len(set(numbers)) < 2 * CELLS:
        numbers = [_number(bits) % PRIME for _ in range(2 * CELLS)]
    mixing = tuple(
        tuple(pow(x + y, -1, PRIME) for y in numbers[CELLS:])
        for x in numbers[:CELLS]
    )
    return PoseidonConstants(added, mixing)


def digest(elements: Sequence[int]) -> int:
    """The hash of four elements."""
    cells = [0, *elements]
    assert len(cells) == CELLS
    for number, added in enumerate(constants().added):
        cells = [cell + more for cell, more in zip(cells, added, strict=True)]
        raised = CELLS if is_full(number) else 1
        cells[:raised] = [pow(cell, 5, PRIME) for cell in cells[:raised]]
        cells = [
            sum(m * cell for m, cell in zip(row, cells, strict=True)) % PRIME
            for row in constants().mixing
        ]
    return cells[0]


def _grain() -> Iterator[int]:
    """The bits of Grain: the second bit of each pair whose first is 1."""
    parameters = (
        (1, 2),  # a prime field
        (0, 4),  # powers, not inverses
        (FIELD_BITS, 12),
        (CELLS, 12),
        (FULL_ROUNDS, 10),
        (PARTIAL_ROUNDS, 10),
        (2**30 - 1, 30),
    )
    text = "".join(f"{value:0{width}b}" for value, width in parameters)
    stream = _register([int(bit) for bit in text])
    for _ in range(WARM_UP):
        next(stream)
    while True:
        chosen, bit = next(stream), next(stream)
        if chosen:
            yield bit


def _register(state: list[int]) -> Iterator[int]:
    """A shift register of 80 bits."""
    while True:
        bit = 0
        for place in (62, 51, 38, 23, 13, 0):
            bit ^= state[place]
        state.append(bit)
        del state[0]
        yield bit


def _number(bits: Iterator[int]) -> int:
    number = 0
    for _ in range(FIELD_BITS):
        number = 2 * number + next(bits)
    return number


def _below_prime(bits: Iterator[int]) -> int:
    number = _number(bits)
    while number >= PRIME:
        number = _number(bits)
    return number
