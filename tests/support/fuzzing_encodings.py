"""Mutations of a file as it stands: of any bytes, and of CBOR: heads too long, counts that lie, items in another's place.

What `tests.support.fuzzing` encodes again after a change is always canonical; this is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from cvm.file import format as file_format
from tests.support.hostile_files import METADATA_MAGIC, padded

UNSIGNED, NEGATIVE, TEXT, ARRAY, MAP = 0, 1, 3, 4, 5
MOST_ITEMS = 5000  # beyond, a file is not taken apart again
ARGUMENTS = (
    *(0, 1, 7, 22, 23, 24, 25, 127, 255, 256, 65535, 65536, 65537),
    *(2**20 - 1, 2**20, 2**20 + 1, 2**21 + 2**10 - 1, 2**21 + 2**10),
    *(2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62),
    *(2**63 - 1, 2**63, 2**64 - 1),
)
STRANGE = (
    *(b"\xf4", b"\xf5", b"\xf6", b"\xf7", b"\xff"),
    *(b"\x9f\xff", b"\xbf\xff", b"\x7f\xff", b"\x5f\xff"),  # of no stated size
    *(b"\xf9\x7e\x00", b"\xf9\x3c\x00", b"\xfa\x3d\xcc\xcc\xcd"),
    *(b"\xfb\x00\x00\x00\x00\x00\x00\x00\x01", b"\xc1\x00", b"\x40"),
    *(b"\x62\xff\xfe", b"\x63\xed\xa0\x80", b"\x62\xc0\x80"),  # not UTF-8
    *(b"\x80", b"\xa0", b"\x60", b"\x1c", b"\x3d"),
    *(b"\x81" * depth + b"\x00" for depth in (3, 50, 2000)),
)


BYTES = (
    0x00,
    0x17,
    0x18,
    0x1B,
    0x1F,
    0x20,
    0x3B,
    0x40,
    0x5F,
    0x60,
    0x7B,
    0x80,
    0x9B,
    0x9F,
    0xA0,
    0xBB,
    0xC0,
    0xF4,
    0xF6,
    0xF9,
    0xFB,
    0xFF,
)


@dataclass(frozen=True)
class Item:
    """One item in its bytes: where it starts, where its head ends, where it ends, and what the head holds."""

    start: int
    body: int
    end: int
    major: int
    argument: int


def mutated_bytes(random: Random, data: bytes) -> bytes:
    """Make one to three changes of raw bytes, mostly in the header."""
    result = bytearray(data)
    for _ in range(random.randint(1, 3)):
        end = (
            16 + int.from_bytes(data[8:16], "little")
            if random.random() < 0.8
            else len(result)
        )
        at = random.randrange(max(1, min(end, len(result))))
        other = random.randrange(max(1, len(result)))
        match random.randrange(6):
            case 0 if at < len(result):
                result[at] ^= 1 << random.randrange(8)
            case 1:
                result[at : at + 1] = bytes((random.choice(BYTES),))
            case 2:
                result[at:at] = bytes(
                    random.choice(BYTES) for _ in range(random.randint(1, 9))
                )
            case 3:
                del result[at : at + random.randint(1, 9)]
            case 4:
                result[at : at + 8] = result[other : other + 8]
            case _:
                del result[at:]
    # The header's prefix gets the new length in half of the cases, so that it is read.
    if random.random() < 0.5:
        result[8:16] = max(
            0, int.from_bytes(data[8:16], "little") + len(result) - len(data)
        ).to_bytes(8, "little")
    return bytes(result)


def mutated_encoding(random: Random, data: bytes) -> bytes:
    """A file with one to three items of its header, or of its metadata, changed."""
    end = 16 + int.from_bytes(data[8:16], "little")
    program, metadata = map(bytes, file_format.split(data))
    header, section = data[16:end], metadata[16:]
    if section and random.random() < 0.25:
        section = _mutated(random, section)
    else:
        header = _mutated(random, header)
    start = padded(data[:8] + len(header).to_bytes(8, "little") + header)
    tail = METADATA_MAGIC + len(section).to_bytes(8, "little") + section
    constants = program[len(padded(data[:end])) :]
    return start + constants + (tail if metadata else b"")


def _mutated(random: Random, data: bytes) -> bytes:
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        try:
            items = _items(data)
        except (IndexError, RecursionError):
            return data
        if len(items) > MOST_ITEMS:
            return data
        item = random.choice(items)
        change = random.choice(CHANGES)
        new = change(random, data, item, items)
        data = data[: item.start] + new + data[item.end :]
    return data


def _items(data: bytes) -> list[Item]:
    """Every item in the order of their heads; IndexError where one is cut off."""
    found: list[Item] = []
    _read(data, 0, found)
    return found


def _read(data: bytes, start: int, found: list[Item]) -> int:
    major, short = data[start] >> 5, data[start] & 31
    body = start + 1
    if 24 <= short < 28:
        body += 1 << (short - 24)
    argument = short if short < 24 else int.from_bytes(data[start + 1 : body])
    if argument > len(data):
        argument = 0 if major in (TEXT, ARRAY, MAP) else argument
    place = len(found)
    found.append(Item(start, body, body, major, argument))
    end = body + (argument if major == TEXT else 0)
    children = {ARRAY: argument, MAP: 2 * argument}.get(major, 0)
    for _ in range(children):
        end = _read(data, end, found)
    found[place] = Item(start, body, end, major, argument)
    return end


def _head(major: int, argument: int, width: int | None = None) -> bytes:
    """The head in so many bytes after the first, by default in the fewest."""
    if width is None and argument < 24:
        return bytes([major << 5 | argument])
    fewest = next(w for w in (1, 2, 4, 8) if argument < 2 ** (8 * w))
    width = width or fewest
    short = 23 + width.bit_length()
    return bytes([major << 5 | short]) + argument.to_bytes(width, "big")


Change = Callable[[Random, bytes, Item, list[Item]], bytes]
"""What stands in the place of an item afterwards."""


def _other_argument(
    random: Random, data: bytes, item: Item, _: list[Item]
) -> bytes:
    """A number beside it or at some limit; of a text, array or map, a length that is a lie."""
    near = item.argument + random.choice((-16, -2, -1, 1, 2, 16))
    argument = random.choice((near % 2**64, random.choice(ARGUMENTS)))
    sign = (
        item.major ^ 1
        if item.major < 2 and random.random() < 0.25
        else item.major
    )
    return _head(sign, argument) + data[item.body : item.end]


def _longer_head(
    random: Random, data: bytes, item: Item, _: list[Item]
) -> bytes:
    """The same number in more bytes than it needs."""
    widths = [w for w in (1, 2, 4, 8) if item.argument < 2 ** (8 * w)]
    head = _head(item.major, item.argument, random.choice(widths))
    return head + data[item.body : item.end]


def _strange(random: Random, *_: object) -> bytes:
    number = _head(random.choice((0, 1, 6)), random.choice(ARGUMENTS))
    return random.choice((number + b"\x00", random.choice(STRANGE)))


def _another(random: Random, data: bytes, _: Item, items: list[Item]) -> bytes:
    """An item from elsewhere."""
    other = random.choice(items)
    return data[other.start : other.end]


def _twice_or_not(
    random: Random, data: bytes, item: Item, _: list[Item]
) -> bytes:
    return data[item.start : item.end] * random.choice((0, 2))


def _children(
    random: Random, data: bytes, item: Item, items: list[Item]
) -> bytes:
    """An array with one entry more or less or in another order, and a head that is right."""
    if item.major != ARRAY or not item.argument:
        return _other_argument(random, data, item, items)
    children, at = [], item.body
    for other in items:
        if other.start == at < item.end:
            children.append(data[at : other.end])
            at = other.end
    match random.randrange(3):
        case 0:
            children.append(random.choice(children))
        case 1:
            del children[random.randrange(len(children))]
        case _:
            random.shuffle(children)
    return _head(ARRAY, len(children)) + b"".join(children)


def _bit(random: Random, data: bytes, item: Item, _: list[Item]) -> bytes:
    first = data[item.start] ^ 1 << random.randrange(8)
    return bytes([first]) + data[item.start + 1 : item.end]


CHANGES: tuple[Change, ...] = (
    *(_other_argument,) * 5,
    *(_children,) * 2,
    *(_longer_head, _strange, _another, _twice_or_not, _bit),
)
