"""The instructions whose function on secrets is another than XLA's.

They saturate only where the intervals require it; a table is a sum of comparisons, which also choose the line of an
interpolation; division and leading zeros are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array

from cvm.program import DTYPE_RANGES, IntArray, arithmetic
from cvm.program.bounds import Bounds
from cvm.proof.validate import Proven
from cvm.reference.call import Call
from cvm.secure.calls import call_of
from cvm.secure.steps import LineSteps, TableSteps, lines_of, steps_of
from cvm.xla.arrays import Operand, wide
from cvm.xla.registry import Lowering
from cvm.xla.scale import times, unsaturated

WORD = 32


def lowerings_of(
    form: Proven, bounds: Mapping[int, Bounds]
) -> dict[int, Lowering]:
    """The functions that take the place of XLA's, by the value that they compute."""
    program = form.program
    lowerings = {}
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        if instruction.name in MAKERS:
            call = call_of(form, number, bounds)
            lowerings[number] = MAKERS[instruction.name](call)
    return lowerings


def _stopped(
    x: Operand, limits: tuple[int, int], interval: tuple[int, int]
) -> Operand:
    """`x`, which lies in `interval`, stopped at those limits that it can pass."""
    if interval[0] < limits[0]:
        x = jnp.maximum(x, limits[0])
    if interval[1] > limits[1]:
        x = jnp.minimum(x, limits[1])
    return x


def _rescale(call: Call) -> Lowering:
    input_zp, output_zp = call.integer("input_zp"), call.integer("output_zp")
    multiplier, shift = (call.constant(i).astype(np.int64) for i in (1, 2))
    moved = [
        arithmetic.rescale(end - input_zp, multiplier, shift) + output_zp
        for end in (call.bounds[0].lo, call.bounds[0].hi)
    ]
    interval = int(np.min(moved)), int(np.max(moved))
    limits = DTYPE_RANGES[call.word("dtype")]
    factors, rests = np.divmod(multiplier, 1 << shift)
    if not np.any(rests):  # nothing is rounded: parties multiply without a word
        return lambda x, *_, **__: _stopped(
            times(x, factors, input_zp) + output_zp, limits, interval
        )

    def run(
        x: Operand,
        multiplier: Operand,
        shift: Operand,
        *,
        dtype: str,
        **zp: int,
    ) -> Operand:
        return _stopped(
            unsaturated(x, multiplier, shift, **zp), limits, interval
        )

    return run


def _clamp(call: Call) -> Lowering:
    interval = call.bounds[0].min, call.bounds[0].max

    def run(x: Operand, *, min: int, max: int) -> Operand:
        return _stopped(wide(x), (min, max), interval)

    return run


def _table(call: Call) -> Lowering:
    return partial(_sum_of_steps, steps=steps_of(call))


def _sum_of_steps(x: Operand, values: Operand, *, steps: TableSteps) -> Operand:
    """All comparisons at once, so that the number of messages does not grow with the table."""
    start = jnp.full(x.shape, steps.first, np.int64)
    if not len(steps.places):
        return start
    beyond = jnp.greater(wide(x)[..., None], steps.places).astype(np.int64)
    return start + jnp.sum(beyond * steps.jumps, axis=-1)


def _interpolate(call: Call) -> Lowering:
    return partial(_line_by_comparisons, lines=lines_of(call))


def _line_by_comparisons(
    x: Operand, values: Operand, *, lines: LineSteps
) -> Operand:
    """The slope and the start of the line at x, by one set of comparisons, and one product."""
    operand = wide(x)
    slope, start = (jnp.full(x.shape, first, np.int64) for first in lines.first)
    if len(lines.places):
        beyond = jnp.greater(operand[..., None], lines.places).astype(np.int64)
        of_slope, of_start = lines.jumps
        slope = slope + jnp.sum(beyond * of_slope, axis=-1)
        start = start + jnp.sum(beyond * of_start, axis=-1)
    return operand * slope + start


def _intdiv(call: Call) -> Lowering:
    sizes = [
        max(abs(int(bounds.min)), abs(int(bounds.max)))
        for bounds in call.bounds
    ]
    divisor = call.bounds[1]
    nearest = np.minimum(np.abs(divisor.lo), np.abs(divisor.hi))
    crosses = (divisor.lo <= 0) & (divisor.hi >= 0)
    least = int(np.where(crosses, 1, nearest).min())
    return partial(
        _restoring_division,
        bits=(sizes[0] // least).bit_length(),
        signs=(call.bounds[0].min < 0, divisor.min < 0),
    )


def _restoring_division(
    x: Operand, y: Operand, *, bits: int, signs: tuple[bool, bool]
) -> Operand:
    """The quotient bit by bit, the highest first; `signs` has True for each operand that can be below 0."""
    (rest, x_below), (divisor, y_below) = (
        _size_and_sign(wide(operand), sign)
        for operand, sign in zip((x, y), signs, strict=True)
    )
    shape = np.broadcast_shapes(x.shape, y.shape)
    rest = jnp.broadcast_to(rest, shape)
    quotient = jnp.zeros(shape, np.int64)
    for bit in reversed(range(bits)):
        difference = rest - divisor * (1 << bit)
        fits = difference >= 0
        rest = jnp.where(fits, difference, rest)
        quotient = quotient + fits.astype(np.int64) * (1 << bit)
    sign = x_below * y_below
    return quotient if isinstance(sign, int) else quotient * sign


def _size_and_sign(x: Operand, signed: bool) -> tuple[Operand, Operand | int]:
    """The absolute value, and -1 or 1."""
    if not signed:
        return x, 1
    sign = 1 - 2 * jnp.less(x, 0).astype(np.int64)
    return x * sign, sign


def _clz(call: Call) -> Lowering:
    return partial(_leading_zeros, signed=call.bounds[0].min < 0)


def _leading_zeros(x: Operand, *, signed: bool) -> Operand:
    """For each of 32 places, whether x is less than a one there; below 0 all are, and the answer is 0."""
    places: IntArray = np.left_shift(np.int64(1), np.arange(WORD))
    below = jnp.less(wide(x)[..., None], places).astype(np.int64)
    zeros: Array = jnp.sum(below, axis=-1)
    if signed:
        zeros = zeros - WORD * jnp.less(x, 0).astype(np.int64)
    return zeros


MAKERS: Mapping[str, Callable[[Call], Lowering]] = {
    "rescale": _rescale,
    "clamp": _clamp,
    "table": _table,
    "interpolate": _interpolate,
    "intdiv": _intdiv,
    "clz": _clz,
}
