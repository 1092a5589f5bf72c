"""Reads and writes the files that a configuration names.

They are its model in several forms, its samples, its labels, and the files of results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os.path import exists
from pathlib import Path

import numpy as np
import onnx_ir as ir

from cvm.errors import brief
from cvm.file.disk import require_writable
from cvm.file.format import is_program
from cvm.file.suffixes import require_suffix
from cvm.program import Program
from cvm.program.decoder import usual_states
from cvm.program.limits import MAX_INPUTS, MAX_NAME_BYTES, MAX_OUTPUTS
from mrt import frontend, rewrite
from mrt.calibrate.decoding import StepInputs, lacks_states, open_steps
from mrt.calibrate.held_back import places_to_calibrate
from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.presets import require_stated
from mrt.calibrate.samples import (
    Choice,
    Samples,
    array_of,
    few_of,
    open_samples,
    synthetic_samples,
)
from mrt.calibrate.session import integer_input_intervals, model_inputs
from mrt.config import Config, DataSettings
from mrt.config_words import in_words_of_file
from mrt.duplicate import read_duplicates
from mrt.duplicate.add_duplicates import add_duplicates
from mrt.duplicate.fill_dead_channels import fill_dead_channels
from mrt.errors import BadData, BadModel, BadOption, Unsupported
from mrt.export import Exported, export
from mrt.frontend import LoadedModel
from mrt.frontend.onnx.quantized.qdq import KEPT
from mrt.frontend.onnx.quantized.qdq import NOTE as LEFT_OUT
from mrt.frontend.onnx.read.read import NOTES
from mrt.graph.choose_outputs import choose_outputs, require_known
from mrt.graph.notes import WIDE_WEIGHTS, set_whole
from mrt.graph.states import share_ranges_of_states, tie_states
from mrt.input_shapes import finder
from mrt.pictures import outside, take_bytes
from mrt.rewrite.file_grids import keep_file_grids
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from mrt.rewrite.note_inputs import note_inputs

SYNTHETIC_SAMPLES = 32

# -- the model ---------------------------------------------------------------------


def load(config: Config) -> LoadedModel:
    """Read the model that the configuration names, with the outputs that it names."""
    loaded = load_before_rewriting(config)
    with in_words_of_file(config):
        require_known(loaded.missing_outputs, loaded.names)
    return loaded


def load_before_rewriting(config: Config) -> LoadedModel:
    """Read the model as `load` does, but without requiring outputs that rewriting makes.

    Outputs that only the rewritten model has are left in `missing_outputs`.
    """
    settings = config.model
    if settings.path is None:
        raise BadOption(
            "no model is given: name its file, or a --config whose [model] has a path"
        )
    with in_words_of_file(config):
        loaded = frontend.load(
            settings.path,
            params=settings.params,
            shapes=settings.shapes,
            epoch=settings.epoch,
            random_weights=settings.random_weights,
            outputs=settings.outputs,
            values=settings.values,
            find_shapes=finder(config),
        )
    if not config.quantization.requantize and keep_file_grids(loaded.model):
        notes = loaded.model.metadata_props.get(NOTES, "")
        loaded.model.metadata_props[NOTES] = notes.replace(LEFT_OUT, KEPT)
        _require_narrow_weights(loaded.model)
    with in_words_of_file(config):
        _tie_states(loaded.model, settings.states)
    return loaded


def _tie_states(model: ir.Model, states: Mapping[str, str]) -> None:
    """Note the outputs that are inputs of the next step: those given, and those of usual names."""
    inputs = [str(value.name) for value in model_inputs(model)]
    outputs = [str(value.name) for value in model.graph.outputs]
    tie_states(model, states, usual_states(inputs, outputs))
    if decoder := StepInputs.of(model):
        decoder.note_positions(model)


def _require_narrow_weights(model: ir.Model) -> None:
    """Raise Unsupported with every constant of the file that has more bits than a program's."""
    if wide := model.meta.get(WIDE_WEIGHTS, ()):
        raise Unsupported(
            [
                f"{what}; a program's have up to 15: --requantize rounds them"
                for what in wide
            ]
        )


