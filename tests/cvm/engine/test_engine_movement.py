"""Movement, resize and gather in the engine: the reference's bytes, wherever operands and result lie."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import cycle, permutations
from pathlib import Path

import numpy as np
import pytest

from cvm.plan.steps import Room
from cvm.program import MAX_RANK, Attribute, IntArray, TensorType, dtype_name
from cvm.runtime import native
from tests.support.engine_steps import (
    ARENA,
    CONSTANT,
    INPUT,
    OUTPUT,
    At,
    extreme,
    program_of,
    reference,
    run_step,
)

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

KERNEL = "three_planes"  # bytes of three planes become pixels
THREADS, ISAS = cycle([1, 2, 3, 4]), cycle(native.isas())
EVERY = ("bool", "i8", "u8", "i16", "i32")
Attributes = Mapping[str, Attribute]
Case = tuple[
    str, list[tuple[int, ...]], Attributes
]  # instruction, shapes of the operands, attributes
PITCHED = At(Room.ARENA, 5)
ENDS = [
    (INPUT, OUTPUT),
    (ARENA, ARENA),
    (CONSTANT, OUTPUT),
    (INPUT, PITCHED),
    (PITCHED, At(Room.ARENA, 2)),
    (ARENA, OUTPUT),
]


def assert_equal_everywhere(
    name: str, arrays: Sequence[IntArray], attributes: Attributes
) -> None:
    """Through a whole engine by every instruction set, and for every pair of places by one of them.

    Each with another number of threads. Where a kernel differs between them, every instruction set takes every pair.
    """
    expected = reference(name, arrays, attributes)
    type_ = TensorType(dtype_name(expected), expected.shape)
    form = program_of(name, arrays, attributes)
    for isa in native.isas():
        found = native.Engine(form, isa=isa).run(
            {f"x{n}": x for n, x in enumerate(arrays)}, threads=next(THREADS)
        )["y"]
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    by_kernel = (
        name == "transpose"
        and expected.itemsize == 1
        and 3 in expected.shape  # KERNEL may take it
    )
    for x_at, y_at in ENDS:
        for isa in native.isas() if by_kernel else [next(ISAS)]:
            count = next(THREADS)
            found = run_step(
                name,
                arrays,
                attributes,
                type_,
                at=[x_at] * len(arrays),
                result_at=y_at,
                isa=isa,
                threads=count,
            )
            np.testing.assert_array_equal(
                found,
                expected,
                f"{x_at} to {y_at} on {isa} with {count} threads",
            )


def test_instruction_sets_have_one_kernel_of_their_own_for_these_steps() -> (
    None
):
    """What `assert_equal_everywhere` counts on: all else is compiled once, for all of them."""
    folder = Path(__file__).parents[3] / "cvm" / "engine"
    for name in ("movement", "reshape", "gather", "resize", "strided"):
        text = (folder / f"{name}.cpp").read_text()
        used = re.findall(r"kernels\b\W*(\w+)", text)
        assert used == ([KERNEL] if name == "movement" else []), name


def assert_moves(case: Case, dtypes: Sequence[str] = EVERY) -> None:
    name, shapes, attributes = case
    for dtype in dtypes:
        arrays = [
            extreme(TensorType(dtype, shape), seed)
            for seed, shape in enumerate(shapes)
        ]
        assert_equal_everywhere(name, arrays, attributes)


def transposed(shape: tuple[int, ...], *perm: int) -> Case:
    return "transpose", [shape], {"perm": perm}


def reversed_along(axis: int) -> Case:
    return "reverse", [(3, 1, 4, 2, 5, 3)], {"axis": axis}


TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)
SMALL_CASES: list[Case] = [
    *(
        ("reshape", [old], {"shape": new})
        for old, new in [
            ((), ()),
            ((), (1, 1)),
            ((1, 1, 1), ()),
            ((6, 35), (14, 15)),
        ]
    ),
    *(
        ("reshape", [old], {"shape": new})
        for old, new in [((2, 3, 5, 7), (210,)), ((210,), (1, 2, 3, 5, 7, 1))]
    ),
    transposed(()),
    transposed((7,), 0),
    transposed((1, 9, 1, 1, 4, 1), 5, 4, 3, 2, 1, 0),
    transposed((2, 3, 2, 3, 2, 3), 5, 0, 3, 2, 4, 1),
    *(transposed((3, 8, 10, 9), *perm) for perm in permutations(range(4))),
    *(transposed((width, 61), 1, 0) for width in range(1, 20)),
    *(transposed((61, height), 1, 0) for height in range(1, 20)),
    *(transposed((3, pixels), 1, 0) for pixels in range(1, 53)),
    transposed((2, 3, 5, 7), 0, 2, 3, 1),
    ("concat", [(3,)], {"axis": 0}),
    ("concat", [(2, 3), (2, 1), (2, 17)], {"axis": 1}),
    ("concat", [(1, 3, 5), (9, 3, 5), (2, 3, 5)], {"axis": 0}),
    ("concat", [(2, 2, 3, 1, 2, 3), (2, 2, 3, 4, 2, 3)], {"axis": 3}),
    ("concat", [(5, 1)] * 40, {"axis": 1}),
    ("slice", [()], {"start": (), "size": ()}),
    ("slice", [(9,)], {"start": (8,), "size": (1,)}),
    ("slice", [(4, 6, 5)], {"start": (1, 0, 2), "size": (3, 6, 1)}),
    ("slice", [(4, 6, 40)], {"start": (0, 5, 3), "size": (4, 1, 33)}),
    (
        "slice",
        [(2, 3, 4, 3, 2, 5)],
        {"start": (1, 0, 2, 1, 0, 1), "size": (1, 3, 2, 2, 1, 3)},
    ),
    ("pad", [()], {"pads": (), "value": 1}),
    ("pad", [(3,)], {"pads": (0, 0), "value": 0}),
    ("pad", [(1, 5, 6, 3)], {"pads": (0, 0, 1, 2, 3, 0, 0, 0), "value": 0}),
    (
        "pad",
        [(2, 1, 3, 2, 1, 2)],
        {"pads": (1, 0, 0, 2, 1, 1, 0, 0, 3, 0, 2, 1), "value": 1},
    ),
    ("tile", [()], {"multiples": ()}),
    ("tile", [(1,)], {"multiples": (77,)}),
    ("tile", [(3, 1)], {"multiples": (2, 19)}),
    ("tile", [(2, 3)], {"multiples": (3, 1)}),
    ("tile", [(2, 1, 3, 1, 2, 5)], {"multiples": (1, 3, 2, 2, 1, 2)}),
    ("reverse", [(1,)], {"axis": 0}),
    *(reversed_along(axis) for axis in range(MAX_RANK)),
]
LARGE_CASES: list[Case] = [  # several pieces
    ("reshape", [(331, 401)], {"shape": (401, 331)}),
    transposed((1, 3, 113, 127), *TO_NHWC),
    transposed((1, 113, 127, 3), *TO_NCHW),
    transposed((2, 66, 29, 31), *TO_NHWC),
    transposed((2, 29, 31, 66), *TO_NCHW),
    transposed((1, 2048, 7, 7), *TO_NHWC),
    transposed((1, 7, 7, 2048), *TO_NCHW),
    transposed((61, 59, 3, 8), 0, 1, 3, 2),
    transposed((5, 41000), 1, 0),
    transposed((41000, 5), 1, 0),
    ("concat", [(70, 30, 17), (70, 30, 64), (70, 30, 1)], {"axis": 2}),
    ("slice", [(3, 210, 220)], {"start": (1, 3, 2), "size": (2, 200, 211)}),
    ("pad", [(1, 113, 127, 3)], {"pads": (0, 0, 3, 3, 3, 3, 0, 0), "value": 1}),
    ("tile", [(3, 67, 5)], {"multiples": (2, 31, 7)}),
    ("reverse", [(3, 40009)], {"axis": 1}),
    ("reverse", [(3, 40009)], {"axis": 0}),
]


def name_of(case: Case) -> str:
    name, shapes, attributes = case
    return f"{name} {shapes[0]} {[*attributes.values()]}".replace(" ", "")


@pytest.mark.parametrize("case", SMALL_CASES, ids=name_of)
def test_small_values_move_as_in_the_reference(case: Case) -> None:
    assert_moves(case)


@pytest.mark.parametrize("case", LARGE_CASES, ids=name_of)
def test_values_of_many_pieces_move_as_in_the_reference(case: Case) -> None:
    assert_moves(case, ("i8", "i16", "i32"))


def random_case(seed: int) -> Case:
    """An instruction on a random shape of any rank."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, MAX_RANK + 1))
    shape = tuple(
        int(size) for size in random.choice([1, 1, 2, 3, 4, 5, 8, 9], rank)
    )
    axis = int(random.integers(rank))
    numbers = tuple(int(n) for n in random.integers(0, 3, 2 * rank))
    start = tuple(int(random.integers(size)) for size in shape)
    size = tuple(
        int(random.integers(1, end - begin + 1))
        for begin, end in zip(start, shape, strict=True)
    )
    others = [
        (*shape[:axis], int(random.integers(1, 20)), *shape[axis + 1 :])
        for _ in range(int(random.integers(4)))
    ]
    cases: list[Case] = [
        (
            "transpose",
            [shape],
            {"perm": tuple(int(place) for place in random.permutation(rank))},
        ),
        ("concat", [shape, *others], {"axis": axis}),
        ("slice", [shape], {"start": start, "size": size}),
        ("pad", [shape], {"pads": numbers, "value": int(random.integers(2))}),
        ("tile", [shape], {"multiples": tuple(n + 1 for n in numbers[:rank])}),
        ("reverse", [shape], {"axis": axis}),
        ("reshape", [shape], {"shape": shape[::-1]}),
    ]
    return cases[int(random.integers(len(cases)))]


