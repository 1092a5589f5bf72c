"""The calibration table of the extremes that a probe gathered."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir

from cvm.file import format as file_format
from cvm.program import IntArray, Program
from mrt import stages
from mrt.config import Config
from mrt.errors import BadData
from mrt.job import ConversionJob
from mrt.probe.extremes import EXTREMES, MOST_SAMPLES, SAMPLES, Watched
from mrt.probe.probe import FORMAT, KEY, plain
from mrt.probe.shared_ranges import groups_of
from mrt.progress import Progress
from mrt.table.stored_arrays import StoredArray, open_npz
from mrt.table.table import CalibrationOptions, CalibrationTable, MeasuredRange

MOST_BYTES = 2**24  # of a file of extremes
MOST_INTEGER = 2**31  # of a program, negative ones included


def table_from(
    config: Config, probe: Path, extremes: Path, progress: Progress
) -> CalibrationTable:
    """The table of a file of extremes, for the model of the configuration; BadData if the probe is of another."""
    program = file_format.read(probe)
    key, watched = watched_by(program, probe)
    job = ConversionJob(plain(config), progress)
    for stage in (stages.load, stages.rewrite):
        stage(job)
    if key != job.table_key:
        raise BadData(
            f"{probe}: is a probe of another model, or of other preprocessing; mrt probe writes one of this model"
        )
    return table_of(
        read_extremes(extremes),
        watched,
        job.model,
        model_sha256=key,
        input_shapes=job.shapes,
    )


def read_extremes(path: Path) -> dict[str, IntArray]:
    """The integers of a file that `cvm accumulate` wrote; BadData for any other."""
    try:
        _require_small(path, path.stat().st_size)
        arrays = open_npz(path)
        return {
            name: _read_whole(path, arrays, name)
            for name in (EXTREMES, SAMPLES)
        }
    except OSError as problem:
        raise _no_extremes(path, str(problem)) from None
    except BadData as problem:
        reason = str(problem).removeprefix(f"{path}: ").partition("; ")[0]
        raise _no_extremes(path, reason) from None


def _read_whole(
    path: Path, arrays: Mapping[str, StoredArray | BadData], name: str
) -> IntArray:
    array = arrays.get(name) or BadData(f"no array '{name}'")
    if isinstance(array, BadData):
        raise array
    _require_small(path, array.data_bytes)
    return array.whole()


def _require_small(path: Path, size: int) -> None:
    """Raise BadData for a file, or an array in it, that no probe gives: a small file can unpack to a large array."""
    if size > MOST_BYTES:
        raise BadData(f"{path}: has {size} bytes, more than {MOST_BYTES}")


def _no_extremes(path: Path, reason: str) -> BadData:
    return BadData(
        f"{path}: holds no extremes ({reason}); cvm accumulate writes them"
    )


def watched_by(program: Program, where: Path) -> tuple[str, list[Watched]]:
    """The key of the model that a probe is of, and its values; BadData for a program that is no probe."""
    try:
        content = json.loads(program.provenance_of(KEY) or "")
        assert content["format"] == FORMAT
        values = [_read(*row) for row in content["values"]]
        return str(content["model"]), values
    except (ValueError, KeyError, TypeError, AssertionError):
        raise BadData(f"{where}: is no probe; mrt probe writes one") from None


def _read(
    name: object, scale: object, zero_point: object, low: object, high: object
) -> Watched:
    """ValueError for what `make_probe` would not have written."""
    are_integers = all(
        type(number) is int and abs(number) <= MOST_INTEGER
        for number in (zero_point, low, high)
    )
    good = isinstance(name, str) and type(scale) is float and are_integers
    # The differences of two such integers are multiplied by the scale.
    if not good or not (math.isfinite(2 * MOST_INTEGER * scale) and scale > 0):  # type: ignore[operator]
        raise ValueError(name)
    return Watched(name, scale, zero_point, low, high)  # type: ignore[arg-type]


def table_of(
    arrays: Mapping[str, IntArray],
    watched: Sequence[Watched],
    model: ir.Model,
    *,
    model_sha256: str,
    input_shapes: Mapping[str, tuple[int, ...]],
) -> CalibrationTable:
    """The table of minmax whose ranges are these extremes."""
    extremes, samples = arrays[EXTREMES], arrays[SAMPLES]
    count = _count(extremes, samples, len(watched))
    greatest, least = extremes[0, : len(watched)], -extremes[0, len(watched) :]
    _require_inside(watched, least, greatest)
    ranges = {}
    for value, low, high in zip(watched, least, greatest, strict=True):
        bounds = (_real(value, int(low)), _real(value, int(high)))
        ranges[value.name] = MeasuredRange(*bounds, *bounds)
    # Of the samples nothing is known but what was opened.
    digest = hashlib.sha256(extremes.astype("<i4").tobytes())
    return CalibrationTable(
        model_sha256=model_sha256,
        options=CalibrationOptions(observer="minmax"),
        samples=count,
        data_sha256=digest.hexdigest(),
        ranges=_shared(ranges, model),
        input_shapes=input_shapes,
    )


def _count(extremes: IntArray, samples: IntArray, values: int) -> int:
    """How many samples there were; BadData for arrays that no probe of so many values gives."""
    good = (
        extremes.dtype == samples.dtype == np.int32
        and extremes.shape == (1, 2 * values)
        and samples.shape == (1,)
    )
    if not good:
        raise BadData(
            f"the extremes are {extremes.dtype}{list(extremes.shape)} of {samples.dtype}{list(samples.shape)} samples; "
            f"this probe gives int32[1, {2 * values}] of int32[1]"
        )
    count = int(samples[0])
    if not 0 < count < MOST_SAMPLES:
        raise BadData(
            f"the extremes are of {count} samples; expected 1 to {MOST_SAMPLES - 1}"
        )
    return count


def _require_inside(
    watched: Sequence[Watched], least: IntArray, greatest: IntArray
) -> None:
    """Raise BadData with the values that reached an end of their format, where they were stopped."""
    beyond = [
        value.name
        for value, low, high in zip(watched, least, greatest, strict=True)
        if high >= value.high or low <= value.low
    ]
    if beyond:
        names = ", ".join(beyond[:5]) + (", ..." if len(beyond) > 5 else "")
        raise BadData(
            f"{len(beyond)} of {len(watched)} values reached the end of what the probe can hold ({names}); "
            "make another probe: --widen with a greater factor, or --data that is more like the samples"
        )


def _real(value: Watched, integer: int) -> float:
    return value.scale * (integer - value.zero_point) + 0.0


def _shared(
    ranges: dict[str, MeasuredRange], model: ir.Model
) -> dict[str, MeasuredRange]:
    """The ranges, with one for all values that share theirs, as calibration measures them."""
    shared = dict(ranges)
    for names in groups_of(model):
        measured = [ranges[name] for name in names if name in ranges]
        if measured:
            least = min(range_.min for range_ in measured)
            most = max(range_.max for range_ in measured)
            hull = MeasuredRange(least, most, least, most)
            shared.update(dict.fromkeys(names, hull))
    return shared
