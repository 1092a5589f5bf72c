"""The pipeline: load, rewrite, calibrate, quantise, prove, write. Each stage's result can be had on its own."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO

import onnx_ir as ir

from cvm.errors import Invalid
from cvm.file import format as cvm_format
from cvm.file.disk import require_writable
from cvm.program import Program
from cvm.proof.cost import cost
from cvm.proof.slack import bits, slack, tightest
from cvm.proof.validate import Proven, check, validate
from mrt import frontend, rewrite
from mrt.calibrate.collect import calibrate
from mrt.calibrate.held_back import MOST, count_to_hold_back, split
from mrt.calibrate.samples import Samples, open_samples, synthetic_samples
from mrt.calibrate.session import integer_input_intervals, model_inputs
from mrt.config import Config, DataSettings
from mrt.duplicate import (
    ENOUGH_SAMPLES,
    duplicates_provenance,
    read_duplicates,
)
from mrt.duplicate.add_duplicates import Duplicates, add_duplicates
from mrt.duplicate.fill_dead_channels import fill_dead_channels
from mrt.errors import BadData, BadModel, BadOption, NotProvable
from mrt.export import Exported, export
from mrt.frontend import LoadedModel
from mrt.graph.choose_outputs import choose_outputs, require_known
from mrt.pictures import outside, table_key, take_bytes
from mrt.pictures import provenance as picture_provenance
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.curves.curve_memo import CurveMemo
from mrt.quantize.residual_streams import with_stream_bits
from mrt.quantize.source_map import SourceMap
from mrt.refine import FloatStatistics, RefineOptions, refine, refine_model
from mrt.report import FloatGraph, Report, float_graph
from mrt.rewrite.linear.conv_pool_attributes import canonicalize_conv_pool_attributes
from mrt.table.table import CalibrationTable
from mrt.tune import Target, TuningResult, tune
from mrt.tune.evaluator import Evaluator

SYNTHETIC_SAMPLES = 32
Progress = Callable[
    [str, int, int], None
]  # what is being done, how much of it is done, how much there is


@dataclass(frozen=True)
class Conversion:
    """A program, proven, and what it was made from."""

    name: str  # of the model's file
    proven: Proven
    model: LoadedModel  # rewritten
    table: CalibrationTable
    synthetic: bool  # calibrated on noise
    before: FloatGraph  # the model as it was read
    source_map: Mapping[int, str]  # which float value an instruction was written for
    config: Config  # with the precisions that a search found
    tuned: TuningResult | None = None

    @cached_property
    def data(self) -> bytes:
        """The program's file."""
        return cvm_format.encode(self.proven.program)

    def write(self, file: IO[bytes]) -> None:
        """Write the program's file."""
        file.write(self.data)

    def summary(self) -> dict[str, str]:
        """What a person wants to know of it, in order."""
        program = self.proven.program
        number = tightest(self.proven)
        room = (
            "-" if number is None else bits(slack("i32", self.proven.intervals[number]))
        )
        duplicates = sum(map(len, self.table.duplicates.values()))
        return {
            "program id": cvm_format.program_id(self.data),
            "size": f"{len(self.data):,} bytes",
            "instructions": f"{len(program.instructions):,}",
            "proof": f"every value fits; tightest slack {room} bits",
            "cost": f"{cost(self.proven).total:,}",
            "calibrated on": f"{self.table.samples} {'synthetic ' if self.synthetic else ''}samples",
            **(
                {"duplicates": f"{duplicates:,} of the channels (see --refine)"}
                if duplicates
                else {}
            ),
        }

    def report(self, path: Path) -> Report:
        """What became of every float operator; that only integers are left is checked on the file that was written."""
        form = check(cvm_format.read(path)) if path.is_file() else self.proven
        names = {
            "origin": self.model.origin,
            "program_id": cvm_format.program_id(form.program),
        }
        return Report.of(
            form,
            self.before,
            float_graph(self.model.model),
            self.source_map,
            model=self.name,
            **names,
        )