@pytest.mark.parametrize("first", range(0, 80, 10))
def test_random_shapes_move_as_in_the_reference(first: int) -> None:
    for seed in range(first, first + 10):
        assert_moves(random_case(seed), [EVERY[seed % len(EVERY)]])


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("i8", -128),
        ("i8", 127),
        ("i8", -1),
        ("u8", 255),
        ("i16", -32768),
        ("i16", 32767),
        ("i32", -(2**31)),
        ("i32", 2**31 - 1),
    ],
)
def test_pads_hold_the_least_and_greatest_values(
    dtype: str, value: int
) -> None:
    x = extreme(TensorType(dtype, (3, 4)), 1)
    assert_equal_everywhere("pad", [x], {"pads": (1, 2, 0, 3), "value": value})


def test_operands_of_a_concat_may_lie_in_different_rooms() -> None:
    arrays = [
        extreme(TensorType("i8", (6, width)), width) for width in (3, 18, 1, 5)
    ]
    expected, type_ = np.concatenate(arrays, axis=1), TensorType("i8", (6, 27))
    for result_at in (OUTPUT, ARENA, PITCHED):
        at = [INPUT, ARENA, CONSTANT, PITCHED]
        np.testing.assert_array_equal(
            run_step(
                "concat", arrays, {"axis": 1}, type_, at=at, result_at=result_at
            ),
            expected,
        )


