"""How many samples the arrays of a file hold, and in what shape: along the first axis, unless an array is one sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.errors import BadData
from mrt.table.stored_arrays import StoredArray

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]


def common_count(
    path: Path, arrays: Mapping[str, StoredArray], inputs: Shapes
) -> int:
    """Return the number of samples, of which every input has as many; raise BadData if that is not so, or 0."""
    counts = {
        name: sample_count(array, inputs[name])
        for name, array in arrays.items()
    }
    if len(set(counts.values())) != 1:
        listed = ", ".join(
            f"{count} for '{name}'" for name, count in counts.items()
        )
        raise BadData(
            f"{path}: expected as many samples for every input, found {listed}{_shared(counts, arrays, inputs)}"
        )
    total = next(iter(counts.values()))
    if total == 0:
        raise BadData(f"{path}: holds no samples; expected at least one")
    return total


def _shared(
    counts: Mapping[str, int],
    arrays: Mapping[str, StoredArray],
    inputs: Shapes,
) -> str:
    """Say how an input is given that may be the same for every sample: one whose count alone is not that of all others."""
    ways = []
    for name, array in arrays.items():
        others = {counts[other] for other in counts if other != name}
        if len(others) == 1 and len(array.shape) == len(inputs[name]):
            (total,) = others
            sizes = ",".join(map(str, (total, *array.shape)))
            ways.append(
                f"'{name}' is the same for every sample, repeat it for each, as [{sizes}]"
            )
    return "".join(f"; if {way}" for way in ways)


def is_one_sample(array: StoredArray, shape: Shape) -> bool:
    """Whether an array is one sample: it has the input's shape, whose first dimension is not 1."""
    return shape[:1] != (1,) and array.shape == shape


def sample_count(array: StoredArray, shape: Shape) -> int:
    """Return how many samples an array holds for an input of this shape."""
    if not array.shape:
        raise BadData(
            f"{array.where}: is a single number, expected samples of shape {list(shape)} along the first axis"
        )
    if 0 in array.shape[1:]:
        # Before samples are counted: no byte of the file limits their number.
        raise BadData(
            f"{array.where}: has shape {list(array.shape)}, whose samples have no elements; expected {list(shape)} for each"
        )
    return 1 if is_one_sample(array, shape) else array.shape[0]


def sample_shape(array: StoredArray, shape: Shape) -> Shape:
    """Return the shape that each of an array's samples has."""
    return array.shape if is_one_sample(array, shape) else array.shape[1:]


def entries(array: StoredArray, shape: Shape) -> Iterator[npt.NDArray[Any]]:
    """Yield the samples of an array."""
    if is_one_sample(array, shape):
        return iter([np.stack(list(array.rows()))])
    return array.rows()
