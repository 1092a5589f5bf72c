"""Writes sparse tensors of a file as dense ones, the only form that onnx_ir reads."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from mrt.errors import BadModel
from mrt.graph.values import Array

MOST_NUMBERS = 1 << 24
"""Of all sparse tensors of a file, once they are dense: a few bytes may stand for any number of zeros."""

MOST_AXES = 32
"""Of an array, in the oldest numpy that is supported."""


def write_dense(graphs: Iterable[onnx.GraphProto], path: Path) -> None:
    """Replace sparse initializers of these graphs, and sparse values of their Constant nodes, in place.

    Raise BadModel where one is malformed, or all together are too large.
    """
    writer = _Writer(path)
    for graph in graphs:
        graph.initializer.extend(map(writer.dense, graph.sparse_initializer))
        del graph.sparse_initializer[:]
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.SPARSE_TENSOR:
                    _make_dense(attribute, writer)


def _make_dense(attribute: onnx.AttributeProto, writer: _Writer) -> None:
    dense = writer.dense(attribute.sparse_tensor)
    attribute.CopyFrom(onnx.helper.make_attribute("value", dense))


class _Writer:
    """Counts the elements of what it writes, before it takes memory for them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._room = MOST_NUMBERS

    def dense(self, sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
        """Return the dense tensor of the same name."""
        name, shape = sparse.values.name, tuple(sparse.dims)
        if min(shape, default=0) < 0:
            raise self._malformed(name, f"has the shape {list(shape)}")
        self._room -= math.prod(shape)
        if self._room < 0:
            raise BadModel(
                f"{self._path}: sparse tensor '{name}' of shape {list(shape)}: "
                f"dense, all together have at most {MOST_NUMBERS} numbers"
            )
        values = self._array(sparse.values, name)
        places = self._array(sparse.indices, name)
        if places.dtype != np.int64:
            raise self._malformed(name, "has indices that are not int64")
        if places.ndim == 2 and places.shape[-1:] == (len(shape),):
            axes: tuple[Array, ...] = tuple(places.T)
        elif places.ndim == 1:
            axes = (places,)
        else:
            raise self._malformed(name, "has indices of another rank")
        sizes = shape if places.ndim == 2 else (math.prod(shape),)
        is_inside = all(
            ((axis >= 0) & (axis < size)).all()
            for axis, size in zip(axes, sizes, strict=True)
        )
        if values.shape != places.shape[:1] or not is_inside:
            raise self._malformed(name, "has indices that do not fit")
        if values.dtype == object or len(shape) > MOST_AXES:
            raise self._malformed(name, "holds text, or has too many axes")
        array = np.zeros(sizes, values.dtype)
        array[axes] = values
        return numpy_helper.from_array(array.reshape(shape), name)

    def _array(self, tensor: onnx.TensorProto, name: str) -> Array:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise self._malformed(name, "lies in another file")
        try:
            return numpy_helper.to_array(tensor)
        except Exception:  # the library has no error type for bad bytes
            raise self._malformed(name, "has bytes that are no array") from None

    def _malformed(self, name: str, problem: str) -> BadModel:
        return BadModel(f"{self._path}: sparse tensor '{name}' {problem}")
