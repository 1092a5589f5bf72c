"""Everything that the page shows, gathered in two rounds over the samples: outputs, then layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx_ir as ir

from cvm.file import format as cvm_format
from cvm.proof.cost import cost
from cvm.proof.validate import Proven
from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.samples import Samples
from mrt.calibrate.session import Array
from mrt.doubts import chance_warnings
from mrt.evaluate import Evaluation, evaluate
from mrt.evaluate.layers import Layer, compare_layers, watch_layers
from mrt.evaluate.layers_report import worst_first
from mrt.evaluate.local_noise import local_noise
from mrt.evaluate.metric import Metric
from mrt.evaluate.scores import Noise
from mrt.page.answers import Answers
from mrt.page.distributions import Distribution, distributions_of
from mrt.page.limits import DISTRIBUTIONS
from mrt.page.network import Node, network_of
from mrt.page.verdict import VerdictSentence, verdict
from mrt.page.weights import weights_of
from mrt.progress import Progress


@dataclass(frozen=True)
class ReportSubject:
    """The model in float, as it was read and rewritten, and the program made from it."""

    name: str  # of the model's file
    program_name: str
    model: ir.Model
    rewritten: ir.Model
    program: Proven
    class_names: Sequence[str] = ()
    # How each input of real numbers was prepared.
    preprocessing: Mapping[str, Preprocessing] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """What was measured; `layer_samples` of the samples were compared layer by layer."""

    subject: ReportSubject
    program_id: str
    file_bytes: int
    report: Evaluation
    answers: Answers
    source: str  # where the samples are from
    name_of: Callable[[int], str]  # a sample
    nodes: Sequence[Node]
    layers: Sequence[Layer]
    layer_samples: int
    local: Mapping[int, Noise]  # what arises in each layer, by its number
    weights: Mapping[str, tuple[str, ...]]  # operators, by the layer's name
    distributions: Sequence[Distribution]

    @property
    def verdict(self) -> VerdictSentence:
        """The word and the sentence at the head of the page."""
        guessed = chance_warnings(self.report, self.subject.model, self.source)
        return verdict(self.report, self.answers, is_guessed=bool(guessed))


def gather(
    subject: ReportSubject,
    samples: Samples,
    few: Samples,
    progress: Progress | None = None,
    *,
    threads: int | None = None,
    class_output: str | None = None,
    metric: Metric | None = None,
) -> Facts:
    """Run both sides: over all samples for the answers, and over few of them for the layers."""
    answers = Answers()
    report = evaluate(
        subject.model,
        subject.program,
        samples,
        progress,
        threads=threads,
        class_output=class_output,
        metric=metric,
        on_sample=answers.add,
    )
    layers = compare_layers(subject.rewritten, subject.program, few, progress)
    written = cvm_format.encode(subject.program.program)
    return Facts(
        subject=subject,
        program_id=cvm_format.program_id(written),
        file_bytes=len(written),
        report=report,
        answers=answers,
        source=Path(samples.source).name or samples.source,
        name_of=samples.name_of,
        nodes=network_of(
            subject.program.program, cost(subject.program), layers
        ),
        layers=layers,
        layer_samples=len(few),
        local=local_noise(
            subject.rewritten, subject.program, few, layers, progress
        ),
        weights=weights_of(
            subject.rewritten, {layer.source for layer in layers}
        ),
        distributions=_distributions(subject, layers, few, progress),
    )


def _distributions(
    subject: ReportSubject,
    layers: Sequence[Layer],
    few: Samples,
    progress: Progress | None,
) -> list[Distribution]:
    """Of the worst layers, in a second round: histograms of all would fill the memory."""
    chosen = worst_first(layers)[:DISTRIBUTIONS]
    distributions = distributions_of(chosen)

    def on_layer(layer: Layer, real: Array, integer: Array, _: int) -> None:
        distributions[layer.number].add(real, integer)

    watch_layers(
        subject.rewritten, subject.program, few, chosen, on_layer, progress
    )
    return list(distributions.values())
