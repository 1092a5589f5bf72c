"""The output in which a model states the class of a sample: a vector of scores, or the class's number itself."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.errors import BadOption
from mrt.evaluate.scores import ranking

Outputs = Mapping[str, npt.NDArray[Any]]
TOP = 5


@dataclass(frozen=True)
class ClassOutput:
    """`is_label` where the output holds the number of the best class; else it holds a score for each."""

    name: str
    is_label: bool = False

    @property
    def kind(self) -> str:
        """`label` or `scores`, as the report's JSON has it."""
        return "label" if self.is_label else "scores"

    def best_classes(self, outputs: Outputs) -> list[int]:
        """The best classes, best first: five of a vector of scores, one of a label."""
        output = outputs[self.name]
        if self.is_label:
            return [int(np.rint(output.reshape(-1)[0]))]
        ranked = ranking(output, TOP)
        assert ranked is not None, "chosen because it is a vector of scores"
        return ranked


def choose_class_output(
    outputs: Outputs,
    wanted: str | None = None,
    class_free: Container[str] = (),
) -> ClassOutput | None:
    """Choose from the float model's outputs for one sample; None where no choice is clear.

    `wanted` decides, if it is given. Otherwise the first output is taken if it is a vector of
    scores, or the only such vector wherever it stands, as a scikit-learn classifier has its
    probabilities behind its label; or, without any, the only label. Outputs that are known to be
    `class_free` are left out.
    Raises BadOption if the output that is wanted does not exist or holds no classes.
    """
    candidates = _candidates(outputs)
    if wanted is not None:
        return _wanted_output(outputs, candidates, wanted)
    candidates = [it for it in candidates if it.name not in class_free]
    scores = [candidate for candidate in candidates if not candidate.is_label]
    first = next(iter(outputs), None)
    if scores and (scores[0].name == first or len(scores) == 1):
        return scores[0]
    if not scores and len(candidates) == 1:
        return candidates[0]
    return None


def can_hold_classes(outputs: Outputs) -> bool:
    """Whether some output of a sample could be named as that of the classes."""
    return bool(_candidates(outputs))


def _candidates(outputs: Outputs) -> list[ClassOutput]:
    return [
        candidate
        for name, output in outputs.items()
        if (candidate := _class_output(name, output)) is not None
    ]


def is_exact_type(output: npt.NDArray[Any]) -> bool:
    """Whether an output holds integers or booleans, which are equal or not: noise has no meaning there."""
    return output.dtype.kind in "biu" and output.dtype != np.uint8


def _class_output(name: str, output: npt.NDArray[Any]) -> ClassOutput | None:
    if is_exact_type(output):
        return ClassOutput(name, is_label=True) if output.size == 1 else None
    return ClassOutput(name) if ranking(output, 1) is not None else None


def _wanted_output(
    outputs: Outputs, candidates: list[ClassOutput], wanted: str
) -> ClassOutput:
    if wanted not in outputs:
        listed = ", ".join(outputs)
        raise BadOption(
            f"--class-output {wanted}: the model has no such output; it has {listed}"
        )
    for candidate in candidates:
        if candidate.name == wanted:
            return candidate
    shape = list(outputs[wanted].shape)
    raise BadOption(
        f"--class-output {wanted}: an output of shape {shape} and type "
        f"{outputs[wanted].dtype} holds neither a score for each class nor one class number"
    )
