"""Writes a model beside its destination, checks and runs it, and then moves it there.

It is moved only if the check and the run succeed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir
import onnxruntime as ort

from mrt.errors import BadModel

# Protobuf takes less than 2 GB, some of which the graph itself needs.
LARGEST_FILE = 2**31 - 2**26
SMALLEST_APART = 1024  # bytes of a tensor that goes to the file of weights
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class ExportDraft:
    """The files of a model in a temporary folder: the model, and its weights if separate."""

    files: tuple[Path, ...]

    @property
    def model(self) -> Path:
        """Return the .onnx file."""
        return self.files[0]

    def publish(self, folder: Path) -> None:
        """Move the files into `folder`, the weights before the model that reads them."""
        for file in reversed(self.files):
            file.replace(folder / file.name)

    def check(self) -> None:
        """Run the onnx library's own full check."""
        try:
            onnx.checker.check_model(self.model, full_check=True)
        except (
            onnx.checker.ValidationError,
            onnx.shape_inference.InferenceError,
        ) as problem:
            text = " ".join(str(problem).split())[:300]
            raise BadModel(
                f"the exported model does not pass onnx.checker: {text}"
            ) from None

    def session(self) -> ort.InferenceSession:
        """Return a session of one thread that runs the file as it is."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = (
            ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        )
        try:
            return ort.InferenceSession(
                str(self.model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as problem:  # onnxruntime's classes have no other base
            first = (str(problem).splitlines() or [""])[0]
            raise BadModel(
                f"onnxruntime refuses the exported model: {first}"
            ) from None


@contextmanager
def draft(model: ir.Model, destination: Path) -> Iterator[ExportDraft]:
    """Write the files in a temporary folder beside `destination`, under its name."""
    parent = destination.resolve().parent
    folder = Path(tempfile.mkdtemp(prefix=".export-", dir=parent))
    try:
        yield _write(model, folder / destination.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(model: ir.Model, path: Path) -> ExportDraft:
    sizes = [
        value.const_value.nbytes
        for value in model.graph.initializers.values()
        if value.const_value is not None
    ]
    files = [path]
    if sum(sizes) > LARGEST_FILE:
        files.append(path.with_name(f"{path.name}.data"))
        proto = _with_weights_in(model, files[1])
    else:
        proto = ir.to_proto(model)
    path.write_bytes(proto.SerializeToString(deterministic=True))
    return ExportDraft(tuple(files))


def _with_weights_in(model: ir.Model, file: Path) -> onnx.ModelProto:
    """Write large weights to the file; return the model without them.

    Lists of sizes and axes stay, because shape inference reads them. Afterwards the
    model is unchanged.
    """
    kept = {
        value: value.const_value for value in model.graph.initializers.values()
    }
    try:
        ir.external_data.unload_from_model(
            model, file.parent, file.name, size_threshold_bytes=SMALLEST_APART
        )
        return ir.to_proto(model)
    finally:
        for value, tensor in kept.items():
            value.const_value = tensor


def run(
    session: ort.InferenceSession, inputs: Arrays
) -> dict[str, npt.NDArray[Any]]:
    """Run the model; return its outputs by name."""
    names = [value.name for value in session.get_outputs()]
    try:
        results = session.run(names, dict(inputs))
    except Exception as problem:  # onnxruntime's classes have no other base
        first = (str(problem).splitlines() or [""])[0]
        raise BadModel(f"the exported model cannot be run: {first}") from None
    return dict(zip(names, results, strict=True))


def samples(
    session: ort.InferenceSession,
    shapes: Mapping[str, tuple[int, ...]],
    batch: int | None,
) -> Arrays:
    """Return seeded numbers for every input, with `batch` as first dimension if given."""
    generator = np.random.default_rng(0)
    arrays = {}
    for value in session.get_inputs():
        shape = shapes[value.name]
        if batch is not None:
            shape = (batch, *shape[1:])
        floats = generator.normal(size=shape)
        arrays[value.name] = _as_numbers(floats, _dtype(value))
    return arrays


_NAMES = {"float": "float32", "double": "float64"}
"""Numpy's names for those that onnxruntime has for itself."""


def _dtype(value: ort.NodeArg) -> np.dtype[Any]:
    """Return the type of an input; BadModel if numpy has no such numbers."""
    name = value.type.removeprefix("tensor(").removesuffix(")")
    dtype: np.dtype[Any] = np.dtype(object)
    with suppress(TypeError):
        dtype = np.dtype(_NAMES.get(name, name))
    if dtype.kind not in "biuf":
        raise BadModel(
            f"input '{value.name}' has the type {value.type}, of which no samples can be made to check the export; "
            "expected floats, integers or booleans"
        )
    return dtype


def _as_numbers(
    floats: npt.NDArray[np.float64], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Return the numbers in a type: integers are small and never negative, so that they may be indices."""
    if dtype.kind == "b":
        return floats > 0
    return (floats if dtype.kind == "f" else np.abs(floats)).astype(dtype)
