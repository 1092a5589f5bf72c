"""A foreign file becomes one float graph (`onnx_ir.Model`) or a named refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import onnx_ir as ir

from mrt.errors import BadModel, BadOption
from mrt.frontend import onnx

Frontend = Literal["onnx", "mxnet"]


@dataclass(frozen=True)
class LoadedModel:
    """A model of opset 20 with known shapes, the hash of the bytes it came from, and which reader made it."""

    model: ir.Model
    sha256: str
    origin: Frontend


def load(path: Path, *, params: Path | None = None, shapes: Mapping[str, tuple[int, ...]] | None = None) -> LoadedModel:
    """Read a model file of any kind we know; the name's ending says which, or else the content."""
    if kind_of(path) == "mxnet":
        return _load_mxnet(path, params, shapes)
    if params is not None:
        raise BadOption(f"--params {params}: an .onnx file holds its own parameters")
    model, data = onnx.load_onnx(path, shapes)
    return LoadedModel(model, hashlib.sha256(data).hexdigest(), "onnx")


def kind_of(path: Path) -> Frontend:
    """Which front end reads this file."""
    ending = path.suffix.lower()
    if ending in (".onnx", ".json"):
        return "onnx" if ending == ".onnx" else "mxnet"
    if ending == ".params":
        raise BadModel(f"{path}: holds parameters; give the symbol's .json file, and these with --params")
    if not path.exists():
        raise BadModel(f"{path}: no such file")
    if path.is_dir():
        raise BadModel(f"{path}: is a folder; expected an .onnx file or an MXNet symbol .json file")
    with path.open("rb") as file:
        start = file.read(64).lstrip()
    if start.startswith(b"{"):
        return "mxnet"
    if start.startswith(b"\x08"):  # field 1, the IR version, as every ONNX writer begins
        return "onnx"
    raise BadModel(f"{path}: unknown kind of file; expected an .onnx file or an MXNet symbol .json file")


def operators(frontend: Frontend) -> list[str]:
    """The names of the operators that a front end reads, sorted."""
    if frontend == "onnx":
        return sorted(onnx.OPERATORS)
    from mrt.frontend.mxnet import OPERATORS

    return sorted(OPERATORS)


def _load_mxnet(path: Path, params: Path | None, shapes: Mapping[str, tuple[int, ...]] | None) -> LoadedModel:
    from mrt.frontend import mxnet

    model = mxnet.load_mxnet(path, params, shapes)
    if params is None:
        try:
            params = mxnet.find_params(path)
        except BadModel:  # a symbol without parameters, or it would not have loaded
            params = None
    return LoadedModel(model, mxnet.model_sha256(path, params), "mxnet")