@pytest.mark.parametrize("dtype", EVERY)
def test_resize_copies_the_nearest_place(dtype: str) -> None:
    for shape, scale, offset, border in [
        ((1, 1, 1, 1), (1, 1, 1, 1), (0, 0), (0, 0)),
        ((2, 5, 7, 3), (2, 1, 2, 1), (0, 0), (1, 1)),
        ((1, 9, 10, 33), (1, 2, 1, 3), (0, 0), (0, 0)),
        ((1, 56, 60, 20), (4, 2, 4, 2), (-1, -1), (1, 1)),
        ((1, 3, 4, 2), (2048, 4096, 3, 47), (-2048, 2), (0, -7)),
    ]:
        attributes: Attributes = {
            "scale": scale,
            "offset": offset,
            "border": fitted(shape, scale, offset, border),
            "mode": "nearest",
        }
        assert_equal_everywhere(
            "resize", [extreme(TensorType(dtype, shape), 3)], attributes
        )


def fitted(
    shape: tuple[int, ...],
    scale: Sequence[int],
    offset: Sequence[int],
    border: Sequence[int],
) -> tuple[int, ...]:
    """The borders at or below the given ones that make the output's sides whole."""
    rooms = [
        (shape[1 + axis] - 1) * scale[2 * axis] - offset[axis] + border[axis]
        for axis in (0, 1)
    ]
    return tuple(
        border[axis] - rooms[axis] % scale[2 * axis + 1] for axis in (0, 1)
    )


