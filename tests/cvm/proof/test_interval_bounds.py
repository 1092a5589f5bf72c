"""What a program's operands may hold inside their intervals never leaves the proven interval, and reaches its ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvm.program import DTYPE_RANGES, DTYPES, Attribute, IntArray, TensorType
from cvm.program.bounds import Bounds, full
from cvm.reference.call import Call
from cvm.reference.registry import RULES

Draw = Callable[[st.SearchStrategy[Any]], Any]
SIGNED = ("i8", "i16", "i32")
ANY = ("bool", "i8", "u8", "i16", "i32")
UNARY = {
    "abs": ("i32",),
    "negate": SIGNED,
    "clz": ("i32",),
    "isqrt": ("i32",),
    "logical_not": ("bool",),
}
BINARY = {
    **dict.fromkeys(
        [
            "add",
            "sub",
            "maximum",
            "minimum",
            "intdiv",
            "equal",
            "greater",
            "greater_equal",
        ],
        ("i32",),
    ),
    **dict.fromkeys(["mul", "shift_left", "shift_right"], SIGNED),
    **dict.fromkeys(["logical_and", "logical_or"], ("bool",)),
}
ELEMENTWISE = [*UNARY, *BINARY, "select"]
REDUCTION = {
    "reduce_sum": ("i32",),
    **dict.fromkeys(["reduce_max", "reduce_min", "argmax", "argsort"], SIGNED),
}
MOVEMENT = ["reshape", "transpose", "concat", "slice", "pad", "tile", "reverse"]
REACHES_BOTH_ENDS_IN_EVERY_CHANNEL = [
    "reduce_max",
    "reduce_min",
    "concat",
    "slice",
    "pad",
    "tile",
    "reverse",
]


@dataclass(frozen=True)
class Case:
    """One instruction with operand types, attributes and, per channel of each operand, an interval."""

    name: str
    types: tuple[TensorType, ...]
    attributes: dict[str, Attribute]
    bounds: tuple[Bounds, ...]

    def proven(self) -> Bounds:
        call = Call(
            self.name, self.types, (None,) * len(self.types), self.attributes
        )
        result = RULES[self.name].check(call)
        return (
            RULES[self.name]
            .bound(replace(call, bounds=self.bounds, result=result))
            .spread(result)
        )

    def run(self, operands: list[IntArray]) -> IntArray:
        """The exact result, one row of channels for each index of the other axes."""
        exact = np.asarray(RULES[self.name].run(*operands, **self.attributes))
        call = Call(
            self.name, self.types, (None,) * len(self.types), self.attributes
        )
        result = RULES[self.name].check(call)
        assert exact.shape == result.shape
        return exact.astype(np.int64).reshape(-1, result.channels)

    def operand(self, index: int, channel_values: IntArray) -> IntArray:
        type_ = self.types[index]
        return (
            np.broadcast_to(channel_values, type_.shape or (1,))
            .reshape(type_.shape)
            .astype(DTYPES[type_.dtype])
        )


def _interval(draw: Draw, low: int, high: int, width: int) -> tuple[int, int]:
    """Of at most `width` more than one integer, often at an end of low..high or around 0."""
    places = [
        place
        for place in (low, -width // 2, 0, high - width)
        if low <= place <= high
    ]
    lo = draw(
        st.one_of(st.sampled_from(places or [low]), st.integers(low, high))
    )
    return lo, draw(st.integers(lo, min(high, lo + width)))


def _bounds(
    draw: Draw,
    type_: TensorType,
    *,
    width: int,
    limits: tuple[int, int] | None = None,
) -> Bounds:
    low, high = limits or DTYPE_RANGES[type_.dtype]
    pairs = [_interval(draw, low, high, width) for _ in range(type_.channels)]
    return Bounds(
        np.array([lo for lo, _ in pairs], np.int64),
        np.array([hi for _, hi in pairs], np.int64),
    )


def _shape(draw: Draw, least_rank: int = 0) -> tuple[int, ...]:
    return tuple(
        draw(st.lists(st.integers(1, 3), min_size=least_rank, max_size=3))
    )


def _limits(
    draw: Draw, name: str, index: int, dtype: str
) -> tuple[int, int] | None:
    """Where an operand must stay for its instruction to be provable."""
    if name in ("shift_left", "shift_right") and index == 1:
        return 0, {"i8": 7, "i16": 15, "i32": 31}[dtype]
    if name == "intdiv" and index == 1:
        return draw(st.sampled_from([(-(2**31), -1), (1, 2**31 - 1)]))
    return (0, 2**31 - 1) if name == "isqrt" else None


def _elementwise_attributes(
    draw: Draw, name: str, dtype: str
) -> dict[str, Attribute]:
    if name == "mul":
        return {
            "shift": draw(st.sampled_from([0, 1, 2, 31, 62, 63]))
            if dtype == "i32"
            else 0
        }
    if name == "shift_right":
        return {"round": draw(st.booleans())}
    if name == "negate":
        zero_point = st.integers(-128, 127) if dtype == "i8" else st.just(0)
        return {"input_zp": draw(zero_point), "output_zp": draw(zero_point)}
    return {}


def _elementwise(draw: Draw, name: str, width: int) -> Case:
    if name == "select":
        dtype = draw(st.sampled_from(["bool", *SIGNED]))
        dtypes = ["bool", dtype, dtype]
    else:
        dtype = draw(st.sampled_from({**UNARY, **BINARY}[name]))
        dtypes = [dtype] * (1 if name in UNARY else 2)
    shape = _shape(draw)
    shapes = [
        tuple(draw(st.sampled_from([1, dimension])) for dimension in shape)
        for _ in dtypes
    ]
    types = tuple(
        TensorType(dtype, shape)
        for dtype, shape in zip(dtypes, shapes, strict=True)
    )
    bounds = tuple(
        _bounds(
            draw,
            type_,
            width=width,
            limits=_limits(draw, name, index, type_.dtype),
        )
        for index, type_ in enumerate(types)
    )
    return Case(name, types, _elementwise_attributes(draw, name, dtype), bounds)


def _reduction(draw: Draw, name: str) -> Case:
    type_ = TensorType(draw(st.sampled_from(REDUCTION[name])), _shape(draw, 1))
    axis = draw(st.integers(0, type_.rank - 1))
    attributes: dict[str, Attribute] = (
        {"descending": draw(st.booleans())}
        if name == "argsort"
        else {"axis": axis}
    )
    return Case(name, (type_,), attributes, (_bounds(draw, type_, width=1000),))


def _movement_attributes(
    draw: Draw, name: str, type_: TensorType
) -> dict[str, Attribute]:
    shape, axes = type_.shape, range(type_.rank)
    if name == "reshape":
        return {
            "shape": draw(
                st.sampled_from(
                    [
                        shape,
                        shape[::-1],
                        (type_.elements,),
                        (1, *shape),
                        (*shape, 1),
                    ]
                )
            )
        }
    if name == "transpose":
        return {"perm": tuple(draw(st.permutations(axes)))}
    if name == "slice":
        start = tuple(
            draw(st.integers(0, dimension - 1)) for dimension in shape
        )
        return {
            "start": start,
            "size": tuple(
                draw(st.integers(1, shape[axis] - start[axis])) for axis in axes
            ),
        }
    if name == "pad":
        pads = draw(
            st.lists(
                st.integers(0, 2),
                min_size=2 * len(shape),
                max_size=2 * len(shape),
            )
        )
        return {
            "pads": tuple(pads),
            "value": draw(st.integers(*DTYPE_RANGES[type_.dtype])),
        }
    if name == "tile":
        return {"multiples": tuple(draw(st.integers(1, 3)) for _ in axes)}
    return {"axis": draw(st.sampled_from(axes))}


def _movement(draw: Draw, name: str) -> Case:
    type_ = TensorType(
        draw(st.sampled_from(ANY)),
        _shape(draw, 1 if name in ("concat", "reverse") else 0),
    )
    attributes = _movement_attributes(draw, name, type_)
    types = [type_]
    if name == "concat":
        axis = attributes["axis"]
        assert isinstance(axis, int)
        before, after = type_.shape[:axis], type_.shape[axis + 1 :]
        sizes = draw(st.lists(st.integers(1, 3), max_size=2))
        types += [
            TensorType(type_.dtype, (*before, size, *after)) for size in sizes
        ]
    return Case(
        name,
        tuple(types),
        attributes,
        tuple(_bounds(draw, item, width=1000) for item in types),
    )


def _case(draw: Draw, name: str) -> Case:
    if name in ELEMENTWISE:
        return _elementwise(
            draw, name, width=draw(st.sampled_from([3, 1000, 2**32]))
        )
    return (
        _reduction(draw, name) if name in REDUCTION else _movement(draw, name)
    )


def _random_operand(
    rng: np.random.Generator, case: Case, index: int
) -> IntArray:
    """Inside the intervals, and at their ends one time in two."""
    type_, bounds = case.types[index], case.bounds[index]
    shape = type_.shape or (1,)
    inside = rng.integers(bounds.lo, bounds.hi, size=shape, endpoint=True)
    choice = rng.integers(0, 4, size=shape)
    values = np.where(
        choice == 0, bounds.lo, np.where(choice == 1, bounds.hi, inside)
    )
    return values.reshape(type_.shape).astype(DTYPES[type_.dtype])


def _assert_inside(rows: IntArray, bounds: Bounds) -> None:
    assert (bounds.lo <= rows).all() and (rows <= bounds.hi).all()


@pytest.mark.parametrize("name", [*ELEMENTWISE, *REDUCTION, *MOVEMENT])
@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_no_result_leaves_its_channel_s_interval(
    name: str, data: st.DataObject, seed: int
) -> None:
    case, rng = _case(data.draw, name), np.random.default_rng(seed)
    proven = case.proven()
    assert (proven.lo <= proven.hi).all()
    for _ in range(5):
        operands = [
            _random_operand(rng, case, index)
            for index in range(len(case.types))
        ]
        _assert_inside(case.run(operands), proven)


@pytest.mark.parametrize("name", ELEMENTWISE)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_every_channel_s_interval_is_exactly_what_all_its_operands_give(
    name: str, data: st.DataObject
) -> None:
    case = _elementwise(data.draw, name, width=3)
    whole = [
        np.array([[b.lo[0], b.hi[0]]])
        if len(b.lo) == 1
        else np.stack([b.lo, b.hi], 1)
        for b in case.bounds
    ]
    proven = case.proven()
    for channel in range(len(proven.lo)):
        ends = [pairs[channel if len(pairs) > 1 else 0] for pairs in whole]
        values = np.array(
            list(itertools.product(*(range(lo, hi + 1) for lo, hi in ends))),
            np.int64,
        )
        columns = [
            column.astype(DTYPES[type_.dtype])
            for column, type_ in zip(values.T, case.types, strict=True)
        ]
        results = np.asarray(
            RULES[name].run(*columns, **case.attributes)
        ).astype(np.int64)
        assert (results.min(), results.max()) == (
            proven.lo[channel],
            proven.hi[channel],
        )


def _at_ends(case: Case) -> tuple[IntArray, IntArray]:
    """The results when every operand stands at its lower ends, and at its upper ones."""
    indices = range(len(case.types))
    lower = case.run(
        [case.operand(index, case.bounds[index].lo) for index in indices]
    )
    return lower, case.run(
        [case.operand(index, case.bounds[index].hi) for index in indices]
    )


def _keeps_last_axis(case: Case) -> bool:
    last = case.types[0].shape[-1:] or (1,)
    perm, shape = case.attributes.get("perm"), case.attributes.get("shape")
    if isinstance(perm, tuple):
        return sorted(perm) == [*sorted(perm)[:-1], *perm[-1:]]
    return isinstance(shape, tuple) and (shape[-1:] or (1,)) == last


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", *MOVEMENT])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_movement_and_extremes_reach_both_ends(
    name: str, data: st.DataObject
) -> None:
    case = _case(data.draw, name)
    proven, (lower, upper) = case.proven(), _at_ends(case)
    assert (lower.min(), upper.max()) == (proven.min, proven.max)
    if name in REACHES_BOTH_ENDS_IN_EVERY_CHANNEL or _keeps_last_axis(case):
        assert (lower.min(axis=0) == proven.lo).all() and (
            upper.max(axis=0) == proven.hi
        ).all()


def test_a_value_joined_to_itself_keeps_its_channels_twice() -> None:
    type_ = TensorType("i8", (2,))
    bounds = Bounds(np.array([1, 5]), np.array([2, 9]))
    proven = Case(
        "concat", (type_, type_), {"axis": 0}, (bounds, bounds)
    ).proven()
    assert proven.lo.tolist() == [1, 5, 1, 5] and proven.hi.tolist() == [
        2,
        9,
        2,
        9,
    ]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_sum_reaches_both_ends_where_the_intervals_hold_0(
    data: st.DataObject,
) -> None:
    case = _reduction(data.draw, "reduce_sum")
    (bounds,) = case.bounds
    case = replace(
        case,
        bounds=(Bounds(np.minimum(bounds.lo, 0), np.maximum(bounds.hi, 0)),),
    )
    proven, (lower, upper) = case.proven(), _at_ends(case)
    assert (lower == proven.lo).all() and (upper == proven.hi).all()


@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_no_part_of_a_sum_leaves_the_interval_of_the_sum(
    data: st.DataObject, seed: int
) -> None:
    case, rng = _reduction(data.draw, "reduce_sum"), np.random.default_rng(seed)
    operand = _random_operand(rng, case, 0)
    part = np.where(rng.integers(0, 2, size=operand.shape) == 1, operand, 0)
    _assert_inside(case.run([part]), case.proven())


def _wide(
    name: str,
    shapes: list[tuple[int, ...]],
    ends: list[tuple[int, int]],
    **attributes: Attribute,
) -> Case:
    """Operands of i32 whose channels all have one interval."""
    types = tuple(TensorType("i32", shape) for shape in shapes)
    bounds = tuple(
        full(type_, lo, hi) for type_, (lo, hi) in zip(types, ends, strict=True)
    )
    return Case(name, types, attributes, bounds)


WIDE = [
    (_wide("add", [(1, 70000), (1, 1)], [(1, 2), (10, 20)]), 1, 11, 22),
    (_wide("add", [(1, 1), (1, 65536)], [(1, 2), (10, 20)]), 65536, 11, 22),
    (
        _wide("mul", [(70000,), (1,)], [(-(2**31), 2**31 - 1)] * 2, shift=0),
        1,
        -(2**62) + 2**31,
        2**62,
    ),
    (
        _wide("shift_left", [(70000,), (1,)], [(-(2**31), 2**31 - 1), (0, 31)]),
        1,
        -(2**62),
        2**62 - 2**31,
    ),
    (_wide("reduce_sum", [(2, 70000)], [(-1, 3)], axis=1), 1, -70000, 210000),
    (_wide("reduce_sum", [(2, 65536)], [(-1, 3)], axis=1), 1, -65536, 196608),
    (_wide("reduce_sum", [(2, 70000)], [(-1, 3)], axis=0), 1, -2, 6),
    (
        _wide("reduce_sum", [(2**31 - 1, 1)], [(-(2**31), 2**31 - 1)], axis=0),
        1,
        -(2**62) + 2**31,
        (2**31 - 1) ** 2,
    ),
    (_wide("reduce_max", [(2, 70000)], [(-1, 3)], axis=1), 1, -1, 3),
    (_wide("argmax", [(70000,)], [(-1, 3)], axis=0), 1, 0, 69999),
    (_wide("argsort", [(70000,)], [(-1, 3)], descending=True), 1, 0, 69999),
    (_wide("reshape", [(70000,)], [(-1, 3)], shape=(35000, 2)), 2, -1, 3),
    (_wide("transpose", [(2, 70000)], [(-1, 3)], perm=(1, 0)), 2, -1, 3),
    (
        _wide("concat", [(40000,), (30000,)], [(-1, 3), (5, 9)], axis=0),
        1,
        -1,
        9,
    ),
    (
        _wide("concat", [(1, 70000), (1, 70000)], [(-1, 3), (5, 9)], axis=0),
        1,
        -1,
        9,
    ),
    (_wide("slice", [(70000,)], [(-1, 3)], start=(5,), size=(4,)), 4, -1, 3),
    (_wide("pad", [(65536,)], [(-1, 3)], pads=(1, 0), value=7), 1, -1, 7),
    (_wide("pad", [(70000,)], [(-1, 3)], pads=(0, 0), value=7), 1, -1, 3),
    (_wide("tile", [(2,)], [(-1, 3)], multiples=(2**30 - 1,)), 1, -1, 3),
    (_wide("reverse", [(70000,)], [(-1, 3)], axis=0), 1, -1, 3),
]


@pytest.mark.parametrize(
    ("case", "channels", "lo", "hi"),
    WIDE,
    ids=[f"{row[0].name}-{row[1]}" for row in WIDE],
)
def test_axes_of_more_than_65536_entries_have_one_interval(
    case: Case, channels: int, lo: int, hi: int
) -> None:
    proven = case.proven()
    assert len(proven.lo) == len(proven.hi) == channels
    assert (proven.lo == lo).all() and (proven.hi == hi).all()
