"""Files of about a megabyte, built to cost a reader or a validator as much as possible."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.hostile_files import (
    CAST,
    CLAMP,
    CONV2D,
    I8,
    I32,
    RESHAPE,
    assemble,
    canonical,
    padded,
)

MEGABYTE = 10**6
ADD, CONCAT, RESCALE, TABLE, TILE, MATMUL, RESIZE = 20, 82, 10, 50, 85, 4, 87
REVERSE, REDUCE_MAX = 86, 61
WIDE = 65536  # as many intervals as one value can have


def array_head(count: int) -> bytes:
    """Return the head of an array of so many items."""
    return canonical([0] * count)[:-count]


def _file(
    instructions: list[bytes],
    *,
    x: list[object] | None = None,
    constants: list[object] | None = None,
    data: bytes = b"",
    outputs: list[object] | None = None,
) -> bytes:
    """Return a file of one input x (value 0), then constants, then encoded instructions."""
    constants = constants or []
    last = len(constants) + len(instructions)
    parts = (
        ("inputs", canonical([["x", *(x or [I32, [1], -1, 1])]])),
        ("outputs", canonical(outputs or [["y", last]])),
        ("constants", canonical(constants)),
        (
            "instructions",
            array_head(len(instructions)) + b"".join(instructions),
        ),
    )
    return assemble(
        b"\xa4" + b"".join(canonical(key) + value for key, value in parts), data
    )


def maps_for_instructions() -> bytes:
    return _file([b"\xa0"] * MEGABYTE)


def arrays_for_operands() -> bytes:
    return _file([b"\x83\x14" + array_head(MEGABYTE) + b"\x80" * MEGABYTE])


def many_small_instructions() -> bytes:
    """Return a chain of clamps; every value is read once."""
    return _file(
        [canonical([CLAMP, [number], [-1, 1]]) for number in range(80_000)]
    )


def many_wide_instructions() -> bytes:
    """Return a chain of clamps with 65536 intervals a value."""
    return _file(
        [canonical([CLAMP, [number], [-1, 1]]) for number in range(80_000)],
        x=[I32, [WIDE], -1, 1],
    )


def many_live_intervals() -> bytes:
    """Thousands of values with 65536 intervals each, all read by the last instruction."""
    count = 30_000
    clamps = [canonical([CLAMP, [0], [-1, 1]])] * count
    return _file(
        [*clamps, canonical([CONCAT, list(range(1, count + 1)), [0]])],
        x=[I32, [1, WIDE], -1, 1],
    )


def one_value_joined_to_itself() -> bytes:
    """32767 times a value of 65536 intervals."""
    concat = canonical([CONCAT, [0] * 32767, [0]])
    return _file(
        [concat] * 20,
        x=[I32, [1, WIDE], -1, 1],
        outputs=[[f"y{n}", n + 1] for n in range(20)],
    )


def one_small_value_joined_to_itself() -> bytes:
    return _file([canonical([CONCAT, [0] * 900_000, [0]])])


def one_weight_read_by_many_convolutions() -> bytes:
    """50,000 convolutions, each with the same 512 KiB of weights."""
    conv = canonical([CONV2D, [0, 1, 2], [[0, 0, 0, 0], [1, 1], [1, 1], 1, 0]])
    constants: list[object] = [[I8, [8, 1, 1, WIDE]], [I32, [8]]]
    return _file(
        [conv] * 50_000,
        x=[I8, [1, 1, 1, WIDE], -1, 1],
        constants=constants,
        data=b"\x01" * 8 * WIDE + padded(bytes(32)),
    )


def one_multiplier_read_by_many_rescales() -> bytes:
    """30,000 rescales of 65536 channels, each with a multiplier and a shift for every channel."""
    rescale = canonical([RESCALE, [0, 1, 2], [0, 0, 1]])
    constants: list[object] = [[I32, [WIDE]], [I8, [WIDE]]]
    data = (2**30).to_bytes(4, "little") * WIDE + bytes([40]) * WIDE
    return _file(
        [rescale] * 30_000,
        x=[I32, [WIDE], -1, 1],
        constants=constants,
        data=data,
    )


def one_table_read_by_many_channels() -> bytes:
    """Repeated tables of 65536 entries over 65536 channels of i16."""
    constants: list[object] = [[3, [WIDE]]]
    tables = [
        canonical([TABLE, [0 if not n else n + 1, 1], []])
        for n in range(20_000)
    ]
    return _file(
        tables,
        x=[3, [WIDE], -(2**15), 2**15 - 1],
        constants=constants,
        data=bytes(2 * WIDE),
    )


def many_constants() -> bytes:
    """15,000 one-element constants in 64 bytes each, all of them read by one instruction."""
    count = 15_000
    concat = canonical([CONCAT, list(range(1, count + 1)), [0]])
    return _file(
        [concat], constants=[[I32, [1]]] * count, data=bytes(64 * count)
    )


def many_constants_without_data() -> bytes:
    return _file(
        [canonical([CLAMP, [0], [-1, 1]])], constants=[[I32, []]] * 300_000
    )


def huge_matrix_products() -> bytes:
    """65536 x 65536 intervals in every product."""
    matmul = canonical([MATMUL, [0, 1], [0, 0]])
    constants: list[object] = [[I8, [1, 8, WIDE]]]
    return _file(
        [matmul] * 50_000,
        x=[I8, [1, 1, 8], -1, 1],
        constants=constants,
        data=b"\x01" * 8 * WIDE,
    )


def huge_tiles() -> bytes:
    """Each value has 2^30 elements."""
    tile = canonical([TILE, [0], [[2**15, 2**15]]])
    return _file([tile] * 60_000, x=[I32, [1, 1], -1, 1])


def large_windows() -> bytes:
    """Return a transposed convolution with as many residues of its stride as it has taps."""
    transpose = canonical([2, [0, 1, 2], [[0, 0, 0, 0], [700, 700], 1, 0]])
    constants: list[object] = [[I8, [1, 700, 700, 1]], [I32, [1]]]
    return _file(
        [transpose] * 100,
        outputs=[[f"y{number}", 3 + number] for number in range(100)],
        x=[I8, [1, 1, 1, 1], -1, 1],
        constants=constants,
        data=padded(b"\x01" * 490_000) + padded(bytes(4)),
    )


def many_reshapes_of_rank_6() -> bytes:
    return _file(
        [
            canonical([RESHAPE, [number], [[1, 1, 1, 1, 1, 1]]])
            for number in range(70_000)
        ]
    )


def many_casts_to_and_fro() -> bytes:
    return _file(
        [
            canonical([CAST, [number], [I8 if number % 2 == 0 else I32]])
            for number in range(90_000)
        ]
    )


def long_names() -> bytes:
    """1024 outputs with names of 256 bytes that all have the same beginning."""
    outputs: list[object] = [
        ["y" * 250 + f"{number:06d}", 1] for number in range(1024)
    ]
    return _file([canonical([CLAMP, [0], [-1, 1]])], outputs=outputs)


def too_many_names() -> bytes:
    outputs: list[object] = [
        ["y" * 250 + f"{number:06d}", 1] for number in range(4096)
    ]
    return _file([canonical([CLAMP, [0], [-1, 1]])], outputs=outputs)


def many_live_values() -> bytes:
    """Thousands of values that all live until the sum of them begins."""
    return live(30_000)


def live(count: int) -> bytes:
    """So many reverses of one input, then the sum of them from the last to the first."""
    total = count
    instructions = [canonical([REVERSE, [0], [0]])] * count
    for value in range(count - 1, 0, -1):
        instructions.append(canonical([ADD, [total, value], []]))
        total = len(instructions)
    return _file(instructions, x=[I32, [2], -1, 1])


def one_value_in_many_concats() -> bytes:
    """Thousands of concats of one value, and last a reader for which it cannot be a part of any."""
    count = 30_000
    clamp = canonical([CLAMP, [0], [-1, 1]])
    concat = canonical([CONCAT, [1, 0], [1]])
    last = canonical([REDUCE_MAX, [1], [0]])
    whole = canonical([CONCAT, list(range(2, count + 2)), [0]])
    return _file(
        [clamp, *[concat] * count, last, whole],
        x=[I32, [2, 8], -1, 1],
        outputs=[["y", count + 2], ["z", count + 3]],
    )


NASTY: dict[str, Callable[[], bytes]] = {
    make.__name__: make
    for make in (
        maps_for_instructions,
        arrays_for_operands,
        many_small_instructions,
        many_wide_instructions,
        many_live_intervals,
        one_value_joined_to_itself,
        one_small_value_joined_to_itself,
        one_weight_read_by_many_convolutions,
        one_multiplier_read_by_many_rescales,
        one_table_read_by_many_channels,
        many_constants,
        many_constants_without_data,
        huge_matrix_products,
        huge_tiles,
        large_windows,
        many_reshapes_of_rank_6,
        many_casts_to_and_fro,
        long_names,
        too_many_names,
        many_live_values,
        one_value_in_many_concats,
    )
}
