"""The shapes that samples have in a file, for inputs whose shape the model leaves open. No sample is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mrt.calibrate.preprocessing import Preprocessing, both
from mrt.calibrate.samples import array_of, required_array_of
from mrt.errors import BadData
from mrt.graph.open_shapes import BATCH, Shape, Sizes, is_open, is_open_inside
from mrt.table.stored_arrays import StoredArray


def shapes_of_data(
    path: Path,
    inputs: Mapping[str, Sizes],
    preprocessing: Mapping[str, Preprocessing],
    arrays: Mapping[str, str],
) -> dict[str, Shape]:
    """The shape of every open input of which `path` has samples.

    Raise BadData, naming the array and the input, where a shape contradicts what is known.
    """
    shapes: dict[str, Shape] = {}
    for name, sizes in inputs.items():
        if not is_open(sizes):
            continue
        if not is_open_inside(sizes) and not path.exists():
            continue  # which only a stage that reads samples has to report
        step = preprocessing[name]
        if path.is_dir():
            shape = _shape_of_pictures(sizes, step)
        else:
            array = _array(path, tuple(inputs), name, arrays)
            shape = (
                None if array is None else _fitting(array, name, sizes, step)
            )
        if shape is not None:
            shapes[name] = shape
    return shapes


def _array(
    path: Path, inputs: Sequence[str], name: str, arrays: Mapping[str, str]
) -> StoredArray | None:
    """The samples of an input; of several, one without samples may be a missing parameter."""
    if len(inputs) == 1:
        return required_array_of(path, inputs, name, arrays)
    return array_of(path, inputs, name, arrays)


def agrees(shape: Shape, sizes: Sizes) -> bool:
    """Return whether an input with these known sizes may have this shape."""
    if sizes is None:
        return True
    return len(shape) == len(sizes) and all(
        size in (None, BATCH, dimension)
        for size, dimension in zip(sizes, shape, strict=True)
    )


def shown(sizes: Sizes) -> str:
    """What is known of a shape, for people: [1,3,?,?]."""
    if sizes is None:
        return "of unknown shape"
    texts = [str(size or "?") for size in sizes]
    return f"[{','.join(texts)}]"


def _shape_of_pictures(sizes: Sizes, step: Preprocessing) -> Shape | None:
    """[1,C,H,W] of pictures that are cropped to a given size, where the number of channels is known, too."""
    if step.crop is None:
        return None
    numbers = max(len(step.mean), len(step.std))
    channels = (numbers,) if numbers > 1 else (1, 3)
    shapes = [
        shape
        for count in channels
        for shape in _of_pictures(count, *both(step.crop))
        if agrees(shape, sizes)
    ]
    if sizes is None and numbers == 1:
        return None  # grey and in colour are both possible
    return shapes[0] if shapes else None


def _of_pictures(channels: int, height: int, width: int) -> list[Shape]:
    return [(1, channels, height, width), (1, height, width, channels)]


def _fitting(
    array: StoredArray, name: str, sizes: Sizes, step: Preprocessing
) -> Shape | None:
    """The shape of an input that takes the samples of an array."""
    if sizes and (sizes[0] or 1) > 1 and agrees(array.shape, sizes):
        return array.shape  # one sample, as `open_samples` takes it
    sample = array.shape[1:]
    for shape in _candidates(sample, sizes, step.layout):
        if agrees(shape, sizes) and min(shape) > 0:
            return shape
    if not is_open_inside(sizes):
        return None  # as if the first dimension were the batch
    raise BadData(
        f"{array.where}: samples of shape {list(sample)} (layout '{step.layout}') do not fit the model's input "
        f"'{name}' {shown(sizes)}; give another layout, or --shape {name}=..."
    )


def _candidates(sample: Shape, sizes: Sizes, layout: str) -> Iterator[Shape]:
    """The shapes that an input for such samples may have, the usual one first."""
    if layout == "as is":
        yield (1, *sample)
        if sizes is not None:
            yield sample
            yield (1,) * (len(sizes) - len(sample)) + sample
        return
    if layout == "HW" and len(sample) == 2:
        yield from _of_pictures(1, *sample)
        return
    if len(sample) == 4 and sample[0] == 1:
        sample = sample[1:]
    if len(sample) == 3 and layout == "NCHW":
        yield from _of_pictures(*sample)
    elif len(sample) == 3 and layout == "NHWC":
        yield from _of_pictures(sample[2], sample[0], sample[1])
