"""A setup for proofs in tests, in seconds: the powers of a tau that is known, so that whoever reads this can forge them.

snarkjs needs minutes for as many powers, since it must not know tau; where tau is known, each point is a number
times a generator of BN254. The file is what `snarkjs powersoftau prepare phase2` writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cvm.export.r1cs.field import PRIME

FIELD = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47
TAU, ALPHA, BETA = 3**140, 5**95, 7**80
ROOT_BITS = 28  # of BN254's scalars: 2^28 divides their number less one
WINDOW = 8
BYTES = 32

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
    rest = (a * norm % FIELD, -b * norm % FIELD)
    found = []
    for before, number in zip(
        reversed(products[:-1]), reversed(numbers), strict=True
    ):
        found.append(times(rest, before))
        rest = times(rest, number)
    return found[::-1]


def sums(pairs: list[tuple[Point, Point]]) -> list[Point]:
    """Return the sum of each pair of points of a curve y^2 = x^3 + b."""
    slopes = []
    for one, other in pairs:
        if one is None or other is None:
            slopes.append(((1, 0), (1, 0)))
        elif one == other:
            square = times(one[0], one[0])
            above = times((3, 0), square)
            slopes.append((above, times((2, 0), one[1])))
        else:
            slopes.append((less(other[1], one[1]), less(other[0], one[0])))
    inverted = inverses([below for _, below in slopes])
    found: list[Point] = []
    for (one, other), (above, _), inverse in zip(
        pairs, slopes, inverted, strict=True
    ):
        if one is None or other is None:
            found.append(one or other)
            continue
        slope = times(above, inverse)
        x = less(less(times(slope, slope), one[0]), other[0])
        found.append((x, less(times(slope, less(one[0], x)), one[1])))
    return found


def multiples(generator: Point, factors: list[int]) -> list[Point]:
    """Return the generator times each factor, digit by digit of 2^WINDOW."""
    found: list[Point] = [None] * len(factors)
    unit = generator
    for place in range(0, PRIME.bit_length(), WINDOW):
        table: list[Point] = [None, unit]
        while len(table) < 2**WINDOW:
            double = sums([(point, point) for point in table[1:]])
            odd = sums([(point, unit) for point in double])
            more = [p for pair in zip(double, odd, strict=True) for p in pair]
            table = [None, unit, *more]
        digits = [(k >> place) % 2**WINDOW for k in factors]
        pairs = [(p, table[d]) for p, d in zip(found, digits, strict=True)]
        half = table[2 ** (WINDOW - 1)]
        found, (unit,) = sums(pairs), sums([(half, half)])
    return found


def lagrange(bits: int) -> list[int]:
    """Return what each polynomial is at tau that is 1 at one power of the 2^bits-th root and 0 at the others."""
    root = pow(5, (PRIME - 1) >> bits, PRIME)
    count = 1 << bits
    whole = (pow(TAU, count, PRIME) - 1) * pow(count, -1, PRIME)
    powers = [pow(root, place, PRIME) for place in range(count)]
    return [w * whole * pow(TAU - w, -1, PRIME) % PRIME for w in powers]


def without_last(values: list[int]) -> list[int]:
    """Return the same without tau's greatest power, which is not among the points."""
    count = len(values)
    root = pow(5, (PRIME - 1) // count, PRIME)
    last = pow(TAU, count - 1, PRIME) * pow(count, -1, PRIME)
    return [
        (value - last * pow(root, place, PRIME)) % PRIME
        for place, value in enumerate(values)
    ]


def encoded(points: Iterable[Point], both: bool) -> bytes:
    """Return coordinates in Montgomery's form, the least byte first; zeros for infinity."""
    parts = []
    for point in points:
        for number in point or ((0, 0), (0, 0)):
            for half in number if both else number[:1]:
                shifted = (half << 8 * BYTES) % FIELD
                parts.append(shifted.to_bytes(BYTES, "little"))
    return b"".join(parts)


def write_powers(path: Path, bits: int) -> None:
    """Write the powers for 2^bits constraints."""
    powers = [pow(TAU, n, PRIME) for n in range(2 ** (bits + 1) - 1)]
    short = powers[: 1 << bits]
    ends = [value for p in range(bits + 1) for value in lagrange(p)]
    first = {
        2: powers,
        4: [ALPHA * x % PRIME for x in short],
        5: [BETA * x % PRIME for x in short],
        12: ends + without_last(lagrange(bits + 1)),
        14: [ALPHA * x % PRIME for x in ends],
        15: [BETA * x % PRIME for x in ends],
    }
    second = {3: short, 6: [BETA], 13: ends}
    header = (BYTES, FIELD.to_bytes(BYTES, "little"), bits, bits)
    sections = {
        1: b"".join(_word(x) if isinstance(x, int) else x for x in header),
        7: _word(0),  # contributions
    }
    for factors, generator in ((first, G1), (second, G2)):
        for number, values in factors.items():
            points = multiples(generator, values)
            sections[number] = encoded(points, generator is G2)
    with path.open("wb") as file:
        file.write(b"ptau" + _word(1) + _word(len(sections)))
        for number, content in sorted(sections.items()):
            size = len(content).to_bytes(8, "little")
            file.write(_word(number) + size + content)


def _word(number: int) -> bytes:
    return number.to_bytes(4, "little")
