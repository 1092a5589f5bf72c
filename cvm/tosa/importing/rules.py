"""What each operator becomes: one instruction with its meaning, or a few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from cvm.errors import BadInput
from cvm.program import IntArray
from cvm.tosa.importing.draft import DraftValue, constant
from cvm.tosa.importing.reading import Rule, TosaReading
from cvm.tosa.importing.rescale import rescale
from cvm.tosa.schema import RESIZE_MODES

ELEMENT_DTYPES = {
    "BOOL": "bool",
    "INT8": "i8",
    "INT16": "i16",
    "INT32": "i32",
    "INT48": "i32",  # of 48 bits those programs are taken that 32 are proven to hold
}


def plain(instruction: str) -> Rule:
    """The instruction over all tensors."""

    def rule(reading: TosaReading) -> DraftValue:
        return reading.draft.add(instruction, *reading.values)

    return rule


def along(instruction: str) -> Rule:
    """The instruction with the same axis."""

    def rule(reading: TosaReading) -> DraftValue:
        return reading.draft.add(
            instruction, *reading.values, axis=reading.integer("axis")
        )

    return rule


def with_shapes(instruction: str, *names: str) -> Rule:
    """The instruction with attributes for the constant shapes."""

    def rule(reading: TosaReading) -> DraftValue:
        lists = {
            name: reading.sizes(index) for index, name in enumerate(names, 1)
        }
        return reading.draft.add(instruction, reading.x, **lists)

    return rule


def conv2d(reading: TosaReading) -> DraftValue:
    """Weights [O,KH,KW,C]."""
    return _convolved(reading, _weights(reading), 1)


def _weights(reading: TosaReading) -> IntArray:
    """Constants of rank 4."""
    weights = reading.constant(1)
    if weights.ndim != 4:
        raise BadInput(f"weights {list(weights.shape)} have not rank 4")
    return weights


def depthwise_conv2d(reading: TosaReading) -> DraftValue:
    """Weights [KH,KW,C,M]: M results for each channel."""
    weights = _weights(reading)
    if weights.shape[2:3] != reading.x.type.shape[-1:]:
        raise BadInput(
            f"weights {list(weights.shape)} do not suit {reading.x.type}"
        )
    kh, kw, channels, multiplier = weights.shape
    moved = weights.transpose(2, 3, 0, 1).reshape(
        channels * multiplier, kh, kw, 1
    )
    return _convolved(reading, moved, channels)


def _convolved(
    reading: TosaReading, weights: IntArray, groups: int
) -> DraftValue:
    attributes = {
        name: reading.integers(name) for name in ("pad", "stride", "dilation")
    }
    return _summed(reading, "conv2d", weights, groups=groups, **attributes)


def transpose_conv2d(reading: TosaReading) -> DraftValue:
    """Weights [O,KH,KW,C]."""
    attributes = {
        name: reading.integers(name) for name in ("out_pad", "stride")
    }
    weights = _weights(reading)
    return _summed(reading, "conv2d_transpose", weights, groups=1, **attributes)


def _summed(
    reading: TosaReading,
    instruction: str,
    weights: IntArray,
    **attributes: int | tuple[int, ...],
) -> DraftValue:
    """One instruction for each part of the weights less their zero point, added up; the first has the bias."""
    bias = _bias(reading.constant(2), len(weights))
    total: DraftValue | None = None
    for part in parts_of(weights, reading.one(4)):
        stored = constant(np.ascontiguousarray(part))
        sums = reading.draft.add(
            instruction,
            reading.x,
            stored,
            bias,
            input_zp=reading.one(3),
            **attributes,
        )
        total = sums if total is None else reading.draft.add("add", total, sums)
        bias = constant(np.zeros(len(weights), np.int32))
    assert total is not None
    return total


def _bias(values: IntArray, outputs: int) -> DraftValue:
    """One for each output; TOSA repeats a single one."""
    if values.shape not in ((1,), (outputs,)):
        raise BadInput(
            f"the bias has the shape {list(values.shape)}; expected [1] or [{outputs}]"
        )
    return constant(np.broadcast_to(values, outputs).copy())


def parts_of(weights: IntArray, zero_point: int) -> Iterator[IntArray]:
    """Bytes whose sum is the weights less their zero point: at most three for each weight."""
    rest = weights.astype(np.int16) - zero_point
    while True:
        part = np.clip(rest, -128, 127)
        yield part.astype(np.int8)
        rest = rest - part
        if not rest.any():
            return


def matmul(reading: TosaReading) -> DraftValue:
    """Zero points are attributes here."""
    a, b = reading.values[:2]
    return reading.draft.add(
        "matmul", a, b, a_zp=reading.one(2), b_zp=reading.one(3)
    )


def max_pool2d(reading: TosaReading) -> DraftValue:
    """The same window."""
    return reading.draft.add("max_pool2d", reading.x, **_window(reading))


def avg_pool2d(reading: TosaReading) -> DraftValue:
    """The same window and reciprocal."""
    points = {"input_zp": reading.one(1), "output_zp": reading.one(2)}
    return reading.draft.add(
        "avg_pool2d", reading.x, **points, **_window(reading)
    )


def _window(reading: TosaReading) -> dict[str, tuple[int, ...]]:
    """Attributes, or of an adaptive operator its last three operands."""
    names = ("kernel", "stride", "pad")
    if reading.operator.name.endswith("_ADAPTIVE"):
        first = len(reading.operands) - 3
        return {
            n: reading.sizes(first + index) for index, n in enumerate(names)
        }
    return {name: reading.integers(name) for name in names}


def clamp(reading: TosaReading) -> DraftValue:
    """Bounds are the bytes of an integer of x's type."""
    least, most = reading.bits("min_val"), reading.bits("max_val")
    return reading.draft.add("clamp", reading.x, min=least, max=most)


