"""Counts the answers of a classifier, sample by sample: float's class, the program's, and the label."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mrt.errors import BadData
from mrt.evaluate.all_rows import Outputs
from mrt.evaluate.class_output import (
    ClassOutput,
    can_hold_classes,
    choose_class_output,
)
from mrt.evaluate.scores import Hits
from mrt.evaluate.ties import MOST_TIES, is_tie


@dataclass
class ClassTally:
    """Counts of classes: in how many samples float's scores are no tie, and the program's class the same; and the labels found."""

    wanted: str | None  # the class output, if it was named
    class_free: frozenset[str]  # outputs
    labelled: bool
    output: ClassOutput | None = None
    some_output_fits: bool = True
    count: int = 0  # classes; 0 where the output is a label
    samples: int = 0
    ties: int = 0  # samples in which float's best two classes tie
    agreements: int = 0  # in the others
    answers: set[int] = field(default_factory=set)  # float's classes in these
    hits_of_float: Hits = field(default_factory=Hits)
    hits_of_integer: Hits = field(default_factory=Hits)

    def choose_output(self, real: Outputs) -> None:
        """Choose the output that holds the classes, by the first sample."""
        self.output = choose_class_output(real, self.wanted, self.class_free)
        self.some_output_fits = can_hold_classes(real)

    def add(
        self, real: Outputs, integer: Outputs, label: int | None, source: str
    ) -> None:
        """Count one sample."""
        self.samples += 1
        if self.output is None:
            return
        self._add_answer(self.output, real, integer)
        if label is not None:
            _check_label(label, self.output, real, source)
            self.hits_of_float.add(label, self.output.best_classes(real))
            self.hits_of_integer.add(label, self.output.best_classes(integer))

    @property
    def are_declared(self) -> bool:
        """Whether the user declares that there are classes: by the output's name, or by labels."""
        return self.labelled or self.wanted is not None

    @property
    def compared(self) -> int:
        """The samples that count for or against an agreement."""
        return self.samples - self.ties

    @property
    def judged_output(self) -> ClassOutput | None:
        """The class output. None: none was chosen, or it is not declared and most samples are ties."""
        return self.output if self.ties <= MOST_TIES * self.samples else None

    def _add_answer(
        self, output: ClassOutput, real: Outputs, integer: Outputs
    ) -> None:
        if not output.is_label:
            self.count = real[output.name].size
        if self._is_tie(output, real, integer):
            self.ties += 1
            return
        best_real = output.best_classes(real)[0]
        self.answers.add(best_real)
        self.agreements += best_real == output.best_classes(integer)[0]

    def _is_tie(
        self, output: ClassOutput, real: Outputs, integer: Outputs
    ) -> bool:
        if self.are_declared or output.is_label:
            return False
        scores = real[output.name]
        if np.array_equal(scores, integer[output.name]):
            return False  # the same numbers name the same class
        return is_tie(scores)


def _check_label(
    label: int, output: ClassOutput, real: Outputs, source: str
) -> None:
    """Raise BadData for a label that is none of the classes."""
    size = real[output.name].size
    if not output.is_label and label >= size:
        raise BadData(
            f"{source}: class {label} among the labels, but output '{output.name}' "
            f"has {size} classes, numbered from 0 to {size - 1}: do yours begin at 1? "
            "Where another output holds the class, name it with --class-output"
        )
