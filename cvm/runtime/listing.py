"""Text for people: a program, its proof, its cost, its outputs. `cvm.errors.printable` makes its lines fit for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy.typing as npt

from cvm.errors import printable
from cvm.program import (
    Attribute,
    Input,
    Instruction,
    IntArray,
    Meaning,
    Metadata,
    Output,
    TensorType,
    dtype_name,
)
from cvm.proof import slack as proof
from cvm.proof.cost import WEIGHTS, WEIGHTS_VERSION, CostReport, Work, memory
from cvm.proof.validate import Proven, WellFormed
from cvm.runtime.backends import BackendMachine
from cvm.runtime.bench import Measurement, StepTime
from cvm.runtime.receipt import Mismatch, Receipt

_SLOWEST = 10  # steps that are listed
_HEADINGS = (
    "value",
    "instruction",
    "MACs",
    "table reads",
    "element ops",
    "bytes",
    "cost",
)


def show(form: WellFormed, program_id: str) -> list[str]:
    """The whole program, one line an item."""
    program, meanings = form.program, form.program.metadata or Metadata()
    lines = [f"program {program_id}", "", "inputs"]
    for number, port in enumerate(program.inputs):
        meaning = _meaning(meanings.inputs.get(port.name))
        lines.append(f"  %{number} {_input(port)}{meaning}")
    if program.constants:
        lines += ["", "constants"]
        lines += [
            f"  %{number} = {_constant(a)}"
            for number, a in enumerate(
                program.constants, program.first_constant
            )
        ]
    lines += ["", "instructions"]
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        lines.append(
            f"  %{number} = {_instruction(instruction)} -> {form.types[number]}{_source(meanings, number)}"
        )
    lines += ["", "outputs"]
    for output in program.outputs:
        meaning = _meaning(meanings.outputs.get(output.name))
        lines.append(
            f"  {output.name} = %{output.value}: {form.types[output.value]}{meaning}"
        )
    return lines + _labels(meanings.labels) + _provenance(meanings.provenance)


def item(content: Input | IntArray | Instruction | Output) -> str:
    """One item of a program, as `show` lists it."""
    if isinstance(content, Instruction):
        return _instruction(content)
    if isinstance(content, Input):
        return _input(content)
    if isinstance(content, Output):
        return f"{content.name} = %{content.value}"
    return _constant(content)


def _input(port: Input) -> str:
    return f"{port.name}: {port.type} in {port.lo}..{port.hi}"


def _labels(labels: Sequence[str]) -> list[str]:
    more = ", .." if len(labels) > 8 else ""
    return (
        [
            "",
            "labels",
            f"  {len(labels):,}: {', '.join(labels[:8])}{more}",
        ]
        if labels
        else []
    )


def _provenance(provenance: Mapping[str, str]) -> list[str]:
    listed = [f"  {key}: {text}" for key, text in provenance.items()]
    return ["", "provenance", *listed] if listed else []


def _instruction(instruction: Instruction) -> str:
    operands = [f"%{value}" for value in instruction.operands]
    return " ".join(
        [
            instruction.name,
            *operands,
            *(
                f"{k}={_attribute(v)}"
                for k, v in instruction.attributes.items()
            ),
        ]
    )


def _attribute(value: Attribute) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _constant(array: IntArray) -> str:
    type_ = TensorType(dtype_name(array), array.shape)
    if array.size <= 8:
        return f"{type_} {' '.join(str(int(value)) for value in array.reshape(-1))}"
    return f"{type_} in {int(array.min())}..{int(array.max())}, {array.nbytes:,} bytes"


def _meaning(meaning: Meaning | None) -> str:
    if meaning is None:
        return ""
    channels = (
        f" times {min(meaning.channels):.3g}..{max(meaning.channels):.3g} by channel"
        if meaning.channels
        else ""
    )
    if meaning.centres:
        channels += f", plus {min(meaning.centres):.3g}..{max(meaning.centres):.3g} by channel"
    return (
        f", scale {meaning.scale!r}{channels}, zero point {meaning.zero_point}"
    )


def _source(metadata: Metadata, number: int) -> str:
    source = metadata.values[number].source if number in metadata.values else ""
    return f"  # {source}" if source else ""


def proof_summary(form: Proven, total: int, program_id: str) -> list[str]:
    """The lines that `cvm verify` prints for a proven program."""
    program = form.program
    counts = (
        len(program.inputs),
        len(program.constants),
        len(program.instructions),
    )
    return [
        "proven: no input inside its interval can make any value overflow",
        f"  values      {sum(counts)}: {', '.join(map(counted, counts, ('input', 'constant', 'instruction')))}",
        f"  slack       {_tightest(form)}",
        f"  cost        {total:,} per sample (weights version {WEIGHTS_VERSION})",
        f"  program id  {program_id}",
    ]


def replay_summary(stated: Receipt, mismatch: Mismatch | None) -> list[str]:
    """Whether a replay matched a receipt, and the first thing that did not."""
    if mismatch is None:
        samples = counted(len(stated.samples), "sample")
        return [f"match: {samples}, root {stated.root.hex()}"]
    return [
        f"no match: {mismatch.what}",
        f"  expected {mismatch.expected}",
        f"  found    {mismatch.found}",
    ]


def counted(count: int, noun: str) -> str:
    """The number and its noun, in the plural unless the number is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _tightest(form: Proven) -> str:
    number = proof.tightest(form)
    if number is None:
        return "no i32 value to measure"
    name = form.program.instructions[
        number - form.program.first_instruction
    ].name
    low, high = form.intervals[number]
    room = proof.bits(proof.slack("i32", (low, high)))
    return (
        f"{room} bits where it is tightest, %{number} = {name} ({low}..{high})"
    )


