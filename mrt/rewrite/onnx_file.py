"""Writes a rewritten model as an .onnx file."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir

from mrt.errors import BadModel, BadOption
from mrt.graph.notes import write_to_metadata

MOST_TEXT = 300
"""Characters of the library's message."""

MOST_BYTES = (1 << 31) - (1 << 24)
"""Of weights in one protobuf, which has at most 2 GiB."""


def save(model: ir.Model, path: Path) -> None:
    """Write a rewritten model as one .onnx file, completely or not at all.

    Raise BadOption if its weights are too large for one file, BadModel if it does not pass the
    library's check.
    """
    constants = [it.const_value for it in model.graph.initializers.values()]
    size = sum(tensor.nbytes for tensor in constants if tensor)
    if size > MOST_BYTES:
        raise BadOption(
            f"{path}: {size} bytes of weights; one .onnx file holds at most {MOST_BYTES}"
        )
    write_to_metadata(model)
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        unfinished.write_bytes(
            ir.to_proto(model).SerializeToString(deterministic=True)
        )
        _check(unfinished, path)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _check(file: Path, destination: Path) -> None:
    """Run the library's full check; checking a file needs fewer copies of the weights than an object."""
    try:
        onnx.checker.check_model(file, full_check=True)
    except (
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
    ) as problem:
        text = " ".join(str(problem).split())[:MOST_TEXT]
        raise BadModel(
            f"{destination}: the rewritten model does not pass onnx.checker, so that it is not written: {text}"
        ) from None
