"""A setup for proofs in tests, in seconds: the powers of a tau that is known, so that any reader of this can forge them.

snarkjs needs minutes for as many powers, since it must not know tau; where tau is known, each point is a number
times a generator of BN254. The file is what `snarkjs powersoftau prepare phase2` writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from cvm.export.r1cs.field import PRIME

FIELD = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47
TAU, ALPHA, BETA = 3**140, 5**95, 7**80
ROOT_BITS = 28  # of BN254's scalars: 2^28 divides their number less one
BYTES = 32
WIDE_FROM = 14  # bits, from which on tables of 2^16 points pay
CHUNK = 2**14  # points that are computed at once
HEADER, CONTRIBUTIONS = 1, 7  # the sections without points
OF_G2 = (3, 6, 13)

Number = tuple[int, int]  # of the field that G2 is over: a + b i
Point = tuple[Number, Number] | None  # None is the point at infinity
G1: Point = ((1, 0), (2, 0))
G2: Point = (
    (
        0x1800DEEF121F1E76426A00665E5C4479674322D4F75EDADD46DEBD5CD992F6ED,
        0x198E9393920D483A7260BFB731FB5D25F1AA493335A9E71297E485B7AEF312C2,
    ),
    (
        0x12C85EA5DB8C6DEB4AAB71808DCB408FE3D1E7690C43D37B4CE6CC0166FA7DAA,
        0x90689D0585FF075EC9E99AD690C3395BC4B313370B38EF355ACDADCD122975B,
    ),
)


def times(a: Number, b: Number) -> Number:
    """Return the product; most numbers are of the field that G1 is over."""
    if not a[1] and not b[1]:
        return a[0] * b[0] % FIELD, 0
    low, high = a[0] * b[0], a[1] * b[1]
    return (low - high) % FIELD, (a[0] * b[1] + a[1] * b[0]) % FIELD


def less(a: Number, b: Number) -> Number:
    """Return the difference."""
    return (a[0] - b[0]) % FIELD, (a[1] - b[1]) % FIELD


def inverses(numbers: list[Number]) -> list[Number]:
    """Return all inverses for the price of one."""
    products = [(1, 0)]
    for number in numbers:
        products.append(times(products[-1], number))
    a, b = products[-1]
    norm = pow(a * a + b * b, -1, FIELD)
    remaining = (a * norm % FIELD, -b * norm % FIELD)
    inverted = []
    for before, number in zip(
        reversed(products[:-1]), reversed(numbers), strict=True
    ):
        inverted.append(times(remaining, before))
        remaining = times(remaining, number)
    return inverted[::-1]


def sums(pairs: list[tuple[Point, Point]]) -> list[Point]:
    """Return the sum of each pair of points of a curve y^2 = x^3 + b."""
    slopes = []
    for p, q in pairs:
        if p is None or q is None:
            slopes.append(((1, 0), (1, 0)))
        elif p == q:
            square = times(p[0], p[0])
            above = times((3, 0), square)
            slopes.append((above, times((2, 0), p[1])))
        else:
            slopes.append((less(q[1], p[1]), less(q[0], p[0])))
    inverted = inverses([below for _, below in slopes])
    totals: list[Point] = []
    for (p, q), (above, _), inverse in zip(
        pairs, slopes, inverted, strict=True
    ):
        if p is None or q is None:
            totals.append(p or q)
            continue
        slope = times(above, inverse)
        x = less(less(times(slope, slope), p[0]), q[0])
        totals.append((x, less(times(slope, less(p[0], x)), p[1])))
    return totals


def tables_of(generator: Point, window: int) -> list[list[Point]]:
    """Return, for each digit of base 2^window from the lowest, the generator times every value of the digit."""
    tables = []
    unit = generator
    for _ in range(0, PRIME.bit_length(), window):
        table: list[Point] = [None, unit]
        while len(table) < 2**window:
            double = sums([(point, point) for point in table[1:]])
            odd = sums([(point, unit) for point in double])
            more = [p for pair in zip(double, odd, strict=True) for p in pair]
            table = [None, unit, *more]
        tables.append(table)
        half = table[2 ** (window - 1)]
        (unit,) = sums([(half, half)])
    return tables


def multiples(tables: list[list[Point]], factors: list[int]) -> list[Point]:
    """Return the generator of the tables times each factor, digit by digit."""
    points: list[Point] = [None] * len(factors)
    base = len(tables[0])
    quotients = factors
    for table in tables:
        pairs = [
            (p, table[k % base]) for p, k in zip(points, quotients, strict=True)
        ]
        points, quotients = sums(pairs), [k // base for k in quotients]
    return points


def powers_of(base: int, count: int) -> list[int]:
    """Return base^0, base^1, ... of the scalars."""
    powers = [1]
    while len(powers) < count:
        powers.append(powers[-1] * base % PRIME)
    return powers


def roots(bits: int) -> list[int]:
    """Return the 2^bits scalars whose 2^bits-th power is 1."""
    return powers_of(pow(5, (PRIME - 1) >> bits, PRIME), 1 << bits)


def lagrange(bits: int) -> list[int]:
    """Return the value at tau of each polynomial that is 1 at one power of the 2^bits-th root and 0 at the others."""
    count = 1 << bits
    factor = (pow(TAU, count, PRIME) - 1) * pow(count, -1, PRIME)
    return [w * factor * pow(TAU - w, -1, PRIME) % PRIME for w in roots(bits)]


def without_last(bits: int) -> list[int]:
    """Return the same without tau's greatest power, which is not among the points."""
    count = 1 << bits
    last = pow(TAU, count - 1, PRIME) * pow(count, -1, PRIME)
    pairs = zip(lagrange(bits), roots(bits), strict=True)
    return [(value - last * w) % PRIME for value, w in pairs]


