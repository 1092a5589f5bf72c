"""Finds scores of 0 to 1 that a program cannot raise: samples of the rest alone do not show whether it keeps the peaks.

A detector of rare things, calibrated on samples without them, clips wherever its answer
would lie. It agrees with float on such samples, which proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from cvm.program import Meaning
from cvm.proof.validate import Proven
from mrt.graph.scores import score_values

if TYPE_CHECKING:
    from mrt.evaluate.evaluation import Evaluation

LEAST_REACHED = 0.2
"""A fifth of what a Sigmoid can reach: few would call it an answer. Up to half of it may be room above the samples."""


def unreachable_scores(model: ir.Model, program: Proven) -> dict[str, float]:
    """Return the most that the program can give, of each output of a Sigmoid that stays below a fifth of 1."""
    scores = {
        str(value.name) for value in model.graph.outputs if score_values(value)
    }
    metadata = program.program.metadata
    assert metadata is not None, "outputs have become reals"
    reached = {
        output.name: _most(
            metadata.outputs[output.name], program.intervals[output.value]
        )
        for output in program.program.outputs
        if output.name in scores
    }
    return {
        name: most for name, most in reached.items() if most < LEAST_REACHED
    }


def unreachable_score_warnings(report: Evaluation) -> list[str]:
    """A warning for each score that the program cannot raise."""
    return [
        f"output '{name}' is a Sigmoid's, of which the program gives {most:.2g} at most: what would raise it to 1 is clipped. "
        "Calibrate on samples that it answers to as well"
        for name, most in report.scores.unreachable.items()
    ]


def _most(meaning: Meaning, interval: tuple[int, int]) -> float:
    return meaning.scale * (interval[1] - meaning.zero_point)
