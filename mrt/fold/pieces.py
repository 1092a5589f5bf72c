"""Brings lanes together, wherever the new program has them, as one tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from cvm.program import DTYPES, IntArray
from mrt.fold.lanes import ANY, PLACES, Lanes, roots_of
from mrt.quantize.builder import Handle, ProgramBuilder

CONSTANT = -2  # in place of a handle
FEW = 3  # instructions of a gather: two reshapes around it


@dataclass
class Pieces:
    """Where the new program has each lane: in which handle, at which place."""

    builder: ProgramBuilder
    lanes: Lanes
    rank: int
    _home: dict[int, tuple[Handle, IntArray]] = field(default_factory=dict)

    def define(self, root: int, handle: Handle, places: IntArray) -> None:
        """Record that a root's elements stand at these places of a tensor."""
        self._home[root] = handle, places.reshape(-1)

    def vector(self, count: int) -> tuple[int, ...]:
        """The shape of so many lanes in a row."""
        return (*(1,) * (self.rank - 1), count)

    def simple(self, lanes: IntArray, shape: tuple[int, ...]) -> Handle | None:
        """Return the lanes as a tensor or a box of one, in this shape; None if they are neither."""
        handles, places = self._locations(lanes.reshape(-1))
        handle = _only(handles)
        if handle is None:
            return None
        tensor_shape = self.builder.types[handle].shape
        if not tensor_shape:
            return self._reshaped(handle, shape)
        box = _box(places, tensor_shape)
        if box is None:
            return None
        if places.size < math.prod(tensor_shape):
            start, size = box
            handle = self.builder.emit("slice", handle, start=start, size=size)
        return self._reshaped(handle, shape)

    def whole(self, lanes: IntArray) -> Handle | None:
        """The tensor that holds just these lanes, in order."""
        if any(root not in self._home for root in roots_of(lanes)):
            return None
        handles, places = self._locations(lanes.reshape(-1))
        handle = _only(handles)
        if handle is None:
            return None
        count = self.builder.types[handle].elements
        if np.array_equal(places, np.arange(count)):
            return handle
        return None

    def together(
        self, lanes: IntArray, dtype: str, shape: tuple[int, ...]
    ) -> Handle:
        """The lanes as a tensor of this shape."""
        integers = self.lanes.integers(lanes)
        if integers is not None:
            array = integers.astype(DTYPES[dtype]).reshape(shape)
            return self.builder.constant(array)
        handle = self.simple(lanes, shape)  # the first input's handle is 0
        if handle is not None:
            return handle
        return self._assembled(lanes.reshape(-1), dtype, shape)

    def runs(self, lanes: IntArray) -> int:
        """Return in how many runs of consecutive places the lanes stand."""
        return len(_starts(*self._locations(lanes.reshape(-1))))

    def _assembled(
        self, lanes: IntArray, dtype: str, shape: tuple[int, ...]
    ) -> Handle:
        handles, places = self._locations(lanes)
        starts = _starts(handles, places)
        ends = [*starts[1:], len(lanes)]
        sources = [int(source) for source in dict.fromkeys(handles)]
        parts_of_tensors = [
            start
            for start, end in zip(starts, ends, strict=True)
            if end - start < self._elements(int(handles[start]))
        ]
        gather = FEW + (len(sources) > 1)
        if gather < len(parts_of_tensors) + 1 and CONSTANT not in sources:
            return self._gathered(handles, places, sources, shape)
        pieces = []
        for start, end in zip(starts, ends, strict=True):
            handle = int(handles[start])
            if handle == CONSTANT:
                piece = self._numbers(lanes[start:end], dtype)
            else:
                piece = self._part(handle, int(places[start]), end - start)
            pieces.append(piece)
        joined = self.builder.emit("concat", *pieces, axis=self.rank - 1)
        return self._reshaped(joined, shape)

    def _numbers(self, lanes: IntArray, dtype: str) -> Handle:
        """Constant lanes as a vector; where any integer will do, it is the first one."""
        filled = np.where(lanes == ANY, lanes[0], lanes)
        return self.together(filled, dtype, self.vector(lanes.size))

    def _part(self, handle: Handle, start: int, count: int) -> Handle:
        """Consecutive elements of a tensor, as a vector: a box of it, or of its elements in a row."""
        type_ = self.builder.types[handle]
        if count == type_.elements:
            return self._reshaped(handle, self.vector(count))
        row = self._reshaped(handle, self.vector(type_.elements))
        zeros = (0,) * (self.rank - 1)
        return self.builder.emit(
            "slice", row, start=(*zeros, start), size=self.vector(count)
        )

    def _gathered(
        self,
        handles: IntArray,
        places: IntArray,
        sources: list[Handle],
        shape: tuple[int, ...],
    ) -> Handle:
        """Single elements of tensors, by constant indices into all of them in a row."""
        sizes = [self.builder.types[handle].elements for handle in sources]
        *first, total = accumulate(sizes, initial=0)
        offset = dict(zip(sources, first, strict=True))
        indices = places + np.array([offset[int(handle)] for handle in handles])
        rows = [
            self._reshaped(handle, self.vector(size))
            for handle, size in zip(sources, sizes, strict=True)
        ]
        row = rows[0]
        if len(rows) > 1:
            row = self.builder.emit("concat", *rows, axis=self.rank - 1)
        row = self._reshaped(row, (1, total, 1))
        index = self.builder.constant(indices.astype(np.int32).reshape(1, -1))
        return self._reshaped(self.builder.emit("gather", row, index), shape)

    def _elements(self, handle: Handle) -> int:
        return 0 if handle == CONSTANT else self.builder.types[handle].elements

    def _reshaped(self, handle: Handle, shape: tuple[int, ...]) -> Handle:
        if self.builder.types[handle].shape == shape:
            return handle
        return self.builder.emit("reshape", handle, shape=shape)

    def _locations(self, lanes: IntArray) -> tuple[IntArray, IntArray]:
        """The handle of each lane and its place there. Where any integer will do, a run goes on."""
        handles = np.full(lanes.size, CONSTANT)
        places = np.zeros(lanes.size, np.int64)
        for root in roots_of(lanes):
            if root in self.lanes.numbers:
                continue
            of_root = lanes // PLACES == root
            handle, home = self._home[root]
            handles[of_root], places[of_root] = (
                handle,
                home[lanes[of_root] % PLACES],
            )
        for index in np.flatnonzero(lanes == ANY):
            if index:
                handle = handles[index] = handles[index - 1]
                places[index] = places[index - 1]
                if handle >= 0:
                    last = self.builder.types[handle].elements - 1
                    places[index] = min(places[index] + 1, last)
        return handles, places


def _starts(handles: IntArray, places: IntArray) -> list[int]:
    """Where runs of consecutive places start."""
    goes_on = (np.diff(places) == 1) | (handles[1:] == CONSTANT)
    breaks = (np.diff(handles) != 0) | ~goes_on
    return [0, *(int(at) + 1 for at in np.flatnonzero(breaks))]


def _only(handles: IntArray) -> Handle | None:
    """The tensor that all lanes are in, if there is one."""
    first = int(handles[0])
    if first < 0 or (handles != first).any():
        return None
    return first


def _box(
    places: IntArray, tensor_shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The start and size of the box of a tensor that these places are, in order; None if they are no box."""
    start = np.array(np.unravel_index(places[0], tensor_shape))
    end = np.array(np.unravel_index(places[-1], tensor_shape)) + 1
    size = tuple(map(int, end - start))
    if min(size) < 1 or math.prod(size) != places.size:
        return None
    axes = np.ix_(*map(np.arange, start, end))
    inside = np.ravel_multi_index(axes, tensor_shape).reshape(-1)
    if (inside != places).any():
        return None
    return tuple(map(int, start)), size