def convert(
    config: Config,
    *,
    table: CalibrationTable | None,
    progress: Progress,
    target: Target | None = None,
) -> Conversion:
    """All stages but the writing. With a target, options that meet it are searched for before the program is made."""
    loaded = _load(config)
    before = float_graph(loaded.model)
    loaded = _rewritten(loaded, config)
    config = replace(
        config, quantization=with_stream_bits(loaded.model, config.quantization)
    )
    synthetic = table is None and config.calibration_data.path is None
    if target is not None:
        # Twins make 8 bits say more, and would be paid for in vain where a search gives 16.
        config = replace(
            config, refinement=replace(config.refinement, duplicates=False)
        )
        config = _holding_back(loaded.model, config, table)
    stages = (
        config.refinement if table is None and not synthetic else RefineOptions.of(())
    )
    notes = None
    if table is None:
        table, notes = _calibrate(loaded, config, stages, progress)
    else:
        fitted = replace(table.options, bits=config.quantization.activation_bits)
        table.require(
            model_sha256=table_key(loaded.sha256, loaded.model, config), options=fitted
        )
        add_duplicates(loaded.model, table.duplicates)
    tuned = None
    if target is not None:
        tuned = _tune(loaded.model, table, config, target, progress)
        config = replace(config, quantization=tuned.options)
    if notes is not None:
        table = refine(
            loaded.model, table, config.quantization, stages, notes, progress
        )
    labels = _read_labels(config.model.labels)
    source_map, provenance = SourceMap(), _provenance(loaded, table, config)
    program = quantize(
        loaded.model,
        table,
        config.quantization,
        provenance=provenance,
        labels=labels,
        source_map=source_map,
    )
    try:
        proven = validate(program)
    except Invalid as problem:
        raise NotProvable(
            f"the program written is refused: {problem}; this is a fault of mrt, please report it"
        ) from None
    assert config.model.path is not None
    return Conversion(
        config.model.path.name,
        proven,
        loaded,
        table,
        synthetic,
        before,
        source_map.of_number,
        config,
        tuned,
    )


def _holding_back(
    model: ir.Model, config: Config, table: CalibrationTable | None
) -> Config:
    """With so many samples set aside for the search; with a table that was given, all are there for it."""
    data = config.calibration_data
    if data.path is None:
        raise BadOption(
            "a target needs samples to be measured on: --data, or a --config whose [calibration] names some"
        )
    if table is not None or data.held_back:
        return config
    count = count_to_hold_back(open_data(model, config, data))
    return replace(config, calibration_data=replace(data, held_back=count))


def _tune(
    model: ir.Model,
    table: CalibrationTable,
    config: Config,
    target: Target,
    progress: Progress,
) -> TuningResult:
    """The cheapest options found that meet the target on the samples held back."""
    samples = open_data(model, config, replace(config.calibration_data, held_back=0))
    count = config.calibration_data.held_back or min(len(samples) - 1, MOST)
    rest, held = split(samples, count)
    memo = CurveMemo()
    if target.kind == "drop" and held.labels is None:
        raise BadData(
            f"{samples.source}: has no labels, which --target-drop needs; use --target-agreement"
        )

    def make(options: QuantizeOptions) -> Proven:
        return validate(quantize(model, table, options, memo=memo))

    classes = target.kind != "snr"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        judge = Evaluator(
            model, list(held), pool, labels=held.labels, others=rest, classes=classes
        )
        return tune(model, make, judge, config.quantization, target, progress)


def make_table(config: Config, progress: Progress) -> CalibrationTable:
    """Load, rewrite, calibrate and refine."""
    loaded = rewritten(config)
    config = replace(
        config, quantization=with_stream_bits(loaded.model, config.quantization)
    )
    stages = config.refinement
    table, notes = _calibrate(loaded, config, stages, progress)
    return (
        table
        if notes is None
        else refine(loaded.model, table, config.quantization, stages, notes, progress)
    )


def load(config: Config) -> LoadedModel:
    """Read the model that the configuration names, with the outputs that it names."""
    loaded = _load(config)
    require_known(loaded.outputs_left, loaded.names)
    return loaded


def _load(config: Config) -> LoadedModel:
    settings = config.model
    if settings.path is None:
        raise BadOption(
            "no model is given: name its file, or a --config whose [model] has a path"
        )
    return frontend.load(
        settings.path,
        params=settings.params,
        shapes=settings.shapes,
        epoch=settings.epoch,
        random_weights=settings.random_weights,
        outputs=settings.outputs,
        values=settings.values,
    )


def load_to_run(config: Config) -> LoadedModel:
    """The model as it came, but with the pads of windows written out: onnxruntime refuses auto_pad beside dilations.

    Where it shall end in a value that only the rewritten model has, that one.
    """
    loaded = _load(config)
    if loaded.outputs_left:
        return _rewritten(loaded, config)
    take_bytes(loaded.model, config)
    canonicalize_conv_pool_attributes(loaded.model)
    return loaded


def rewritten(config: Config) -> LoadedModel:
    """Load and rewrite."""
    return _rewritten(_load(config), config)


def rewritten_for(program: Program, config: Config) -> LoadedModel:
    """As `rewritten`, with the twins that the program was made with."""
    loaded = rewritten(config)
    add_duplicates(loaded.model, read_duplicates(program))
    return loaded


