"""Models and samples that a Python user holds as objects, written to files that the converter reads like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from mrt.api_exporters import export_sklearn, export_torch
from mrt.api_frames import (
    Arrays,
    by_inputs,
    columns_of,
    input_name,
    is_frame,
)
from mrt.calibrate.images import MAX_LABELS
from mrt.calibrate.samples import HOW_TO_NAME
from mrt.doubts import Remarks
from mrt.errors import BadData, BadModel, BadOption, MrtError

Model = Any
"""A path, an `onnx.ModelProto`, an `onnx_ir.Model`, a `torch.nn.Module` or a scikit-learn estimator."""
Data = Any
"""A path, an array of samples, a mapping of such arrays by input name, or a frame of pandas."""


def data_file(
    data: Data,
    labels: Sequence[float] | None,
    folder: Path,
    inputs: Sequence[str] = (),
    *,
    has_metric: bool = False,
) -> Path:
    """The path of samples: the given one, or that of an .npz in `folder` with classes as `y`, or any numbers for a metric.

    Of a frame, each column is an array if the model's `inputs` are columns. Raises BadOption for labels beside a path,
    whose file has labels of its own, and BadData where arrays or labels are none.
    """
    if isinstance(data, (str, PathLike)):
        if labels is not None:
            raise BadOption(
                "labels: samples in a file have their labels there (y in an .npz, labels.csv in a folder)"
            )
        return Path(data)
    arrays = as_arrays(data, inputs)
    if labels is not None:
        if "y" in arrays:
            raise BadOption(
                "labels: the data has an array 'y', which is an input or its labels already; leave labels out, "
                "or write both to an .npz and name the labels in a config"
            )
        arrays["y"] = (
            _numbers(labels, "labels") if has_metric else _classes(labels)
        )
    path = folder / "samples.npz"
    stored: dict[str, Any] = dict(arrays)
    np.savez(path, **stored)
    return path


def as_arrays(data: Data, inputs: Sequence[str] = ()) -> Arrays:
    """Arrays by input name, under `x` for an only input, in the order of C; BadData for what holds no numbers."""
    if isinstance(data, Mapping):
        return by_inputs(_named_numbers(data), inputs)
    if is_frame(data):
        columns = by_inputs(columns_of(data), inputs)
        is_by_column = len(inputs) > 1 or len(columns) == 1
        if inputs and is_by_column and columns.keys() >= {*inputs}:
            return _named_numbers({name: columns[name] for name in inputs})
        data = data.to_numpy()
    return {"x": _numbers(data, "data")}


def _named_numbers(data: Mapping[str, Any]) -> Arrays:
    if not data:
        raise BadData("data: an empty mapping; expected arrays by input name")
    return {
        str(name): _numbers(array, f"data['{name}']")
        for name, array in data.items()
    }


def _numbers(data: Any, where: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(data, order="C")
    except Exception as problem:  # whatever the object raises
        raise BadData(
            f"{where}: {type(data).__name__} is no array of numbers ({problem})"
        ) from None
    if np.ma.is_masked(data):
        raise BadData(
            f"{where}: some numbers are masked; fill them as the model expects them: data.filled(number)"
        )
    if array.dtype.kind not in "biuf":
        raise BadData(
            f"{where}: holds {array.dtype}; expected real numbers, of several inputs in a mapping of an array for each"
        )
    if not array.shape:
        raise BadData(
            f"{where}: a single number; expected an array with an entry for each sample"
        )
    return array


def _classes(labels: Any) -> npt.NDArray[Any]:
    array = _numbers(labels, "labels")
    wrong = (array < 0) | (array > MAX_LABELS) | (array != np.floor(array))
    if wrong.any() or np.isnan(array).any():
        raise BadData(
            f"labels: expected the numbers of classes, 0 or above, found {array[wrong | np.isnan(array)].flat[0]}; "
            "a metric measures regressions"
        )
    return array


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
        save_proto(model, path)
    elif isinstance(model, ir.Model):
        save_proto(ir.to_proto(model), path)
    elif _is_of(model, "torch"):
        sample = _first_sample(model, data)
        is_named = isinstance(data, Mapping)
        export_torch(model, sample, path, is_named=is_named)
    elif _is_of(model, "sklearn"):
        _require_samples(model, data)
        save_proto(_sklearn_proto(model, data), path)
    else:
        raise BadModel(
            f"a model of type {type(model).__module__}.{type(model).__qualname__}: expected a path, "
            "an onnx.ModelProto, an onnx_ir.Model, a torch.nn.Module or a scikit-learn estimator"
        )
    return path


def save_proto(proto: onnx.ModelProto, path: Path) -> None:
    """Write a model's file, and another with its weights where one file of protobuf, of at most 2 GB, cannot hold them."""
    large = proto.ByteSize() >= onnx.checker.MAXIMUM_PROTOBUF
    onnx.save(proto, path, save_as_external_data=large)


