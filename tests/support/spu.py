"""What tests of the back end spu share: whether it is installed, a program in its place, and vectors joined into one program."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from cvm.errors import BadInput
from cvm.program import Input, Instruction, IntArray, Output, Program
from cvm.secure.environment import spu_python


def is_installed() -> bool:
    try:
        spu_python()
    except BadInput:
        return False
    return True


needs_spu = pytest.mark.skipif(
    not is_installed(),
    reason="SPU is not installed: `make privacy` installs it, or CVM_SPU_PYTHON names a Python that has it",
)

STAND_IN = """\
#!{python} -P
import json, sys
from pathlib import Path
sys.path.insert(0, {root!r})
folder = Path(sys.argv[-1])
job = json.loads((folder / "job.json").read_text())
import cvm
from cvm.secure import exchange
program = cvm.load(folder / "program.cvm", engine="reference")
def answer(**content):
    sys.stdout.write(json.dumps(content) + "\\n")
    sys.stdout.flush()
def outputs(number):
    arrays = exchange.read_arrays(folder / f"{{number}}.in.npz")
    names = [item.name for item in program.program.inputs]
    found = program.run(dict(zip(names, arrays)))
    return [found[item.name] for item in program.program.outputs]
{body}
"""
HONEST = """\
answer(compile_seconds=0.5, program=job["program"])
for line in sys.stdin:
    exchange.write_arrays(folder / f"{int(line)}.out.npz", outputs(int(line)))
    answer(seconds=0.25, sent_bytes=1000 + int(line), sends=7)
"""


def stand_in(folder: Path, body: str) -> Path:
    """Write a Python that, asked to run SPU's process, runs `body`; returns it."""
    root = str(Path(__file__).resolve().parents[2])
    text = STAND_IN.format(python=sys.executable, root=root, body=body)
    path = folder / "python"
    path.write_text(text)
    path.chmod(0o755)
    return path


def joined(programs: Iterable[Program]) -> Program:
    """Return one program that computes all of these; inputs and outputs are named by program and place."""
    many = list(programs)
    inputs: list[Input] = []
    constants: list[IntArray] = []
    first_inputs, first_constants = [], []
    for number, one in enumerate(many):
        first_inputs.append(len(inputs))
        first_constants.append(len(constants))
        for place, item in enumerate(one.inputs):
            inputs.append(
                Input(f"{number}.{place}", item.type, item.lo, item.hi)
            )
        constants += one.constants
    instructions: list[Instruction] = []
    outputs: list[Output] = []
    for number, one in enumerate(many):
        places = [
            *range(
                first_inputs[number], first_inputs[number] + len(one.inputs)
            ),
            *range(
                len(inputs) + first_constants[number],
                len(inputs) + first_constants[number] + len(one.constants),
            ),
        ]
        start = len(inputs) + len(constants) + len(instructions)
        places += range(start, start + len(one.instructions))
        for item in one.instructions:
            operands = tuple(places[value] for value in item.operands)
            instructions.append(
                Instruction(item.name, operands, item.attributes)
            )
        for place, out in enumerate(one.outputs):
            outputs.append(Output(f"{number}.{place}", places[out.value]))
    return Program(
        tuple(inputs), tuple(constants), tuple(instructions), tuple(outputs)
    )
