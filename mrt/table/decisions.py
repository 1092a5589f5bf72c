"""Decisions made on samples about single layers and channels: part of a calibration table.

The scales of channels are written in the table itself. The integers of weights are in
an .npz beside it, named by its SHA-256.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from cvm.file.npy import write_npz
from mrt.errors import BadData
from mrt.table.archive_digest import ArchiveDigest
from mrt.table.stored_arrays import StoredArray, open_npz

Array = npt.NDArray[Any]
PARTS = ("weights", "gains", "bias")


@dataclass(frozen=True, eq=False)
class LayerDecision:
    """The integers of one layer.

    These are the weights [O,..,C/groups], i8 or i16; the factor [O] on the scales at
    which they were rounded; and the real bias [O].
    """

    weights: Array
    gains: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Decisions:
    """The decisions about layers, for the options of `key`, and about channels.

    `channel_scales` are relative to the value's scale; its channels are counted from
    `centres`. Both are by name of the value.
    """

    key: Mapping[str, Any] = field(default_factory=dict)
    channel_scales: Mapping[str, tuple[float, ...]] = field(
        default_factory=dict
    )
    centres: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    layers: Mapping[str, LayerDecision] = field(default_factory=dict)

    def for_options(self, key: Mapping[str, Any]) -> Decisions:
        """Return the decisions for these options: layers only if they were decided for them."""
        return self if self.key == key else replace(self, layers={})

    def write(self, stream: IO[bytes]) -> None:
        """Write the layers as an .npz, in order of their names; always the same bytes."""
        arrays = {
            f"{part}{index}": getattr(layer, part)
            for index, (_, layer) in enumerate(sorted(self.layers.items()))
            for part in PARTS
        }
        write_npz(stream, arrays)

    def encoded(self) -> bytes:
        """Return what `write` writes."""
        stream = io.BytesIO()
        self.write(stream)
        return stream.getvalue()

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the encoded layers, which is part of the file's name.

        Steps of a recurrence share their weights in memory, and each has them in the file:
        it may be much larger than the model.
        """
        digest = ArchiveDigest()
        self.write(cast(IO[bytes], digest))
        return digest.hexdigest()


def file_of(table: Path, sha256: str) -> Path:
    """Return the file of a table's layers, which lies beside the table."""
    return table.with_name(f"{table.stem}.{sha256[:16]}.npz")


def read_layers(
    path: Path, names: list[str], sha256: str
) -> dict[str, LayerDecision]:
    """Read the layers of these names, in order.

    Raise BadData for anything that `encoded` would not have written.
    """
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise BadData(
            f"{path}: cannot be read ({problem.strerror}); it belongs to the calibration table"
        ) from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise BadData(
            f"{path}: is not the file that the calibration table was written with; calibrate again"
        )
    arrays = open_npz(path)
    size = sum(
        array.dtype.itemsize * math.prod(array.shape)
        for array in arrays.values()
        if isinstance(array, StoredArray)
    )
    if size > len(content) or len(arrays) != len(PARTS) * len(names):
        raise BadData(
            f"{path}: holds something else than {len(names)} layers; calibrate again"
        )
    return {
        name: _layer(path, arrays, index)
        for index, name in enumerate(sorted(names))
    }


def _layer(
    path: Path, arrays: Mapping[str, StoredArray | BadData], index: int
) -> LayerDecision:
    weights, gains, bias = (
        _array(path, arrays.get(f"{part}{index}"), part) for part in PARTS
    )
    if gains.shape != bias.shape or weights.shape[:1] != bias.shape:
        raise BadData(
            f"{path}: layer {index} has arrays that do not belong together; calibrate again"
        )
    return LayerDecision(weights, gains, bias)


def _array(
    path: Path, stored: StoredArray | BadData | None, part: str
) -> Array:
    allowed = ("int8", "int16") if part == "weights" else ("float64",)
    if (
        not isinstance(stored, StoredArray)
        or stored.dtype.name not in allowed
        or not stored.shape
    ):
        raise BadData(
            f"{path}: lacks {part} of {' or '.join(allowed)}; calibrate again"
        )
    array = (
        np.stack(list(stored.rows()))
        if stored.shape[0]
        else np.empty(stored.shape, stored.dtype)
    )
    if part != "weights" and not np.isfinite(array).all():
        raise BadData(
            f"{path}: has {part} that are no finite numbers; calibrate again"
        )
    return array
