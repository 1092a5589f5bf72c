"""A foreign file becomes one float graph (`onnx_ir.Model`) or a named refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import onnx_ir as ir

from mrt.errors import BadModel, BadOption, MissingModel
from mrt.frontend import onnx
from mrt.frontend.limits import refuse_large_values
from mrt.frontend.onnx.read.read import NOTES
from mrt.graph.open_shapes import FindShapes

if TYPE_CHECKING:
    from mrt.frontend import mxnet

Frontend = Literal["onnx", "mxnet"]

_TORCH = ("PyTorch", "torch.onnx.export(model, (example,), 'model.onnx')")
_KERAS = (
    "Keras",
    "tf2onnx.convert.from_keras(model, output_path='model.onnx')",
)
_SKLEARN = (
    "Python objects, which are never loaded",
    "skl2onnx.to_onnx(estimator, X[:1])",
)
_WAYS_TO_ONNX = {
    ".pt": _TORCH,
    ".pth": _TORCH,
    ".h5": _KERAS,
    ".keras": _KERAS,
    ".pb": (
        "TensorFlow",
        "python -m tf2onnx.convert --graphdef model.pb --output model.onnx",
    ),
    ".tflite": (
        "TensorFlow Lite",
        "python -m tf2onnx.convert --tflite model.tflite --output model.onnx",
    ),
    ".pkl": _SKLEARN,
    ".pickle": _SKLEARN,
    ".joblib": _SKLEARN,
}
"""By suffix: whose file it is, and how its owner writes it as ONNX."""


@dataclass(frozen=True)
class LoadedModel:
    """A model of opset 20 with known shapes, and where it came from.

    `sha256` is the hash of the bytes it was read from, `origin` the front end that read
    it, and `names` are those by which outputs can be chosen. `missing_outputs` has the
    requested outputs that the file does not have: a rewritten value may still get such a
    name, so the file's own outputs are kept beside the others then.
    """

    model: ir.Model
    sha256: str
    origin: Frontend
    names: tuple[str, ...] = ()
    missing_outputs: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Return what reading changed that the user should know."""
        return self.model.metadata_props.get(NOTES, "").splitlines()


def load(
    path: Path,
    *,
    params: Path | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    epoch: int | None = None,
    random_weights: int | None = None,
    outputs: Sequence[str] = (),
    values: Mapping[str, float] | None = None,
    find_shapes: FindShapes | None = None,
) -> LoadedModel:
    """Read a model file of any supported kind, as `kind_of` finds it.

    `find_shapes` is asked for the shapes of inputs that neither the file nor `shapes` has.
    """
    if kind_of(path) == "mxnet":
        if values:
            raise BadOption(
                f"--value {', '.join(values)}: "
                "only inputs of an .onnx file become constants"
            )
        from mrt.frontend import mxnet

        source = mxnet.ModelSource(
            path,
            params,
            epoch,
            random_weights,
            shapes or {},
            outputs,
            find_shapes,
        )
        return _load_mxnet(source)
    options = {
        "--params": params,
        "--epoch": epoch,
        "--random-weights": random_weights,
    }
    for option, value in options.items():
        if value is not None:
            raise BadOption(
                f"{option} {value}: an .onnx file holds its own parameters"
            )
    read = onnx.read_onnx(
        path, shapes, outputs, values, find_shapes=find_shapes
    )
    refuse_large_values(read.model)
    sha256 = hashlib.sha256(read.data).hexdigest()
    return LoadedModel(
        read.model, sha256, "onnx", read.names, read.missing_outputs
    )


def _load_mxnet(source: mxnet.ModelSource) -> LoadedModel:
    from mrt.frontend.mxnet import read_mxnet

    loaded = read_mxnet(source)
    refuse_large_values(loaded.model)
    return LoadedModel(
        loaded.model,
        loaded.sha256,
        "mxnet",
        loaded.names,
        loaded.missing_outputs,
    )


def kind_of(path: Path) -> Frontend:
    """Choose the front end by the name's suffix, or else by the file's first bytes."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return "onnx"
    if suffix == ".json":
        return "mxnet"
    if suffix == ".params":
        raise BadModel(
            f"{path}: holds parameters; give the symbol's .json file, "
            "and these with --params"
        )
    if not path.exists():
        raise MissingModel(f"{path}: No such file or directory")
    if path.is_dir():
        raise BadModel(
            f"{path}: is a folder; expected an .onnx file or an MXNet symbol .json file"
        )
    if suffix in _WAYS_TO_ONNX:
        framework, way = _WAYS_TO_ONNX[suffix]
        raise BadModel(
            f"{path}: a file of {framework}; write it as .onnx first: {way}"
        )
    if suffix == ".toml":
        raise BadModel(
            f"{path}: a config, not a model: mrt convert --config {path}"
        )
    return _kind_of_content(path)


def _kind_of_content(path: Path) -> Frontend:
    with path.open("rb") as file:
        start = file.read(64).lstrip()
    if start.startswith(b"{"):
        return "mxnet"
    # Field 1, the IR version, with which every ONNX writer begins.
    if start.startswith(b"\x08"):
        return "onnx"
    raise BadModel(
        f"{path}: unknown kind of file; "
        "expected an .onnx file or an MXNet symbol .json file"
    )


def weights_beside(path: Path) -> list[Path]:
    """Return the files of weights that are read with this one, if it is a model, unless parameters are given."""
    try:
        kind = kind_of(path)
    except (BadModel, OSError):  # or no model at all
        return []
    return (
        onnx.stored_files(path) if kind == "onnx" else parameters_beside(path)
    )


def parameters_beside(path: Path) -> list[Path]:
    """Return the files that are read with this one if no parameters are given."""
    from mrt.frontend.mxnet.files import params_beside

    return [path.parent / name for name in params_beside(path)]


def operators(frontend: Frontend) -> list[str]:
    """Return the names of the operators that a front end reads, sorted."""
    if frontend == "mxnet":
        from mrt.frontend.mxnet import OPERATORS

        return sorted(OPERATORS)
    names = list(onnx.OPERATORS)
    names += [f"ai.onnx.ml.{name}" for name in onnx.ML_OPERATORS]
    names += [f"com.microsoft.{name}" for name in onnx.MICROSOFT]
    return sorted(names)
