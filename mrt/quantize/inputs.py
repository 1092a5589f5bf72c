"""The integers that the program accepts for an integral input.

Notes of the rewritten model on an input decide them. "mrt.indices" is the interval of
the axis into which the input points (negative indices only if calibration measured
some). "mrt.compared" is the interval of the constants with which it is compared.
"mrt.whole" is on floats that are declared to be integers: they have the first
interval of a type that holds all samples, not that of the samples, of which others may
be greater. Without a note, the measured range decides, widened where nothing but exact
arithmetic reads the input.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx_ir as ir

from cvm.program import DTYPE_RANGES, Program
from mrt.errors import BadData, Unsupported
from mrt.graph.canonical_values import clip_ends, name_of
from mrt.graph.notes import (
    compared_of,
    indices_of,
    is_whole,
    picture_layout_of,
)
from mrt.graph.operators import COMPARISONS
from mrt.quantize.context import LoweringContext
from mrt.quantize.exact_inputs import widest_interval
from mrt.quantize.tensor import Format
from mrt.table.table import MeasuredRange

_LEAST, _MOST = DTYPE_RANGES["i32"]
_DTYPES = {
    ir.DataType.BOOL: ("bool", 0, 1),
    ir.DataType.UINT8: ("u8", 0, 255),
    ir.DataType.INT8: ("i8", -128, 127),
    ir.DataType.INT16: ("i16", -(2**15), 2**15 - 1),
    ir.DataType.UINT16: ("i32", 0, 2**16 - 1),
    ir.DataType.UINT32: ("i32", 0, 2**31 - 1),
    ir.DataType.UINT64: ("i32", 0, 2**31 - 1),
}


_OF_WHOLE_NUMBERS = (
    ("i8", -128, 127),
    ("u8", 0, 255),
    ("i16", -(2**15), 2**15 - 1),
)


def input_interval(net: LoweringContext, value: ir.Value) -> Format | None:
    """Return the dtype and interval of an integral input, at scale 1; None for any other input."""
    indices = indices_of(value)
    if is_whole(value) and value.dtype == ir.DataType.FLOAT:
        return _of_whole_numbers(net, value)
    if (
        value.dtype == ir.DataType.FLOAT
        and indices is None
        and compared_of(value) is None
    ):
        return None
    dtype, low, high = _DTYPES.get(
        value.dtype or ir.DataType.FLOAT, ("i32", *DTYPE_RANGES["i32"])
    )
    if indices is not None:
        measured = net.ranges.get(name_of(value))
        from_end = measured is not None and measured.min < 0
        least_index = indices[0] if from_end else 0
        low, high = max(low, least_index), min(high, indices[1])
    elif dtype == "i32":
        low, high = _measured(net, value, low, high)
    return Format(dtype, 1.0, 0, low, high)


def has_own_ends(value: ir.Value) -> bool:
    """Whether an integral input's interval is that of its type or its axis, whatever was measured."""
    if picture_layout_of(value) is not None or indices_of(value) is not None:
        return True
    return _DTYPES.get(value.dtype or ir.DataType.FLOAT, ("i32",))[0] != "i32"


def constant_input_warnings(model: ir.Model, program: Program) -> list[str]:
    """Return a warning on each input of integers that was the same in all samples: the program takes nothing else."""
    values = {name_of(value): value for value in model.graph.inputs}
    return [
        f"input '{port.name}' was {port.lo} in all samples, and the program takes nothing else: give samples in which "
        "it varies, such as sentences with padding for a mask"
        for port in program.inputs
        if port.lo == port.hi and _has_measured_ends(values[port.name])
    ]


def beyond_32_bits_warnings(
    model: ir.Model, ranges: Mapping[str, MeasuredRange]
) -> list[str]:
    """Return a warning on each input of integers, of which samples held greater ones than a program has."""
    return [
        f"{_beyond_32_bits(value.name, measured)}; those beyond were clipped"
        for value in model.graph.inputs
        if _has_measured_ends(value)
        and not _is_only_bounded(value)
        and (measured := ranges.get(name_of(value))) is not None
        and not _LEAST <= measured.min <= measured.max <= _MOST
    ]


def _beyond_32_bits(name: str | None, measured: MeasuredRange) -> str:
    """Return what is wrong with integers that a program lacks, and what may be given in their place."""
    return (
        f"input '{name}' holds integers from {measured.min:g} to {measured.max:g}; those of a program have 32 bits "
        f"({_LEAST}..{_MOST}): give seconds in place of milliseconds, the remainder or difference that the model takes, "
        "or floats"
    )


def _is_only_bounded(value: ir.Value) -> bool:
    """Whether only comparisons and Clips to 32 bits read an input: to them, numbers beyond are as good as the ends."""
    return all(
        node.op_type in COMPARISONS or _clips_to_32_bits(node)
        for node, _ in value.uses()
    )


def _clips_to_32_bits(node: ir.Node) -> bool:
    """Whether a node is a Clip with both bounds: of one that is left out rewriting makes an end of 32 bits."""
    if node.op_type != "Clip":
        return False
    low, high = clip_ends(node)
    return low > _LEAST and high < _MOST


def _has_measured_ends(value: ir.Value) -> bool:
    """Whether the interval of an input is that of the integers that were measured."""
    return value.dtype != ir.DataType.FLOAT and not has_own_ends(value)


def _of_whole_numbers(net: LoweringContext, value: ir.Value) -> Format:
    """Return the first interval that holds the measured range; Unsupported if there is none or it is not whole."""
    name = name_of(value)
    measured = net.ranges.of(name)
    least, most = measured.min, measured.max
    held = least == math.floor(least) and most == math.floor(most)
    for dtype, low, high in _OF_WHOLE_NUMBERS if held else ():
        if low <= least and most <= high:
            return Format(dtype, 1.0, 0, low, high)
    raise Unsupported(
        [
            f"input '{name}' is declared whole, but was measured from {least:g} to {most:g}: "
            "expected integers of at most 16 bits"
        ]
    )


def _measured(
    net: LoweringContext, value: ir.Value, low: int, high: int
) -> tuple[int, int]:
    """Return the measured range extended by the constants that the model compares with, and to all that is computed exactly.

    BadData where all integers that were measured lie beyond 32 bits.
    """
    measured = net.ranges.get(name_of(value))
    numbers = [measured.min, measured.max] if measured is not None else []
    numbers += compared_of(value) or ()
    if not numbers:
        return low, high
    if measured is not None and (measured.max < low or measured.min > high):
        raise BadData(_beyond_32_bits(value.name, measured))
    least, greatest = math.floor(min(numbers)), math.ceil(max(numbers))
    ends = max(low, least), min(high, greatest)
    return widest_interval(net, value, ends)
