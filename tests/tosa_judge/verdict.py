"""One of Arm's tests against us: imported, proven where it can be, run by the reference machine and the engine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import cvm
from cvm.errors import CvmError, Trap, Unproven
from cvm.program import IntArray, Program
from cvm.proof.validate import check, prove
from cvm.tosa.graph import TosaGraph, from_bytes
from cvm.tosa.importing import program_of
from tests.support.tosa_programs import TosaAnswer, signed

EXACT, CHECKED, DIFFERENT = "exact", "exact, checked", "different"
LEFT_OUT, REFUSED = "left out", "refused"
REJECTED, ACCEPTED = "rejected", "accepted"
WITHOUT = "of an operator without an instruction"
REASONS = {
    r"no instruction has the meaning of [A-Z0-9_]+ \(": WITHOUT,
    r"INT16 without sign|its x is i16, which": "16 bits without sign: programs have none",
    r"is an input or a constant": "a graph of a constant alone: programs have an instruction",
    r"nothing defines the output": "a graph of a shape alone: programs have tensors",
}
DROPS = {
    "cast": "TOSA keeps the low bits of what does not fit; programs must prove that it fits",
    "logical_left_shift": "TOSA keeps the low bits of what does not fit; programs must prove that it fits",
    "negate": "TOSA saturates 16 bits; programs must prove that it fits",
}


@dataclass(frozen=True)
class Verdict:
    """What became of a test. `detail` is the reason why it was left out or what is wrong."""

    operator: str
    test: str
    outcome: str
    detail: str = ""

    @property
    def wrong(self) -> bool:
        """Whether nothing explains it."""
        return self.outcome in (DIFFERENT, REFUSED, ACCEPTED)


def graph_at(folder: Path) -> TosaGraph:
    """The graph of a test."""
    return from_bytes((folder / "test.tosa").read_bytes())


def inputs_of(folder: Path) -> list[IntArray]:
    """The inputs of a test, in the order of its graph."""
    described = json.loads((folder / "desc.json").read_text())
    return [np.load(folder / name) for name in described["ifm_file"]]


def judge_positive(folder: Path, answer: TosaAnswer) -> Verdict:
    """Exact where each output of the reference model is that of our machines."""
    operator, test = folder.parent.name, folder.name
    try:
        found = _outputs(folder)
    except Trap as problem:
        reason = DROPS.get(operator)
        outcome = LEFT_OUT if reason else DIFFERENT
        return Verdict(operator, test, outcome, reason or str(problem))
    except CvmError as problem:
        reason = _reason(str(problem))
        outcome = LEFT_OUT if reason else REFUSED
        return Verdict(operator, test, outcome, reason or str(problem))
    outcome, ours = found
    if answer.status != "TOSA_VALID":
        detail = f"Arm's model: {answer.status} {answer.error}"
        return Verdict(operator, test, DIFFERENT, detail)
    for machine, outputs in ours.items():
        if not _same(outputs, answer.outputs):
            return Verdict(operator, test, DIFFERENT, machine)
    return Verdict(operator, test, outcome)


def _outputs(folder: Path) -> tuple[str, dict[str, list[IntArray]]]:
    """By machine. Inputs have the intervals that the test's arrays have; what is not proven so runs checked."""
    graph, arrays = graph_at(folder), inputs_of(folder)
    program = program_of(graph, {})
    given = {
        item.name: array.view(np.uint8) if item.type.dtype == "u8" else array
        for item, array in zip(program.inputs, arrays, strict=True)
    }
    intervals = {
        name: (int(array.min()), int(array.max()))
        for name, array in given.items()
    }
    form = check(program_of(graph, intervals))
    try:
        proven = prove(form)
    except Unproven:
        outputs = cvm.run(form, given, checked=True, engine="reference")
        return CHECKED, {"reference": _listed(form.program, outputs)}
    return EXACT, {
        name: _listed(program, cvm.run(proven, given, engine=name))
        for name in ("reference", "native")
    }


def _listed(
    program: Program, outputs: Mapping[str, IntArray]
) -> list[IntArray]:
    return [outputs[item.name] for item in program.outputs]


def _same(ours: list[IntArray], theirs: tuple[IntArray, ...]) -> bool:
    pairs = zip(map(signed, ours), map(signed, theirs), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def _reason(message: str) -> str:
    """Why a test is left out, if its refusal is one that is explained."""
    for pattern, reason in REASONS.items():
        if re.search(pattern, message):
            return reason
    return ""


def judge_negative(folder: Path) -> Verdict:
    """Rejected by the import, whatever a proof would say."""
    operator, test = folder.parent.name, folder.name
    try:
        check(program_of(graph_at(folder), {}))
    except CvmError as problem:
        detail = _reason(str(problem))
        return Verdict(operator, test, REJECTED, detail)
    return Verdict(operator, test, ACCEPTED, "it was imported")