def intervals(form: Proven) -> list[str]:
    """Every value's interval and slack, as columns."""
    rows = [("value", "from", "type", "interval", "slack")]
    for number, (low, high) in enumerate(form.intervals):
        type_ = form.types[number]
        slack = proof.bits(proof.slack(type_.dtype, (low, high)))
        rows.append(
            (
                f"%{number}",
                defined_by(form, number),
                str(type_),
                f"{low}..{high}",
                slack,
            )
        )
    return columns(rows, left=3)


def defined_by(form: WellFormed, number: int) -> str:
    """The instruction's name, or input or constant."""
    program = form.program
    if number >= program.first_instruction:
        return program.instructions[number - program.first_instruction].name
    return "constant" if number >= program.first_constant else "input"


def cost_table(form: WellFormed, report: CostReport) -> list[str]:
    """The work of each instruction, the total and the weights, as columns; then the memory."""
    first = form.program.first_instruction
    rows: list[tuple[str, ...]] = [_HEADINGS]
    rows += [
        (f"%{n}", defined_by(form, n), *_counts(work))
        for n, work in enumerate(report.instructions, first)
    ]
    rows.append(("total", "", *_counts(report.work)))
    rows.append(
        (
            "weights",
            f"version {WEIGHTS_VERSION}",
            *map(str, WEIGHTS.values()),
            "",
        )
    )
    return [
        *columns(rows, left=2),
        "",
        f"memory  {memory(form):,} bytes of values at once, at most",
    ]


def _counts(work: Work) -> tuple[str, ...]:
    return tuple(
        f"{count:,}"
        for count in (*(getattr(work, kind) for kind in WEIGHTS), work.cost)
    )


def columns(rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Rows with their columns in line: the first `left` to the left, the others to the right."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in shown
    ]


def measurement(measured: Measurement) -> list[str]:
    """The lines that `cvm bench` prints, with the slowest steps."""
    peak = "-" if measured.peak_share is None else f"{measured.peak_share:.1%}"
    rows = [
        (
            "latency",
            f"{measured.median_ms:.3f} ms median, {measured.p90_ms:.3f} ms p90, of {counted(measured.repetitions, 'run')}",
        ),
        (
            "speed",
            f"{measured.gmacs:.2f} giga-MAC/s of {measured.multiply_accumulates:,} MACs",
        ),
        ("of the peak", peak),
        ("ran on", f"{measured.isa}, {counted(measured.threads, 'thread')}"),
        ("arena", f"{measured.arena_bytes:,} bytes"),
    ]
    slowest = [
        ("value", "slowest steps", "products", "epilogue", "ms", "share"),
        *map(_step_row, measured.steps[:_SLOWEST]),
    ]
    return [*columns(rows, left=2), "", *columns(slowest, left=4)]


def _step_row(step: StepTime) -> tuple[str, ...]:
    return (
        f"%{step.result}",
        "+".join(step.instructions) or "copy",
        step.products,
        step.epilogue,
        f"{step.median_ms:.3f}",
        f"{step.share:.1%}",
    )


def outputs_summary(
    arrays: Mapping[str, npt.NDArray[Any]],
    count: int,
    pictures: Sequence[str] = (),
) -> list[str]:
    """Shape, range and first values of each output; with samples along axis 0 of a matrix, each one's largest too.

    Of pictures, each is a line under its name.
    """
    lines = [counted(count, "sample")]
    for name, array in arrays.items():
        lines.append(
            f"{name}: {array.dtype} {list(array.shape)}, {_value(array.min())}..{_value(array.max())}"
        )
        if pictures and len(array) == len(pictures):
            rows = zip(pictures, array, strict=True)
            lines += [f"  {picture}: {_sample(row)}" for picture, row in rows]
        elif array.ndim == 2 and array.shape[1] > 1:
            lines += [
                f"  {n}: {_sample(row)}" for n, row in enumerate(array[:5])
            ]
            lines += [f"  and {len(array) - 5} more"] if len(array) > 5 else []
        else:
            lines.append(f"  {_values(array.reshape(-1))}")
    return lines


def _sample(row: npt.NDArray[Any]) -> str:
    """The first values of a sample and, of several along one axis, the place of the largest."""
    values = _values(row.reshape(-1))
    if row.ndim != 1 or row.size == 1:
        return values
    return f"{values}; largest at {int(row.argmax())}"


def backend_summary(machine: BackendMachine) -> list[str]:
    """Which back end ran, and the median of what a sample took."""
    statement, effort = machine.statement, machine.effort
    seconds, sent, sends = map(
        median, (effort.seconds, effort.sent_bytes, effort.sends)
    )
    return [
        f"{statement.name} {statement.version}, {statement.protocol}: {seconds:.2f} s a sample, compiled in "
        f"{effort.compile_seconds:.1f} s; one party sends {sent:,.0f} bytes in {sends:,.0f} messages"
    ]


def _values(row: npt.NDArray[Any]) -> str:
    return " ".join(map(_value, row[:6])) + (" ..." if len(row) > 6 else "")


def _value(number: Any) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(int(number))
