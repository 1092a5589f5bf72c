"""Runs the float model in onnxruntime, with any values exposed.

The numbers are the same on every run of one machine.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import onnxruntime as ort

from mrt.calibrate.table_indices import Tables, outside_table
from mrt.errors import BadData, BadModel
from mrt.graph.notes import compared_of, indices_of, is_whole, picture_layout_of

Array = npt.NDArray[Any]

MOST_INSIDE = 1 << 24
"""The most bytes of weights inside one protobuf.

It could hold 2^31, but is copied several times.
"""
SMALL = 1 << 12  # bytes of a weight that stays inside


@dataclass(frozen=True, eq=False)
class SessionSource:
    """All that a session is opened from, here or on another machine.

    `weights` are the large ones, which are not inside the `proto`.
    """

    names: tuple[str, ...]
    dtypes: Mapping[str, np.dtype[Any]]
    proto: bytes
    weights: Mapping[str, Array]
    tables: Tables

    @classmethod
    def of(
        cls, model: ir.Model, names: Iterable[str] | None = None
    ) -> SessionSource:
        """Return the source of a session for the values of these names (by default, the outputs)."""
        if names is None:
            names = [str(value.name) for value in model.graph.outputs]
        chosen = tuple(names)
        dtypes = {
            str(value.name): _numpy_dtype(value)
            for value in model_inputs(model)
        }
        return cls(
            chosen, dtypes, *_exposing(model, chosen), tables=_tables(model)
        )


class FloatSession:
    """A model ready to run that returns the values of these names (by default, its outputs)."""

    def __init__(
        self,
        model: ir.Model | SessionSource,
        names: Iterable[str] | None = None,
    ) -> None:
        source = model
        if not isinstance(source, SessionSource):
            source = SessionSource.of(source, names)
        self.names = list(source.names)
        self._dtypes, self._tables = source.dtypes, source.tables
        # The arrays are kept: onnxruntime reads them where they lie.
        self._arrays = source.weights
        self._session = _open(source.proto, self._arrays)
        shapes = [output.shape for output in self._session.get_outputs()]
        self._fixed = all(map(_is_fixed, shapes))
        self._bindings: deque[tuple[list[Array], ort.IOBinding]]
        self._bindings = deque(maxlen=2)

    def run(
        self,
        sample: Mapping[str, Array],
        into: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """Return the values by name for one sample; inputs are cast to the dtypes of the model.

        `into` holds values of an earlier sample, which may be overwritten.
        """
        feeds = {
            name: _cast(name, sample[name], dtype)
            for name, dtype in self._dtypes.items()
        }
        try:
            if not self.names:
                return {}  # onnxruntime refuses a binding without names, or returns all
            if into is not None and self._fixed:
                return self._run_into(feeds, into)
            results = self._session.run(self.names, feeds)
        except (
            Exception
        ) as problem:  # onnxruntime's own classes derive from Exception
            raise outside_table(feeds, self._tables) or BadModel(
                f"the float model cannot be run: {_first_line(problem)}"
            ) from None
        return dict(zip(self.names, results, strict=True))

    def _run_into(
        self, feeds: Mapping[str, Array], into: Mapping[str, Array]
    ) -> dict[str, Array]:
        arrays = [into[name] for name in self.names]
        binding = self._binding_of(arrays)
        for name, array in feeds.items():
            # ascontiguousarray would make an array of rank 1 of a single number.
            binding.bind_cpu_input(name, np.asarray(array, order="C"))
        self._session.run_with_iobinding(binding)
        return dict(zip(self.names, arrays, strict=True))

    def _binding_of(self, arrays: list[Array]) -> ort.IOBinding:
        """Bind the outputs to these arrays; of the last two lists, the binding is kept."""
        for bound, binding in self._bindings:
            if all(map(operator.is_, bound, arrays)):
                return binding
        binding = self._session.io_binding()
        for name, array in zip(self.names, arrays, strict=True):
            binding.bind_output(
                name, "cpu", 0, array.dtype, array.shape, array.ctypes.data
            )
        self._bindings.append((arrays, binding))
        return binding


def _is_fixed(shape: Iterable[int | str | None]) -> bool:
    """Whether the value has this shape for every sample, and is not empty."""
    return all(isinstance(size, int) and size > 0 for size in shape)


def _cast(name: str, values: Array, dtype: np.dtype[Any]) -> Array:
    """Return an input in the dtype that the model declares, if it can hold these numbers."""
    if dtype.kind == "f":
        return np.asarray(values, dtype)
    low, high = (
        (0, 1)
        if dtype.kind == "b"
        else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    )
    if np.any((values != np.floor(values)) | (values < low) | (values > high)):
        raise BadData(
            f"input '{name}': {values.min()}..{values.max()} are not all numbers of {dtype}, the model's type"
        )
    return np.asarray(values, dtype)


def integer_input_intervals(model: ir.Model) -> dict[str, tuple[int, int]]:
    """Return, for each input of integers, an interval that the rewritten model accepts."""
    intervals: dict[str, tuple[int, int]] = {}
    for value in model_inputs(model):
        interval = _integer_interval(value)
        if interval is not None:
            intervals[str(value.name)] = interval
    return intervals


def _tables(model: ir.Model) -> dict[str, tuple[int, int]]:
    """Return the interval of each input of indices that rewriting noted."""
    tables: dict[str, tuple[int, int]] = {}
    for value in model_inputs(model):
        interval = indices_of(value)
        if interval is not None:
            tables[str(value.name)] = interval
    return tables


def _integer_interval(value: ir.Value) -> tuple[int, int] | None:
    indices, compared = indices_of(value), compared_of(value)
    if indices is not None:
        from_behind, last = indices
        # A slice may be looked up in a shorter axis than another.
        return 0, min(last, -from_behind - 1) if from_behind else last
    if compared is not None:
        return compared
    if picture_layout_of(value) is not None or is_whole(value):
        return 0, 255
    if value.dtype in (ir.DataType.INT8, ir.DataType.UINT8):
        dtype = np.iinfo(value.dtype.numpy())
        return int(dtype.min), int(dtype.max)
    if value.dtype not in (None, ir.DataType.FLOAT):
        return 0, 1
    return None


def model_inputs(model: ir.Model) -> list[ir.Value]:
    """Return the inputs that a user provides; old opsets list the weights among the inputs too."""
    return [
        value
        for value in model.graph.inputs
        if value.name not in model.graph.initializers
    ]


def _numpy_dtype(value: ir.Value) -> np.dtype[Any]:
    return np.dtype(np.float32) if value.dtype is None else value.dtype.numpy()


def _exposing(
    model: ir.Model, names: Iterable[str]
) -> tuple[bytes, dict[str, Array]]:
    """Return the model's bytes with all `names` among its outputs, and its large weights.

    The model itself is not changed.
    """
    outputs = {value.name for value in model.graph.outputs}
    missing = [name for name in names if name not in outputs]
    if missing:
        model = model.clone()
        produced = {
            value.name: value for node in model.graph for value in node.outputs
        }
        model.graph.outputs.extend(produced[name] for name in missing)
    weights = [value.const_value for value in model.graph.initializers.values()]
    if sum(weight.nbytes for weight in weights if weight) <= MOST_INSIDE:
        return bytes(ir.to_proto(model).SerializeToString()), {}
    apart, arrays = model.clone(), {}
    for value in apart.graph.initializers.values():
        tensor = value.const_value
        if not value.uses():  # onnxruntime drops it, then reports it missing
            continue
        if value.name and tensor is not None and tensor.nbytes > SMALL:
            array = arrays[value.name] = np.ascontiguousarray(tensor.numpy())
            shape = ir.Shape(array.shape)
            value.const_value = ir.ExternalTensor(
                "none",
                0,
                array.nbytes,
                tensor.dtype,
                shape=shape,
                name=value.name,
            )
    return bytes(ir.to_proto(apart).SerializeToString()), arrays


def _open(model: bytes, arrays: Mapping[str, Array]) -> ort.InferenceSession:
    options = ort.SessionOptions()
    if arrays:
        values = [
            ort.OrtValue.ortvalue_from_numpy(array) for array in arrays.values()
        ]
        options.add_external_initializers(list(arrays), values)
    options.intra_op_num_threads = 1  # sums are then added in one order
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = (
        False  # it would keep the memory of exposed values
    )
    options.graph_optimization_level = (
        ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    )
    options.log_severity_level = 4  # failures are raised, and printed once
    try:
        return ort.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
    except (
        Exception
    ) as problem:  # onnxruntime's own classes derive from Exception
        raise BadModel(
            f"onnxruntime refuses the float model: {_first_line(problem)}"
        ) from None


def _first_line(problem: Exception) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0]