def _rewritten(loaded: LoadedModel, config: Config) -> LoadedModel:
    take_bytes(loaded.model, config)
    rewrite.rewrite(loaded.model)
    if loaded.outputs_left:
        choose_outputs(loaded.model, config.model.outputs, loaded.names)
    fill_dead_channels(loaded.model)
    return loaded


def write_onnx(
    config: Config, destination: Path, *, opset: int, any_batch: bool | None
) -> Exported:
    """Load and write as plain ONNX."""

    def load_for(shapes: Mapping[str, tuple[int, ...]]) -> LoadedModel:
        return load(
            replace(
                config,
                model=replace(config.model, shapes={**config.model.shapes, **shapes}),
            )
        )

    return export(load_for, destination, opset=opset, any_batch=any_batch)


def open_data(model: ir.Model, config: Config, data: DataSettings) -> Samples:
    """The samples that the configuration names, prepared for the model."""
    if data.path is None:
        raise BadOption("no data is given: --data, or a --config that names some")
    shapes = _input_shapes(model)
    preprocessing = outside(model, config.preprocessing_of(list(shapes)))
    samples = open_samples(
        data.path,
        shapes,
        preprocessing,
        data.samples,
        arrays=data.arrays,
        labels=data.labels,
    )
    return split(samples, data.held_back)[0] if data.held_back else samples


def default_output(model: Path) -> Path:
    """`P.cvm` beside P-symbol.json, P.json or P.onnx."""
    stem = (
        model.name.removesuffix(".json").removesuffix(".onnx").removesuffix("-symbol")
    )
    return model.parent / f"{stem}.cvm"


def _calibrate(
    loaded: LoadedModel, config: Config, stages: RefineOptions, progress: Progress
) -> tuple[CalibrationTable, FloatStatistics | None]:
    """The table, and what the stages need to know besides, if there are any. First the model gets twins, if it shall."""
    if config.calibration_data.path is None:
        samples = synthetic_samples(
            _input_shapes(loaded.model),
            config.calibration_data.samples or SYNTHETIC_SAMPLES,
            intervals=integer_input_intervals(loaded.model),
        )
    else:
        samples = open_data(loaded.model, config, config.calibration_data)

    def report(done: int, total: int) -> None:
        progress("calibrating", done, total)

    duplicates: Duplicates = {}
    if stages.duplicates:
        few = _few(loaded.model, config, samples)
        duplicates = refine_model(loaded.model, few, config.quantization, stages)
    key = table_key(loaded.sha256, loaded.model, config)
    notes = FloatStatistics(loaded.model, stages, len(samples)) if stages.any else None
    callbacks = [] if notes is None else [notes]
    table = calibrate(
        loaded.model,
        samples,
        config.calibration,
        model_sha256=key,
        callbacks=callbacks,
        progress=report,
    )
    return replace(table, duplicates=duplicates), notes


def _few(model: ir.Model, config: Config, samples: Samples) -> Samples:
    """Enough for twins, opened anew so that no others are read; where some are held back, all that are not."""
    data = config.calibration_data
    if data.path is None or data.held_back:
        return samples
    return open_data(
        model, config, replace(data, samples=min(ENOUGH_SAMPLES, len(samples)))
    )


def _input_shapes(model: ir.Model) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for value in model_inputs(model):
        if value.shape is None or not value.shape.is_static():
            raise BadModel(
                f"input '{value.name}' has no fixed shape; give it with --shape {value.name}=..."
            )
        shapes[str(value.name)] = tuple(int(size) for size in value.shape.numpy())
    return shapes


def _provenance(
    loaded: LoadedModel, table: CalibrationTable, config: Config
) -> dict[str, str]:
    options = config.quantization
    return {
        "model_sha256": loaded.sha256,
        "model_format": loaded.origin,
        **picture_provenance(loaded.model, config),
        **duplicates_provenance(table.duplicates),
        "table_sha256": hashlib.sha256(table.text().encode()).hexdigest(),
        "weight_bits": str(options.weight_bits),
        "activation_bits": str(options.activation_bits),
        "scales": options.scales,
        "scheme": options.scheme,
        "bias_correction": str(options.bias_correction).lower(),
        **{
            word: "false"
            for word in ("per_channel", "unsigned")
            if not getattr(options, word)
        },
        "layers": json.dumps(options.key()["layers"]),
    }


def _read_labels(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as problem:
        raise BadData(f"{path}: class names cannot be read ({problem})") from None


def check_destination(path: Path, inputs: list[Path | None], *others: Path) -> None:
    """Before the work: the place of the result can be written and is none of the inputs, named or found beside one.

    `others` are places of more results: the same goes for them, and all differ.
    """
    named = [item for item in inputs if item is not None]
    found = [file for item in named for file in frontend.parameters_beside(item)]
    require_writable([path, *others], inputs=[*named, *found])