def inputs_of_file(path: Path) -> list[str]:
    """The names of the inputs of an .onnx that can be read; of another file none."""
    try:
        graph = onnx.load(path, load_external_data=False).graph
    except Exception:  # which the reader of the model says in full
        return []
    weights = {tensor.name for tensor in graph.initializer}
    return [it.name for it in graph.input if it.name not in weights]


def _sklearn_proto(model: Any, data: Data) -> onnx.ModelProto:
    """The estimator for all features in one input; where it asks for names, for an input of each column."""
    if not is_frame(data):
        return export_sklearn(model, as_arrays(data))
    of_columns = _named_numbers(columns_of(data))
    try:
        return export_sklearn(model, {"x": _numbers(data.to_numpy(), "data")})
    except BadModel as problem:
        try:
            return export_sklearn(model, of_columns)
        except BadModel as other:
            if str(other) == str(problem):
                raise
            raise BadModel(
                f"{problem}; with an input for each column, {other}"
            ) from None


def _is_of(model: Any, package: str) -> bool:
    """Whether a class of the package is among the bases of the object's class."""
    modules = {base.__module__.split(".")[0] for base in type(model).__mro__}
    return package in modules


def _require_samples(model: Any, data: Data | None) -> None:
    if data is None or isinstance(data, (str, PathLike)):
        raise BadOption(
            f"data: a {type(model).__name__} is exported for the shape of its samples; "
            "give them as an array, or as arrays by input name"
        )


def _first_sample(model: Any, data: Data | None) -> Arrays:
    """The first sample of the data, with a first axis of 1, in float32 where it holds reals."""
    _require_samples(model, data)
    sample: Arrays = {}
    for name, array in as_arrays(data).items():
        first = array[:1]
        sample[name] = (
            first.astype(np.float32) if first.dtype.kind == "f" else first
        )
    return sample


@dataclass(frozen=True)
class GivenObjects:
    """The objects that were written to a folder, and their names in the words of whoever gave them."""

    folder: Path
    data: Any

    def named(self, text: str) -> str:
        """The text with the objects in place of their files."""
        samples = f"{self.folder / 'samples.npz'}"
        for name in self._names():
            for stored in {name, input_name(name)}:
                where = f"{samples}: array '{stored}'"
                text = text.replace(where, f"data['{name}']")
        text = text.replace(f"{samples}: array 'x'", "data")
        text = text.replace(f"{samples}: array 'y'", "labels")
        text = text.replace(samples, "data")
        text = text.replace(f"{self.folder / 'model.onnx'}", "the model")
        return self._without_a_file(text)

    def _names(self) -> list[str]:
        """The names of the arrays or columns."""
        if isinstance(self.data, Mapping):
            return [str(name) for name in self.data]
        if is_frame(self.data):
            return [str(name) for name in self.data.columns]
        return []

    def _without_a_file(self, text: str) -> str:
        if self._names():
            return text.replace(HOW_TO_NAME, "; rename one")
        before, separator, _ = text.partition("; it has ")
        if not text.endswith(HOW_TO_NAME) or not separator:
            return text
        return f"{before}; give arrays by input name"

    def name_in_remarks(self, remarks: Remarks) -> None:
        """Name the objects in the notes and warnings of a result."""
        remarks.notes[:] = map(self.named, remarks.notes)
        remarks.warnings[:] = map(self.named, remarks.warnings)

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Name the objects in every error of the converter that passes."""
        try:
            yield
        except MrtError as problem:
            problem.reword(self.named)
            raise
