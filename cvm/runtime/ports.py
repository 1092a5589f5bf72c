"""The inputs and outputs of a loaded program as users see them: one `Port` each."""

from __future__ import annotations

from dataclasses import dataclass

from cvm.program import Meaning
from cvm.proof.validate import Proven


@dataclass(frozen=True, slots=True)
class Port:
    """One array that goes in or comes out. Scale and zero point are None where the program states none.

    Inputs outside the interval are refused; outputs never leave theirs. real = scale * (integer - zero_point).
    With `factors`, the scale of index i of the last axis is scale * factors[i].
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    interval: tuple[int, int]
    scale: float | None
    zero_point: int | None
    factors: tuple[float, ...] | None = None


def inputs_of(form: Proven) -> tuple[Port, ...]:
    """In the program's order."""
    meanings = form.program.metadata.inputs if form.program.metadata else {}
    return tuple(
        _port(form, port.name, number, meanings.get(port.name))
        for number, port in enumerate(form.program.inputs)
    )


def outputs_of(form: Proven) -> tuple[Port, ...]:
    """In the program's order."""
    meanings = form.program.metadata.outputs if form.program.metadata else {}
    return tuple(
        _port(form, port.name, port.value, meanings.get(port.name))
        for port in form.program.outputs
    )


def _port(form: Proven, name: str, value: int, meaning: Meaning | None) -> Port:
    type_ = form.types[value]
    scale, zero_point = (
        (meaning.scale, meaning.zero_point) if meaning else (None, None)
    )
    return Port(
        name,
        type_.dtype,
        type_.shape,
        form.intervals[value],
        scale,
        zero_point,
        (meaning.channels or None) if meaning else None,
    )
