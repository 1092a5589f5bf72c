"""A foreign file becomes one float graph (`onnx_ir.Model`) or a named refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import onnx_ir as ir

from mrt.errors import BadModel, BadOption
from mrt.frontend import onnx

Frontend = Literal["onnx", "mxnet"]


@dataclass(frozen=True)
class LoadedModel:
    """A model of opset 20 with known shapes, the hash of the bytes it came from, and which reader made it.

    `names` are those that outputs can be chosen by; `outputs_left` those asked for that the file does not have: a
    rewritten value may still have such a name, so the file's own outputs are kept beside the others then.
    """

    model: ir.Model
    sha256: str
    origin: Frontend
    names: tuple[str, ...] = ()
    outputs_left: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What was changed on the way that the user should know."""
        return self.model.metadata_props.get("mrt_notes", "").splitlines()


def load(
    path: Path,
    *,
    params: Path | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    epoch: int | None = None,
    random_weights: int | None = None,
    outputs: Sequence[str] = (),
    values: Mapping[str, float] | None = None,
) -> LoadedModel:
    """Read a model file of any kind we know; the name's ending says which, or else the content."""
    if kind_of(path) == "mxnet":
        from mrt.frontend import mxnet

        if values:
            raise BadOption(
                f"--value {', '.join(values)}: only inputs of an .onnx file become constants"
            )
        source = mxnet.Source(
            path, params, epoch, random_weights, shapes or {}, outputs
        )
        loaded = mxnet.read_mxnet(source)
        return LoadedModel(
            loaded.model, loaded.sha256, "mxnet", loaded.names, loaded.outputs_left
        )
    for option, value in (
        ("--params", params),
        ("--epoch", epoch),
        ("--random-weights", random_weights),
    ):
        if value is not None:
            raise BadOption(f"{option} {value}: an .onnx file holds its own parameters")
    read = onnx.read_onnx(path, shapes, outputs, values)
    return LoadedModel(
        read.model,
        hashlib.sha256(read.data).hexdigest(),
        "onnx",
        read.names,
        read.outputs_left,
    )


def kind_of(path: Path) -> Frontend:
    """Which front end reads this file."""
    ending = path.suffix.lower()
    if ending in (".onnx", ".json"):
        return "onnx" if ending == ".onnx" else "mxnet"
    if ending == ".params":
        raise BadModel(
            f"{path}: holds parameters; give the symbol's .json file, and these with --params"
        )
    if not path.exists():
        raise BadModel(f"{path}: no such file")
    if path.is_dir():
        raise BadModel(
            f"{path}: is a folder; expected an .onnx file or an MXNet symbol .json file"
        )
    with path.open("rb") as file:
        start = file.read(64).lstrip()
    if start.startswith(b"{"):
        return "mxnet"
    if start.startswith(
        b"\x08"
    ):  # field 1, the IR version, as every ONNX writer begins
        return "onnx"
    raise BadModel(
        f"{path}: unknown kind of file; expected an .onnx file or an MXNet symbol .json file"
    )


def parameters_beside(path: Path) -> list[Path]:
    """The files that would be read with this one if no parameters are named."""
    from mrt.frontend.mxnet.files import params_beside

    return [path.parent / name for name in params_beside(path)]


def operators(frontend: Frontend) -> list[str]:
    """The names of the operators that a front end reads, sorted."""
    if frontend == "onnx":
        others: dict[str, Iterable[str]] = {
            "ai.onnx.ml": onnx.ML_OPERATORS,
            "com.microsoft": onnx.MICROSOFT,
        }
        return sorted(
            [
                *onnx.OPERATORS,
                *(
                    f"{domain}.{name}"
                    for domain, names in others.items()
                    for name in names
                ),
            ]
        )
    from mrt.frontend.mxnet import OPERATORS

    return sorted(OPERATORS)
