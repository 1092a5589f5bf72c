"""Programs as Cortex's runtime takes them, of one input, run by the independent reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cvm.export import targets
from cvm.program import (
    DTYPE_RANGES,
    DTYPES,
    Attribute,
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import Proven
from cvm.reference.interpreter import run as run_reference
from tests.support.cortex_reader import Runtime

Arrays = Mapping[str, IntArray]


def runtime_of(form: Proven) -> Runtime:
    """Return the exported pair of files, loaded."""
    artifact = targets.export(form, "cortex", "exported")
    return Runtime.load(artifact.files["symbol"], artifact.binaries["params"])


def answer_of(runtime: Runtime, program: Program, sample: Arrays) -> list[int]:
    """Return the integers of all outputs, one after the other."""
    (item,) = program.inputs
    given = sample[item.name].astype(f"<i{runtime.input_width}")
    found = runtime.run(given.tobytes())
    return np.frombuffer(found, f"<i{runtime.output_width}").tolist()


def outputs_of(
    runtime: Runtime, form: Proven, sample: Arrays
) -> dict[str, IntArray]:
    """Return the outputs in their dtypes and shapes."""
    answer = np.array(answer_of(runtime, form.program, sample), np.int64)
    found, start = {}, 0
    for item in form.program.outputs:
        type_ = form.types[item.value]
        part = answer[start : start + type_.elements]
        found[item.name] = part.astype(DTYPES[type_.dtype]).reshape(type_.shape)
        start += type_.elements
    return found


def expected_of(form: Proven, sample: Arrays) -> list[int]:
    """Return what the reference machine answers."""
    found = run_reference(form, dict(sample))
    outputs = [found[item.name] for item in form.program.outputs]
    return np.concatenate(
        [array.astype(np.int64).ravel() for array in outputs]
    ).tolist()


def of_one_input(
    program: Program, sample: Arrays
) -> tuple[Program, dict[str, IntArray]]:
    """Return the same program over one list of integers, each input being a part of it that is clamped to its interval."""
    if len(program.inputs) == 1:
        return program, dict(sample)
    parts = [sample[item.name].astype(np.int32) for item in program.inputs]
    joined = np.concatenate([part.ravel() for part in parts])
    lo = min(item.lo for item in program.inputs)
    hi = max(item.hi for item in program.inputs)
    whole = Input("whole", TensorType("i32", joined.shape), lo, hi)
    read = {value for step in program.instructions for value in step.operands}
    steps: list[Instruction] = []
    numbers: dict[int, int] = {}
    first_step = 1 + len(program.constants)
    start = 0
    for number, item in enumerate(program.inputs):
        if number in read:
            steps += _part(item, start, first_step + len(steps))
            numbers[number] = first_step + len(steps) - 1
        start += item.type.elements
    count = len(steps)
    for number in range(len(program.constants)):
        numbers[program.first_constant + number] = 1 + number
    for number, step in enumerate(program.instructions):
        numbers[program.first_instruction + number] = first_step + len(steps)
        operands = tuple(numbers[value] for value in step.operands)
        steps.append(Instruction(step.name, operands, step.attributes))
    assert len(steps) == count + len(program.instructions)
    outputs = tuple(
        Output(item.name, numbers[item.value]) for item in program.outputs
    )
    made = Program((whole,), program.constants, tuple(steps), outputs)
    return made, {"whole": joined}


def _part(item: Input, start: int, number: int) -> list[Instruction]:
    """A slice of value 0 as an input; `number` is that of the first instruction."""
    rows: list[tuple[str, dict[str, Attribute]]] = [
        ("slice", {"start": (start,), "size": (item.type.elements,)}),
        ("reshape", {"shape": item.type.shape}),
        ("clamp", {"min": item.lo, "max": item.hi}),
    ]
    if item.type.dtype != "i32":
        assert item.hi <= DTYPE_RANGES[item.type.dtype][1]
        rows.append(("cast", {"dtype": item.type.dtype}))
    return [
        Instruction(name, (number + index - 1 if index else 0,), attributes)
        for index, (name, attributes) in enumerate(rows)
    ]


def narrowed(program: Program, sample: Arrays) -> Program:
    """Return the program with each input's interval no wider than a sample's integers."""
    inputs = tuple(
        replace(
            item,
            lo=max(item.lo, int(sample[item.name].min())),
            hi=min(item.hi, int(sample[item.name].max())),
        )
        for item in program.inputs
    )
    return replace(program, inputs=inputs)


def small(program: Program, most: int) -> Program:
    """Return the program with inputs of at most this size."""
    inputs = []
    for item in program.inputs:
        lo = min(max(item.lo, -most), item.hi)
        inputs.append(replace(item, lo=lo, hi=max(min(item.hi, most), lo)))
    return replace(program, inputs=tuple(inputs))


def short_multipliers(program: Program) -> Program:
    """Return the program with three significant bits of each multiplier of a `rescale`."""
    constants = list(program.constants)
    for step in program.instructions:
        if step.name == "rescale":
            index = step.operands[1] - program.first_constant
            constants[index] = constants[index] >> 28 << 28
    return replace(program, constants=tuple(constants))
