"""Finds the formats that the model's file gives, where it rounds values to grids of its own.

A FakeQuantize gives the format of its result. What it reads has the same format if
nothing else reads it; rounding there first changes nothing. The same holds behind operators
that only move elements, clip them or choose among them, because rounding keeps their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from cvm.program import DTYPE_RANGES
from mrt.errors import Unsupported
from mrt.graph.canonical_values import is_constant, name_of
from mrt.quantize.tensor import Format
from mrt.table.table import MeasuredRange

NAME = "FakeQuantize"
ORDERLY = frozenset(
    {
        "Relu",
        "Clip",
        "MaxPool",
        "Reshape",
        "Transpose",
        "Slice",
        "Concat",
        "ReduceMax",
        "ReduceMin",
        "Gather",
    }
)
"""Operators through which a grid passes from the result to the operands."""

FRACTION_BITS = 7
"""By so many bits the steps of a format of 16 bits are finer than those of the file's, which has at most 8."""


def file_formats(
    graph: ir.Graph, nodes: Sequence[ir.Node]
) -> dict[str, Format]:
    """Return the formats that the file gives, by name of the value; none for a float model."""
    formats: dict[str, Format] = {}
    outputs = {name_of(value) for value in graph.outputs}
    for node in reversed(nodes):
        result = name_of(node.outputs[0])
        if node.op_type == NAME:
            formats[result] = format_of_node(node)
        elif node.op_type not in ORDERLY:
            continue
        if result not in formats:
            continue
        for value in node.inputs:
            if value is None or is_constant(value):
                continue
            name = name_of(value)
            if name not in outputs and len(value.uses()) == 1:
                formats.setdefault(name, formats[result])
    return formats


def format_of_node(node: ir.Node) -> Format:
    """Return the format of a FakeQuantize in a program's dtypes, with the same integers or all moved.

    Unsigned integers are moved to i8. In i16 the zero point is 0 (SPEC), so that 16 bits
    with another zero point are refused unless all integers still fit.
    """
    scale = float(node.attributes["scale"].as_float())
    zero_point, least, most = (
        int(node.attributes[key].as_float())
        for key in ("zero_point", "least", "most")
    )
    if most - least < 256:
        moved = 128 if most > 127 else 0
        return Format(
            "i8", scale, zero_point - moved, least - moved, most - moved
        )
    low, high = DTYPE_RANGES["i16"]
    least, most = least - zero_point, most - zero_point
    if least < low or most > high:
        raise Unsupported(
            [
                f"{node.name} (QuantizeLinear): 16 bits from {least} to {most} steps around 0; "
                f"a program has {low} to {high}: --requantize chooses a scale"
            ]
        )
    return Format("i16", scale, 0, least, most)


def widened(format_: Format) -> Format:
    """Return a format of 16 bits that holds every real of one of at most 8 bits exactly."""
    if format_.dtype == "i16":
        return format_
    scale = format_.scale / 2**FRACTION_BITS
    return Format("i16", scale, 0, *DTYPE_RANGES["i16"])


def ranges_of_formats(
    formats: Mapping[str, Format],
) -> dict[str, MeasuredRange]:
    """Return the ranges that formats of the file hold, to take the place of measured ones."""
    return {
        name: MeasuredRange(*[format_.lowest, format_.highest] * 2)
        for name, format_ in formats.items()
    }
