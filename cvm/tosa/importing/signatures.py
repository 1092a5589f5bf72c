"""Which element types an operator takes and gives: those of the integer profile and of EXT-INT16 whose meaning is an instruction's.

`T` stands for one of the types behind the colon, SHAPE for a constant shape, `*` for one or more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ALL = "BOOL INT8 INT16 INT32"
Patterns = tuple[str, ...]
NUMBERS = "INT8 INT16 INT32"
SHORT = "INT8 INT16"
SUMS = {"INT8": "INT32", "INT16": "INT48"}


def _with(pattern: str, types: str) -> Patterns:
    """The pattern for each T."""
    return tuple(re.sub(r"\bT\b", name, pattern) for name in types.split())


def _sum(weights: str) -> Patterns:
    """A convolution: x, weights, bias, zero points."""
    return tuple(
        f"{x} {weights} {total} {x} {weights} > {total}"
        for x, total in SUMS.items()
    )


def _casts() -> Patterns:
    types = ALL.split()
    return tuple(f"{a} > {b}" for a in types for b in types if a != b)


def _rescales() -> Patterns:
    """x, multiplier, shift, zero points."""
    return tuple(
        f"{x} {factor} INT8 {x} {y} > {y}"
        for x in [*NUMBERS.split(), "INT48"]
        for y in NUMBERS.split()
        for factor in ("INT16", "INT32")
    )


SIGNATURES: Mapping[str, Patterns] = {
    "ARGMAX": _with("T > INT32", SHORT),
    "AVG_POOL2D": _with("T T T > T", SHORT),
    "AVG_POOL2D_ADAPTIVE": _with("T T T SIZES SIZES SIZES > T", SHORT),
    "CONV2D": _sum("INT8"),
    "DEPTHWISE_CONV2D": _sum("INT8"),
    "TRANSPOSE_CONV2D": _sum("INT8"),
    "MATMUL": tuple(f"{x} {x} {x} {x} > {y}" for x, y in SUMS.items()),
    "MAX_POOL2D": _with("T > T", SHORT),
    "MAX_POOL2D_ADAPTIVE": _with("T SIZES SIZES SIZES > T", SHORT),
    "CLAMP": _with("T > T", SHORT),
    **dict.fromkeys(
        ("ADD", "SUB", "INTDIV", "MAXIMUM", "MINIMUM"),
        ("INT32 INT32 > INT32",),
    ),
    **dict.fromkeys(
        ("ARITHMETIC_RIGHT_SHIFT", "LOGICAL_LEFT_SHIFT"),
        _with("T T > T", NUMBERS),
    ),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR"), ("BOOL BOOL > BOOL",)),
    "LOGICAL_NOT": ("BOOL > BOOL",),
    "MUL": _with("T T INT8 > INT32", NUMBERS),
    "ABS": ("INT32 > INT32",),
    "CLZ": ("INT32 > INT32",),
    "NEGATE": _with("T T T > T", NUMBERS),
    "SELECT": _with("BOOL T T > T", ALL),
    **dict.fromkeys(
        ("EQUAL", "GREATER", "GREATER_EQUAL"), ("INT32 INT32 > BOOL",)
    ),
    "REDUCE_MAX": _with("T > T", NUMBERS),
    "REDUCE_MIN": _with("T > T", NUMBERS),
    "REDUCE_SUM": ("INT32 > INT32",),
    "CONCAT": _with("T* > T", ALL),
    "PAD": _with("T SIZES T > T", ALL),
    "RESHAPE": _with("T SIZES > T", ALL),
    "REVERSE": _with("T > T", ALL),
    "SLICE": _with("T SIZES SIZES > T", ALL),
    "TILE": _with("T SIZES > T", ALL),
    "TRANSPOSE": _with("T > T", ALL),
    "IDENTITY": _with("T > T", ALL),
    "GATHER": _with("T INT32 > T", ALL),
    "TABLE": ("INT8 INT8 > INT8", "INT16 INT16 > INT32"),
    "RESIZE": (
        "INT8 SIZES SIZES SIZES > INT8",
        "INT8 SIZES SIZES SIZES > INT32",
    ),
    "CAST": _casts(),
    "RESCALE": _rescales(),
}
WITH_AN_AXIS = {
    *("ARGMAX", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_SUM", "CONCAT"),
    *("PAD", "REVERSE", "SLICE", "TILE", "TRANSPOSE"),
}  # they have none of rank 0


def matches(operator: str, given: str) -> bool:
    """Whether an operator takes these types: `INT8 SIZES > INT8`."""
    for pattern in SIGNATURES[operator]:
        if pattern == given:
            return True
        if "*" in pattern:
            operand, result = pattern.replace("*", "").split(" > ")
            names, _, given_result = given.partition(" > ")
            if given_result == result and set(names.split()) == {operand}:
                return True
    return False
