"""One back end on one program: whether it gives what is written down, and if not, the first thing that differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cvm.errors import BadInput
from cvm.plan.summary import summarize
from cvm.program import DTYPES, IntArray, Output, Program
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime import trace
from cvm.runtime.machine import Machine
from cvm.runtime.native import Engine
from tests.determinism.programs import Item
from tests.determinism.records import PREFIX, Record

Sample = dict[str, IntArray]


@dataclass(frozen=True)
class Problem:
    """What differs, in a sentence, and the place in the program or in the fused plan, if it is known."""

    sentence: str
    instruction: int | None = None
    step: int | None = None


@dataclass(frozen=True)
class Found:
    """What one run gave."""

    leaves: list[bytes]
    outputs: dict[str, str]

    @property
    def trace(self) -> str:
        return trace.merkle_root(self.leaves).hex()


def run_reference(form: Proven, sample: Sample) -> Found:
    """The reference machine with the digests that `cvm run --trace` writes."""
    leaves: list[bytes] = []
    return Found(
        leaves,
        _digests(interpreter.run(form, sample, observe=trace.observer(leaves))),
    )


def run_machine(machine: Machine, sample: Sample) -> Found:
    """A machine that shows every instruction's value."""
    leaves: list[bytes] = []
    outputs = machine.run(sample, observe=trace.observer(leaves))
    return Found(leaves, _digests(outputs))


def run_traced(engine: Engine, sample: Sample, threads: int) -> Found:
    """An engine that computes every value by itself."""
    leaves: list[bytes] = []
    return Found(
        leaves,
        _digests(
            engine.observe(sample, trace.observer(leaves), threads=threads)
        ),
    )


def trace_problem(
    form: Proven, found: Found, expected: Record
) -> Problem | None:
    """The first instruction whose value is not the recorded one."""
    for place, leaf in enumerate(found.leaves):
        if leaf.hex()[:PREFIX] != expected.value(place):
            item = form.program.instructions[place]
            number = form.program.first_instruction + place
            return Problem(
                f"trace: instruction {place}, %{number} = {item.name}, is the first that differs",
                place,
            )
    if found.trace != expected.trace:
        return Problem(f"trace: root {found.trace} is not {expected.trace}")
    return _output_problem("trace", found.outputs, expected)


def shown(program: Program) -> Program:
    """The same instructions, each with its value as an output."""
    first = program.first_instruction
    outputs = tuple(
        Output(f"v{first + place}", first + place)
        for place in range(len(program.instructions))
    )
    return replace(program, outputs=outputs)


def shown_problem(
    program: Program, found: Sample, expected: Record
) -> str | None:
    """The first instruction whose value, an output of `shown(program)`, is not the recorded one."""
    for place, value in enumerate(found.values()):
        if trace.digest(value).hex()[:PREFIX] != expected.value(place):
            number = program.first_instruction + place
            name = program.instructions[place].name
            return f"instruction {place}, %{number} = {name}, is the first that differs"
    return None


def fused_problem(
    fused: Engine, sample: Sample, expected: Record, threads: int
) -> Problem | None:
    """The first output of an ordinary run that is wrong, and the first step of its plan that is."""
    problem = _output_problem(
        "fused run", _digests(fused.run(sample, threads=threads)), expected
    )
    step = (
        None
        if problem is None
        else first_wrong_step(fused, sample, expected, threads)
    )
    if problem is None or step is None:
        return problem  # watched step by step it was right: the answer changes from run to run
    what = summarize(fused.plan)[step]
    values = (
        ", ".join(f"%{value}" for value in what.values) or "no value of its own"
    )
    return Problem(
        f"{problem.sentence}; step {step} is the first that differs: {what.what} ({values})",
        step=step,
    )


def first_wrong_step(
    engine: Engine, sample: Sample, expected: Record, threads: int
) -> int | None:
    """The first step of a plan whose result is not the recorded value."""
    program, plan, wrong = engine.form.program, engine.plan, []
    known = {
        n: expected.value(i)
        for i, n in enumerate(
            range(program.first_instruction, len(engine.form.types))
        )
    }
    known |= {
        n: trace.digest(sample[item.name]).hex()[:PREFIX]
        for n, item in enumerate(program.inputs)
    }

    def note(step: int, content: bytes) -> None:
        value = plan.source(plan.steps[step].result)
        type_ = engine.form.types[value]
        array = np.frombuffer(content, DTYPES[type_.dtype]).reshape(type_.shape)
        if (
            value in known
            and trace.digest(array).hex()[:PREFIX] != known[value]
        ):
            wrong.append(step)

    inputs, outputs = engine._buffers(sample)
    engine.core.observed(inputs, list(outputs.values()), threads, note)
    return min(wrong, default=None)


Run = Callable[[Program, Sample], Sample]


def exported_problem(
    what: str, run: Run, item: Item, expected: Record
) -> str | None:
    """What is wrong with a program that something else runs."""
    return explained(what, run(item.program, item.sample), run, item, expected)


def explained(
    what: str, outputs: Sample, run: Run, item: Item, expected: Record
) -> str | None:
    """What is wrong with these outputs: the first instruction that differs when the program runs again, else an output."""
    problem = _output_problem(what, _digests(outputs), expected)
    if problem is None:
        return None
    first = _first_wrong_instruction(run, item, expected)
    return f"{what}: {first}" if first else problem.sentence


def _first_wrong_instruction(
    run: Run, item: Item, expected: Record
) -> str | None:
    """The first that differs where every value is an output; nothing if none does, or if that program is refused."""
    try:
        values = run(shown(item.program), item.sample)
    except BadInput:
        return None
    return shown_problem(item.program, values, expected)


def outputs_problem(
    run: str, outputs: Sample, expected: Record
) -> Problem | None:
    """The first output that is not the recorded one."""
    return _output_problem(run, _digests(outputs), expected)


def _digests(outputs: Sample) -> dict[str, str]:
    return {name: trace.digest(value).hex() for name, value in outputs.items()}


def _output_problem(
    run: str, found: dict[str, str], expected: Record
) -> Problem | None:
    if found.keys() != expected.outputs.keys():
        return Problem(
            f"{run}: outputs {list(found)}, not {list(expected.outputs)}"
        )
    wrong = [
        name for name, value in found.items() if value != expected.outputs[name]
    ]
    return Problem(f"{run}: output {wrong[0]} differs") if wrong else None
