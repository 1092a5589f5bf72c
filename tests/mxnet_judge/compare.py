"""What the two answers to a case mean together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tests.mxnet_judge.case import Answer, Case
from tests.mxnet_judge.known import KNOWN, Known

RELATIVE = 1e-4
OF_THE_LARGEST = 1e-5  # of the largest number of the output: what a sum may lose where its terms cancel
OF_THE_INPUT = 2e-6  # the same of the largest number that goes in, or of 1, near which functions like exp round


class Outcome(StrEnum):
    """In words; everything but the first two counts against the front end unless it is known."""

    AGREE = "agree"
    BOTH_REFUSE = "both refuse"
    DIFFER = "differ"
    MRT_REFUSES = "mrt refuses"
    MXNET_REFUSES = "mxnet refuses"
    MRT_BREAKS = "mrt breaks"


@dataclass(frozen=True)
class Verdict:
    """`known` is the documented reason, where there is one."""

    case: Case
    outcome: Outcome
    detail: str = ""
    known: Known | None = None

    @property
    def wrong(self) -> bool:
        return (
            self.outcome not in (Outcome.AGREE, Outcome.BOTH_REFUSE)
            and self.known is None
        )


def judge(case: Case, mxnet: Answer, mrt: Answer, broken: str = "") -> Verdict:
    """`broken` is what `mrt` raised that is neither an answer nor a refusal."""
    outcome, detail = _outcome(case, mxnet, mrt, broken)
    known = next(
        (
            known
            for known in KNOWN
            if outcome in known.outcomes and known.fits(case, detail)
        ),
        None,
    )
    return Verdict(case, outcome, detail, known)


def _outcome(
    case: Case, mxnet: Answer, mrt: Answer, broken: str
) -> tuple[Outcome, str]:
    if broken:
        return Outcome.MRT_BREAKS, broken
    if mxnet.refusal is not None:
        kind = (
            Outcome.MXNET_REFUSES
            if mrt.refusal is None
            else Outcome.BOTH_REFUSE
        )
        return kind, _short(mxnet.refusal)
    if mrt.refusal is not None:
        return Outcome.MRT_REFUSES, _short(mrt.refusal)
    problem = difference(mrt.outputs, mxnet.outputs, largest_input(case))
    return (Outcome.DIFFER, problem) if problem else (Outcome.AGREE, "")


def _short(text: str) -> str:
    return re.sub(r"\s+", " ", text)[:300]


def largest_input(case: Case) -> float:
    return max(
        1.0,
        0.0,
        *(
            largest(array)
            for array in (*case.inputs.values(), *case.parameters.values())
        ),
    )


def largest(array: np.ndarray) -> float:
    """Of its finite numbers, without sign."""
    finite = array[np.isfinite(array)]
    return float(np.abs(finite).max(initial=0.0))


def difference(
    found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], scale: float
) -> str:
    """What is wrong with the outputs, or nothing. `wanted` are mxnet's."""
    if len(found) != len(wanted):
        return f"{len(found)} outputs; mxnet gives {len(wanted)}"
    for index, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        problem = _of_arrays(ours, theirs, scale)
        if problem:
            return f"output {index}: {problem}"
    return ""


def _of_arrays(ours: np.ndarray, theirs: np.ndarray, scale: float) -> str:
    """Integers of MXNet are whole float32 numbers here, on purpose: nothing else changes its dtype."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}; mxnet gives {theirs.shape}"
    if ours.dtype != np.float32 or (
        theirs.dtype != np.float32 and theirs.dtype.kind not in "iu"
    ):
        return f"dtype {ours.dtype}; mxnet gives {theirs.dtype}"
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    absolute = OF_THE_LARGEST * largest(theirs) + OF_THE_INPUT * scale
    wrong = ~np.isclose(
        ours, theirs, rtol=RELATIVE, atol=absolute, equal_nan=True
    )
    if not wrong.any():
        return ""
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} numbers, first at {place}: {ours[place]:.7g}; mxnet {theirs[place]:.7g}"
