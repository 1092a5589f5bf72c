"""Measures a program that was just made: on a few samples, float and integers side by side.

The samples are few enough to cost seconds. Nothing of what is found becomes part of the
program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir

from cvm.errors import BadInput
from cvm.proof.cost import cost
from cvm.proof.validate import Proven
from cvm.runtime import native
from mrt import project
from mrt.advice import Advice, AdviceSubject, advise
from mrt.calibrate.held_back import places_to_measure
from mrt.calibrate.lone_maxima import LONE
from mrt.calibrate.samples import Samples, evenly_spaced, few_of
from mrt.config import Config, DataSettings
from mrt.duplicate.add_duplicates import Duplicates
from mrt.errors import MrtError
from mrt.evaluate import Evaluation, evaluate
from mrt.evaluate.all_rows import Outputs
from mrt.evaluate.compare import SampleResult
from mrt.evaluate.finite_outputs import check_finite
from mrt.evaluate.gate import Gate
from mrt.evaluate.limits import GOOD_DECIBELS
from mrt.evaluate.same_answers import answers, differences
from mrt.evaluate.unreachable_scores import unreachable_score_warnings
from mrt.evaluate.verdict import (
    DOUBTFUL,
    USELESS,
    Verdict,
    is_uncertain,
    notes_on_change,
)
from mrt.held_back import has_samples_to_evaluate
from mrt.memory import giving_back
from mrt.progress import Progress
from mrt.quantize import QuantizeOptions
from mrt.refine.options import RefineOptions
from mrt.rewrite.file_grids import has_file_grids
from mrt.table.table import CalibrationOptions, CalibrationTable

MOST, FEWEST = 32, 4  # samples
ENGINE_WORK = 2 * 10**11
"""The cost of all samples that the engine works off in a few seconds on one core."""
REFERENCE_WORK = ENGINE_WORK // 50
"""The same of the reference, which is slower by that."""

ENOUGH_SAMPLES = 32
"""With fewer, two of 62 programs of strangers looked good on 8 samples and had 12 and 17 dB less on others.