def rewrite_model(loaded: LoadedModel, config: Config) -> LoadedModel:
    """Bring the loaded model to canonical form, in place, with the outputs of the configuration."""
    for step in (config.preprocessing, *config.inputs.values()):
        if step.input_dtype == "u8":
            require_stated(
                step,
                "input_dtype = 'u8': the program prepares pictures itself, and nothing says how",
            )
    take_bytes(loaded.model, config)
    _note_whole_inputs(loaded.model, config)
    rewrite.rewrite(loaded.model)
    if loaded.missing_outputs:
        with in_words_of_file(config):
            choose_outputs(loaded.model, config.model.outputs, loaded.names)
    fill_dead_channels(loaded.model)
    share_ranges_of_states(loaded.model)
    return loaded


def _note_whole_inputs(model: ir.Model, config: Config) -> None:
    values = {str(value.name): value for value in model_inputs(model)}
    for name, step in config.preprocessing_of(list(values)).items():
        if step.input_dtype == "whole":
            set_whole(values[name])


def require_interface(model: ir.Model) -> None:
    """BadModel, before anything is measured, if no program can have these inputs and outputs."""
    inputs = [str(value.name) for value in model_inputs(model)]
    outputs = [str(value.name) for value in model.graph.outputs]
    _require_names("input", inputs, MAX_INPUTS, "join some by a Concat")
    _require_names("output", outputs, MAX_OUTPUTS, "choose some with --outputs")


def _require_names(
    kind: str, names: Sequence[str], most: int, way: str
) -> None:
    if len(names) > most:
        raise BadModel(
            f"the model has {len(names)} {kind}s; a program has at most {most}: {way}"
        )
    for name in names:
        size = len(name.encode(errors="surrogatepass"))
        if size > MAX_NAME_BYTES:
            raise BadModel(
                f"{kind} {brief(name)} has a name of {size} bytes; a program's have at most {MAX_NAME_BYTES}: "
                "rename it in the model"
            )


def rewritten(config: Config) -> LoadedModel:
    """Load and rewrite the model."""
    return rewrite_model(load_before_rewriting(config), config)


def rewritten_for(program: Program, config: Config) -> LoadedModel:
    """Load and rewrite the model, with the duplicated channels of the program."""
    loaded = rewritten(config)
    add_duplicates(loaded.model, read_duplicates(program))
    return loaded


def load_to_run(config: Config) -> LoadedModel:
    """Return the model as it was read, for onnxruntime to run.

    The pads of windows are written out, since onnxruntime refuses auto_pad beside
    dilations, and its inputs of indices are noted. If an output of the configuration exists only in the rewritten model,
    return that model.
    """
    loaded = load_before_rewriting(config)
    if loaded.missing_outputs:
        return rewrite_model(loaded, config)
    take_bytes(loaded.model, config)
    canonicalize_conv_pool_attributes(loaded.model)
    note_inputs(loaded.model)
    return loaded


def write_onnx(
    config: Config, destination: Path, *, opset: int, any_batch: bool | None
) -> Exported:
    """Load the model and write it as plain ONNX."""

    def load_for(shapes: Mapping[str, tuple[int, ...]]) -> LoadedModel:
        all_shapes = {**config.model.shapes, **shapes}
        return load(
            replace(config, model=replace(config.model, shapes=all_shapes))
        )

    return export(load_for, destination, opset=opset, any_batch=any_batch)


# -- its samples and labels --------------------------------------------------------


def open_data(
    model: ir.Model,
    config: Config,
    data: DataSettings,
    choose: Choice | None = None,
) -> Samples:
    """Return the samples that the configuration names, prepared for the model.

    Samples held back are left out, unless `choose` takes them.
    """
    if data.path is None:
        raise BadOption(
            "no data is given: --data, or a --config that names some"
        )
    choose = choose or _calibrated(data)
    shapes = input_shapes(model)
    steps = config.preprocessing_of(list(shapes))
    decoder = StepInputs.of(model)
    if decoder and lacks_states(data.path, decoder, data.arrays):
        return open_steps(
            data.path,
            model,
            decoder,
            data.samples,
            arrays=data.arrays,
            choose=choose,
        )
    if data.path.is_dir():
        for step in steps.values():
            require_stated(
                step,
                f"{data.path}: pictures, and nothing says how the model wants them prepared",
            )
    samples = open_samples(
        data.path,
        shapes,
        outside(model, steps),
        data.samples,
        arrays=data.arrays,
        labels=data.labels,
        classes=read_labels(config.model.labels) if data.path.is_dir() else (),
        choose=choose,
    )
    samples.notes.extend(_bytes_as_they_are(model, data, steps))
    return samples


