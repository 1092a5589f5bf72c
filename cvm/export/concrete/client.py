"""What the client computes, as steps in the clear: movements, and functions by the places where they change."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvm.export.refusals import Refusal
from cvm.lower.functions import line_of
from cvm.lower.lowering import Lowering
from cvm.lower.movements import places_of
from cvm.lower.parties import operands
from cvm.lower.runnable import runnable
from cvm.lower.secret_steps import SecretValue
from cvm.lower.step_function import step_function
from cvm.lower.stored import plain
from cvm.program import DTYPES, IntArray

Steps = list[dict[str, Any]]
Arrays = dict[str, IntArray]


def client_steps(
    lowering: Lowering, numbers: tuple[int, ...], arrays: Arrays
) -> tuple[Steps, list[Refusal]]:
    """The steps of these values; their arrays are added to `arrays` by name."""
    steps: Steps = []
    refusals: list[Refusal] = []
    for number in numbers:
        type_ = lowering.form.types[number]
        step = {
            "value": number,
            "operands": list(operands(lowering, number)),
            "shape": list(type_.shape),
            "dtype": DTYPES[type_.dtype].name,
        }
        if number not in lowering.functions:
            step_arrays, kind = _moved(lowering, number), "take"
        else:
            kind, step_arrays = _function(lowering, number)
        if not step_arrays:
            refusals.append(_refusal(lowering, number))
        for name, array in step_arrays.items():
            arrays[f"{number}_{name}"] = array
        steps.append({"kind": kind, **step})
    return steps, refusals


def _refusal(lowering: Lowering, number: int) -> Refusal:
    program = lowering.form.program
    instruction = program.instructions[number - program.first_instruction]
    reason = "the client's part has more steps than are listed"
    return Refusal(instruction.name, number, reason)


def _moved(lowering: Lowering, number: int) -> Arrays:
    program = lowering.form.program
    instruction = program.instructions[number - program.first_instruction]
    types = lowering.form.types
    moved: list[SecretValue | IntArray] = []
    for value in instruction.operands:
        constant = lowering.constant_values.get(value)
        if constant is None:
            stored = plain(lowering.bounds[value])
            moved.append(SecretValue(value, types[value].shape, stored))
        else:
            moved.append(constant)
    places, fillers = places_of(instruction, moved)
    return {"places": places, "fillers": fillers}


def _function(lowering: Lowering, number: int) -> tuple[str, Arrays]:
    """The kind and the arrays: a line, or the steps of each class; no arrays if these are too many."""
    runner = runnable(lowering, lowering.functions[number])
    steps = step_function(runner)
    line = line_of(runner, steps)
    classes = {"classes": np.ascontiguousarray(runner.classes)}
    if line is not None:
        return "line", {**classes, "slopes": line[0], "constants": line[1]}
    if steps is None:
        return "steps", {}
    return "steps", {
        **classes,
        "offsets": np.asarray(steps.offsets, np.int64),
        "starts": steps.starts,
        "values": steps.values,
    }
