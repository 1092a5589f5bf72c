"""Makes a program of which nothing comes out but the extremes of its values, over all samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvm.program import Input, Meaning, Program, TensorType
from mrt.errors import BadModel
from mrt.quantize.builder import Handle, ProgramBuilder

EXTREMES, SAMPLES = "extremes", "samples"
MOST_SAMPLES = 2**20
BELOW_ALL = (
    -(2**15) - 1
)  # what no value of 16 bits and no negated one is as small as


@dataclass(frozen=True)
class Watched:
    """A value whose extremes are gathered: real = scale * (integer - zero_point), stopped at `low` and `high`."""

    name: str
    scale: float
    zero_point: int
    low: int
    high: int


def gather_extremes(
    program: Program, watched: Sequence[Watched], provenance: dict[str, str]
) -> Program:
    """The program with two outputs: the extremes of inputs and outputs that are watched, and the number of samples.

    `extremes` is [1, 2 K], the greatest integer of each value and then the least ones,
    negated, so that it never falls. Both go on as inputs of their names.
    """
    for input_ in program.inputs:
        if input_.name in (EXTREMES, SAMPLES):
            raise BadModel(
                f"the model has an input {input_.name!r}, which is a name of the probe's own: rename it in the model"
            )
    builder = ProgramBuilder()
    values = _copied(builder, program)
    greatest = [
        _reduced(builder, values[one.name], "reduce_max") for one in watched
    ]
    least = [
        _reduced(builder, values[one.name], "reduce_min") for one in watched
    ]
    below = builder.emit("concat", *least, axis=1)
    below = builder.emit("negate", below, input_zp=0, output_zp=0)
    extremes = builder.emit("concat", *greatest, below, axis=1)
    type_ = TensorType("i32", (1, 2 * len(watched)))
    so_far = _given(builder, Input(EXTREMES, type_, BELOW_ALL, -BELOW_ALL))
    _going_on(builder, EXTREMES, builder.emit("maximum", extremes, so_far))
    count = Input(SAMPLES, TensorType("i32", (1,)), 0, MOST_SAMPLES)
    one = builder.constant(np.ones(1, np.int32))
    more = builder.emit("add", _given(builder, count), one)
    stopped = builder.emit("clamp", more, min=0, max=MOST_SAMPLES)
    _going_on(builder, SAMPLES, stopped)
    return builder.finish(provenance)


def _copied(builder: ProgramBuilder, program: Program) -> dict[str, Handle]:
    """Write the program's instructions; its inputs and outputs, by name."""
    meanings = program.metadata.inputs if program.metadata else {}
    handles: list[Handle] = []
    named: dict[str, Handle] = {}
    for input_ in program.inputs:
        handles.append(builder.input(input_, meanings[input_.name]))
        named[input_.name] = handles[-1]
    handles += [builder.constant(array) for array in program.constants]
    for step in program.instructions:
        operands = [handles[value] for value in step.operands]
        handles.append(builder.emit(step.name, *operands, **step.attributes))
    for output in program.outputs:
        named[output.name] = handles[output.value]
    return named


def _reduced(builder: ProgramBuilder, value: Handle, name: str) -> Handle:
    """The greatest or the least of all elements, i32[1, 1]."""
    type_ = builder.types[value]
    row = builder.emit("reshape", value, shape=(1, type_.elements))
    if type_.dtype in ("bool", "u8"):
        row = builder.emit("cast", row, dtype="i32")
    extreme = builder.emit(name, row, axis=1)
    if builder.types[extreme].dtype != "i32":
        extreme = builder.emit("cast", extreme, dtype="i32")
    return extreme


def _given(builder: ProgramBuilder, input_: Input) -> Handle:
    return builder.input(input_, Meaning(1.0, 0))


def _going_on(builder: ProgramBuilder, name: str, value: Handle) -> None:
    builder.output(name, value, Meaning(1.0, 0))
