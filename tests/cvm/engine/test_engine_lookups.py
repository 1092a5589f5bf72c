"""Look-ups and the rescales beside them, which kernels do at once: the reference's integers, by every instruction set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cvm.plan.encode import step_tuple
from cvm.program import IntArray
from cvm.proof.validate import Proven, validate
from cvm.reference.interpreter import run
from cvm.runtime import native
from tests.support.engine_cases import Case
from tests.support.epilogue_programs import (
    GREATEST,
    Draft,
    assert_agrees,
    factors,
    of_channels,
)

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

Value = tuple[str, int]
SHAPES = [(1, 1), (2, 5), (3, 8), (5, 15), (66, 16), (131, 17), (4, 37)]
SHIFTS = {"high": (32, 34), "both": (29, 33), "low": (29, 31)}


def sigmoid() -> IntArray:
    """Mirrored around its middle, and flat at its ends."""
    half = 8192 - np.round(8192 / (1 + np.exp(np.arange(257) / 20)) * 2)
    return np.concatenate([8192 - half[:0:-1], 8192 + half])


def points(kind: str) -> IntArray:
    """Points of a gate; kernels may take two kinds for halves, the first and the negative one, and no others."""
    random = np.random.default_rng(3)
    found = sigmoid()
    if kind == "steep ends":
        found[[0, 512]] += -64, 64
    elif kind == "one off":
        found[300] += 1
    elif kind == "negative":
        found = -2 * found + 5000
    elif kind == "any":
        found = random.integers(-(2**14), 2**14, 513)
        found[:3] = -(2**15), -1, 2**14
        found[255:260] = 0, 2**15 - 1, 0, -(2**15), -(2**14)
        found[509:] = 0, 2**15 - 1, 2**14, 2**15 - 1
    elif kind == "bytes":
        found = random.integers(-128, 128, 513)
    return found


KINDS = ["sigmoid", "steep ends", "one off", "negative", "any", "bytes"]


def around(rows: int, width: int) -> IntArray:
    """Integers whose halves and quarters are the ends of 16 bits, the middle, and all between and beyond."""
    found = np.random.default_rng(rows).integers(-(2**18), 2**18, rows * width)
    ends = np.array([-65536, -65535, -65534, 65534, 65533, 0, 1, -1, -131072])
    found[: len(ends)] = ends[: len(found)]
    return found.reshape(rows, width)


def gate(case: Case, x: int, width: int, kind: str, turned: bool) -> int:
    """A value times its gate, with a scale for each channel; the first channel's is a half, so that all places occur."""
    sides = []
    for seed, shifts in enumerate([SHIFTS["both"], SHIFTS["high"]]):
        random = np.random.default_rng(seed)
        multiplier, shift = factors(random, width, shifts)
        multiplier[0], shift[0] = 2**30, 31
        sides.append(case.rescale(x, multiplier, shift, "i16"))
    dtype = np.int8 if kind == "bytes" else np.int16
    table = case.draft.array(
        points(kind).astype(dtype), "i8" if kind == "bytes" else "i16"
    )
    place, value = sides
    opened = case.draft.apply("interpolate", place, table)
    wide = case.draft.apply("cast", value, dtype="i32")
    pair = (opened, wide) if turned else (wide, opened)
    return case.draft.apply("mul", *pair, shift=7)


