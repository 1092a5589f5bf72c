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

    def rule(of: TosaReading) -> DraftValue:
        return of.draft.add(instruction, *of.values)

    return rule


def along(instruction: str) -> Rule:
    """The instruction with the same axis."""

    def rule(of: TosaReading) -> DraftValue:
        return of.draft.add(instruction, *of.values, axis=of.integer("axis"))

    return rule


def told(instruction: str, *names: str) -> Rule:
    """The instruction with attributes for the constant shapes."""

    def rule(of: TosaReading) -> DraftValue:
        lists = {name: of.sizes(index) for index, name in enumerate(names, 1)}
        return of.draft.add(instruction, of.x, **lists)

    return rule


def conv2d(of: TosaReading) -> DraftValue:
    """Weights [O,KH,KW,C]."""
    return _convolved(of, _weights(of), 1)


def _weights(of: TosaReading) -> IntArray:
    """Constants of rank 4."""
    weights = of.constant(1)
    if weights.ndim != 4:
        raise BadInput(f"weights {list(weights.shape)} have not rank 4")
    return weights


def depthwise_conv2d(of: TosaReading) -> DraftValue:
    """Weights [KH,KW,C,M]: M results for each channel."""
    weights = _weights(of)
    if weights.shape[2:3] != of.x.type.shape[-1:]:
        raise BadInput(f"weights {list(weights.shape)} do not suit {of.x.type}")
    kh, kw, channels, multiplier = weights.shape
    moved = weights.transpose(2, 3, 0, 1).reshape(
        channels * multiplier, kh, kw, 1
    )
    return _convolved(of, moved, channels)


def _convolved(of: TosaReading, weights: IntArray, groups: int) -> DraftValue:
    attributes = {
        name: of.integers(name) for name in ("pad", "stride", "dilation")
    }
    return _summed(of, "conv2d", weights, groups=groups, **attributes)


def transpose_conv2d(of: TosaReading) -> DraftValue:
    """Weights [O,KH,KW,C]."""
    attributes = {name: of.integers(name) for name in ("out_pad", "stride")}
    weights = _weights(of)
    return _summed(of, "conv2d_transpose", weights, groups=1, **attributes)


def _summed(
    of: TosaReading,
    instruction: str,
    weights: IntArray,
    **attributes: int | tuple[int, ...],
) -> DraftValue:
    """One instruction for each part of the weights less their zero point, added up; the first has the bias."""
    bias = _bias(of.constant(2), len(weights))
    total: DraftValue | None = None
    for part in parts_of(weights, of.one(4)):
        stored = constant(np.ascontiguousarray(part))
        sums = of.draft.add(
            instruction, of.x, stored, bias, input_zp=of.one(3), **attributes
        )
        total = sums if total is None else of.draft.add("add", total, sums)
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


def matmul(of: TosaReading) -> DraftValue:
    """Zero points are attributes here."""
    a, b = of.values[:2]
    return of.draft.add("matmul", a, b, a_zp=of.one(2), b_zp=of.one(3))


def max_pool2d(of: TosaReading) -> DraftValue:
    """The same window."""
    return of.draft.add("max_pool2d", of.x, **_window(of))


def avg_pool2d(of: TosaReading) -> DraftValue:
    """The same window and reciprocal."""
    points = {"input_zp": of.one(1), "output_zp": of.one(2)}
    return of.draft.add("avg_pool2d", of.x, **points, **_window(of))


def _window(of: TosaReading) -> dict[str, tuple[int, ...]]:
    """Attributes, or of an adaptive operator its last three operands."""
    names = ("kernel", "stride", "pad")
    if of.operator.name.endswith("_ADAPTIVE"):
        first = len(of.operands) - 3
        return {n: of.sizes(first + index) for index, n in enumerate(names)}
    return {name: of.integers(name) for name in names}


def clamp(of: TosaReading) -> DraftValue:
    """Bounds are the bytes of an integer of x's type."""
    least, most = of.bits("min_val"), of.bits("max_val")
    return of.draft.add("clamp", of.x, min=least, max=most)


def cast(of: TosaReading) -> DraftValue:
    """To fewer bits it must be proven to fit, where TOSA keeps the low ones."""
    dtype = ELEMENT_DTYPES[of.declared.dtype]
    return of.draft.add("cast", of.x, dtype=dtype)


def mul(of: TosaReading) -> DraftValue:
    """The shift is an attribute here."""
    x, y = of.values[:2]
    return of.draft.add("mul", x, y, shift=of.one(2))


def negate(of: TosaReading) -> DraftValue:
    """Zero points are attributes here."""
    points = {"input_zp": of.one(1), "output_zp": of.one(2)}
    return of.draft.add("negate", of.x, **points)


def shift_right(of: TosaReading) -> DraftValue:
    """The same two roundings."""
    rounds = bool(of.integer("round"))
    return of.draft.add("shift_right", *of.values, round=rounds)


def table(of: TosaReading) -> DraftValue:
    """Entries are a constant here; the table of 16 bits has an instruction of its own."""
    of.constant(1)
    name = "interpolate" if of.declared.dtype == "INT32" else "table"
    return of.draft.add(name, *of.values)


def transpose(of: TosaReading) -> DraftValue:
    """The same permutation."""
    return of.draft.add("transpose", of.x, perm=of.integers("perms"))


def pad(of: TosaReading) -> DraftValue:
    """The value is an attribute here."""
    pads, value = of.sizes(1), of.one(1)
    return of.draft.add("pad", of.x, pads=pads, value=value)


def resize(of: TosaReading) -> DraftValue:
    """The same integers; the mode has another type of result."""
    mode = RESIZE_MODES[of.integer("mode") % len(RESIZE_MODES)]
    expected = "INT32" if mode == "bilinear" else "INT8"
    if of.declared.dtype != expected:
        raise BadInput(f"{mode} gives {expected}, not {of.declared.dtype}")
    names = ("scale", "offset", "border")
    lists = {name: of.sizes(index) for index, name in enumerate(names, 1)}
    return of.draft.add("resize", of.x, mode=mode, **lists)


def identity(of: TosaReading) -> DraftValue:
    """A reshape to the same shape, for an output of a program is the result of an instruction."""
    return of.draft.add("reshape", of.x, shape=of.x.type.shape)


def shift_left(of: TosaReading) -> DraftValue:
    """No bit may be lost, where TOSA keeps the low ones."""
    return of.draft.add("shift_left", *of.values)


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
    "RESHAPE": told("reshape", "shape"),
    "REVERSE": along("reverse"),
    "SLICE": told("slice", "start", "size"),
    "TILE": told("tile", "multiples"),
    "TRANSPOSE": transpose,
    "IDENTITY": identity,
    "GATHER": plain("gather"),
    "TABLE": table,
    "RESIZE": resize,
    "CAST": cast,
    "RESCALE": rescale,
}
