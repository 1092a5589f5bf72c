"""Writes a probe of a model: first ranges, widened, then a program of 16-bit values that gathers what they really are."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace

import onnx_ir as ir

from cvm.program import Program
from mrt import pipeline, stages
from mrt.config import Config
from mrt.errors import BadModel
from mrt.graph.canonical_values import name_of
from mrt.graph.notes import is_whole
from mrt.job import ConversionJob
from mrt.probe.extremes import Watched, gather_extremes
from mrt.probe.shared_ranges import completed
from mrt.progress import Progress
from mrt.provenance import provenance
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.inputs import has_own_ends
from mrt.refine import RefineOptions
from mrt.table.table import CalibrationOptions, CalibrationTable, MeasuredRange

BITS = 16
END = 2 ** (BITS - 1) - 1
NEARLY = 0.99
KEY, FORMAT = "probe", "mrt-probe-1"  # of the provenance


@dataclass(frozen=True)
class Probe:
    """The program, how many ranges it gathers, and whether the first ones are of noise."""

    program: Program
    ranges: int
    synthetic: bool


def make_probe(config: Config, *, widen: float, progress: Progress) -> Probe:
    """A probe of the values whose ranges a conversion by this configuration reads.

    Their formats come from the configuration's data, or from noise, each end `widen`
    times as far.
    """
    config = plain(config)
    first = pipeline.make_table(config, progress)
    conversion = pipeline.convert(config, table=first, progress=progress)
    inputs = [str(input_.name) for input_ in conversion.proven.program.inputs]
    ranges = widened(first.ranges, widen, inputs)
    ranges |= _whole(ranges, conversion.model.model)
    wide = replace(first, ranges=ranges)
    job = _rewritten(config, wide, progress)
    needed = completed(conversion.measured, job.model)
    names = [name for name in first.ranges if name in needed]
    if not names:
        raise BadModel(
            "there is nothing to gather: the program of this model depends on no measured range; mrt convert needs no samples of it"
        )
    _choose_outputs(
        job.model,
        [watched_name for watched_name in names if watched_name not in inputs],
    )
    program = quantize(job.model, wide, job.config.quantization)
    endless = {
        name_of(input_)
        for input_ in job.model.graph.inputs
        if has_own_ends(input_)
    }
    watched = [
        _watched(program, name, wide.ranges[name], endless) for name in names
    ]
    assert job.loaded is not None
    origin = {
        **provenance(job.loaded, wide, job.config, job.written),
        KEY: _text(job.table_key, watched),
    }
    probe_program = gather_extremes(program, watched, origin)
    return Probe(
        probe_program, len(watched), config.calibration_data.path is None
    )


def plain(config: Config) -> Config:
    """The configuration with what extremes alone can decide: the observer minmax, and no refinement."""
    return replace(
        config,
        calibration=CalibrationOptions(observer="minmax"),
        refinement=RefineOptions.of(()),
    )


def widened(
    ranges: Mapping[str, MeasuredRange], factor: float, inputs: Sequence[str]
) -> dict[str, MeasuredRange]:
    """Ranges whose ends lie so many times as far from 0.

    What is computed and was never negative stays so; an input may be negative in other samples.
    """
    widened_ranges = {}
    for name, range_ in ranges.items():
        reach = factor * range_.magnitude
        least = -reach if range_.min < 0 or name in inputs else 0.0
        most = reach if range_.max > 0 or name in inputs else 0.0
        if range_.min > 0 and name not in inputs:
            least = range_.min / factor
        widened_ranges[name] = MeasuredRange(least, most, least, most)
    return widened_ranges


def _rewritten(
    config: Config, table: CalibrationTable, progress: Progress
) -> ConversionJob:
    """The model for the probe, at 16 bits."""
    options = QuantizeOptions(
        weight_bits=config.quantization.weight_bits, activation_bits=BITS
    )
    job = ConversionJob(
        replace(config, quantization=options), progress, given_table=table
    )
    for stage in (stages.load, stages.rewrite):
        stage(job)
    return job


def _choose_outputs(model: ir.Model, names: Sequence[str]) -> None:
    """Let the graph end in these values and no others; as it did where only inputs are gathered."""
    if not names:
        return
    values = {
        name_of(value): value for node in model.graph for value in node.outputs
    }
    model.graph.outputs[:] = [values[name] for name in names]


def _whole(
    ranges: Mapping[str, MeasuredRange], model: ir.Model
) -> dict[str, MeasuredRange]:
    """The ranges of the inputs declared whole: integers again, of 16 bits."""
    whole_ranges = {}
    for value in model.graph.inputs:
        name = name_of(value)
        of_floats = value.dtype == ir.DataType.FLOAT
        if is_whole(value) and of_floats and name in ranges:
            least = max(math.floor(ranges[name].min), -END - 1)
            most = min(math.ceil(ranges[name].max), END)
            whole_ranges[name] = MeasuredRange(least, most, least, most)
    return whole_ranges


def _watched(
    program: Program, name: str, wide: MeasuredRange, endless: Set[str]
) -> Watched:
    """A value with the integers at which it is stopped.

    Where its format ends before the widened range, as that of a sigmoid does, nothing
    lies beyond, and an end is no stop. Neither is it of the inputs `endless`, which have
    all integers of a type or an axis.
    """
    metadata = program.metadata
    assert metadata is not None
    for input_ in program.inputs:
        if input_.name == name:
            meaning = metadata.inputs[name]
            more = name in endless
            bounds = input_.lo - more, input_.hi + more
            return Watched(name, meaning.scale, meaning.zero_point, *bounds)
    meaning = metadata.outputs[name]
    end = END + (END * meaning.scale < NEARLY * wide.magnitude)
    return Watched(name, meaning.scale, meaning.zero_point, -end, end)


def _text(model: str, watched: Sequence[Watched]) -> str:
    content = {
        "format": FORMAT,
        "model": model,
        "values": [list(asdict(value).values()) for value in watched],
    }
    return json.dumps(content, sort_keys=True)
