"""Runs the float model and the integer program over the same samples, and counts.

A few samples run at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import onnx_ir as ir

from cvm.cluster import Cluster
from cvm.file import format as file_format
from cvm.program import Program
from cvm.proof.validate import Proven
from cvm.runtime import machine
from cvm.runtime.boundary import Clipping
from mrt.calibrate.samples import Sample, Samples
from mrt.calibrate.session import FloatSession, SessionSource, model_inputs
from mrt.calibrate.table_indices import naming_the_sample
from mrt.errors import BadData
from mrt.evaluate.all_rows import AllRows, Outputs
from mrt.evaluate.both_sides import (
    BLOCK,
    BothOutputs,
    BothSides,
    RemoteSides,
    run_on_worker,
)
from mrt.evaluate.class_output import (
    ClassOutput,
    is_exact_type,
)
from mrt.evaluate.class_tally import ClassTally
from mrt.evaluate.columns import Columns, SmallColumn
from mrt.evaluate.evaluation import (
    MOST_BITS,
    Accuracy,
    ClassFacts,
    Evaluation,
    NoiseFacts,
    ScoreFacts,
)
from mrt.evaluate.finite_outputs import check_finite
from mrt.evaluate.hidden_scores import hidden_scores_db
from mrt.evaluate.metric import CollectedOutputs, Metric
from mrt.evaluate.padding import real_tokens
from mrt.evaluate.scores import (
    Array,
    Constancy,
    Equality,
    Hits,
    OutputNoise,
    Saturation,
)
from mrt.evaluate.unreachable_scores import unreachable_scores
from mrt.graph.class_free import class_free
from mrt.progress import Progress


@dataclass(frozen=True)
class SampleResult:
    """One sample's outputs on both sides; `classes` is the output that states the class, if one does."""

    index: int
    sample: Sample
    of_float: Outputs
    of_integer: Outputs
    label: int | None
    classes: ClassOutput | None


SampleCallback = Callable[[SampleResult], None]
MOST_THREADS = 8
"""Unless more are asked for: each holds the values of a sample of the float model."""


@dataclass
class _Side:
    """Everything counted of the float model, or of the program, apart from classes."""

    seconds: float = 0.0
    collected: CollectedOutputs = field(default_factory=CollectedOutputs)


@dataclass
class _Tally:
    """All counts so far."""

    metric: Metric | None
    classes: ClassTally
    of_float: _Side = field(default_factory=_Side)
    of_integer: _Side = field(default_factory=_Side)
    samples: int = 0
    noise: dict[str, OutputNoise] = field(default_factory=dict)
    columns: dict[str, Columns | None] = field(default_factory=dict)
    without_padding: set[str] = field(default_factory=set)
    equal: dict[str, Equality] = field(default_factory=dict)
    constancy: Constancy = field(default_factory=Constancy)
    saturation: dict[str, Saturation] = field(default_factory=dict)
    clipped: dict[str, Clipping] = field(default_factory=dict)

    def add(
        self,
        sample: Sample,
        real: Outputs,
        integer: Outputs,
        label: int | None,
        source: str,
    ) -> None:
        """Count one sample."""
        if not self.samples:
            self.classes.choose_output(real)
        self.samples += 1
        self.constancy.add(real)
        for name, values in real.items():
            if is_exact_type(values):
                equality = self.equal.setdefault(name, Equality())
                equality.add(values, integer[name])
            else:
                noise = self.noise.setdefault(name, OutputNoise())
                tokens = real_tokens(sample, values)
                noise.add(values, integer[name], tokens)
                self._add_columns(name, values, integer[name])
                if tokens is not None:
                    self.without_padding.add(name)
                self.saturation.setdefault(name, Saturation()).add(values)
        if self.metric is not None:
            self.of_float.collected.add(real)
            self.of_integer.collected.add(integer)
        self.classes.add(real, integer, label, source)

    def _add_columns(self, name: str, real: Array, integer: Array) -> None:
        if name not in self.columns:
            self.columns[name] = Columns.of(real)
        columns = self.columns[name]
        if columns is not None:
            columns.add(real, integer)

    def add_clipping(self, clipping: tuple[Clipping, ...]) -> None:
        """Count what was clipped of one sample's inputs."""
        for of_input in clipping:
            before = self.clipped.get(of_input.name)
            self.clipped[of_input.name] = (
                before.joined(of_input) if before else of_input
            )


