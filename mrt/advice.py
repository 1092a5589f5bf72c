"""What to do about a program that is not good: where its noise arises, and which options remove it.

An option is named only with what it gives: the program is written once more with it, from
the same ranges, and measured on the same samples. Refinement for the option is left out,
so a conversion with it gives about that, and mostly more. It is named only if no figure of
the verdict becomes worse, neither beside the program nor beside one of the same options
whose layers are not refined: else the gain may be that of leaving out refinement. If that
alone helps, it is a remedy of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir

from cvm.errors import BadInput, Invalid
from cvm.lower import lower
from cvm.lower.fitting import fit_of
from cvm.proof.cost import cost
from cvm.proof.validate import Proven, validate
from mrt.calibrate.samples import Samples
from mrt.errors import MrtError
from mrt.evaluate import evaluate
from mrt.evaluate.layers import compare_layers
from mrt.evaluate.layers_report import worst_first
from mrt.evaluate.local_noise import local_noise
from mrt.evaluate.verdict import WORDS, Verdict
from mrt.memory import giving_back
from mrt.progress import Progress
from mrt.quantize import QuantizeOptions
from mrt.quantize import quantize as write_program
from mrt.quantize.hidden_causes import hidden_causes
from mrt.quantize.residual_streams import with_stream_bits
from mrt.table.table import CalibrationTable

MOST_LAYERS = 3  # that are named
VALUE_BITS = 16
WEIGHT_BITS = (8, 15)
MANY_SAMPLES = 50
"""More samples are advised where fewer than so many were calibrated on."""
GAIN_DB = 3.0  # half a bit: less is no remedy
_OF_CHANNELS = {"refine": ["duplicates", "scales", "centres"]}
"""All of refinement that a trial without refined layers keeps."""


def flags_of(options: Mapping[str, Any]) -> str:
    """Options of `mrt.convert` as the command line takes them."""
    texts = {
        name: ",".join(value) if isinstance(value, list) else value
        for name, value in options.items()
    }
    return " ".join(
        f"--{name.replace('_', '-')} {text}" for name, text in texts.items()
    )


@dataclass(frozen=True)
class Remedy:
    """Options of `mrt.convert` with their values, and the verdict with them.

    `verdict_is_final`: a conversion with them gives this verdict. Else it includes no refinement, which may make it better.
    """

    options: Mapping[str, Any]
    verdict: Verdict
    verdict_is_final: bool = False

    @property
    def flags(self) -> str:
        """The options as the command line takes them."""
        return flags_of(self.options)

    def __str__(self) -> str:
        if self.verdict_is_final:
            return f"{self.flags} ({self.verdict.figures})"
        return f"{self.flags} (about {self.verdict.figures}, before refinement)"


@dataclass(frozen=True)
class Advice:
    """The layers in which most noise arises, each described; what helps, best last; and causes that are of no layer.

    `tried` are the options that do not help, each with what it gives, or why there is no program with it. `dearer`
    are those with more bits than the last remedy, for a conversion in which that one proves to be none.
    """

    layers: Sequence[str] = ()
    remedies: Sequence[Remedy] = ()
    calibrated_on: int = 0
    causes: Sequence[str] = ()
    tried: Sequence[str] = ()
    dearer: Sequence[Mapping[str, Any]] = ()

    def without(self, options: Mapping[str, Any]) -> Advice:
        """Return the advice with options that proved to be no remedy among what was tried."""
        others = [it for it in self.remedies if it.options != options]
        dearer = [other for other in self.dearer if other != options]
        tried = [*self.tried, flags_of(options)]
        return replace(self, remedies=others, tried=tried, dearer=dearer)

    def beside(self, chosen: Mapping[str, Any]) -> Advice:
        """Return the advice for a program made with these options: they belong to each remedy."""
        remedies = [
            replace(remedy, options={**chosen, **remedy.options})
            for remedy in self.remedies
        ]
        dearer = [{**chosen, **options} for options in self.dearer]
        return replace(self, remedies=remedies, dearer=dearer)

    def to_json(self) -> dict[str, Any]:
        """The layers, and each remedy with what it gives."""
        remedies = [
            {"options": remedy.flags, **remedy.verdict.to_json()}
            for remedy in self.remedies
        ]
        return {"worst_layers": list(self.layers), "remedies": remedies}

    def sentences(self) -> list[str]:
        """Where noise arises, what helps, and what remains to be tried."""
        sentences: list[str] = []
        if self.layers:
            sentences.append(f"most noise arises in {', '.join(self.layers)}")
        sentences += self.causes
        if self.remedies:
            sentences.append(
                f"what helps: {'; '.join(map(str, self.remedies))}"
            )
        elif self.tried:
            sentences.append(
                f"these were tried and help little or not: {'; '.join(self.tried)}"
            )
            if self.dearer:
                untried = "; ".join(map(flags_of, self.dearer))
                sentences.append(f"dearer, and not tried: {untried}")
        else:
            sentences.append("there are no more bits to be tried")
        if self.calibrated_on < MANY_SAMPLES:
            sentences.append(
                f"calibrate on about 100 samples like those to come; {self.calibrated_on} were given"
            )
        if not self.remedies:
            sentences.append(
                "are the samples prepared as in training (--preset, --scale, --mean, --std)? mrt compare has all layers"
            )
        return sentences


@dataclass(frozen=True)
class AdviceSubject:
    """The rewritten float model, the program, what it was made from, and samples with the verdict on them."""

    model: ir.Model
    program: Proven
    table: CalibrationTable
    options: QuantizeOptions
    samples: Samples
    few: Samples  # of these, to look at layers
    verdict: Verdict
    progress: Progress = field(repr=False)


def advise(subject: AdviceSubject) -> Advice:
    """Look for the cause and the cure."""
    layers = _worst_layers(subject)
    return replace(
        _remedies(subject),
        layers=layers,
        calibrated_on=subject.table.samples,
        causes=hidden_causes(subject.model, subject.table, subject.options),
    )


def _worst_layers(subject: AdviceSubject) -> list[str]:
    """Describe them; there are none in a program that is one table, or only moves numbers."""
    try:
        return _found_layers(subject)
    except (MrtError, BadInput):
        return []


def _found_layers(subject: AdviceSubject) -> list[str]:
    from mrt.page.limits import shown
    from mrt.page.mending import worst
    from mrt.page.network import network_of
    from mrt.page.weights import weights_of

    model, program = subject.model, subject.program
    with giving_back():  # an engine, which the next one would not fit into
        layers = compare_layers(model, program, subject.few, subject.progress)
    local = local_noise(model, program, subject.few, layers)
    nodes = network_of(program.program, cost(program), layers)
    weights = weights_of(model, {layer.source for layer in layers})
    noisy = worst(nodes, local, program.program, weights, most=MOST_LAYERS)
    causes = {"activation_bits": "its values", "weight_bits": "its weights"}
    if noisy:
        return each_once(
            (shown(it.layer.source), causes[it.cause]) for it in noisy
        )
    return each_once(
        (shown(layer.source), f"{layer.snr_db:.1f} dB")
        for layer in worst_first(layers)[:MOST_LAYERS]
        if layer.snr_db is not None
    )


def each_once(layers: Iterable[tuple[str, str]]) -> list[str]:
    """Describe layers, each once with its first words: several instructions may compute one of them."""
    first: dict[str, str] = {}
    for name, words in layers:
        first.setdefault(name, words)
    return [f"'{name}' ({words})" for name, words in first.items()]


def _remedies(subject: AdviceSubject) -> Advice:
    """Measure trials, from cheap to dear, up to the first bits that make the verdict good."""
    outcomes = _Outcomes(to_beat=[subject.verdict])
    trials = _trials(subject)
    for trial in trials:
        measured = trial.measured()
        if isinstance(measured, str):
            outcomes.tried.append(measured)
        else:
            outcomes.sort_in(measured)
        if outcomes.bits_suffice:
            break
    untried = [trial.changes for trial in trials]
    return Advice(
        remedies=outcomes.remedies,
        tried=outcomes.tried,
        dearer=[*outcomes.dearer, *untried],
    )


@dataclass
class _Outcomes:
    """What measured trials, from cheap to dear, proved to be.

    A trial is a remedy if it beats the program, the program without refined layers (both in `to_beat`), and every
    remedy before it. One that beats only those in `to_beat` is `dearer` than the last remedy. Others were `tried` in vain.
    """

    to_beat: list[Verdict]
    remedies: list[Remedy] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    dearer: list[Mapping[str, Any]] = field(default_factory=list)

    def sort_in(self, trial: Remedy) -> None:
        """Take a trial as a remedy, as dearer, or as tried in vain."""
        verdict = trial.verdict
        earlier = [remedy.verdict for remedy in self.remedies]
        helps = _is_better_than_all(verdict, self.to_beat)
        if trial.verdict_is_final:  # of the program without refined layers
            self.to_beat.append(verdict)
        if not helps:
            self.tried.append(str(trial))
        elif _is_better_than_all(verdict, earlier):
            self.remedies.append(trial)
            self.dearer.clear()
        else:
            self.dearer.append(trial.options)

    @property
    def bits_suffice(self) -> bool:
        """Whether the last remedy is one of more bits, and makes the verdict good."""
        if not self.remedies or self.remedies[-1].verdict_is_final:
            return False
        return self.remedies[-1].verdict.has_good_figures


def _is_better_than_all(verdict: Verdict, others: Sequence[Verdict]) -> bool:
    return all(is_better(verdict, other) for other in others)


@dataclass(frozen=True)
class _Trial:
    """A program to measure: the changes of options, all its options, and the subject from which it is written."""

    changes: Mapping[str, Any]
    options: QuantizeOptions
    subject: AdviceSubject
    verdict_is_final: bool = False

    def measured(self) -> Remedy | str:
        """Write the program and measure it. A text: there is no program, for this reason."""
        verdict = _verdict_with(self.options, self.subject)
        if isinstance(verdict, str):
            return f"{flags_of(self.changes)} (no program: {verdict})"
        return Remedy(self.changes, verdict, self.verdict_is_final)


def _trials(subject: AdviceSubject) -> Iterator[_Trial]:
    """Yield what may help, from cheap to dear: to leave out refined layers, more bits of values, then of weights too."""
    options, table = subject.options, subject.table
    of_given_table = subject.verdict.fresh is None
    if table.decisions.layers and not of_given_table:
        decisions = replace(table.decisions, layers={})
        plain = replace(table, decisions=decisions)
        without = replace(subject, table=plain)
        yield _Trial(_OF_CHANNELS, options, without, verdict_is_final=True)
    for wider in _with_more_bits(subject.model, options):
        if wider != options:
            yield _Trial(_changes(wider, options), wider, subject)


def _with_more_bits(
    model: ir.Model, options: QuantizeOptions
) -> Iterator[QuantizeOptions]:
    """The options with more bits, from cheap to dear; of narrow sums one or two more, since they are encrypted."""
    if options.sum_bits is not None:
        yield from _a_little_wider(options, options.sum_bits)
        return
    yield with_stream_bits(model, replace(options, stream_bits=VALUE_BITS))
    with_values = replace(
        options,
        activation_bits=VALUE_BITS,
        product_bits=options.product_bits and VALUE_BITS,
    )
    yield with_values
    for bits in WEIGHT_BITS:
        if bits > options.weight_bits:
            yield replace(with_values, weight_bits=bits)


def _a_little_wider(
    options: QuantizeOptions, sum_bits: int
) -> Iterator[QuantizeOptions]:
    for more in (1, 2):
        yield replace(
            options,
            weight_bits=_wider(options.weight_bits, more, 15),
            activation_bits=_wider(options.activation_bits, more, 8),
            sum_bits=_wider(sum_bits, more, 16),
        )


def _wider(bits: int, more: int, most: int) -> int:
    """Return so many bits more, up to the most; bits beyond them stay."""
    return max(bits, min(bits + more, most))


def _verdict_with(
    options: QuantizeOptions, subject: AdviceSubject
) -> Verdict | str:
    """Return the verdict on a program with these options.

    A text: why there is no program, or that it is too wide to be encrypted.
    """
    table = subject.table
    if options.activation_bits == VALUE_BITS:
        table = _with_whole_ranges(table)
    try:
        program = validate(write_program(subject.model, table, options))
        if options.sum_bits is not None:
            fit = fit_of(lower(program))
            if fit.misfits or fit.doubtful:
                return "it is too wide to be encrypted"
        report = evaluate(
            subject.model, program, subject.samples, subject.progress
        )
    except (MrtError, Invalid, BadInput) as problem:
        return str(problem)
    return Verdict.of(report, fresh=subject.verdict.fresh)


def _with_whole_ranges(table: CalibrationTable) -> CalibrationTable:
    """The table without the clipping that was chosen for few bits."""
    ranges = {
        name: replace(range_, lo=range_.min, hi=range_.max)
        for name, range_ in table.ranges.items()
    }
    return replace(table, ranges=ranges)


def _changes(
    options: QuantizeOptions, before: QuantizeOptions
) -> dict[str, int]:
    """What is to be given for these options, which were others before."""
    if options.layers != before.layers:
        return {"stream_bits": VALUE_BITS}
    names = ["activation_bits"]
    names += [
        name
        for name in ("product_bits", "weight_bits", "sum_bits")
        if getattr(options, name) != getattr(before, name)
    ]
    return {name: getattr(options, name) for name in names}


def is_better(verdict: Verdict, other: Verdict) -> bool:
    """Whether the word is better, or a figure by enough to count, and nothing is worse."""
    new, old = _figures(verdict), _figures(other)
    better_by = WORDS.index(other.word) - WORDS.index(verdict.word)
    if (
        better_by < 0
        or _column(verdict, other) < 0
        or any(one < two for one, two in zip(new, old, strict=True))
    ):
        return False
    more_agree = (verdict.agreement or 0) > (other.agreement or 0)
    gained = verdict.decibels > other.decibels + GAIN_DB
    return better_by > 0 or more_agree or gained or _column(verdict, other) > 0


def _figures(verdict: Verdict) -> tuple[float, ...]:
    """All that a verdict prints, as numbers that rise as it becomes better."""
    equal = 1.0 if verdict.equal is None else verdict.equal
    return verdict.agreement or 0.0, verdict.decibels, equal


def _column(verdict: Verdict, other: Verdict) -> int:
    """1 where a column that the other loses is better by enough to count, -1 where one is lost here and worse, else 0."""
    new, old = verdict.decibels_of_column, other.decibels_of_column
    if verdict.lost_column is not None and new < old:
        return -1
    return int(other.lost_column is not None and new > old + GAIN_DB)
