"""Exports a model to a checked .onnx file, for any batch if possible.

Both models are run to compare their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from mrt.errors import BadModel, BadOption, MrtError
from mrt.export.batch import AtBatch, BatchDependence, with_any_batch
from mrt.export.opset import to_opset
from mrt.export.write import Arrays, draft, run, samples
from mrt.frontend import LoadedModel
from mrt.graph.values import shape_of

BATCH = 3
# Of the largest number: other batches and expanded operators sum in another order.
TOLERANCE = 1e-4

Shapes = Mapping[str, tuple[int, ...]]
Load = Callable[[Shapes], LoadedModel]


@dataclass(frozen=True)
class Exported:
    """The files written.

    `fixed_because` is empty if the model takes any batch; `notes` are those from
    reading the model.
    """

    files: tuple[str, ...]
    nodes: int
    fixed_because: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Answers:
    """Inputs, and the float model's outputs for them."""

    inputs: Arrays
    outputs: Arrays


@dataclass(frozen=True)
class _Target:
    """The file to write, the opset, and the answers that the written model must give."""

    path: Path
    opset: int
    expected: _Answers


def export(
    load: Load, destination: Path, *, opset: int, any_batch: bool | None
) -> Exported:
    """Write the model that `load` returns for shapes of its inputs.

    With `any_batch` None, it takes any batch where that is possible.
    """
    loaded = load({})
    model = loaded.model
    notes = tuple(loaded.notes)
    del loaded  # otherwise its weights would stay in memory
    shapes = _input_shapes(model)
    target = _Target(destination, opset, _answers(model, shapes, destination))
    if any_batch is False:
        written = _export_fixed(model, target, "--fixed-batch")
        return replace(written, notes=notes)
    _drop_weights(model)
    try:
        written = _export_any_batch(load, model, shapes, target)
    except BatchDependence as dependence:
        if any_batch:
            raise BadOption(
                f"--dynamic-batch: the model works for a batch of {_batch(shapes)} "
                f"only: {dependence}"
            ) from None
        reason = str(dependence)
        written = _export_fixed(load({}).model, target, reason)
    return replace(written, notes=notes)


def _input_shapes(model: ir.Model) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for value in model.graph.inputs:
        shape = shape_of(value)
        if shape is not None:
            shapes[str(value.name)] = shape
    return shapes


def _batch(shapes: Shapes) -> int:
    for shape in shapes.values():
        if shape:
            return shape[0]
    return 1


def _answers(model: ir.Model, shapes: Shapes, destination: Path) -> _Answers:
    """Run the float model on samples."""
    with draft(model, destination) as reference:
        session = reference.session()
        inputs = samples(session, shapes, None)
        return _Answers(inputs, run(session, inputs))


def _drop_weights(model: ir.Model) -> None:
    """Keep only the constants from which shapes are computed."""
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is None or tensor.dtype != ir.DataType.FLOAT:
            continue
        if tensor.size > 1:
            value.const_value = None


def _export_any_batch(
    load: Load, first: ir.Model, shapes: Shapes, target: _Target
) -> Exported:
    """Export for any batch; `first` was loaded for `shapes`."""
    first_batch = _batch(shapes)
    for shape in shapes.values():
        if shape[:1] != (first_batch,):
            raise BatchDependence("its inputs have different first dimensions")
    batch = BATCH if first_batch != BATCH else BATCH - 1
    model = _load_for_batch(load, shapes, batch)
    to_opset(model, target.opset)
    to_opset(first, target.opset)
    with_any_batch(AtBatch(model, batch), AtBatch(first, first_batch))
    try:
        return _write(model, target, "", check=_require_any_batch)
    except BadModel as problem:
        raise BatchDependence(str(problem)) from None


def _load_for_batch(load: Load, shapes: Shapes, batch: int) -> ir.Model:
    other_shapes = {name: (batch, *shape[1:]) for name, shape in shapes.items()}
    try:
        return load(other_shapes).model
    except BadOption:
        raise
    except MrtError as refusal:
        reason = refusal.lines[-1].strip()
        raise BatchDependence(
            f"a batch of {batch} is refused ({reason})"
        ) from None


def _export_fixed(model: ir.Model, target: _Target, reason: str) -> Exported:
    to_opset(model, target.opset)
    return _write(model, target, reason, check=_require_answers)


Check = Callable[[ort.InferenceSession, _Answers], None]


def _write(
    model: ir.Model, target: _Target, reason: str, *, check: Check
) -> Exported:
    """Write the file to its destination, once it has passed the check."""
    _sign(model)
    with draft(model, target.path) as written:
        written.check()
        session = written.session()
        check(session, target.expected)
        del session
        written.publish(target.path.parent)
        names = tuple(file.name for file in written.files)
    return Exported(names, model.graph.num_nodes(), reason, ())


def _sign(model: ir.Model) -> None:
    """Name mrt as the producer, and drop the notes from reading the model."""
    model.producer_name = "mrt"
    model.producer_version = None
    model.doc_string = None
    model.metadata_props.clear()


def _require_answers(session: ort.InferenceSession, expected: _Answers) -> None:
    results = run(session, expected.inputs)
    _require_equal(results, expected.outputs, "the float model")


def _require_any_batch(
    session: ort.InferenceSession, expected: _Answers
) -> None:
    """Require the answers, and for several samples at once those of each alone."""
    _require_answers(session, expected)
    shapes = {name: array.shape for name, array in expected.inputs.items()}
    together = samples(session, shapes, BATCH)
    results = run(session, together)
    for index in range(BATCH):
        alone = run(session, _sample(together, index))
        _require_equal(_sample(results, index), alone, "each sample on its own")


def _sample(arrays: Arrays, index: int) -> Arrays:
    return {name: array[index : index + 1] for name, array in arrays.items()}


def _require_equal(results: Arrays, expected: Arrays, model: str) -> None:
    for name, reference in expected.items():
        result = results[name]
        if result.shape != reference.shape:
            raise BadModel(
                f"output {name!r} has shape {result.shape}, "
                f"but {reference.shape} for {model}"
            )
        if reference.size and reference.dtype.kind == "f":
            difference = float(np.abs(result - reference).max())
            largest = float(np.abs(reference).max())
            if not difference <= TOLERANCE * max(largest, 1e-6):
                raise BadModel(
                    f"output {name!r} differs by {difference:.3g} from that of {model}"
                )
        elif not np.array_equal(result, reference):
            raise BadModel(f"output {name!r} differs from that of {model}")