@pytest.mark.parametrize("rows, width", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_value_times_its_gate(rows: int, width: int, kind: str) -> None:
    case = Case()
    x = case.input(around(rows, width), "i32")
    for turned in (False, True):
        product = gate(case, x, width, kind, turned)
        case.rescale(product, [GREATEST], [47], "i8", (0, -5))
    case.assert_equal_everywhere()


@pytest.mark.parametrize("shifts", SHIFTS.values(), ids=SHIFTS)
@pytest.mark.parametrize("kind", ["sigmoid", "any"])
def test_one_rescale_for_the_value_and_the_place(
    kind: str, shifts: tuple[int, int]
) -> None:
    """Of a tensor, or of channels; the same in every instruction set, whatever its shifts."""
    for width in (1, 16, 21):
        case = Case()
        x = case.input(around(9, width), "i32")
        multiplier, shift = factors(np.random.default_rng(7), width, shifts)
        for count in {1, width}:
            both = case.rescale(x, multiplier[:count], shift[:count], "i16")
            table = case.draft.array(points(kind).astype(np.int16), "i16")
            opened = case.draft.apply("interpolate", both, table)
            wide = case.draft.apply("cast", both, dtype="i32")
            case.draft.apply("mul", wide, opened, shift=7)
        case.assert_equal_everywhere()


@pytest.mark.parametrize("read", ["place", "value", "cast", "opened", "x"])
def test_what_else_reads_a_part_of_a_gate_still_gets_it(read: str) -> None:
    case = Case()
    x = case.input(around(5, 21), "i32")
    one = case.rescale(x, [2**30], [31], "i16")
    other = case.rescale(x, [2**30 + 99], [32], "i16")
    table = case.draft.array(sigmoid().astype(np.int16), "i16")
    opened = case.draft.apply("interpolate", one, table)
    wide = case.draft.apply("cast", other, dtype="i32")
    product = case.draft.apply("mul", wide, opened, shift=7)
    again = {
        "place": one,
        "value": other,
        "cast": wide,
        "opened": opened,
        "x": x,
    }
    more = again[read]
    if read in {"place", "value"}:
        more = case.draft.apply("cast", more, dtype="i32")
    small = case.rescale(product, [2**30], [44], "i32")
    case.draft.apply("add", small, more)
    case.assert_equal_everywhere()


def test_a_value_and_a_place_of_different_integers_are_no_gate() -> None:
    case = Case()
    x = case.input(around(5, 21), "i32")
    y = case.input(around(5, 21)[::-1], "i32")
    place = case.rescale(x, [2**30], [31], "i16")
    value = case.rescale(y, [2**30], [31], "i16")
    table = case.draft.array(sigmoid().astype(np.int16), "i16")
    opened = case.draft.apply("interpolate", place, table)
    wide = case.draft.apply("cast", value, dtype="i32")
    case.draft.apply("mul", opened, wide, shift=7)
    case.assert_equal_everywhere()


@pytest.mark.parametrize("shift", [6, 8])
def test_a_product_with_another_shift_is_no_gate(shift: int) -> None:
    case = Case()
    x = case.input(around(5, 21), "i32")
    one = case.rescale(x, [2**30], [33], "i16")
    table = case.draft.array(sigmoid().astype(np.int16), "i16")
    opened = case.draft.apply("interpolate", one, table)
    wide = case.draft.apply("cast", one, dtype="i32")
    case.draft.apply("mul", wide, opened, shift=shift)
    case.assert_equal_everywhere()


# channels of x, outputs, kernel, groups
CONVOLUTIONS = [
    (8, 16, 1, 1), (16, 33, 3, 1), (5, 7, 3, 1), (3, 1, 1, 1), (40, 50, 1, 1),
    (37, 37, 3, 37), (64, 64, 3, 64),
]  # fmt: skip


def path(outputs: int) -> str | None:
    """How sums become results: of one output, a chain takes its rows as columns."""
    return "tile" if outputs > 1 else None


def sums(d: Draft, shape: tuple[int, int, int, int]) -> Value:
    x = d.add("reverse", ("input", 0), axis=1)
    channels, outputs, kernel, groups = shape
    return d.conv(x, channels, outputs, kernel, 7, groups=groups)


def silu(d: Draft, x: Value, outputs: int) -> Value:
    place, value = (
        d.rescale(x, *factors(d.random, outputs, (31, 34)), (0, 0), "i16")
        for _ in range(2)
    )
    table = d.constant(sigmoid().astype(np.int16))
    opened = d.add("interpolate", place, table)
    wide = d.add("cast", value, dtype="i32")
    return d.add("mul", wide, opened, shift=7)


def looked_up(d: Draft, x: Value, outputs: int, zero_point: int) -> Value:
    index = d.rescale(
        x, *factors(d.random, outputs, (38, 41)), (0, zero_point), "i8"
    )
    entries = d.random.integers(-128, 128, 256).astype(np.int8)
    entries[[0, 127, 128, 255]] = 127, -128, -127, 126
    return d.add("table", index, d.constant(entries))


@pytest.mark.parametrize("shape", CONVOLUTIONS)
@pytest.mark.parametrize("result", ["i8", "i16", "i32", ""])
def test_a_gate_of_sums(shape: tuple[int, int, int, int], result: str) -> None:
    """Its product is rescaled to 8, 16 or 32 bits, or is the result itself."""
    outputs = shape[1]
    for seed, size in enumerate((6, 7)):
        d = Draft(shape[0], size, seed)
        y = silu(d, sums(d, shape), outputs)
        if result:
            zero_point = -3 if result == "i8" else 0
            of = of_channels(d.random, 2**30 + 77, 49, outputs)
            y = d.rescale(y, *of, (0, zero_point), result)
        d.add("reverse", y, axis=2)
        assert_agrees(d.finish(), seed, path=path(outputs) if result else None)


@pytest.mark.parametrize("shape", CONVOLUTIONS)
@pytest.mark.parametrize("zero_point", [-128, -3, 127])
def test_a_table_of_sums(
    shape: tuple[int, int, int, int], zero_point: int
) -> None:
    """Tiles of 1, 2 and 3 rows more than a multiple of 4 among them."""
    for size in (5, 6, 7, 9):
        d = Draft(shape[0], size, 5)
        y = looked_up(d, sums(d, shape), shape[1], zero_point)
        d.add("reverse", y, axis=2)
        assert_agrees(d.finish(), 5)


@pytest.mark.parametrize("shape", CONVOLUTIONS)
@pytest.mark.parametrize("result", ["i8", "i16", "i32"])
@pytest.mark.parametrize("zero_point", [0, -3])
def test_a_rescaled_table_of_sums(
    shape: tuple[int, int, int, int], result: str, zero_point: int
) -> None:
    """Entries with a zero point are no sums to what follows them."""
    d = Draft(shape[0], 6, 6)
    y = looked_up(d, sums(d, shape), shape[1], -9)
    of = of_channels(
        d.random, 2**30 + 5, 33 if result == "i8" else 28, shape[1]
    )
    y = d.rescale(y, *of, (zero_point, -3 if result == "i8" else 0), result)
    d.add("reverse", y, axis=2)
    assert_agrees(d.finish(), 6, path=None if zero_point else path(shape[1]))


def test_a_table_of_sums_that_is_widened() -> None:
    """By a rescale by 1, which moves the zero point at most."""
    for zero_point in (0, -3, 127):
        d = Draft(8, 6, 8)
        y = looked_up(d, sums(d, (8, 21, 1, 1)), 21, 0)
        one = np.array([2**30]), np.array([30])
        y = d.rescale(y, *one, (zero_point, 0), "i32")
        d.add("reverse", y, axis=2)
        assert_agrees(d.finish(), 8, path="tile")


@pytest.mark.parametrize("shape", CONVOLUTIONS)
@pytest.mark.parametrize("kind", ["gate", "table"])
def test_a_shortcut_behind_a_look_up(
    shape: tuple[int, int, int, int], kind: str
) -> None:
    outputs = shape[1]
    d = Draft(shape[0], 6, outputs)
    other = (
        d.conv(("input", 0), shape[0], outputs, 1, 0)
        if shape[3] == 1
        else sums(d, shape)
    )
    other = d.rescale(
        other, *factors(d.random, outputs, (41, 43)), (0, 4), "i8"
    )
    other = d.add("reverse", other, axis=2)
    x = sums(d, shape)
    y = silu(d, x, outputs) if kind == "gate" else looked_up(d, x, outputs, 0)
    shift = 39 if kind == "gate" else 17
    mine = d.rescale(
        y, *of_channels(d.random, 2**30, shift, outputs), (0, 0), "i32"
    )
    of = of_channels(d.random, 2**30 + 9, 17, outputs)
    total = d.add("add", mine, d.rescale(other, *of, (4, 0), "i32"))
    last = d.rescale(
        total, *of_channels(d.random, GREATEST, 47, outputs), (0, -3), "i8"
    )
    d.add("reverse", last, axis=2)
    assert_agrees(d.finish(), outputs, path=path(outputs))


@pytest.mark.parametrize("kind", ["gate", "table"])
def test_a_plan_may_read_the_sums_past_a_look_up(kind, monkeypatch) -> None:
    """No program gives such a plan, but a file may: what was looked up stands for the sums only where it is read."""

    def drafted(looks_up: bool) -> Proven:
        d = Draft(8, 6, 1)
        y = sums(d, (8, 16, 1, 1))
        if looks_up and kind == "gate":
            y = silu(d, y, 16)
        elif looks_up:
            of = of_channels(d.random, 2**30 + 5, 28, 16)
            y = d.rescale(looked_up(d, y, 16, 0), *of, (0, 0), "i32")
        y = d.add("clamp", y, min=-90, max=90)
        d.add("reverse", y, axis=2)
        return validate(d.finish())

    def past(*planned: Any) -> tuple[Any, ...]:
        *rest, stages = step_tuple(*planned)
        if not stages:
            return (*rest, stages)
        name, _, *more = stages[-1]
        return (*rest, [*stages[:-1], (name, [0], *more)])

    x = {"x": np.arange(288, dtype=np.int8).reshape(1, 6, 6, 8)}
    (expected,) = run(drafted(False), x).values()
    monkeypatch.setattr("cvm.runtime.native.step_tuple", past)
    for isa in native.isas():
        (found,) = native.Engine(drafted(True), isa=isa).run(x).values()
        assert (found == expected).all()
