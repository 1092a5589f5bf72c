"""Warns where the data hold other numbers of an input than the one that --value gives it for good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from mrt.calibrate.session import Array
from mrt.config import Config, DataSettings
from mrt.errors import MrtError
from mrt.table.stored_arrays import StoredArray, open_npz

MOST_BYTES = 2**24
"""Of an array that is read for a warning."""


def fixed_value_warnings(config: Config, data: DataSettings) -> list[str]:
    """Return a warning for each input that --value fixes to another number than the data hold.

    Arrays that cannot be read are passed over, since whoever needs them reports that.
    """
    values, path = config.model.values, data.path
    if not values or path is None or path.suffix != ".npz":
        return []
    try:
        arrays = dict(_arrays(path, values))
    except MrtError:
        return []
    return [
        f"{path.name}: '{name}' is {array.min():g} to {array.max():g} in the data and {values[name]:g} in the program, by --value: "
        "its answers, and the figures here, are those for that value alone"
        for name, array in arrays.items()
        if (array != values[name]).any()
    ]


def _arrays(path: Path, names: Iterable[str]) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of numbers that have these names, unless they are long."""
    stored = open_npz(path)
    for name in names:
        array = stored.get(name)
        if (
            isinstance(array, StoredArray)
            and array.dtype.kind in "biuf"
            and array.data_bytes <= MOST_BYTES
        ):
            yield name, array.whole()
