"""The pipeline from a model file to a proven program, as the list `STAGES`.

    load       the model's file becomes a float graph, or is refused        mrt/frontend
    rewrite    the float graph becomes canonical                            mrt/rewrite
    duplicate  channels for which 8 bits are too coarse get a second copy   mrt/duplicate
    calibrate  the range of every value goes into a table                   mrt/calibrate
    tune       with a target: the cheapest bits that meet it                mrt/tune
    refine     more decisions on the samples join the table                 mrt/refine
    quantize   ranges become scales, operators become instructions          mrt/quantize
    prove      no input can make any value overflow                         cvm/proof
    fold       with --fold: equal branches become one instruction           mrt/fold
    measure    a few samples tell whether its answers are float's           mrt/quality.py

With a given calibration table, `duplicate` takes its channels from it, and `calibrate` and
`refine` have nothing to do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import onnx_ir as ir

from cvm.cluster import Cluster
from cvm.errors import Invalid
from cvm.program import Program
from cvm.proof.validate import Proven, validate
from mrt import project
from mrt.calibrate.collect import calibrate as collect_ranges
from mrt.calibrate.held_back import MOST, split
from mrt.calibrate.sample_checks import SampleChecks
from mrt.calibrate.samples import Samples
from mrt.calibrate.whole_inputs import whole_number_notes
from mrt.config import Config
from mrt.conversion import Conversion
from mrt.doubts import Remarks, of_preparation
from mrt.duplicate import ENOUGH_SAMPLES
from mrt.duplicate.add_duplicates import Duplicates, add_duplicates
from mrt.errors import BadModel, BadOption, NotProvable
from mrt.fold import first_difference
from mrt.fold import fold as fold_program
from mrt.frontend import LoadedModel
from mrt.held_back import (
    held_back_for_search,
    held_back_for_verdict,
    require_able_to_tell,
)
from mrt.input_shapes import smaller_than
from mrt.memory import giving_back
from mrt.pictures import as_floats, notes_of_floats, table_key
from mrt.progress import Progress, no_progress
from mrt.provenance import provenance
from mrt.quality import Quality
from mrt.quality import measure as measure_quality
from mrt.quantize import QuantizeOptions
from mrt.quantize import quantize as write_program
from mrt.quantize.channelwise_inputs import with_channelwise_bits
from mrt.quantize.compared_inputs import with_compared_bits
from mrt.quantize.gated_sums import note_of_states
from mrt.quantize.residual_streams import with_stream_bits
from mrt.quantize.small_layers import with_small_layer_bits
from mrt.quantize.source_map import SourceMap
from mrt.quantize.transformer_bits import with_transformer_bits
from mrt.refine import FloatStatistics, RefineOptions, refine_model
from mrt.refine import refine as refine_table
from mrt.report import FloatGraph, float_graph
from mrt.rewrite.file_grids import has_file_grids
from mrt.table.table import CalibrationTable
from mrt.tune import TuningResult, TuningTarget
from mrt.tune import tune as search_bits
from mrt.tune.evaluator import Evaluator
from mrt.tune.programs import Programs

WORK_OF_PROOF = "V13"  # the rule that bounds a program's proof


@dataclass
class ConversionJob:
    """One conversion under way: its settings, and the results of its stages so far."""

    config: Config
    progress: Progress
    given_table: CalibrationTable | None = None
    target: TuningTarget | None = None

    written: QuantizeOptions = field(init=False)  # before any is applied
    loaded: LoadedModel | None = None
    before: FloatGraph | None = None  # the model as it was read
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    duplicates: Duplicates | None = None
    table: CalibrationTable | None = None
    statistics: FloatStatistics | None = None
    tuned: TuningResult | None = None
    source_map: SourceMap | None = None
    program: Program | None = None
    proven: Proven | None = None
    unfolded: int | None = None  # instructions before folding
    quality: Quality = field(default_factory=Quality)
    remarks: Remarks = field(default_factory=Remarks)
    cluster: Cluster | None = None

    def __post_init__(self) -> None:
        self.written = self.config.quantization

    @property
    def model(self) -> ir.Model:
        """The float graph in its present form."""
        assert self.loaded is not None
        return self.loaded.model

    @property
    def measured(self) -> CalibrationTable:
        """The calibration table, once it exists."""
        assert self.table is not None
        return self.table

    @property
    def synthetic(self) -> bool:
        """Whether the ranges are measured on noise."""
        return (
            self.given_table is None
            and self.config.calibration_data.path is None
        )

    @property
    def stages(self) -> RefineOptions:
        """The refining stages to run.

        There are none if a table is given, which has been refined, if the samples are
        noise, or if the model's file decides scales and integers.
        """
        if self.given_table is not None or self.synthetic:
            return RefineOptions.of(())
        if has_file_grids(self.model):
            return RefineOptions.of(())
        return self.config.refinement

    @property
    def table_key(self) -> str:
        """The digest that binds a calibration table to the model and its preprocessing."""
        assert self.loaded is not None
        return table_key(self.loaded.sha256, self.model, self.config)


# -- the stages --------------------------------------------------------------------


def load(job: ConversionJob) -> None:
    """Read the model's file into a float graph."""
    if job.given_table is not None:
        shapes = job.given_table.input_shapes
        job.config = replace(job.config, table_shapes=shapes)
    job.loaded = project.load_before_rewriting(job.config)
    job.before = float_graph(job.loaded.model)
    job.shapes = project.input_shapes(job.loaded.model)
    if job.given_table is None:
        config = as_floats(job.config)
        job.remarks.warnings += of_preparation(
            job.model, config, config.calibration_data
        )