Of 63 programs calibrated on 24 samples that look good, 8 have less than 20 dB on others. A lone range or differences among
the samples are noted of 5 of these, and of 15 of the others.
"""
FEW_SAMPLES = 8
"""Of other samples, one in eight or more holds a greater number than the greatest of fewer than these."""

NO_SAMPLES = "not measured, without samples"


@dataclass(frozen=True)
class Quality:
    """What was measured, and the verdict on it; without these, `missing` is the reason.

    There is advice on a program whose figures are not good. `changed_by_rewriting` has the outputs that
    the rewritten model does not give as the file's does, each with how far apart they are; `not_compared` is why the
    file's model was not compared with it, if it cannot be run or gives NaN.
    """

    report: Evaluation | None = None
    verdict: Verdict | None = None
    missing: str = NO_SAMPLES
    problem: str = ""  # of samples that are there, and cannot be measured on
    advice: Advice | None = None
    changed_by_rewriting: Mapping[str, str] = field(default_factory=dict)
    not_compared: str = ""
    calibrated_on: int = ENOUGH_SAMPLES
    # The value whose range rests most on one of the samples that were calibrated on.
    lone: str | None = None

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return self.missing if self.verdict is None else self.verdict.sentence

    def to_json(self) -> dict[str, Any]:
        """The verdict and the advice; without a verdict the reason alone."""
        if self.verdict is None:
            return {"verdict": None, "sentence": self.missing}
        facts = self.verdict.to_json()
        if self.changed_by_rewriting:
            facts["changed_by_rewriting"] = dict(self.changed_by_rewriting)
        advice = self.advice.to_json() if self.advice else {}
        return {**facts, **advice}

    def misses(self, gates: Iterable[Gate]) -> list[str]:
        """A sentence for each limit that is missed; what was not measured misses any."""
        if self.report is None:
            return [self.missing] if list(gates) else []
        misses = (gate.missed(self.report) for gate in gates)
        return [miss for miss in misses if miss is not None]

    def notes(self) -> list[str]:
        """What good figures leave open: of a file that does not run, of samples that differ little, or that are few and show it."""
        notes = [] if self.report is None else notes_on_change(self.report)
        if self.not_compared:
            notes.append(
                "the program was compared with the rewritten model alone, since the file's own gives no "
                f"numbers to compare with: {self.not_compared}"
            )
        return notes + self._notes_on_count()

    def _notes_on_count(self) -> list[str]:
        verdict = self.verdict
        if verdict is None or not verdict.is_good or verdict.snr_db is None:
            return []
        if self.calibrated_on >= ENOUGH_SAMPLES:
            return []
        few = f"{self.calibrated_on} samples are few"
        if self.calibrated_on == 1:
            few = "one sample is little"
        notes = [f"{few}{reason}" for reason in self._reasons_of_few()]
        return [f"{note}; give about 100" for note in notes[:1]]

    def _reasons_of_few(self) -> Iterator[str]:
        """Why so few samples leave open whether the program is good, the gravest first."""
        if self.lone is not None and self.calibrated_on > 1:
            yield (
                f" to calibrate on: '{self.lone}' is more than {LONE:g} times as great in one of them as in any other. "
                f"{_CUT_OFF}"
            )
        if self.calibrated_on < FEW_SAMPLES:
            yield f" to calibrate on: {_CUT_OFF.lower()}"
        if self.report is not None and is_uncertain(self.report):
            yield (
                f": those measured differ so much that others may have less than {GOOD_DECIBELS:g} dB"
            )
        outlier = None if self.report is None else self.report.worst_outlier_db
        if outlier is not None and outlier < GOOD_DECIBELS:
            yield (
                f": one of those measured has more noise than all others together, and {outlier:.1f} dB alone, so that others like "
                f"it may have less than {GOOD_DECIBELS:g} dB as well"
            )

    def warnings(self) -> list[str]:
        """What must not be passed over in silence: a program that is not good, or not measured, and what to do."""
        if self.problem:
            return [
                f"the program was not measured against float: {self.problem}"
            ]
        if self.verdict is None or self.verdict.is_good:
            return []
        warnings = (
            unreachable_score_warnings(self.report) if self.report else []
        )
        warnings += [
            f"in float, output '{name}' of the rewritten model is not that of the file ({difference}): if this is no choice "
            "between numbers that are nearly equal, it is a fault of mrt, please report it"
            for name, difference in self.changed_by_rewriting.items()
        ]
        if self.advice is None:
            return warnings
        caption = _CAPTION[self.verdict.word]
        differs = f"{caption} {self.verdict.figures}"
        return [*warnings, differs, *self.advice.sentences()]


_CUT_OFF = "Where others hold greater values, these are cut off, which no figure here shows"
_CAPTION = {
    DOUBTFUL: "the program's answers differ from float's:",
    USELESS: "the program is useless:",
}


def measure(
    model: ir.Model,
    program: Proven,
    table: CalibrationTable,
    config: Config,
    progress: Progress,
    *,
    calibrated_here: bool = True,
    rewriting: RewritingCheck,
) -> Quality:
    """Compare a program with the rewritten float model from which it was made.

    Without `calibrated_here`, a table was given, and whether it was made from these samples is not known.

    Samples that cannot be read or run are no reason to lose the program: they are named.
    """
    try:
        chosen = samples_to_measure(model, program, config)
        if chosen is None:
            return Quality()
        samples, fresh = chosen
        few = _FewAnswers(frozenset(samples.few))
        report = evaluate(
            model, program, samples.of(MOST), progress, on_sample=few.keep
        )
    except (MrtError, BadInput) as problem:
        return Quality(missing=f"not measured: {problem}", problem=str(problem))
    origin = fresh if calibrated_here else None
    verdict = Verdict.of(report, fresh=origin)
    changes = rewriting.changes(samples, few.answers, table.duplicates)
    is_doubtful = changes.of_outputs and verdict.is_good
    quality = Quality(
        report,
        replace(verdict, word=DOUBTFUL) if is_doubtful else verdict,
        changed_by_rewriting=changes.of_outputs,
        not_compared=changes.not_compared,
        calibrated_on=table.samples,
    )
    if verdict.has_good_figures:
        return quality
    subject = AdviceSubject(
        model=model,
        program=program,
        table=table,
        options=config.quantization,
        samples=samples.of(MOST),
        few=samples.of(FEWEST),
        verdict=verdict,
        progress=progress,
    )
    return replace(quality, advice=advise(subject))


@dataclass(frozen=True)
class RewritingChanges:
    """The outputs that rewriting changed, with how far apart they are; or why the file's model gives no numbers."""

    of_outputs: Mapping[str, str]
    not_compared: str = ""


