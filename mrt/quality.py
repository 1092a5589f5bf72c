"""Measures a program that was just made: on a few samples, float and integers side by side.

The samples are few enough to cost seconds. Nothing of what is found becomes part of the
program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import onnx_ir as ir

from cvm.errors import BadInput
from cvm.proof.cost import cost
from cvm.proof.validate import Proven
from cvm.runtime import native
from mrt import project
from mrt.calibrate.held_back import places_to_measure
from mrt.calibrate.samples import Samples
from mrt.config import Config
from mrt.errors import MrtError
from mrt.evaluate import Report, evaluate
from mrt.evaluate.verdict import Verdict
from mrt.progress import Progress

MOST, FEWEST = 32, 4  # samples
ENGINE_WORK = 2 * 10**11
"""The cost of all samples that the engine works off in a few seconds on one core."""
REFERENCE_WORK = ENGINE_WORK // 50
"""The same of the reference, which is slower by that."""

NO_SAMPLES = "not measured, without samples"


@dataclass(frozen=True)
class Quality:
    """What was measured, and the verdict on it; without these, `missing` is the reason."""

    report: Report | None = None
    verdict: Verdict | None = None
    missing: str = NO_SAMPLES

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return self.missing if self.verdict is None else self.verdict.sentence


def measure(
    model: ir.Model, program: Proven, config: Config, progress: Progress
) -> Quality:
    """Compare a program with the rewritten float model from which it was made.

    Samples that cannot be read or run are no reason to lose the program: they are named.
    """
    try:
        found = samples_to_measure(model, program, config)
        if found is None:
            return Quality()
        samples, fresh = found
        report = evaluate(model, program, samples, progress)
    except (MrtError, BadInput) as problem:
        return Quality(missing=f"not measured: {problem}")
    return Quality(report, Verdict.of(report, fresh=fresh))


def samples_to_measure(
    model: ir.Model, program: Proven, config: Config
) -> tuple[Samples, bool] | None:
    """A few samples, without labels, and whether they had no part in calibration; None if there are no data."""
    data = config.calibration_data
    if data.path is None or not data.path.exists():
        return None
    count = affordable(program)
    every = replace(data, samples=None, held_back=0)
    total = len(project.open_data(model, config, every))
    places, fresh = places_to_measure(
        total, data.samples, data.held_back, count
    )
    samples = project.open_data(
        model, config, every, choose=lambda total: places
    )
    return replace(samples, labels=None), fresh


def affordable(program: Proven) -> int:
    """How many samples to run, by the program's cost, so that it is the same on every machine of a kind."""
    work = ENGINE_WORK if native.available() else REFERENCE_WORK
    return max(FEWEST, min(MOST, work // max(cost(program).total, 1)))