def rewrite(job: ConversionJob) -> None:
    """Bring the float graph to canonical form.

    This fixes the bits of transformers and residual streams, and the samples held back.
    """
    assert job.loaded is not None
    job.loaded = project.rewrite_model(job.loaded, job.config)
    project.require_interface(job.model)
    given = job.config.quantization
    bits = with_transformer_bits(job.model, given)
    if bits != given:
        job.remarks.notes.append(
            f"the model has layer normalizations: products read {bits.product_bits} bits, other values have "
            f"{bits.activation_bits} (--product-bits {given.activation_bits} leaves all at {given.activation_bits})"
        )
    bits, small = with_small_layer_bits(job.model, bits)
    if small is not None:
        job.remarks.notes.append(small.note(bits))
    bits = with_stream_bits(job.model, bits)
    bits = with_channelwise_bits(job.model, bits)
    bits, note = with_compared_bits(job.model, bits)
    states = note_of_states(job.model, bits)
    job.remarks.notes += [text for text in (note, states) if text]
    job.config = replace(job.config, quantization=bits)
    if job.target is not None:
        job.config = _prepared_for_search(job)
    if job.given_table is None:
        job.config = held_back_for_verdict(job.model, job.config)


def duplicate(job: ConversionJob) -> None:
    """Add second copies of the channels for which 8 bits are too coarse."""
    if job.given_table is not None:
        _require_suitable(job, job.given_table)
        job.duplicates = job.given_table.duplicates
        add_duplicates(job.model, job.duplicates)
    elif job.stages.duplicates:
        samples = _samples_for_duplicates(job)
        refined = refine_model(
            job.model, samples, job.config.quantization, job.stages
        )
        job.duplicates = refined.duplicates
        job.remarks.notes += refined.notes


def calibrate(job: ConversionJob) -> None:
    """Measure ranges, and gather the statistics that the refining stages need in the same runs."""
    if job.given_table is not None:
        job.table = job.given_table
        return
    samples = project.open_calibration_data(job.model, job.config)
    if job.stages.any:
        job.statistics = FloatStatistics(job.model, job.stages, len(samples))
    checks = _sample_checks(job, samples)
    table = collect_ranges(
        job.model,
        samples,
        job.config.calibration,
        model_sha256=job.table_key,
        callbacks=[item for item in (job.statistics, checks) if item],
        progress=lambda done, total: job.progress("calibrating", done, total),
        cluster=job.cluster,
    )
    job.table = replace(
        table, duplicates=job.duplicates or {}, input_shapes=job.shapes
    )
    job.remarks.notes += samples.notes
    if not job.synthetic:
        job.remarks.notes += whole_number_notes(job.model, job.table)
    if checks is not None:
        job.remarks.warnings += checks.doubts()


