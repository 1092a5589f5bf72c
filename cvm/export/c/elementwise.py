"""What a loop over elements computes for each instruction: one expression of int32_t from those of the operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cvm.export.c.instruction import CInstruction, literal
from cvm.program import DTYPE_RANGES

Expression = Callable[[CInstruction, list[str]], str]


def _format(pattern: str) -> Expression:
    """An expression that depends on the operands alone."""
    return lambda node, x: pattern.format(*x)


def _rescale(node: CInstruction, x: list[str]) -> str:
    least, most = DTYPE_RANGES[node.result.dtype]
    value, multiplier, shift = x
    if node.fits32:
        centred = _plus(value, -node.integer("input_zp"))
        scaled = f"scaled_in_32_bits({centred}, {multiplier}, {shift})"
        return f"clamped({_plus(scaled, node.integer('output_zp'))}, -128, 127)"
    centred = _plus(f"(int64_t){value}", -node.integer("input_zp"))
    scaled = f"scaled({centred}, {multiplier}, {shift})"
    moved = _plus(scaled, node.integer("output_zp"))
    return f"clamped({moved}, {literal(least)}, {literal(most)})"


def _clamp(node: CInstruction, x: list[str]) -> str:
    least, most = (literal(node.integer(end)) for end in ("min", "max"))
    return f"clamped({x[0]}, {least}, {most})"


def _cast(node: CInstruction, x: list[str]) -> str:
    return f"{x[0]} != 0" if node.result.dtype == "bool" else x[0]


def _mul(node: CInstruction, x: list[str]) -> str:
    product = f"(int64_t){x[0]} * {x[1]}"
    shift = node.integer("shift")
    if shift == 0:
        return f"(int32_t)({product})"
    return f"(int32_t)shift_half_up({product}, {shift})"


def _negate(node: CInstruction, x: list[str]) -> str:
    if node.result.dtype != "i8":
        return f"-{x[0]}"
    zero_points = node.integer("input_zp") + node.integer("output_zp")
    return f"clamped({zero_points} - {x[0]}, -128, 127)"


def _shift_right(node: CInstruction, x: list[str]) -> str:
    rounded = node.attributes["round"]
    helper = "shift_half_up" if rounded else "floor_shift"
    return f"(int32_t){helper}({x[0]}, {x[1]})"


def _table(node: CInstruction, x: list[str]) -> str:
    least = DTYPE_RANGES[node.operands[0].type.dtype][0]
    return f"{x[1]}[{_plus(x[0], -least)}]"


def _interpolate(node: CInstruction, x: list[str]) -> str:
    place = _plus(x[0], 32768)
    entries = f"{x[1]}[({place}) >> 7], {x[1]}[(({place}) >> 7) + 1]"
    return f"interpolated({entries}, {place})"


def _plus(term: str, number: int) -> str:
    """The term and a fixed number, added if there is something to add."""
    if number == 0:
        return term
    sign = "-" if number < 0 else "+"
    return f"{term} {sign} {literal(abs(number))}"


EXPRESSIONS: Mapping[str, Expression] = {
    "rescale": _rescale,
    "clamp": _clamp,
    "cast": _cast,
    "add": _format("{0} + {1}"),
    "sub": _format("{0} - {1}"),
    "mul": _mul,
    "intdiv": _format("{0} / {1}"),
    "maximum": _format("{0} > {1} ? {0} : {1}"),
    "minimum": _format("{0} < {1} ? {0} : {1}"),
    "abs": _format("{0} < 0 ? -{0} : {0}"),
    "negate": _negate,
    "shift_left": _format("(int32_t)({0} * (INT64_C(1) << {1}))"),
    "shift_right": _shift_right,
    "clz": _format("leading_zeros({0})"),
    "isqrt": _format("square_root({0})"),
    "equal": _format("{0} == {1}"),
    "greater": _format("{0} > {1}"),
    "greater_equal": _format("{0} >= {1}"),
    "logical_and": _format("{0} & {1}"),
    "logical_or": _format("{0} | {1}"),
    "logical_not": _format("1 - {0}"),
    "select": _format("{0} ? {1} : {2}"),
    "table": _table,
    "interpolate": _interpolate,
}
READ_BY_INDEX = {
    ("table", 1),
    ("interpolate", 1),
}  # operands that stay arrays in the expression