def evaluate(
    model: ir.Model,
    program: Proven,
    samples: Samples,
    progress: Progress | None = None,
    *,
    threads: int | None = None,
    class_output: str | None = None,
    metric: Metric | None = None,
    on_sample: SampleCallback | None = None,
    cluster: Cluster | None = None,
) -> Evaluation:
    """Compare the float model with the program made from it.

    `threads` share the samples, for speed only; by default there is one for each core, at most
    MOST_THREADS. `class_output` names the output that holds the classes, where `choose_class_output` would
    not find it. `metric` is measured on each side's outputs of all samples, which are kept, and the labels or the targets.
    `on_sample` gets the outputs of each sample. With a cluster, its workers run both sides.
    """
    check_same_interface(model, program.program, samples)
    classes = ClassTally(
        wanted=class_output,
        class_free=class_free(model),
        labelled=samples.labels is not None,
    )
    tally = _Tally(metric, classes)
    labels: Iterator[int | None] = iter(samples.labels or [None] * len(samples))
    done = 0
    if cluster is None:
        usual = min(os.cpu_count() or 1, MOST_THREADS)
        compared = _run_here(model, program, samples, threads or usual)
    else:
        compared = _run_there(model, program, samples, cluster)
    with naming_the_sample(samples), closing(compared):
        for batch, results in compared:
            _count_batch(tally, batch, results, labels, samples, on_sample)
            done += len(batch)
            if progress is not None:
                progress("comparing", done, len(samples))
    saturated = {
        name: saturation.saturated
        for name, saturation in tally.saturation.items()
        if saturation.hides_noise
    }
    scores = ScoreFacts(
        unreachable=unreachable_scores(model, program),
        saturated=saturated,
        snr_db=hidden_scores_db(model, program, samples, saturated),
    )
    return _report(tally, samples, scores, _options_with_most_bits(program))


def _count_batch(
    tally: _Tally,
    batch: list[Sample],
    results: BothOutputs,
    labels: Iterator[int | None],
    samples: Samples,
    on_sample: SampleCallback | None,
) -> None:
    """Count the outputs of some samples, and pass each one's to the callback."""
    tally.of_float.seconds += results.float_seconds
    tally.of_integer.seconds += results.integer_seconds
    for sample, real, integer, clipping in zip(
        batch,
        results.of_float,
        results.of_integer,
        results.clipping,
        strict=True,
    ):
        label = next(labels)
        check_finite(sample, real, samples, tally.samples)
        tally.add(sample, real, integer, label, samples.source)
        tally.add_clipping(clipping)
        if on_sample is not None:
            index, classes = tally.samples - 1, tally.classes.output
            on_sample(
                SampleResult(index, sample, real, integer, label, classes)
            )


def _run_here(
    model: ir.Model, program: Proven, samples: Samples, threads: int
) -> Generator[tuple[list[Sample], BothOutputs]]:
    """The outputs of both sides, a few samples at a time."""
    sides = BothSides(
        FloatSession(model),
        AllRows(AllRows.source(model)),
        machine.choose(program),
        program.program,
    )
    with ThreadPoolExecutor(threads) as pool:
        for batch in _batches(samples, 4 * threads):
            yield batch, sides.run(batch, pool)


def _run_there(
    model: ir.Model, program: Proven, samples: Samples, cluster: Cluster
) -> Generator[tuple[list[Sample], BothOutputs]]:
    """The same, by the workers of a cluster."""
    sides = RemoteSides(
        SessionSource.of(model),
        AllRows.source(model),
        file_format.encode(program.program),
    )
    blocks = _batches(samples, BLOCK)
    yield from cluster.map(run_on_worker, sides, blocks)


def _batches(samples: Samples, size: int) -> Iterator[list[Sample]]:
    stream = iter(samples)
    while batch := list(islice(stream, size)):
        yield batch


def check_same_interface(
    model: ir.Model, program: Program, samples: Samples
) -> None:
    """Raise BadData unless the program has the model's inputs and outputs.

    There must also be at least one sample.
    """
    if not len(samples):
        raise BadData(
            f"{samples.source}: holds no samples; expected at least one"
        )
    pairs = (
        (
            "inputs",
            [port.name for port in program.inputs],
            [str(value.name) for value in model_inputs(model)],
        ),
        (
            "outputs",
            [port.name for port in program.outputs],
            [str(value.name) for value in model.graph.outputs],
        ),
    )
    for role, names, expected in pairs:
        if sorted(names) != sorted(expected):
            raise BadData(
                f"the program's {role} are {', '.join(names)}, the model's {', '.join(expected)}"
                "; give the program that was made from this model, with the same --outputs"
            )
    shapes = {port.name: list(port.type.shape) for port in program.inputs}
    for value in model_inputs(model):
        shape = [] if value.shape is None else list(value.shape)
        if shape != shapes[str(value.name)]:
            raise BadData(
                f"input '{value.name}' is {shapes[str(value.name)]} in the program, but {shape} in the model"
                "; leave --shape out, or convert again with it"
            )


