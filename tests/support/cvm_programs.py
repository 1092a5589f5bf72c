"""Makes valid small programs from a seed, and inputs for them.

The programs are chains of random instructions whose intervals are proven.
`random_program(seed)` depends only on the seed. Every maker in `MAKERS` adds one kind
of instruction to a draft; an instruction that breaks a rule is not added. Every value
without readers becomes an output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvm.errors import Invalid
from cvm.program import (
    DTYPE_RANGES,
    DTYPES,
    Attribute,
    Input,
    Instruction,
    IntArray,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.program.bounds import Bounds, full, of_constant
from cvm.proof.validate import infer_bounds, infer_type

MAX_ELEMENTS = 4096  # of one value
INTEGERS = ("i8", "i16", "i32")
EVERY = ("bool", "i8", "u8", "i16", "i32")


class Frozen:
    """Integers from a seed that are the same in every release of numpy.

    numpy froze RandomState, and nothing else.
    """

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed)

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: int | tuple[int, ...] | None = None,
    ) -> Any:
        return self._state.randint(low, high, size, np.int64)

    def permutation(self, count: int) -> IntArray:
        return self._state.permutation(count)


Random = np.random.Generator | Frozen


@dataclass
class Draft:
    """A program being built.

    A value is its position in `types`, in order of creation; `finish` numbers the
    values anew.
    """

    random: Random
    types: list[TensorType] = field(default_factory=list)
    bounds: list[Bounds] = field(default_factory=list)
    inputs: dict[int, Input] = field(default_factory=dict)
    constants: dict[int, IntArray] = field(default_factory=dict)
    steps: dict[int, Instruction] = field(default_factory=dict)
    most_elements: int = MAX_ELEMENTS

    def below(self, limit: int) -> int:
        return int(self.random.integers(limit))

    def between(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def either(self, *choices: str) -> str:
        return choices[self.below(len(choices))]

    def chance(self) -> bool:
        return self.below(2) == 1

    def input(self, dtype: str, rank: int) -> int:
        low, high = DTYPE_RANGES[dtype]
        if dtype != "bool" and self.chance():
            low, high = sorted(
                (self.between(low, high), self.between(low, high))
            )
        return self.input_of(
            TensorType(dtype, tuple(self.between(1, 6) for _ in range(rank))),
            low,
            high,
        )

    def input_of(self, type_: TensorType, low: int, high: int) -> int:
        self.inputs[len(self.types)] = Input(
            f"input{len(self.inputs)}", type_, low, high
        )
        return self._add(type_, full(type_, low, high))

    def constant(
        self, dtype: str, shape: tuple[int, ...], low: int, high: int
    ) -> int:
        return self.array(
            self.random.integers(low, high + 1, shape).astype(DTYPES[dtype]),
            dtype,
        )

    def array(self, array: IntArray, dtype: str) -> int:
        self.constants[len(self.types)] = array
        type_ = TensorType(dtype, array.shape)
        return self._add(type_, of_constant(array, type_))

    def apply(self, name: str, *operands: int, **attributes: Attribute) -> int:
        """Add an instruction, or raise Invalid."""
        types = [self.types[v] for v in operands]
        bounds = tuple(self.bounds[v] for v in operands)
        constants = tuple(self.constants.get(v) for v in operands)
        local = Instruction(name, tuple(range(len(operands))), attributes)
        type_ = infer_type(local, types, constants)
        if type_.elements > self.most_elements:
            raise Invalid("size", f"{type_} is too large for this draft")
        found = infer_bounds(local, types, constants, bounds, type_)
        self.steps[len(self.types)] = Instruction(name, operands, attributes)
        return self._add(type_, found)

    def pick(
        self, dtypes: tuple[str, ...], ranks: tuple[int, ...] = (1, 2, 3, 4)
    ) -> int:
        """Return a value of one of these types: one that exists, or a new input."""
        fitting = [
            v
            for v, t in enumerate(self.types)
            if v not in self.constants and t.dtype in dtypes and t.rank in ranks
        ]
        if fitting and (len(self.inputs) >= 8 or self.below(8)):
            return (
                fitting[self.below(len(fitting))]
                if self.below(3)
                else fitting[-1]
            )
        return self.input(self.either(*dtypes), ranks[self.below(len(ranks))])

    def partner(self, x: int, low: int, high: int) -> int:
        """Return a constant of x's dtype that broadcasts against x."""
        shape = tuple(
            size if self.chance() else 1 for size in self.types[x].shape
        )
        return self.constant(self.types[x].dtype, shape, low, high)

    def within(self, x: int, low: int, high: int) -> int:
        """Return x itself if its interval fits low..high, else clamp it."""
        fits = low <= self.bounds[x].min and self.bounds[x].max <= high
        return x if fits else self.apply("clamp", x, min=low, max=high)

    def axis(self, x: int) -> int:
        return self.below(self.types[x].rank)

    def _add(self, type_: TensorType, bounds: Bounds) -> int:
        self.types.append(type_)
        self.bounds.append(bounds)
        return len(self.types) - 1

    def finish(self, metadata: Metadata | None = None) -> Program:
        read = list(
            dict.fromkeys(
                v for step in self.steps.values() for v in step.operands
            )
        )
        constants = [v for v in read if v in self.constants]
        number = {
            v: index
            for index, v in enumerate([*self.inputs, *constants, *self.steps])
        }
        steps = [
            Instruction(
                s.name, tuple(number[v] for v in s.operands), s.attributes
            )
            for s in self.steps.values()
        ]
        unread = [v for v in self.steps if v not in read]
        outputs = [
            Output(f"output{index}", number[v])
            for index, v in enumerate(unread)
        ]
        arrays = tuple(self.constants[v] for v in constants)
        return Program(
            tuple(self.inputs.values()),
            arrays,
            tuple(steps),
            tuple(outputs),
            metadata,
        )