def tune(job: ConversionJob) -> None:
    """With a target, find the cheapest bits that meet it on the samples held back."""
    if job.target is None:
        return
    job.tuned = _search(job, job.target)
    job.config = replace(job.config, quantization=job.tuned.options)
    raised = {
        name
        for upgrade in job.tuned.upgrades
        if not upgrade.candidate.weights
        for name in upgrade.candidate.names
    }
    job.remarks.notes += notes_of_floats(job.model, job.config, raised)


def refine(job: ConversionJob) -> None:
    """Add the decisions of the refining stages to the table."""
    if job.statistics is None:
        return
    job.table = refine_table(
        job.model,
        job.measured,
        job.config.quantization,
        job.stages,
        job.statistics,
        job.progress,
        job.remarks.notes,
    )
    job.statistics = None  # used up


def quantize(job: ConversionJob) -> None:
    """Write the program."""
    assert job.loaded is not None
    job.source_map = SourceMap()
    job.program = write_program(
        job.model,
        job.measured,
        job.config.quantization,
        provenance=provenance(
            job.loaded, job.measured, job.config, job.written
        ),
        labels=project.read_labels(job.config.model.labels),
        source_map=job.source_map,
    )


def prove(job: ConversionJob) -> None:
    """Prove that no value can overflow."""
    assert job.program is not None
    try:
        job.proven = validate(job.program)
    except Invalid as problem:
        if problem.rule == WORK_OF_PROOF:
            raise BadModel(
                f"the program would be too large to prove: {problem}; "
                f"{smaller_than(job.config.model.shapes)} may fit, or convert a part of the model"
            ) from None
        raise NotProvable(
            f"the program written is refused: {problem}; "
            "this is a fault of mrt, please report it"
        ) from None


def fold(job: ConversionJob) -> None:
    """If asked, put one instruction in the place of several; the integers stay as they are."""
    if not job.config.quantization.fold:
        return
    assert job.proven is not None and job.source_map is not None
    before, names = job.proven, job.source_map.of_number
    folded = fold_program(before)
    job.proven = validate(folded.program)
    if problem := first_difference(before, job.proven):
        raise NotProvable(
            f"the folded program differs: {problem}; this is a fault of mrt, please report it, and convert without --fold"
        )
    job.unfolded = len(before.program.instructions)
    job.source_map.of_number = {
        new: names[old] for new, old in folded.sources.items()
    }


def measure(job: ConversionJob) -> None:
    """Run a few samples on both sides; the program stays as it is."""
    assert job.proven is not None
    job.quality = measure_quality(
        job.model,
        job.proven,
        job.measured,
        job.config,
        job.progress,
        calibrated_here=job.given_table is None,
    )
    job.remarks.warnings += job.quality.warnings()
    job.remarks.notes += job.quality.notes()


Stage = Callable[[ConversionJob], None]

STAGES: tuple[Stage, ...] = (
    load,
    rewrite,
    duplicate,
    calibrate,
    tune,
    refine,
    quantize,
    prove,
    fold,
    measure,
)


def convert(
    config: Config,
    *,
    table: CalibrationTable | None,
    progress: Progress,
    target: TuningTarget | None = None,
) -> Conversion:
    """Run all stages, without writing a file.

    With a target, search for bits that meet it.
    """
    job = ConversionJob(config, progress, given_table=table, target=target)
    _run_stages(job, STAGES)
    assert job.config.model.path is not None
    assert job.loaded is not None and job.before is not None
    assert job.proven is not None and job.source_map is not None
    return Conversion(
        name=job.config.model.path.name,
        proven=job.proven,
        unfolded=job.unfolded,
        model=job.loaded,
        table=job.measured,
        synthetic=job.synthetic and _needs_samples(job),
        before=job.before,
        source_map=job.source_map.of_number,
        config=job.config,
        measured=job.source_map.measured,
        rounded=job.source_map.rounded,
        tuned=job.tuned,
        quality=job.quality,
        remarks=job.remarks,
    )