def _options_with_most_bits(program: Proven) -> frozenset[str]:
    """Return the options of MOST_BITS with which a program was made so."""
    return frozenset(
        option
        for option, bits in MOST_BITS.items()
        if program.program.provenance_of(option) == str(bits)
    )


def _report(
    tally: _Tally,
    samples: Samples,
    scores: ScoreFacts,
    has_most: frozenset[str],
) -> Evaluation:
    counts = tally.classes
    classes = _class_facts(counts)
    agreement = None
    if classes.output is not None:
        agreement = counts.agreements / counts.compared
    return Evaluation(
        samples=tally.samples,
        of_float=_accuracy(
            tally, tally.of_float, counts.hits_of_float, samples
        ),
        of_integer=_accuracy(
            tally, tally.of_integer, counts.hits_of_integer, samples
        ),
        agreement=agreement,
        snr_db={name: noise.decibels() for name, noise in tally.noise.items()},
        equal={
            name: equality.fraction for name, equality in tally.equal.items()
        },
        classes=classes,
        noise=_noise_facts(tally.noise),
        scores=scores,
        small_columns=tuple(_small_columns(tally)),
        possible_scores=tuple(_possible_scores(tally)),
        clipped=tally.clipped,
        without_padding=frozenset(tally.without_padding),
        is_constant=tally.constancy.is_constant,
        has_most=has_most,
    )


def _class_facts(counts: ClassTally) -> ClassFacts:
    output = counts.judged_output
    return ClassFacts(
        output=output,
        some_output_fits=counts.some_output_fits,
        count=0 if output is None else counts.count,
        labelled=counts.labelled,
        has_one_answer=len(counts.answers) == 1,
        ties=0 if output is None else counts.ties,
    )


def _noise_facts(noises: Mapping[str, OutputNoise]) -> NoiseFacts:
    names, counts = noises.keys(), noises.values()
    differ = (count.noise > 0 == count.signal for count in counts)
    of_change = [count.decibels_of_change() for count in counts]
    least = [count.least_decibels() for count in counts]
    of_outlier = [count.decibels_of_outlier() for count in counts]
    of_median = [count.median_decibels() for count in counts]
    return NoiseFacts(
        zeros_differ=any(differ),
        change_db=dict(zip(names, of_change, strict=True)),
        least_snr_db=dict(zip(names, least, strict=True)),
        outlier_db=dict(zip(names, of_outlier, strict=True)),
        median_db=dict(zip(names, of_median, strict=True)),
    )


def _small_columns(tally: _Tally) -> Iterator[SmallColumn]:
    """Yield the noisiest of each output that is not declared to hold classes."""
    classes, output = tally.classes, tally.classes.judged_output
    for name, columns in _undeclared_columns(tally):
        noisiest = columns.noisiest(
            name,
            holds_no_classes=name in classes.class_free,
            is_class_output=output is not None and output.name == name,
        )
        if noisiest is not None:
            yield noisiest


def _possible_scores(tally: _Tally) -> Iterator[SmallColumn]:
    """Yield the noisiest of each output that neither is declared to hold classes nor is known to hold none."""
    for name, columns in _undeclared_columns(tally):
        noisiest = columns.noisiest_that_may_be_score(name)
        if noisiest is not None and name not in tally.classes.class_free:
            yield noisiest


def _undeclared_columns(tally: _Tally) -> Iterator[tuple[str, Columns]]:
    """Yield the columns of each output of few that is not declared to hold classes: by its name, or by labels."""
    classes, output = tally.classes, tally.classes.judged_output
    for name, columns in tally.columns.items():
        is_class_output = output is not None and output.name == name
        is_declared = is_class_output and classes.are_declared
        if columns is not None and not is_declared:
            yield name, columns


def _accuracy(
    tally: _Tally, side: _Side, hits: Hits, samples: Samples
) -> Accuracy:
    labels = samples.labels
    speed = tally.samples / max(side.seconds, 1e-9)
    measured = None
    if tally.metric is not None:
        expected = samples.targets if labels is None else np.array(labels)
        measured = side.collected.measure(tally.metric, expected)
    output = tally.classes.output
    if labels is None or output is None:
        return Accuracy(None, None, speed, measured)
    top1 = hits.top1 / tally.samples
    top5 = None if output.is_label else hits.top5 / tally.samples
    return Accuracy(top1, top5, speed, measured)