def rescale(d: Draft, x: int | None = None, dtype: str = "") -> int:
    x = d.pick(("i8", "u8", "i16", "i32")) if x is None else x
    dtype = dtype or d.either(*INTEGERS)
    count = d.types[x].shape[-1] if d.types[x].rank and d.chance() else 1
    shift = (
        d.between(31, 40) if d.types[x].dtype == "i32" else d.between(29, 33)
    )
    multiplier = d.constant("i32", (count,), 2**30, 2**31 - 1)
    zero_points = [
        d.between(*DTYPE_RANGES[t]) if t in ("i8", "u8") else 0
        for t in (d.types[x].dtype, dtype)
    ]
    shifts = d.constant("i8", (count,), shift, shift + 2)
    return d.apply(
        "rescale",
        x,
        multiplier,
        shifts,
        input_zp=zero_points[0],
        output_zp=zero_points[1],
        dtype=dtype,
    )


def _narrow(
    d: Draft, ranks: tuple[int, ...], dtypes: tuple[str, ...] = ("i8", "i16")
) -> int:
    x = d.pick((*dtypes, "i32"), ranks)
    return rescale(d, x, d.either(*dtypes)) if d.types[x].dtype == "i32" else x


def clamp(d: Draft) -> int:
    x = d.pick(INTEGERS)
    low, high = sorted(
        (
            d.between(*DTYPE_RANGES[d.types[x].dtype]),
            d.between(*DTYPE_RANGES[d.types[x].dtype]),
        )
    )
    return d.apply("clamp", x, min=low, max=high)


def cast(d: Draft) -> int:
    x = d.pick(EVERY)
    dtype = d.either(*(t for t in EVERY if t != d.types[x].dtype))
    if dtype != "bool" and d.types[x].dtype in INTEGERS:
        low, high = DTYPE_RANGES[d.types[x].dtype]
        x = d.within(
            x,
            max(low, DTYPE_RANGES[dtype][0]),
            min(high, DTYPE_RANGES[dtype][1]),
        )
    return d.apply("cast", x, dtype=dtype)


def _zero_point(d: Draft, value: int) -> int:
    return d.between(-128, 127) if d.types[value].dtype == "i8" else 0