def cast(reading: TosaReading) -> DraftValue:
    """To fewer bits it must be proven to fit, where TOSA keeps the low ones."""
    dtype = ELEMENT_DTYPES[reading.declared.dtype]
    return reading.draft.add("cast", reading.x, dtype=dtype)


def mul(reading: TosaReading) -> DraftValue:
    """The shift is an attribute here."""
    x, y = reading.values[:2]
    return reading.draft.add("mul", x, y, shift=reading.one(2))


def negate(reading: TosaReading) -> DraftValue:
    """Zero points are attributes here."""
    points = {"input_zp": reading.one(1), "output_zp": reading.one(2)}
    return reading.draft.add("negate", reading.x, **points)


def shift_right(reading: TosaReading) -> DraftValue:
    """The same two roundings."""
    rounds = bool(reading.integer("round"))
    return reading.draft.add("shift_right", *reading.values, round=rounds)


def table(reading: TosaReading) -> DraftValue:
    """Entries are a constant here; the table of 16 bits has an instruction of its own."""
    reading.constant(1)
    name = "interpolate" if reading.declared.dtype == "INT32" else "table"
    return reading.draft.add(name, *reading.values)


def transpose(reading: TosaReading) -> DraftValue:
    """The same permutation."""
    return reading.draft.add(
        "transpose", reading.x, perm=reading.integers("perms")
    )


def pad(reading: TosaReading) -> DraftValue:
    """The value is an attribute here."""
    pads, value = reading.sizes(1), reading.one(1)
    return reading.draft.add("pad", reading.x, pads=pads, value=value)


def resize(reading: TosaReading) -> DraftValue:
    """The same integers; the mode has another type of result."""
    mode = RESIZE_MODES[reading.integer("mode") % len(RESIZE_MODES)]
    expected = "INT32" if mode == "bilinear" else "INT8"
    if reading.declared.dtype != expected:
        raise BadInput(f"{mode} gives {expected}, not {reading.declared.dtype}")
    names = ("scale", "offset", "border")
    lists = {name: reading.sizes(index) for index, name in enumerate(names, 1)}
    return reading.draft.add("resize", reading.x, mode=mode, **lists)


def identity(reading: TosaReading) -> DraftValue:
    """A reshape to the same shape, for an output of a program is the result of an instruction."""
    return reading.draft.add("reshape", reading.x, shape=reading.x.type.shape)


def shift_left(reading: TosaReading) -> DraftValue:
    """No bit may be lost, where TOSA keeps the low ones."""
    return reading.draft.add("shift_left", *reading.values)


RULES: Mapping[str, Rule] = {
    "ARGMAX": along("argmax"),
    "AVG_POOL2D": avg_pool2d,
    "AVG_POOL2D_ADAPTIVE": avg_pool2d,
    "CONV2D": conv2d,
    "DEPTHWISE_CONV2D": depthwise_conv2d,
    "TRANSPOSE_CONV2D": transpose_conv2d,
    "MATMUL": matmul,
    "MAX_POOL2D": max_pool2d,
    "MAX_POOL2D_ADAPTIVE": max_pool2d,
    "CLAMP": clamp,
    "ADD": plain("add"),
    "SUB": plain("sub"),
    "INTDIV": plain("intdiv"),
    "MAXIMUM": plain("maximum"),
    "MINIMUM": plain("minimum"),
    "ARITHMETIC_RIGHT_SHIFT": shift_right,
    "LOGICAL_LEFT_SHIFT": shift_left,
    "LOGICAL_AND": plain("logical_and"),
    "LOGICAL_OR": plain("logical_or"),
    "LOGICAL_NOT": plain("logical_not"),
    "MUL": mul,
    "ABS": plain("abs"),
    "CLZ": plain("clz"),
    "NEGATE": negate,
    "SELECT": plain("select"),
    "EQUAL": plain("equal"),
    "GREATER": plain("greater"),
    "GREATER_EQUAL": plain("greater_equal"),
    "REDUCE_MAX": along("reduce_max"),
    "REDUCE_MIN": along("reduce_min"),
    "REDUCE_SUM": along("reduce_sum"),
    "CONCAT": along("concat"),
    "PAD": pad,
    "RESHAPE": with_shapes("reshape", "shape"),
    "REVERSE": along("reverse"),
    "SLICE": with_shapes("slice", "start", "size"),
    "TILE": with_shapes("tile", "multiples"),
    "TRANSPOSE": transpose,
    "IDENTITY": identity,
    "GATHER": plain("gather"),
    "TABLE": table,
    "RESIZE": resize,
    "CAST": cast,
    "RESCALE": rescale,
}
