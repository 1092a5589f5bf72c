"""A model as files beside their place: checked, run, and moved there only when all is well."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir
import onnxruntime as ort

from mrt.errors import BadModel

LARGEST_FILE = (
    2**31 - 2**26
)  # protobuf takes less than 2 GB; the graph itself needs some
SMALLEST_APART = 1024  # bytes of a tensor
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Draft:
    """Written files in a folder of their own; the model's, and its weights' where they are apart."""

    files: tuple[Path, ...]

    @property
    def model(self) -> Path:
        """The .onnx file."""
        return self.files[0]

    def publish(self, folder: Path) -> None:
        """Move the files to their place; the weights first, so that a model there has them."""
        for file in reversed(self.files):
            file.replace(folder / file.name)

    def check(self) -> None:
        """The library's own full check."""
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
        """Ready to run, one thread, as the file is."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        try:
            return ort.InferenceSession(
                str(self.model), options, providers=["CPUExecutionProvider"]
            )
        except (
            Exception
        ) as problem:  # onnxruntime raises its own classes, straight below Exception
            first = (str(problem).splitlines() or [""])[0]
            raise BadModel(f"onnxruntime refuses the exported model: {first}") from None


@contextmanager
def draft(model: ir.Model, destination: Path) -> Iterator[Draft]:
    """Files named as `destination` in a folder beside it, which is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=".export-", dir=destination.resolve().parent))
    try:
        yield _write(model, folder / destination.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(model: ir.Model, path: Path) -> Draft:
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
    return Draft(tuple(files))


def _with_weights_in(model: ir.Model, file: Path) -> onnx.ModelProto:
    """Weights written to the file; lists of sizes and axes stay, for whoever infers shapes. The model is not changed."""
    kept = {value: value.const_value for value in model.graph.initializers.values()}
    try:
        ir.external_data.unload_from_model(
            model, file.parent, file.name, size_threshold_bytes=SMALLEST_APART
        )
        return ir.to_proto(model)
    finally:
        for value, tensor in kept.items():
            value.const_value = tensor


def run(session: ort.InferenceSession, feeds: Arrays) -> dict[str, npt.NDArray[Any]]:
    """The outputs by name."""
    names = [item.name for item in session.get_outputs()]
    try:
        return dict(zip(names, session.run(names, dict(feeds)), strict=True))
    except (
        Exception
    ) as problem:  # onnxruntime raises its own classes, straight below Exception
        first = (str(problem).splitlines() or [""])[0]
        raise BadModel(f"the exported model cannot be run: {first}") from None


def samples(
    session: ort.InferenceSession,
    shapes: Mapping[str, tuple[int, ...]],
    batch: int | None,
) -> Arrays:
    """Seeded numbers for every input, with another first dimension if a batch is given."""
    generator = np.random.default_rng(0)
    feeds = {}
    for item in session.get_inputs():
        shape = shapes[item.name] if batch is None else (batch, *shapes[item.name][1:])
        floats = generator.normal(size=shape)
        is_float = "float" in item.type or "double" in item.type
        feeds[item.name] = (
            floats.astype(np.float32) if is_float else np.abs(floats).astype(np.int64)
        )
    return feeds
