"""From a way to load a model to a checked .onnx file: any batch if that is possible, and the same answers, by running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx_ir as ir

from mrt.errors import BadModel, BadOption, MrtError
from mrt.export.batch import BatchDependence, with_any_batch
from mrt.export.opset import to_opset
from mrt.export.write import Arrays, draft, run, samples
from mrt.frontend import LoadedModel
from mrt.graph.values import shape_of

BATCH = 3
TOLERANCE = 1e-4  # of the largest number: other batches and expanded operators sum in another order

Shapes = Mapping[str, tuple[int, ...]]
Load = Callable[[Shapes], LoadedModel]


@dataclass(frozen=True)
class Exported:
    """What was written; `fixed_because` is empty if it takes any batch. `notes` are those of reading the model."""

    files: tuple[str, ...]
    nodes: int
    fixed_because: str
    notes: tuple[str, ...]


def export(
    load: Load, destination: Path, *, opset: int, any_batch: bool | None
) -> Exported:
    """Write the model that `load` gives for shapes of its inputs. any_batch None: where it is possible."""
    loaded = load({})
    first, notes = loaded.model, tuple(loaded.notes)
    del loaded
    shapes = _input_shapes(first)
    with draft(first, destination) as reference:
        session = reference.session()
        feeds = samples(session, shapes, None)
        expected = run(session, feeds)
        del session
    reason = "--fixed-batch"
    if any_batch is not False:
        _drop_weights(first)
        try:
            written = _export_any_batch(
                load, first, shapes, (feeds, expected), destination, opset
            )
            return replace(written, notes=notes)
        except BatchDependence as answer:
            reason = str(answer)
        if any_batch:
            raise BadOption(
                f"--dynamic-batch: the model works for a batch of {_batch(shapes)} only: {reason}"
            )
        first = load({}).model
    return replace(
        _write(first, (feeds, expected), destination, opset, reason), notes=notes
    )


def _input_shapes(model: ir.Model) -> dict[str, tuple[int, ...]]:
    shapes = {str(value.name): shape_of(value) for value in model.graph.inputs}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def _batch(shapes: Shapes) -> int:
    return next((shape[0] for shape in shapes.values() if shape), 1)


def _drop_weights(model: ir.Model) -> None:
    """Only what shapes are made of is still looked at."""
    for value in model.graph.initializers.values():
        if (
            value.const_value is not None
            and value.const_value.dtype == ir.DataType.FLOAT
            and value.const_value.size > 1
        ):
            value.const_value = None


def _export_any_batch(
    load: Load,
    first: ir.Model,
    shapes: Shapes,
    known: tuple[Arrays, Arrays],
    destination: Path,
    opset: int,
) -> Exported:
    """`first` was loaded for `shapes`; `known` are an input and the output for it."""
    old = _batch(shapes)
    if any(not shape or shape[0] != old for shape in shapes.values()):
        raise BatchDependence("its inputs have different first dimensions")
    batch = BATCH if old != BATCH else BATCH - 1
    try:
        model = load(
            {name: (batch, *shape[1:]) for name, shape in shapes.items()}
        ).model
    except BadOption:
        raise
    except MrtError as refusal:
        raise BatchDependence(
            f"a batch of {batch} is refused ({str(refusal).splitlines()[-1].strip()})"
        ) from None
    to_opset(model, opset)
    to_opset(first, opset)
    with_any_batch(model, batch, first, old)
    try:
        return _write(model, known, destination, opset, "", check_batch=True)
    except BadModel as problem:
        raise BatchDependence(str(problem)) from None


def _write(
    model: ir.Model,
    known: tuple[Arrays, Arrays],
    destination: Path,
    opset: int,
    reason: str,
    *,
    check_batch: bool = False,
) -> Exported:
    if not check_batch:
        to_opset(model, opset)
    _sign(model)
    with draft(model, destination) as written:
        written.check()
        session = written.session()
        _require_equal(run(session, known[0]), known[1], "the float model")
        if check_batch:
            shapes = {name: array.shape for name, array in known[0].items()}
            together = samples(session, shapes, BATCH)
            results = run(session, together)
            for index in range(BATCH):
                alone = run(
                    session,
                    {
                        name: array[index : index + 1]
                        for name, array in together.items()
                    },
                )
                _require_equal(
                    {k: v[index : index + 1] for k, v in results.items()},
                    alone,
                    "each sample on its own",
                )
        del session
        written.publish(destination.parent)
        return Exported(
            tuple(file.name for file in written.files),
            model.graph.num_nodes(),
            reason,
            (),
        )


def _sign(model: ir.Model) -> None:
    """What is written says who wrote it, and nothing of how it was read."""
    model.producer_name, model.producer_version, model.doc_string = "mrt", None, None
    model.metadata_props.clear()


def _require_equal(found: Arrays, expected: Arrays, what: str) -> None:
    for name, right in expected.items():
        left = found[name]
        if left.shape != right.shape:
            raise BadModel(
                f"output {name!r} has shape {left.shape}, but {right.shape} for {what}"
            )
        if right.size and right.dtype.kind == "f":
            difference = float(np.abs(left - right).max())
            if not difference <= TOLERANCE * max(float(np.abs(right).max()), 1e-6):
                raise BadModel(
                    f"output {name!r} differs by {difference:.3g} from that of {what}"
                )
        elif not np.array_equal(left, right):
            raise BadModel(f"output {name!r} differs from that of {what}")
