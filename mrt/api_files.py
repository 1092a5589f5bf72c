"""Models and samples that a Python user holds as objects, written to files that the converter reads like any other."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from mrt.errors import BadData, BadModel, BadOption

Model = Any
"""A path, an `onnx.ModelProto`, an `onnx_ir.Model`, a `torch.nn.Module` or a scikit-learn estimator."""
Data = Any
"""A path, an array of samples, or a mapping of such arrays by input name."""
Arrays = dict[str, npt.NDArray[Any]]


def data_file(data: Data, labels: Sequence[int] | None, folder: Path) -> Path:
    """The path of samples: the given one, or that of an .npz in `folder` with classes as `y`.

    Raises BadOption for labels beside a path, whose file has labels of its own, and BadData
    where arrays are none.
    """
    if isinstance(data, (str, PathLike)):
        if labels is not None:
            raise BadOption(
                "labels: samples in a file have their labels there (y in an .npz, labels.csv in a folder)"
            )
        return Path(data)
    arrays = as_arrays(data)
    if labels is not None:
        if "y" in arrays:
            raise BadOption(
                "labels: the data has an array 'y', which is an input or its labels already; leave labels out, "
                "or write both to an .npz and name the labels in a config"
            )
        arrays["y"] = np.asarray(labels)
    path = folder / "samples.npz"
    stored: dict[str, Any] = dict(arrays)
    np.savez(path, **stored)
    return path


def as_arrays(data: Data) -> Arrays:
    """Arrays by input name, under `x` for an only input; BadData for what holds no numbers."""
    named = data if isinstance(data, Mapping) else {"x": data}
    arrays = {str(name): np.asarray(array) for name, array in named.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise BadData(
                f"data: '{name}' holds {array.dtype}; expected real numbers"
            )
    return arrays


def model_file(model: Model, data: Data | None, folder: Path) -> Path:
    """The path of a model: the given one, or that of an .onnx written to `folder`.

    A torch module is exported for the first sample of `data`, a scikit-learn estimator for
    its number of features, by their own exporters, which have to be installed.
    Raises BadModel for any other object.
    """
    if isinstance(model, (str, PathLike)):
        return Path(model)
    path = folder / "model.onnx"
    if isinstance(model, onnx.ModelProto):
        _save_proto(model, path)
    elif isinstance(model, ir.Model):
        _save_proto(ir.to_proto(model), path)
    elif _is_of(model, "torch"):
        _export_torch(model, _first_sample(model, data), path)
    elif _is_of(model, "sklearn"):
        _export_sklearn(model, _first_sample(model, data), path)
    else:
        raise BadModel(
            f"a model of type {type(model).__module__}.{type(model).__qualname__}: expected a path, "
            "an onnx.ModelProto, an onnx_ir.Model, a torch.nn.Module or a scikit-learn estimator"
        )
    return path


def _save_proto(proto: onnx.ModelProto, path: Path) -> None:
    # Beside the model, since one file of protobuf holds at most 2 GB.
    large = proto.ByteSize() >= onnx.checker.MAXIMUM_PROTOBUF
    onnx.save(proto, path, save_as_external_data=large)


def _is_of(model: Any, package: str) -> bool:
    """Whether a class of the package is among the bases of the object's class."""
    modules = {base.__module__.split(".")[0] for base in type(model).__mro__}
    return package in modules


def _first_sample(model: Any, data: Data | None) -> Arrays:
    """The first sample of the data, with a first axis of 1, in float32 where it holds reals."""
    if data is None or isinstance(data, (str, PathLike)):
        raise BadOption(
            f"data: a {type(model).__name__} is exported for the shape of its samples; "
            "give them as an array, or as arrays by input name"
        )
    arrays = {name: array[:1] for name, array in as_arrays(data).items()}
    return {
        name: array.astype(np.float32) if array.dtype.kind == "f" else array
        for name, array in arrays.items()
    }


def _export_torch(model: Any, sample: Arrays, path: Path) -> None:
    torch = _exporter("torch", "a torch module")
    names = list(sample)
    arguments = tuple(torch.from_numpy(array) for array in sample.values())
    training = model.training
    model.eval()
    try:
        torch.onnx.export(
            model,
            arguments,
            str(path),
            input_names=names,
            dynamo=True,
            verbose=False,
        )
    finally:
        model.train(training)


def _export_sklearn(model: Any, sample: Arrays, path: Path) -> None:
    skl2onnx = _exporter("skl2onnx", "a scikit-learn estimator")
    (array,) = sample.values()
    options = {"zipmap": False} if hasattr(model, "predict_proba") else None
    proto = skl2onnx.to_onnx(model, array.astype(np.float32), options=options)
    _save_proto(proto, path)


def _exporter(package: str, what: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as problem:
        raise BadModel(
            f"{what} is written as ONNX by the package {package}, which cannot be imported "
            f"({problem}); pip install {package}"
        ) from None
