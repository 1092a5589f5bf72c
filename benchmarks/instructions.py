"""Counts the instructions of each step on AArch64, emulated: where no processor is at hand, a measure that does not vary.

`make instructions` builds what this runs. An instruction is no unit of time, but between two ways to do the same
step fewer of them, with the same share of products, are hardly slower.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

import cvm
from benchmarks import sentence_models
from benchmarks.cache import ROOT
from benchmarks.models import SOURCES, absent, prepare
from cvm.runtime.executable import Executable

BUILD = ROOT / "build" / "aarch64"
SENTENCES = "minilm"
MODELS = (*SOURCES, SENTENCES)
# Multiply-accumulates in one instruction of the best kind that each set has.
PRODUCTS = {"portable": 4, "neon": 4, "dotprod": 16, "i8mm": 32}
EMULATOR = "qemu-aarch64"


@dataclass(frozen=True)
class Step:
    """One step of a plan, or all of one kind together."""

    kind: str  # the operation, how its products are computed, where its sums become the result
    shape: str
    multiply_accumulates: int
    instructions: int

    def line(self, products: int) -> str:
        """Return a line of a table; the least possible is that of the products alone."""
        least = self.multiply_accumulates / products
        ratio = f"{self.instructions / least:.2f}" if least else "-"
        return f"| {self.kind} | {self.shape} | {self.instructions / 1e6:.2f} | {ratio} |"


@click.command()
@click.option(
    "--models",
    default=",".join(MODELS),
    show_default=True,
    help="Which, separated by commas.",
)
@click.option(
    "--isas",
    default=",".join(PRODUCTS),
    show_default=True,
    help="Instruction sets to count on.",
)
@click.option(
    "--each", is_flag=True, help="Every step, in place of kinds of steps."
)
def main(models: str, isas: str, each: bool) -> None:
    """Print the instructions of each model's steps on AArch64, in millions, and as multiples of the least that their products need.

    What runs also answers: outputs must be those of this machine's engine, to the byte.
    """
    _choose("model", models.split(","), MODELS)
    _choose("instruction set", isas.split(","), PRODUCTS)
    require_emulator()
    for model in models.split(","):
        program = program_of(model)
        for isa in isas.split(","):
            print(report(model, isa, count(program, isa), each=each))


def report(model: str, isa: str, steps: list[Step], *, each: bool) -> str:
    """Return a table, whose last line is the sum."""
    products = PRODUCTS[isa]
    lines = [
        f"\n{model}, {isa}\n",
        "| step | result | millions | of the least |",
    ]
    lines.append("| --- | --- | ---: | ---: |")
    shown = steps if each else by_kind(steps)
    total = _together("all", steps)
    return "\n".join(
        [*lines, *(step.line(products) for step in [*shown, total])]
    )


def by_kind(steps: Iterable[Step]) -> list[Step]:
    """Return the sums of steps of one kind, the most instructions first."""
    kinds: dict[str, list[Step]] = {}
    for step in steps:
        kinds.setdefault(step.kind, []).append(step)
    sums = [_together(kind, group) for kind, group in kinds.items()]
    return sorted(sums, key=lambda step: -step.instructions)


def _together(kind: str, steps: list[Step]) -> Step:
    return Step(
        kind,
        f"{len(steps)} steps",
        sum(step.multiply_accumulates for step in steps),
        sum(step.instructions for step in steps),
    )


def count(program: Path, isa: str) -> list[Step]:
    """Run a program on the emulator, and return its steps with what they took."""
    plan, counts = BUILD / "counted.plan", BUILD / "counts.txt"
    _output(
        [sys.executable, "-m", "cvm", "plan", str(program), "-o", str(plan)]
    )
    plugin = f"{BUILD / 'count_plugin.so'},to={counts}"
    emulated = [EMULATOR, "-cpu", "max", "-plugin", plugin]
    text = _output([*emulated, str(BUILD / "count_steps"), str(plan), isa])
    head, *lines = text.splitlines()
    answered, expected = head.split("\t")[1], answer(cvm.load(program))
    if answered != expected:
        raise click.ClickException(
            f"{program}: {isa} answers {answered}, this machine {expected}: a kernel is wrong"
        )
    return steps_of(lines, counts.read_text())


def steps_of(lines: list[str], counts: str) -> list[Step]:
    """Return steps of what count_steps and the plugin wrote; counts are those of the second run, the last ones."""
    numbers = [int(number) for number in counts.split()][-len(lines) :]
    steps = []
    for line, number in zip(lines, numbers, strict=True):
        opcode, shape, work, products, epilogue = line.split("\t")
        kind = ", ".join(filter(None, (opcode, products, epilogue)))
        steps.append(Step(kind, shape, int(work), number))
    return steps


def program_of(model: str) -> Path:
    """Return the program of a model; ClickException if its data is not here."""
    reason = sentence_models.absent() if model == SENTENCES else absent(model)
    if reason is not None:
        raise click.ClickException(reason)
    if model == SENTENCES:
        return sentence_models.our_program()
    return prepare(model).program_path


def require_emulator() -> None:
    """Refuse where something is missing."""
    if shutil.which(EMULATOR) is None:
        raise click.ClickException(
            f"{EMULATOR} is not installed: Debian's qemu-user has it; the static one takes no plugins"
        )
    if "-plugin" not in _output([EMULATOR, "-h"]):
        raise click.ClickException(
            f"{EMULATOR} takes no plugins: it was built without --enable-plugins"
        )
    for name in ("count_steps", "count_plugin.so"):
        if not (BUILD / name).exists():
            raise click.ClickException(
                f"{BUILD / name} is absent: make instructions builds it"
            )


def answer(program: Executable) -> str:
    """Return the digest of this machine's outputs for the integers that count_steps makes."""
    inputs: dict[str, npt.NDArray[np.int64]] = {}
    for port in program.inputs:
        low, high = port.interval
        places = np.arange(np.prod(port.shape, dtype=np.int64))
        mixed = (places * 2654435761 % 2**32 >> 8) % (high - low + 1)
        inputs[port.name] = (low + mixed).reshape(port.shape)
    outputs = program.run(inputs)
    return digest(
        b"".join(outputs[port.name].tobytes() for port in program.outputs)
    )


def digest(data: bytes) -> str:
    """Return FNV-1a of 64 bits."""
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return f"{state:016x}"


def _choose(
    what: str, names: list[str], choices: Iterable[str] | Mapping[str, int]
) -> None:
    for name in names:
        if name not in choices:
            raise click.ClickException(
                f"{name!r} is no {what} here: {', '.join(choices)}"
            )


def _output(command: list[str]) -> str:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise click.ClickException(
            f"{Path(command[0]).name} failed: {done.stderr.strip() or done.returncode}"
        )
    return done.stdout


if __name__ == "__main__":
    main()