def random_resize(seed: int) -> tuple[TensorType, dict[str, Attribute]] | None:
    """A resize that satisfies every constraint, or None."""
    random = np.random.default_rng(seed)
    dtype = ("i8", "i16")[seed % 2]
    shape = tuple(int(size) for size in random.integers(1, [3, 12, 12, 40]))
    largest = 2048 if dtype == "i8" else 256  # so that the sum fits 32 bits
    scale, offset, border = [], [], []
    for _ in range(2):
        n = int(
            random.choice(
                [1, 2, 3, 4, largest, int(random.integers(1, largest + 1))]
            )
        )
        scale += [
            n,
            int(random.integers(max(1, n // 4), min(16 * n, 3 * n + 1))),
        ]
        offset.append(
            int(random.choice([-n, 0, int(random.integers(-n, 16 * n))]))
        )
        border.append(
            int(random.choice([n - 1, 0, int(random.integers(-n, n))]))
        )
    borders = fitted(shape, scale, offset, border)
    for axis in (0, 1):
        room = (
            (shape[1 + axis] - 1) * scale[2 * axis]
            - offset[axis]
            + borders[axis]
        )
        if room < 0 or borders[axis] < -16 * scale[2 * axis]:
            return None
    mode = "nearest" if seed % 5 == 0 else "bilinear"
    return TensorType(dtype, shape), {
        "scale": tuple(scale),
        "offset": tuple(offset),
        "border": borders,
        "mode": mode,
    }


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_resizes_are_those_of_the_reference(first: int) -> None:
    found = [
        case
        for case in map(random_resize, range(first, first + 20))
        if case is not None
    ]
    assert len(found) >= 5
    for type_, attributes in found:
        assert_equal_everywhere("resize", [extreme(type_, first)], attributes)


def test_resize_example_of_the_specification() -> None:
    x = np.array([1, 5], np.int8).reshape(1, 1, 2, 1)
    attributes: Attributes = {
        "scale": (1, 1, 4, 2),
        "offset": (0, -1),
        "border": (0, 1),
        "mode": "bilinear",
    }
    for x_at in (INPUT, ARENA):
        found = run_step(
            "resize",
            [x],
            attributes,
            TensorType("i32", (1, 1, 4, 1)),
            at=[x_at],
            result_at=OUTPUT,
        )
        assert found.flatten().tolist() == [4, 8, 16, 20]


@pytest.mark.parametrize("dtype", EVERY)
def test_gather_picks_the_rows_of_the_reference(dtype: str) -> None:
    for samples, rows, picks, width in [
        (1, 1, 1, 1),
        (2, 5, 9, 3),
        (3, 300, 7, 8),
        (2, 17, 90, 1),
        (1, 1000, 211, 129),
    ]:
        values = extreme(TensorType(dtype, (samples, rows, width)), 4)
        indices = extreme(
            TensorType("i32", (samples, picks)), 5, low=0, high=rows - 1
        )
        assert_equal_everywhere("gather", [values, indices], {})


def test_an_index_outside_stops_at_the_first_or_last_row() -> None:
    values = np.arange(12, dtype=np.int16).reshape(1, 4, 3)
    indices = np.array([[-1, 4, -(2**31), 2**31 - 1]], np.int32)
    found = run_step(
        "gather",
        [values, indices],
        {},
        TensorType("i16", (1, 4, 3)),
        at=[INPUT, ARENA],
        result_at=OUTPUT,
    )
    np.testing.assert_array_equal(found, values[:, [0, 3, 0, 3]])


HUGE = 2**63 - 1
REFUSED: list[
    tuple[str, tuple[int, ...], tuple[int, ...], Attributes]
] = [  # x's shape, the result's, attributes
    ("reshape", (2, 3), (6,), {"shape": (5,)}),
    ("reshape", (2, 3), (7,), {"shape": (7,)}),
    ("transpose", (2, 3), (2, 3), {"perm": (1, 0)}),
    ("transpose", (2, 2), (2, 2), {"perm": (0, 0)}),
    ("transpose", (2, 3), (3, 2), {"perm": (1, -HUGE)}),
    ("transpose", (2, 3), (3, 2), {"perm": (1,)}),
    ("transpose", (2, 3, 1), (3, 2), {"perm": (1, 0)}),
    ("concat", (2, 3), (2, 4), {"axis": 1}),
    ("concat", (2, 3), (2, 2), {"axis": 1}),
    ("concat", (2, 3), (1, 3), {"axis": 1}),
    ("concat", (2, 3), (2, 3), {"axis": 2}),
    ("concat", (2, 3), (2, 3), {"axis": -1}),
    ("slice", (5,), (2,), {"start": (4,), "size": (2,)}),
    ("slice", (5,), (2,), {"start": (HUGE,), "size": (2,)}),
    ("slice", (5,), (2,), {"start": (-1,), "size": (2,)}),
    ("slice", (5,), (2,), {"start": (0,), "size": (3,)}),
    ("pad", (5,), (7,), {"pads": (1, 2), "value": 0}),
    ("pad", (5,), (7,), {"pads": (-1, 3), "value": 0}),
    ("pad", (5,), (7,), {"pads": (HUGE, HUGE), "value": 0}),
    ("pad", (7,), (5,), {"pads": (-1, -1), "value": 0}),
    ("pad", (5,), (7,), {"pads": (1, 1), "value": 128}),
    ("tile", (2,), (5,), {"multiples": (2,)}),
    ("tile", (2,), (4,), {"multiples": (HUGE,)}),
    ("tile", (4,), (2,), {"multiples": (0,)}),
    ("reverse", (3,), (3,), {"axis": 1}),
    ("reverse", (3,), (4,), {"axis": 0}),
]


@pytest.mark.parametrize(("name", "shape", "result", "attributes"), REFUSED)
def test_steps_that_do_not_fit_their_operands_are_refused(
    name: str,
    shape: tuple[int, ...],
    result: tuple[int, ...],
    attributes: Attributes,
) -> None:
    x = np.zeros(shape, np.int8)
    with pytest.raises(ValueError, match=rf"step 0 \({name}\): "):
        run_step(
            name,
            [x],
            attributes,
            TensorType("i8", result),
            at=[INPUT],
            result_at=OUTPUT,
        )


def test_movement_between_dtypes_is_refused() -> None:
    cases: list[tuple[str, Attributes]] = [
        ("reshape", {"shape": (4,)}),
        ("concat", {"axis": 0}),
        ("reverse", {"axis": 0}),
    ]
    for name, attributes in cases:
        with pytest.raises(ValueError, match="dtype"):
            x = np.zeros(4, np.int8)
            run_step(
                name,
                [x],
                attributes,
                TensorType("i16", (4,)),
                at=[INPUT],
                result_at=OUTPUT,
            )


RESIZE: dict[str, Attribute] = {
    "scale": (2, 1, 2, 1),
    "offset": (0, 0),
    "border": (1, 1),
    "mode": "nearest",
}


@pytest.mark.parametrize(
    "change",
    [
        {"scale": (0, 1, 2, 1)},
        {"scale": (2049, 1, 2, 1)},
        {"scale": (HUGE, HUGE, HUGE, HUGE)},
        {"scale": (2, 0, 2, 1)},
        {"scale": (2, 32, 2, 1)},
        {"offset": (-3, 0)},
        {"offset": (32, 0)},
        {"offset": (-HUGE - 1, 0)},
        {"border": (2, 1)},
        {"border": (-33, 1)},
        {"border": (0, 1)},
        {"mode": 2},
        {"mode": "bilinear"},
    ],
)
def test_resizes_outside_the_rules_are_refused(
    change: dict[str, Attribute],
) -> None:
    x, type_ = np.zeros((1, 2, 2, 1), np.int8), TensorType("i8", (1, 4, 4, 1))
    run_step("resize", [x], RESIZE, type_, at=[INPUT], result_at=OUTPUT)
    with pytest.raises(ValueError, match=r"step 0 \(resize\): "):
        run_step(
            "resize", [x], RESIZE | change, type_, at=[INPUT], result_at=OUTPUT
        )


def test_gathers_that_do_not_fit_are_refused() -> None:
    cases: list[tuple[IntArray, IntArray, tuple[int, ...]]] = [
        (np.zeros((1, 4, 3), np.int8), np.zeros((1, 2), np.int16), (1, 2, 3)),
        (np.zeros((1, 4, 3), np.int8), np.zeros((2, 2), np.int32), (1, 2, 3)),
        (np.zeros((1, 4, 3), np.int8), np.zeros((1, 2), np.int32), (1, 3, 3)),
        (np.zeros((4, 3), np.int8), np.zeros((1, 2), np.int32), (1, 2, 3)),
    ]
    for values, indices, result in cases:
        with pytest.raises(ValueError, match=r"step 0 \(gather\): "):
            run_step(
                "gather",
                [values, indices],
                {},
                TensorType("i8", result),
                at=[INPUT, INPUT],
                result_at=OUTPUT,
            )