def make_table(
    config: Config,
    progress: Progress,
    remarks: Remarks | None = None,
    cluster: Cluster | None = None,
) -> CalibrationTable:
    """The stages up to the table: load, rewrite, duplicate, calibrate, refine. What is remarkable is added to `remarks`.

    The workers of a cluster run the float model.
    """
    found = Remarks() if remarks is None else remarks
    job = ConversionJob(config, progress, remarks=found, cluster=cluster)
    _run_stages(job, (load, rewrite, duplicate, calibrate, refine))
    return job.measured


def _run_stages(job: ConversionJob, stages: Iterable[Stage]) -> None:
    for stage in stages:
        with giving_back():
            stage(job)


def _needs_samples(job: ConversionJob) -> bool:
    """Whether any measured range became part of the program."""
    assert job.source_map is not None
    return not has_file_grids(job.model) or bool(job.source_map.measured)


# -- policies ----------------------------------------------------------------------


def _sample_checks(job: ConversionJob, samples: Samples) -> SampleChecks | None:
    """What looks at samples and answers; noise is doubtful anyway."""
    if job.synthetic:
        return None
    return SampleChecks(samples, str(job.model.graph.outputs[0].name))


def _prepared_for_search(job: ConversionJob) -> Config:
    """Return the configuration for a search: without duplicated channels, and with samples held back.

    Where a search assigns 16 bits, duplicated channels would cost products without any
    gain. With a given table no sample is used for calibration, so all of them serve the
    search.
    """
    assert job.target is not None
    refinement = replace(job.config.refinement, duplicates=False)
    config = replace(job.config, refinement=refinement)
    if config.calibration_data.path is None:
        raise BadOption(
            "a target needs samples to be measured on: --data, or a --config whose "
            "[calibration] names some"
        )
    if job.given_table is not None:
        return config
    return held_back_for_search(job.model, config, job.target)


def _require_suitable(job: ConversionJob, table: CalibrationTable) -> None:
    """Raise BadData unless the given table was made for this model and these activation bits."""
    bits = job.config.quantization.clipped_bits
    fitted = replace(table.options, bits=bits)
    table.require(model_sha256=job.table_key, options=fitted)


def _samples_for_duplicates(job: ConversionJob) -> Samples:
    """Return a few of the calibration samples, opened anew so that no others are read."""
    samples = project.open_calibration_data(job.model, job.config)
    data = job.config.calibration_data
    if data.path is None:
        return samples
    few = project.few_calibrated(data, ENOUGH_SAMPLES)
    return project.open_data(job.model, job.config, data, choose=few)


def _refined(job: ConversionJob, options: QuantizeOptions) -> CalibrationTable:
    """Return the measured table with the decisions for these options; others may follow."""
    if job.statistics is None:
        return job.measured
    statistics = job.statistics.again()
    return refine_table(
        job.model, job.measured, options, job.stages, statistics, no_progress
    )


def _search(job: ConversionJob, target: TuningTarget) -> TuningResult:
    config = job.config
    data = config.calibration_data
    samples = project.open_data(job.model, config, replace(data, held_back=0))
    count = data.held_back or min(len(samples) - 1, MOST)
    require_able_to_tell(target, samples, count)
    others, held = split(samples, count)
    programs = Programs(job.model, partial(_refined, job))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        evaluator = Evaluator(
            job.model,
            list(held),
            pool,
            labels=held.labels,
            others=others,
            classes=target.kind != "snr",
            class_output=target.class_output,
        )
        return search_bits(
            job.model,
            programs,
            evaluator,
            config.quantization,
            target,
            job.progress,
        )
