"""Samples to run a model on, read one at a time.

They come from an .npz, a .npy, a folder of images, or a generator of noise with a seed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.calibrate.images import (
    MAX_LABELS,
    PictureNotes,
    list_pictures,
    read_picture,
)
from mrt.calibrate.preprocessing import FloatArray, Preprocessing
from mrt.calibrate.sample_counts import (
    common_count,
    entries,
    sample_count,
    sample_shape,
)
from mrt.errors import BadData, MissingData
from mrt.table.stored_arrays import StoredArray, open_npy, open_npz

Shapes = Mapping[str, tuple[int, ...]]
Sample = dict[str, FloatArray]
Choice = Callable[[int], Sequence[int]]
"""Which of so many samples are wanted, by index, in order."""
_KINDS = "an .npz, a .npy or a folder of images"
HOW_TO_NAME = (
    "; rename one, or name it under arrays in a config, which mrt init writes"
)
"""The end of the message on an array that is missing."""
_NO_CLASSES = (
    "holds no numbers of classes and is not read as labels; "
    "a regression is measured by mrt evaluate --metric, which gets it"
)


@dataclass(frozen=True)
class Samples:
    """Samples that can be read again and again.

    Every iteration reads them in the same order, holding one at a time.
    """

    names: tuple[str, ...]
    count: int
    labels: tuple[int, ...] | None
    source: str  # their origin, for people
    _read: Callable[[], Iterator[Sample]]
    # What people should know of them; some is found only while they are read.
    notes: list[str] = field(default_factory=list, compare=False)
    # What people call the sample of an index.
    name_of: Callable[[int], str] = "sample {}".format
    # What a regression should give: a row of numbers for each sample, where these are no classes.
    targets: npt.NDArray[Any] | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Sample]:
        return self._read()


def open_samples(
    path: Path,
    inputs: Shapes,
    preprocessing: Mapping[str, Preprocessing] | Preprocessing | None = None,
    limit: int | None = None,
    *,
    arrays: Mapping[str, str] | None = None,
    labels: str | None = None,
    classes: Sequence[str] = (),
    choose: Choice | None = None,
) -> Samples:
    """Open the samples in `path` for the model's inputs (name to shape).

    An .npz has one array per input by name, or `x` where there is one input, and may have
    classes as `y`, unless that is an input. `arrays` (by input name or `x`) and `labels` give other names, which are
    tried first; `classes` are the names of all classes. Of more than `limit` samples, that many are taken at equal distances, so
    that a file sorted by class is covered; `choose` takes others.
    """
    choose = choose or partial(evenly_spaced, limit=limit)
    steps = _preprocessing_of(inputs, preprocessing)
    if path.is_dir():
        return _from_folder(path, inputs, steps, choose, classes=classes)
    if not path.exists():
        raise MissingData(
            f"{path}: No such file or directory; expected {_KINDS}"
        )
    if path.suffix == ".npz":
        stored = open_npz(path)
        chosen = {
            name: _choose(path, stored, inputs, name, arrays or {})
            for name in inputs
        }
        samples = _from_arrays(path, chosen, inputs, steps, choose)
        used = {array.where for array in chosen.values()}
        stored_labels = _choose_labels(path, stored, labels, used)
        if stored_labels is None:
            return samples
        if labels is None and not _are_classes(stored_labels):
            return _with_targets(samples, stored_labels, chosen, inputs, choose)
        return _with_labels(samples, stored_labels, chosen, inputs, choose)
    if path.suffix == ".npy":
        if len(inputs) != 1:
            raise BadData(
                f"{path}: one array for a model of {len(inputs)} inputs "
                f"({', '.join(inputs)}); give an .npz"
            )
        array = open_npy(path)
        return _from_arrays(
            path, dict.fromkeys(inputs, array), inputs, steps, choose
        )
    raise BadData(f"{path}: expected {_KINDS}")


SYNTHETIC = "synthetic samples"
"""Words in the source of noise."""


def synthetic_samples(
    inputs: Shapes,
    count: int,
    seed: int = 0,
    *,
    intervals: Mapping[str, tuple[int, int]] | None = None,
) -> Samples:
    """Return samples of normal noise from a seeded PCG64, which are unlike any real data.

    Inputs with an interval get integers instead.
    """
    of_integers = intervals or {}

    def read() -> Iterator[Sample]:
        generator = np.random.Generator(np.random.PCG64(seed))
        for _ in range(count):
            yield {
                name: _noise(generator, shape, of_integers.get(name))
                for name, shape in inputs.items()
            }

    source = f"{count} {SYNTHETIC}, seed {seed}"
    return Samples(tuple(inputs), count, None, source, read)


def _noise(
    generator: np.random.Generator,
    shape: tuple[int, ...],
    interval: tuple[int, int] | None,
) -> FloatArray:
    if interval is None:
        return generator.standard_normal(shape, np.float32)
    return generator.integers(*interval, shape, endpoint=True).astype(
        np.float32
    )


def _preprocessing_of(
    inputs: Shapes,
    preprocessing: Mapping[str, Preprocessing] | Preprocessing | None,
) -> dict[str, Preprocessing]:
    if preprocessing is None or isinstance(preprocessing, Preprocessing):
        return dict.fromkeys(inputs, preprocessing or Preprocessing())
    unknown = sorted(set(preprocessing) - set(inputs))
    if unknown:
        raise BadData(
            f"preprocessing is given for '{unknown[0]}', but the model's inputs are {', '.join(inputs)}"
        )
    return {name: preprocessing.get(name, Preprocessing()) for name in inputs}


def array_of(
    path: Path,
    inputs: Sequence[str],
    name: str,
    arrays: Mapping[str, str] | None = None,
) -> StoredArray | None:
    """The array in an .npz or .npy that holds the samples of input `name`; None if there is none."""
    if not path.exists():
        raise BadData(f"{path}: No such file or directory; expected {_KINDS}")
    if path.suffix == ".npy":
        return open_npy(path) if len(inputs) == 1 else None
    if path.suffix != ".npz":
        raise BadData(f"{path}: expected {_KINDS}")
    stored = open_npz(path)
    for candidate in _names_of_array(inputs, name, arrays or {}):
        if candidate in stored:
            return _usable(stored[candidate])
    return None


def required_array_of(
    path: Path, inputs: Sequence[str], name: str, arrays: Mapping[str, str]
) -> StoredArray:
    """Return this array; raise BadData, with the arrays that there are, if none holds samples of the input."""
    array = array_of(path, inputs, name, arrays)
    if array is not None:
        return array
    candidates = _names_of_array(inputs, name, arrays)
    raise _lacks_array(path, candidates, open_npz(path))


def _lacks_array(
    path: Path,
    candidates: Sequence[str],
    stored: Mapping[str, StoredArray | BadData],
) -> BadData:
    names = " or ".join(map(repr, candidates))
    return BadData(
        f"{path}: has no array {names} for the model's input; it has {_listed(stored)}{HOW_TO_NAME}"
    )


def _names_of_array(
    inputs: Sequence[str], name: str, arrays: Mapping[str, str]
) -> list[str]:
    keys = [name, "x"] if len(inputs) == 1 else [name]
    named = [*(arrays[key] for key in keys if key in arrays), *keys]
    return list(dict.fromkeys(named))


def _choose(
    path: Path,
    stored: Mapping[str, StoredArray | BadData],
    inputs: Shapes,
    name: str,
    arrays: Mapping[str, str],
) -> StoredArray:
    """The array that holds the samples of input `name`."""
    candidates = _names_of_array(tuple(inputs), name, arrays)
    for candidate in candidates:
        if candidate in stored:
            return _usable(stored[candidate])
    raise _lacks_array(path, candidates, stored)


def _choose_labels(
    path: Path,
    stored: Mapping[str, StoredArray | BadData],
    labels: str | None,
    used: Collection[str],
) -> StoredArray | None:
    """Return the array of classes; `y` is not one if an input of the model uses it."""
    for name in ("y",) if labels is None else (labels, "y"):
        if name in stored:
            array = _usable_labels(stored[name])
            if name == labels or array.where not in used:
                return array
    if labels is not None:
        raise BadData(
            f"{path}: has no array '{labels}' or 'y' for the labels; it has {_listed(stored)}"
        )
    return None


def _listed(stored: Mapping[str, object]) -> str:
    return ", ".join(stored) or "none"


def _usable_labels(array: StoredArray | BadData) -> StoredArray:
    if isinstance(array, BadData):
        raise BadData(
            f"{array.lines[0]}; labels are the numbers of classes, from 0 on, in the order of the model's outputs"
        )
    return array


def _usable(array: StoredArray | BadData) -> StoredArray:
    if isinstance(array, BadData):
        raise array
    return array


def _from_arrays(
    path: Path,
    arrays: Mapping[str, StoredArray],
    inputs: Shapes,
    steps: Mapping[str, Preprocessing],
    choose: Choice,
) -> Samples:
    total = common_count(path, arrays, inputs)
    chosen = choose(total)
    for name, array in arrays.items():
        # A shape that cannot fit is refused before any work.
        blank = np.zeros(sample_shape(array, inputs[name]), np.uint8)
        steps[name].apply(blank, inputs[name], array.where, name)

    def prepared(name: str, entry: npt.NDArray[Any], index: int) -> FloatArray:
        where = f"{arrays[name].where}, sample {index}"
        return _finite(steps[name].apply(entry, inputs[name], where), where)

    def read() -> Iterator[Sample]:
        chosen_indices = set(chosen)
        streams = [entries(arrays[name], inputs[name]) for name in inputs]
        entries_of_samples = islice(zip(*streams, strict=True), chosen[-1] + 1)
        for index, row in enumerate(entries_of_samples):
            if index not in chosen_indices:
                continue
            yield {
                name: prepared(name, entry, index)
                for name, entry in zip(inputs, row, strict=True)
            }

    return Samples(
        tuple(inputs),
        len(chosen),
        None,
        str(path),
        read,
        name_of=lambda index: f"sample {chosen[index]}",
    )


def _are_classes(stored: StoredArray) -> bool:
    """Whether every number may be that of a class."""
    return all(map(_hold_classes, stored.rows()))


def _total(arrays: Mapping[str, StoredArray], inputs: Shapes) -> int:
    """Return the number of samples, of which every input has as many."""
    name = next(iter(inputs))
    return sample_count(arrays[name], inputs[name])


def _with_labels(
    samples: Samples,
    stored: StoredArray,
    arrays: Mapping[str, StoredArray],
    inputs: Shapes,
    choose: Choice,
) -> Samples:
    total = _total(arrays, inputs)
    if math.prod(stored.shape) != total or stored.shape[:1] != (total,):
        has_rows = len(stored.shape) == 2 and stored.shape[0] == total
        way = "; of a row for each class, store argmax(axis=1)"
        raise BadData(
            f"{stored.where}: has shape {list(stored.shape)}, expected one class for each of {total} samples"
            f"{way if has_rows else ''}"
        )
    values = [row.reshape(()).item() for row in stored.rows()]
    if not _hold_classes(np.array(values, np.float64)):
        raise BadData(
            f"{stored.where}: expected the numbers of classes, 0 or above, found {min(values)}..{max(values)}"
        )
    return replace(
        samples, labels=tuple(int(values[index]) for index in choose(total))
    )


def _with_targets(
    samples: Samples,
    stored: StoredArray,
    arrays: Mapping[str, StoredArray],
    inputs: Shapes,
    choose: Choice,
) -> Samples:
    """Hand over the rows of an array that holds no classes, if there is one for each sample; a note says so."""
    total = _total(arrays, inputs)
    if len(stored.shape) == 0 or stored.shape[0] != total:
        samples.notes.append(
            f"{stored.where} of shape {list(stored.shape)} is not read: it holds no numbers of classes, "
            f"and no row for each of {total} samples"
        )
        return samples
    samples.notes.append(f"{stored.where} {_NO_CLASSES}")
    wanted = set(choose(total))
    rows = [row for index, row in enumerate(stored.rows()) if index in wanted]
    return replace(samples, targets=np.stack(rows))


def _hold_classes(values: npt.NDArray[Any]) -> bool:
    """Whether each number is the index of a class; comparisons with NaN are false."""
    is_inside = (values >= 0) & (values <= MAX_LABELS)
    return bool((is_inside & (values == np.floor(values))).all())


def _from_folder(
    path: Path,
    inputs: Shapes,
    steps: Mapping[str, Preprocessing],
    choose: Choice,
    *,
    classes: Sequence[str],
) -> Samples:
    if len(inputs) != 1:
        raise BadData(
            f"{path}: a folder of images for a model of {len(inputs)} inputs ({', '.join(inputs)}); give an .npz"
        )
    pictures = list_pictures(path, classes)
    chosen = [pictures[index] for index in choose(len(pictures))]
    labels = tuple(entry.label for entry in chosen if entry.label is not None)
    all_labelled = len(labels) == len(chosen)
    ((name, shape),) = inputs.items()
    step = replace(steps[name], layout="NHWC")
    notes = PictureNotes()

    def read() -> Iterator[Sample]:
        for entry in chosen:
            pixels = read_picture(entry.path, shape, step, notes)
            yield {name: step.apply(pixels, shape, str(entry.path))}

    all_labels = labels if all_labelled else None
    return Samples(
        tuple(inputs),
        len(chosen),
        all_labels,
        str(path),
        read,
        notes.texts,
        lambda index: os.path.relpath(chosen[index].path, path),
    )


def evenly_spaced(total: int, limit: int | None) -> list[int]:
    """Return all of 0..total-1, or `limit` of them at equal distances, always with the first."""
    if limit is None or limit >= total:
        return list(range(total))
    return [index * total // limit for index in range(limit)]


def few_of(places: Sequence[int], count: int) -> list[int]:
    """Return at most `count` of the places, at equal distances."""
    return [places[place] for place in evenly_spaced(len(places), count)]


def some_of(samples: Samples, count: int) -> Iterator[Sample]:
    """Yield at most `count` of the samples, at equal distances; none behind the last of them is read."""
    chosen = set(evenly_spaced(len(samples), count))
    for index, sample in enumerate(islice(samples, max(chosen) + 1)):
        if index in chosen:
            yield sample


def _finite(sample: FloatArray, where: str) -> FloatArray:
    if not np.isfinite(sample).all():
        bad = int(sample.size - np.isfinite(sample).sum())
        raise BadData(
            f"{where}: {bad} of {sample.size} values are NaN or infinite; expected finite numbers, remove the sample"
        )
    return sample