class RewritingCheck:
    """What rewriting changed, looked at once for conversions of the same float graph, whatever their bits."""

    def __init__(self) -> None:
        self._earlier: list[tuple[Config, Duplicates, RewritingChanges]] = []

    def changes(
        self,
        samples: ChosenSamples,
        actual: Sequence[Outputs],
        duplicates: Duplicates,
    ) -> RewritingChanges:
        """Return what rewriting changed; nothing where the file's model does not run.

        `actual` are the rewritten model's answers to the few of the samples.
        """
        origin = _of_float_graph(samples.config)
        for former_origin, former_duplicates, former in self._earlier:
            if (former_origin, former_duplicates) == (origin, duplicates):
                return former
        try:
            changes = RewritingChanges(_changed_by_rewriting(samples, actual))
        except (MrtError, BadInput) as problem:
            changes = RewritingChanges({}, str(problem))
        self._earlier.append((origin, duplicates, changes))
        return changes


def _of_float_graph(config: Config) -> Config:
    """Return the settings on which the rewritten float graph depends, apart from the duplicates; the others as by default."""
    requantize = config.quantization.requantize
    return replace(
        config,
        calibration=CalibrationOptions(),
        quantization=QuantizeOptions(requantize=requantize),
        refinement=RefineOptions(),
    )


def _changed_by_rewriting(
    samples: ChosenSamples, actual: Sequence[Outputs]
) -> Mapping[str, str]:
    """Return the outputs that rewriting changed; MrtError or BadInput where the file's model gives no numbers."""
    if has_file_grids(samples.model):
        return {}
    with giving_back():
        loaded = project.load_to_run(samples.config)
        if loaded.missing_outputs:
            return {}  # of the rewritten model alone
        of_file = replace(samples, model=loaded.model).of(FEWEST)
        few = list(of_file)
        expected = answers(loaded.model, few)
        del loaded
    changed = differences(expected, actual)
    if not changed:
        for index, sample in enumerate(few):
            check_finite(sample, expected[index], of_file, index)
    return changed


@dataclass
class _FewAnswers:
    """The float model's answers to the samples with these indices, kept while all are compared."""

    indices: frozenset[int]
    answers: list[Outputs] = field(default_factory=list)

    def keep(self, result: SampleResult) -> None:
        """Keep the answers of a sample that is one of them."""
        if result.index in self.indices:
            self.answers.append(result.of_float)


def verdict_beside(
    model: ir.Model,
    program: Proven,
    other: Proven,
    config: Config,
    progress: Progress,
) -> Verdict | None:
    """The verdict on a program, on as many samples as another is measured on; None if there are no data."""
    chosen = samples_to_measure(model, other, config)
    if chosen is None:
        return None
    samples, fresh = chosen
    report = evaluate(model, program, samples.of(MOST), progress)
    return Verdict.of(report, fresh=fresh)


@dataclass(frozen=True)
class ChosenSamples:
    """The places of samples in the data, without labels: these may not suit the model."""

    model: ir.Model
    config: Config
    data: DataSettings
    places: Sequence[int]

    @property
    def few(self) -> list[int]:
        """The indices of the FEWEST among all that are measured."""
        return evenly_spaced(len(self.places), FEWEST)

    def of(self, count: int) -> Samples:
        """At most so many of them."""
        chosen = few_of(self.places, count)
        samples = project.open_data(
            self.model, self.config, self.data, choose=lambda total: chosen
        )
        return replace(samples, labels=None)


def samples_to_measure(
    model: ir.Model, program: Proven, config: Config
) -> tuple[ChosenSamples, bool] | None:
    """A few samples, and whether they had no part in calibration; None if there are no data."""
    data = config.calibration_data
    count = affordable(program)
    if has_samples_to_evaluate(config):
        return _to_evaluate(model, config, count), True
    if data.path is None or not data.path.exists():
        return None
    every = replace(data, samples=None, held_back=0)
    total = len(project.open_data(model, config, every))
    places, fresh = places_to_measure(
        total, data.samples, data.held_back or 0, count
    )
    return ChosenSamples(model, config, every, places), fresh


def _to_evaluate(model: ir.Model, config: Config, count: int) -> ChosenSamples:
    """Return `count` of the samples that the configuration names to evaluate on."""
    data = config.evaluation_data
    every = replace(data, samples=None)
    total = len(project.open_data(model, config, every))
    used = evenly_spaced(total, data.samples)
    return ChosenSamples(model, config, every, few_of(used, count))


def affordable(program: Proven) -> int:
    """How many samples to run, by the program's cost, so that it is the same on every machine of a kind."""
    work = ENGINE_WORK if native.available() else REFERENCE_WORK
    return max(FEWEST, min(MOST, work // max(cost(program).total, 1)))
