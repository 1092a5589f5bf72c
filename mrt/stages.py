"""The stages of a conversion, in the order of mrt/pipeline.py: each reads the job and adds its result."""

from __future__ import annotations

from dataclasses import replace

from cvm.errors import Invalid
from cvm.proof.validate import validate
from mrt import bit_search, project
from mrt.calibrate.collect import calibrate as collect_ranges
from mrt.calibrate.sample_checks import SampleChecks
from mrt.calibrate.samples import Samples
from mrt.calibrate.whole_inputs import whole_number_notes
from mrt.doubts import preparation_warnings
from mrt.duplicate import ENOUGH_SAMPLES
from mrt.duplicate.add_duplicates import add_duplicates
from mrt.errors import BadModel, NotProvable
from mrt.fixed_values import fixed_value_warnings
from mrt.fold import first_difference
from mrt.fold import fold as fold_program
from mrt.graph.states import notes_of_shortened_states
from mrt.held_back import held_back_for_verdict
from mrt.input_shapes import smaller_than
from mrt.job import ConversionJob
from mrt.pictures import as_floats, notes_of_floats
from mrt.provenance import provenance
from mrt.quality import measure as measure_quality
from mrt.quantize import quantize as write_program
from mrt.quantize.channelwise_inputs import with_channelwise_bits
from mrt.quantize.compared_inputs import with_compared_bits
from mrt.quantize.gated_sums import note_of_states
from mrt.quantize.inputs import beyond_32_bits_warnings, constant_input_warnings
from mrt.quantize.residual_streams import with_stream_bits
from mrt.quantize.scaled_columns import with_scaled_column_bits
from mrt.quantize.small_layers import (
    notes_of_file_bits,
    with_small_layer_bits,
)
from mrt.quantize.source_map import SourceMap
from mrt.quantize.transformer_bits import with_transformer_bits
from mrt.refine import FloatStatistics, refine_model
from mrt.refine import refine as refine_table
from mrt.report import float_graph
from mrt.rewrite.file_grids import has_file_grids
from mrt.table.table import CalibrationTable

WORK_OF_PROOF = "V13"  # the rule that bounds a program's proof


def load(job: ConversionJob) -> None:
    """Read the model's file into a float graph."""
    if job.given_table is not None:
        shapes = job.given_table.input_shapes
        job.config = replace(job.config, table_shapes=shapes)
    job.loaded = project.load_before_rewriting(job.config)
    job.before = float_graph(job.loaded.model)
    job.shapes = project.input_shapes(job.loaded.model)
    job.remarks.notes += notes_of_shortened_states(job.model)
    if job.given_table is None:
        config = as_floats(job.config)
        data = config.calibration_data
        job.remarks.warnings += preparation_warnings(job.model, config, data)
        job.remarks.warnings += fixed_value_warnings(config, data)


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
    if has_file_grids(job.model):
        job.remarks.notes += notes_of_file_bits(given)
    elif small is not None:
        job.remarks.notes.append(small.note(bits))
    bits = with_stream_bits(job.model, bits)
    bits = with_channelwise_bits(job.model, bits)
    bits, compared = with_compared_bits(job.model, bits)
    bits, scaled = with_scaled_column_bits(job.model, bits)
    states = note_of_states(job.model, bits)
    notes = (compared, scaled, states)
    job.remarks.notes += [text for text in notes if text]
    job.config = replace(job.config, quantization=bits)
    if job.target is not None:
        job.config = bit_search.prepared_for_search(job)
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
        table = _table_with_scales(job) if job.stages.extra_products else None
        refined = refine_model(
            job.model, samples, job.config.quantization, job.stages, table
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
        callbacks=[
            callback
            for callback in (job.statistics, checks, job.lone_maxima)
            if callback
        ],
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
    job.tuned = bit_search.search(job, job.target)
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
    if not job.synthetic:
        job.remarks.warnings += constant_input_warnings(job.model, job.program)
        job.remarks.warnings += beyond_32_bits_warnings(
            job.model, job.measured.ranges
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
    assert job.proven is not None and job.source_map is not None
    quality = measure_quality(
        job.model,
        job.proven,
        job.measured,
        job.config,
        job.progress,
        calibrated_here=job.given_table is None,
        rewriting=job.rewriting,
    )
    lone = job.lone_maxima.worst(job.source_map.measured)
    job.quality = replace(quality, lone=lone)
    job.remarks.warnings += job.quality.warnings()
    job.remarks.notes += job.quality.notes()


def _sample_checks(job: ConversionJob, samples: Samples) -> SampleChecks | None:
    """What looks at samples and answers; noise is doubtful anyway."""
    if job.synthetic:
        return None
    return SampleChecks(samples, str(job.model.graph.outputs[0].name))


def _require_suitable(job: ConversionJob, table: CalibrationTable) -> None:
    """Raise BadData unless the given table was made for this model and these activation bits."""
    bits = job.config.quantization.clipped_bits
    fitted = replace(table.options, bits=bits)
    table.require(model_sha256=job.table_key, options=fitted)


def _table_with_scales(job: ConversionJob) -> CalibrationTable:
    """Calibrate the model without duplicates, and choose the scales of its channels: how much noise each makes depends on them."""
    samples = project.open_calibration_data(job.model, job.config)
    stages = job.stages.of_channels
    statistics = FloatStatistics(job.model, stages, len(samples))
    table = collect_ranges(
        job.model,
        samples,
        job.config.calibration,
        model_sha256=job.table_key,
        callbacks=[statistics],
        progress=lambda done, total: job.progress(
            "looking for noise", done, total
        ),
        cluster=job.cluster,
    )
    return refine_table(
        job.model,
        table,
        job.config.quantization,
        stages,
        statistics,
        job.progress,
    )


def _samples_for_duplicates(job: ConversionJob) -> Samples:
    """Return a few of the calibration samples, opened anew so that no others are read."""
    samples = project.open_calibration_data(job.model, job.config)
    data = job.config.calibration_data
    if data.path is None:
        return samples
    few = project.few_calibrated(data, ENOUGH_SAMPLES)
    return project.open_data(job.model, job.config, data, choose=few)