def few_calibrated(data: DataSettings, count: int) -> Choice:
    """Return the choice of `count` of the samples that are calibrated on, at equal distances."""

    def choose(total: int) -> list[int]:
        return few_of(_calibrated(data)(total), count)

    return choose


def _calibrated(data: DataSettings) -> Choice:
    return partial(
        places_to_calibrate,
        limit=data.samples,
        held_back=data.held_back or 0,
        source=str(data.path),
    )


def _bytes_as_they_are(
    model: ir.Model, data: DataSettings, steps: Mapping[str, Preprocessing]
) -> list[str]:
    """A note on every array of bytes that a model of pictures gets as 0 to 255 where no preparation is stated."""
    path = data.path
    if path is None or path.is_dir():
        return []
    notes: list[str] = []
    for value in model_inputs(model):
        name = str(value.name)
        shape = value.shape
        of_pictures = shape is not None and len(shape) == 4
        if steps[name].stated or not of_pictures:
            continue
        array = array_of(path, list(steps), name, data.arrays)
        is_float = value.dtype in (None, ir.DataType.FLOAT)
        if array is not None and array.dtype == np.uint8 and is_float:
            notes.append(
                f"{array.where} holds bytes, and the model gets them as 0 to 255: if it wants them prepared, "
                "give --preset imagenet, caffe, tf or 0..1; if not, --preset raw"
            )
    return notes


def open_calibration_data(model: ir.Model, config: Config) -> Samples:
    """Return the samples to calibrate on; noise if the configuration names none."""
    data = config.calibration_data
    if data.path is not None:
        return open_data(model, config, data)
    return synthetic_samples(
        input_shapes(model),
        data.samples or SYNTHETIC_SAMPLES,
        intervals=integer_input_intervals(model),
    )


def input_shapes(model: ir.Model) -> dict[str, tuple[int, ...]]:
    """Return the shape of every input of the model; BadModel for one that is not fixed."""
    shapes: dict[str, tuple[int, ...]] = {}
    for value in model_inputs(model):
        if value.shape is None or not value.shape.is_static():
            raise BadModel(
                f"input '{value.name}' has no fixed shape; "
                f"give it with --shape {value.name}=..."
            )
        shapes[str(value.name)] = tuple(
            int(size) for size in value.shape.numpy()
        )
    return shapes


def read_labels(path: Path | None) -> list[str]:
    """Return the names of the classes, one a line; none without a file."""
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as problem:
        raise BadData(
            f"{path}: class names cannot be read ({problem})"
        ) from None


def class_names(program: Program, config: Config) -> Sequence[str]:
    """Return the names of the classes, from the program or the configuration; none if neither names them."""
    if program.metadata is not None and program.metadata.labels:
        return program.metadata.labels
    return read_labels(config.model.labels)


def preparation_of(model: ir.Model, config: Config) -> dict[str, Preprocessing]:
    """Return how each input of a model is prepared, apart from what is inside of the model."""
    names = [str(value.name) for value in model_inputs(model)]
    return outside(model, config.preprocessing_of(names))


# -- the places of results ---------------------------------------------------------


def default_output(model: Path) -> Path:
    """Return `P.cvm` beside P-symbol.json, P.json or P.onnx."""
    stem = model.name.removesuffix(".json").removesuffix(".onnx")
    return model.parent / f"{stem.removesuffix('-symbol')}.cvm"


def check_destination(
    path: Path, suffix: str, inputs: Sequence[Path | None], *others: Path
) -> None:
    """Refuse, before any work, destinations that cannot be written or that are an input.

    `suffix` is that of the first, which may have none of another kind of file. `others` are
    destinations of further results; all must differ. Files beside a model that are read
    with it are inputs, too.
    """
    named = [file for file in inputs if file is not None]
    beside: list[Path] = []
    if any(map(exists, (path, *others))):
        beside = [it for file in named for it in frontend.weights_beside(file)]
    require_writable([path, *others], inputs=[*named, *beside])
    require_suffix(path, suffix)


def check_program_destination(
    path: Path, inputs: Sequence[Path | None], *others: Path
) -> None:
    """As `check_destination`, for a program: it replaces no other kind of file, such as a picture or somebody's notes."""
    check_destination(path, ".cvm", inputs, *others)
    is_other = path.is_file() and path.stat().st_size > 0
    if is_other and not is_program(path):
        raise BadOption(
            f"{path}: exists, and is no program; name another file, or remove this one"
        )