def conv2d(d: Draft) -> int:
    x = _narrow(d, (4,))
    _, height, width, channels = d.types[x].shape
    groups = channels if d.chance() else 1
    outputs = groups * d.between(1, 3)
    kernel, stride, dilation, pad = [], [], [], []
    for size in (height, width):
        kernel.append(d.between(1, min(3, size)))
        dilation.append(d.between(1, 2) if 2 * (kernel[-1] - 1) < size else 1)
        pad += [d.below(2), d.below(2)]
        room = size + sum(pad[-2:]) - (kernel[-1] - 1) * dilation[-1] - 1
        stride.append(2 if room % 2 == 0 and d.chance() else 1)
    w = d.constant("i8", (outputs, *kernel, channels // groups), -128, 127)
    b = d.constant("i32", (outputs,), -(2**20), 2**20)
    return d.apply(
        "conv2d", x, w, b, pad=tuple(pad), stride=tuple(stride), dilation=tuple(dilation), groups=groups,
        input_zp=_zero_point(d, x),
    )  # fmt: skip


def conv2d_transpose(d: Draft) -> int:
    x = _narrow(d, (4,))
    channels = d.types[x].shape[3]
    groups = channels if d.chance() else 1
    outputs = groups * d.between(1, 2)
    w = d.constant(
        "i8",
        (outputs, d.between(1, 3), d.between(1, 3), channels // groups),
        -128,
        127,
    )
    b = d.constant("i32", (outputs,), -(2**20), 2**20)
    out_pad = tuple(d.between(-1, 1) for _ in range(4))
    stride = (d.between(1, 3), d.between(1, 3))
    return d.apply(
        "conv2d_transpose",
        x,
        w,
        b,
        out_pad=out_pad,
        stride=stride,
        groups=groups,
        input_zp=_zero_point(d, x),
    )


def dense(d: Draft) -> int:
    x = _narrow(d, (2,))
    outputs = d.between(1, 6)
    w = d.constant("i8", (outputs, d.types[x].shape[1]), -128, 127)
    return d.apply(
        "dense",
        x,
        w,
        d.constant("i32", (outputs,), -(2**20), 2**20),
        input_zp=_zero_point(d, x),
    )


def matmul(d: Draft) -> int:
    a = _narrow(d, (3,), ("i8",))
    batch, _, inner = d.types[a].shape
    b = d.constant("i8", (batch, inner, d.between(1, 5)), -128, 127)
    return d.apply(
        "matmul", a, b, a_zp=_zero_point(d, a), b_zp=d.between(-128, 127)
    )


def _small_pair(name: str, limit: int) -> Callable[[Draft], int]:
    def make(d: Draft) -> int:
        x = d.within(d.pick(("i32",)), -limit, limit)
        other = d.pick(("i32",))
        return d.apply(
            name,
            x,
            d.within(other, -limit, limit)
            if d.chance()
            else d.partner(x, -limit, limit),
        )

    return make


def mul(d: Draft) -> int:
    x = d.pick(INTEGERS)
    if d.types[x].dtype == "i32":
        return d.apply(
            "mul", x, d.partner(x, -(2**31), 2**31 - 1), shift=d.between(31, 40)
        )
    return d.apply("mul", x, d.partner(x, -100, 100), shift=0)


def intdiv(d: Draft) -> int:
    x = d.pick(("i32",))
    return d.apply(
        "intdiv",
        x,
        d.partner(x, 1, 1000) if d.chance() else d.partner(x, -1000, -2),
    )


def absolute(d: Draft) -> int:
    return d.apply("abs", d.within(d.pick(("i32",)), -(2**31) + 1, 2**31 - 1))


def negate(d: Draft) -> int:
    x = d.pick(INTEGERS)
    if d.types[x].dtype == "i8":
        return d.apply(
            "negate",
            x,
            input_zp=d.between(-128, 127),
            output_zp=d.between(-128, 127),
        )
    return d.apply(
        "negate", d.within(x, -30000, 30000), input_zp=0, output_zp=0
    )


def shift_left(d: Draft) -> int:
    x = d.within(d.pick(INTEGERS), -15, 15)
    return d.apply("shift_left", x, d.partner(x, 0, 3))


def shift_right(d: Draft) -> int:
    x = d.pick(INTEGERS)
    most = {"i8": 7, "i16": 15, "i32": 31}[d.types[x].dtype]
    return d.apply("shift_right", x, d.partner(x, 0, most), round=d.chance())


def isqrt(d: Draft) -> int:
    return d.apply("isqrt", d.within(d.pick(("i32",)), 0, 2**31 - 1))


def _logic(name: str) -> Callable[[Draft], int]:
    def make(d: Draft) -> int:
        x = d.pick(("bool",))
        return d.apply(name, x, d.partner(x, 0, 1))

    return make


def select(d: Draft) -> int:
    x = d.pick(("bool", *INTEGERS))
    low, high = DTYPE_RANGES[d.types[x].dtype]
    condition = d.constant(
        "bool", tuple(n if d.chance() else 1 for n in d.types[x].shape), 0, 1
    )
    return d.apply("select", condition, x, d.partner(x, low, high))


def table(d: Draft) -> int:
    x = d.pick(("i8", "u8"))
    dtype = d.either(*INTEGERS)
    return d.apply("table", x, d.constant(dtype, (256,), *DTYPE_RANGES[dtype]))


def gather(d: Draft) -> int:
    values = d.pick(EVERY, (3,))
    batch, rows, _ = d.types[values].shape
    return d.apply(
        "gather",
        values,
        d.constant("i32", (batch, d.between(1, 5)), 0, rows - 1),
    )


def reduce_sum(d: Draft) -> int:
    x = d.within(d.pick(("i32",)), -(2**25), 2**25)
    return d.apply("reduce_sum", x, axis=d.axis(x))


def _along(name: str) -> Callable[[Draft], int]:
    def make(d: Draft) -> int:
        x = d.pick(INTEGERS)
        return d.apply(name, x, axis=d.axis(x))

    return make


def argsort(d: Draft) -> int:
    return d.apply("argsort", d.pick(INTEGERS), descending=d.chance())


def _pool(d: Draft, name: str, dtypes: tuple[str, ...]) -> int:
    x = d.pick(dtypes, (4,)) if "i32" in dtypes else _narrow(d, (4,))
    kernel = tuple(d.between(1, min(3, size)) for size in d.types[x].shape[1:3])
    pad = tuple(d.below(min(2, kernel[i // 2])) for i in range(4))
    zero_points = (
        {"input_zp": _zero_point(d, x), "output_zp": _zero_point(d, x)}
        if name == "avg_pool2d"
        else {}
    )
    return d.apply(
        name, x, kernel=kernel, stride=(1, 1), pad=pad, **zero_points
    )


def reshape(d: Draft) -> int:
    x = d.pick(EVERY)
    shape = d.types[x].shape
    cut = d.below(len(shape))
    merged = (int(np.prod(shape[: cut + 1])), *shape[cut + 1 :])
    return d.apply(
        "reshape",
        x,
        shape=merged if d.chance() else (*shape[:cut], 1, *shape[cut:]),
    )


def transpose(d: Draft) -> int:
    x = d.pick(EVERY)
    return d.apply(
        "transpose",
        x,
        perm=tuple(int(axis) for axis in d.random.permutation(d.types[x].rank)),
    )


def concat(d: Draft) -> int:
    x = d.pick(EVERY)
    low, high = DTYPE_RANGES[d.types[x].dtype]
    parts = [x, d.constant(d.types[x].dtype, d.types[x].shape, low, high), x][
        : d.between(1, 3)
    ]
    return d.apply("concat", *parts, axis=d.axis(x))


def slice_(d: Draft) -> int:
    x = d.pick(EVERY)
    start = tuple(d.below(size) for size in d.types[x].shape)
    size = tuple(
        d.between(1, n - first)
        for n, first in zip(d.types[x].shape, start, strict=True)
    )
    return d.apply("slice", x, start=start, size=size)


def pad(d: Draft) -> int:
    x = d.pick(EVERY)
    pads = tuple(d.below(3) for _ in range(2 * d.types[x].rank))
    return d.apply(
        "pad", x, pads=pads, value=d.between(*DTYPE_RANGES[d.types[x].dtype])
    )


def tile(d: Draft) -> int:
    x = d.pick(EVERY)
    return d.apply(
        "tile", x, multiples=tuple(d.between(1, 2) for _ in d.types[x].shape)
    )


def reverse(d: Draft) -> int:
    x = d.pick(EVERY)
    return d.apply("reverse", x, axis=d.axis(x))


def resize(d: Draft) -> int:
    if d.chance():  # doubles the size and repeats the last position
        x = _narrow(d, (4,))
        mode = "bilinear"
        scale = (2, 1, 2, 1)
        border = (1, 1)
    else:
        x = d.pick(EVERY, (4,))
        mode = "nearest"
        scale = (3, 1, 2, 1)
        border = (2, 1)
    return d.apply(
        "resize", x, scale=scale, offset=(0, 0), border=border, mode=mode
    )


def nms(d: Draft) -> int:
    """Add a nms: boxes overlap, scores tie, and sometimes all boxes have one class."""
    scores = d.pick(("i32",), (2,))
    batch, count = d.types[scores].shape
    boxes = d.input_of(TensorType("i32", (batch, count, 4)), -2, 9)
    classes = d.constant("i32", (batch, count if d.chance() else 1), 0, 1)
    candidates, gaps = d.between(1, count), d.chance()
    keep = candidates if gaps else d.between(1, candidates)
    least_score = d.bounds[scores].min + d.below(2)
    return d.apply(
        "nms", boxes, scores, classes, keep=keep, candidates=candidates, least_score=least_score,
        overlap=(d.below(8), 8), inclusive=d.chance(), gaps=gaps,
    )  # fmt: skip


def interpolate(d: Draft) -> int:
    """Add lines between points; those of 16 bits span half the dtype, the most that they may jump."""
    dtype, first = d.either("i8", "i16"), d.between(-(2**15), 0)
    low, high = (-128, 127) if dtype == "i8" else (first, first + 2**15 - 1)
    points = d.constant(dtype, (513,), low, high)
    return d.apply("interpolate", d.pick(("i16",)), points)


MAKERS: dict[str, Callable[[Draft], int]] = {
    "conv2d": conv2d,
    "conv2d_transpose": conv2d_transpose,
    "dense": dense,
    "matmul": matmul,
    "rescale": rescale,
    "clamp": clamp,
    "cast": cast,
    **{
        name: _small_pair(name, 2**30 - 1)
        for name in ("add", "sub", "maximum", "minimum")
    },
    "mul": mul,
    "intdiv": intdiv,
    "abs": absolute,
    "negate": negate,
    "shift_left": shift_left,
    "shift_right": shift_right,
    "clz": lambda d: d.apply("clz", d.pick(("i32",))),
    "isqrt": isqrt,
    **{
        name: _small_pair(name, 2**31 - 1)
        for name in ("equal", "greater", "greater_equal")
    },
    "logical_and": _logic("logical_and"),
    "logical_or": _logic("logical_or"),
    "logical_not": lambda d: d.apply("logical_not", d.pick(("bool",))),
    "select": select,
    "table": table,
    "gather": gather,
    "reduce_sum": reduce_sum,
    **{name: _along(name) for name in ("reduce_max", "reduce_min", "argmax")},
    "argsort": argsort,
    "max_pool2d": lambda d: _pool(d, "max_pool2d", INTEGERS),
    "avg_pool2d": lambda d: _pool(d, "avg_pool2d", ("i8", "i16")),
    "reshape": reshape,
    "transpose": transpose,
    "concat": concat,
    "slice": slice_,
    "pad": pad,
    "tile": tile,
    "reverse": reverse,
    "resize": resize,
    "nms": nms,
    "interpolate": interpolate,
}


def random_program(
    seed: int | Frozen, steps: int = 12, names: tuple[str, ...] = tuple(MAKERS)
) -> Program:
    """Return a valid program of about `steps` instructions.

    All are of kinds in `names`, or prepare operands for these.
    """
    draft = Draft(generator_of(seed))
    while len(draft.steps) < steps:
        try:
            MAKERS[names[draft.below(len(names))]](draft)
        except Invalid:
            continue
    return draft.finish(_metadata(draft) if draft.chance() else None)


def program_of(names: tuple[str, ...], seed: int) -> Program:
    """Return a valid program with an instruction of each of these kinds, in this order."""
    draft = Draft(np.random.default_rng(seed))
    for name in names:
        while not any(step.name == name for step in draft.steps.values()):
            try:
                MAKERS[name](draft)
            except Invalid:
                continue
    return draft.finish(_metadata(draft) if draft.chance() else None)


def _metadata(draft: Draft) -> Metadata:
    inputs = {
        item.name: Meaning(draft.between(1, 1000) / 512, draft.below(5))
        for item in draft.inputs.values()
    }
    return Metadata(
        inputs,
        {},
        {0: Meaning(0.1, 0, "näme")},
        ("cat", "dog"),
        {"model": "a" * draft.below(40)},
    )


def generator_of(seed: int | Frozen) -> Random:
    return seed if isinstance(seed, Frozen) else np.random.default_rng(seed)


def random_inputs(program: Program, seed: int | Frozen) -> dict[str, IntArray]:
    """Return arrays inside the declared intervals.

    Each input holds one bound, the other bound, a mix of both, or any integers.
    """
    random = generator_of(seed)
    result = {}
    for item in program.inputs:
        anything = random.integers(item.lo, item.hi + 1, item.type.shape)
        ends = np.where(
            random.integers(2, size=item.type.shape), item.lo, item.hi
        )
        low, high = np.full_like(ends, item.lo), np.full_like(ends, item.hi)
        chosen = (low, high, ends, anything, anything)[int(random.integers(5))]
        result[item.name] = np.asarray(chosen).astype(DTYPES[item.type.dtype])
    return result