def encoded(points: Iterable[Point], both: bool) -> bytes:
    """Return coordinates in Montgomery's form, the least byte first; zeros for infinity."""
    chunks = []
    for point in points:
        for number in point or ((0, 0), (0, 0)):
            for half in number if both else number[:1]:
                shifted = (half << 8 * BYTES) % FIELD
                chunks.append(shifted.to_bytes(BYTES, "little"))
    return b"".join(chunks)


def write_powers(path: Path, bits: int, *, alone: bool = False) -> None:
    """Write the powers for 2^bits constraints.

    With `alone` zeros stand for what is not read where keys need so many and no fewer: a third of the points is left.
    """
    window = 16 if bits >= WIDE_FROM else 8
    tables = tables_of(G1, window), tables_of(G2, window)
    factors = factors_of(bits, alone)
    header = [_word(BYTES), FIELD.to_bytes(BYTES, "little"), 2 * _word(bits)]
    factors[HEADER] = factors[CONTRIBUTIONS] = []
    with path.open("wb") as file:
        file.write(b"ptau" + _word(1) + _word(len(factors)))
        for number, values in sorted(factors.items()):
            second = number in OF_G2
            chunks = points_of(tables[second], values, second)
            if number == HEADER:
                chunks = iter(header)
            elif number == CONTRIBUTIONS:
                chunks = iter([_word(0)])
            _write_section(file, number, chunks)


def factors_of(bits: int, alone: bool) -> dict[int, list[int]]:
    """Return the factors of the generator for each section of points; 0 for what is left out."""
    count = 1 << bits
    powers = powers_of(TAU, 2 * count - 1)
    short = [1] + [0] * (count - 1) if alone else powers[:count]
    lower = [0] * (count - 1)
    if not alone:
        lower = [value for level in range(bits) for value in lagrange(level)]
    levels = [*lower, *lagrange(bits)]
    return {
        2: powers,
        3: short,
        4: [ALPHA * x % PRIME for x in short],
        5: [BETA * x % PRIME for x in short],
        6: [BETA],
        12: levels + without_last(bits + 1),
        13: levels,
        14: [ALPHA * x % PRIME for x in levels],
        15: [BETA * x % PRIME for x in levels],
    }


def points_of(
    tables: list[list[Point]], factors: list[int], both: bool
) -> Iterator[bytes]:
    """Yield the points as they are written, some thousands at a time."""
    size = (4 if both else 2) * BYTES
    for first in range(0, len(factors), CHUNK):
        chunk = factors[first : first + CHUNK]
        if any(chunk):
            yield encoded(multiples(tables, chunk), both)
        else:
            yield bytes(size * len(chunk))


def _write_section(
    file: BinaryIO, number: int, chunks: Iterable[bytes]
) -> None:
    """Write a section and, when it is known, its size."""
    start = file.tell()
    file.write(_word(number) + bytes(8))
    for chunk in chunks:
        file.write(chunk)
    after = file.tell()
    file.seek(start + 4)
    file.write((after - start - 12).to_bytes(8, "little"))
    file.seek(after)


def _word(number: int) -> bytes:
    return number.to_bytes(4, "little")
