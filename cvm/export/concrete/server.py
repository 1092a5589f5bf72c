"""What the server computes on secrets, as plain dictionaries and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvm.export.concrete.client import Arrays, Steps
from cvm.lower.secret_program import SecretProgram
from cvm.lower.secret_steps import (
    Convolve,
    Dot,
    SecretStep,
    SecretValue,
    Sum,
    TableLookUp,
    Take,
    operands_of,
)


def server_plan(program: SecretProgram, arrays: Arrays) -> dict[str, Any]:
    """Inputs, steps and outputs; arrays are added to `arrays` by the number of the value that a step defines."""
    inputs = [program.by_number[number] for number in program.parties.encrypted]
    outputs = [
        program.by_number[number] for number in program.parties.decrypted
    ]
    steps: Steps = []
    for number, step in enumerate(program.steps, len(inputs)):
        attributes, step_arrays = _parts(step)
        for name, array in step_arrays.items():
            arrays[f"{number}_{name}"] = array
        steps.append(
            {
                "kind": KINDS[type(step)],
                "operands": list(operands_of(step)),
                **_ends(program.values[number]),
                **attributes,
            }
        )
    return {
        "inputs": [_ends(value) for value in inputs],
        "steps": steps,
        "outputs": [{"value": x.number, **_ends(x)} for x in outputs],
    }


KINDS: dict[type, str] = {
    Take: "take",
    Dot: "dot",
    Convolve: "conv",
    Sum: "sum",
    TableLookUp: "look up",
}


def _ends(value: SecretValue) -> dict[str, Any]:
    return {
        "shape": list(value.shape),
        "low": int(value.stored.low.min()),
        "high": int(value.stored.high.max()),
    }


def _parts(step: SecretStep) -> tuple[dict[str, Any], Arrays]:
    """What JSON holds of a step, and its arrays."""
    if isinstance(step, Take):
        return {}, {"places": step.places}
    if isinstance(step, Dot):
        return {}, {"weights": step.weights}
    if isinstance(step, Convolve):
        window = {
            "stride": list(step.stride),
            "dilation": list(step.dilation),
            "groups": step.groups,
        }
        return window, {"weights": step.weights}
    if isinstance(step, Sum):
        factors = {
            f"factor{place}": np.asarray(array)
            for place, array in enumerate(step.factors)
        }
        return {}, {**factors, "constant": step.constant}
    index = {"bits": step.bits, "dropped": step.dropped, "of": step.value}
    return index, {
        "classes": step.classes,
        "factors": step.factors,
        "constants": step.constants,
        "tables": step.tables,
    }
