"""From the arrays that people hold to a program's samples and back: batches, intervals, real values (SPEC section 2).

The only floating point of the machine's package is here, before and after the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvm.errors import BadInput
from cvm.file.npy import NpyHeader
from cvm.program import (
    DTYPE_RANGES,
    DTYPES,
    ENDLESS,
    Input,
    IntArray,
    Meaning,
    Program,
    TensorType,
)
from cvm.proof.validate import WellFormed

RealArray = npt.NDArray[np.float64]
_BLOCK = 2**20  # elements that are converted or searched at once
_OF_INTEGERS = ("u8", "i32", "bool")
"""With scale 1 and zero point 0, an input of these takes integers as they are."""
_OF_REALS = (-(2**30), 2**30)
"""But in i32 between these, which is how real numbers in 30 bits are declared: theirs may have the scale 1, too."""
_OPTION = "give --real to quantize real values by the program's scales"
_NO_OPTION = "leave --real away and give integers"
_INTEGERS = "program.run takes and gives integers"
_METHOD = "program.quantize(...) makes integers of real values, by the program's scales"


@dataclass(frozen=True)
class Clipping:
    """How many of an input's real values its integers cannot hold: by sample, outside `low`..`high`."""

    name: str
    counts: tuple[int, ...]  # of each sample
    total: int  # values of all samples
    low: float
    high: float
    by_column: bool = False  # low and high are those of the widest column

    @property
    def count(self) -> int:
        """The number of values clipped in all samples."""
        return sum(self.counts)

    def joined(self, other: Clipping) -> Clipping:
        """The clipping of the same input, with the samples of another run added."""
        counts = self.counts + other.counts
        return replace(self, counts=counts, total=self.total + other.total)

    def __str__(self) -> str:
        outside = (
            f"{self.low:.6g}..{self.high:.6g}, the range of the calibration,"
        )
        if self.by_column:
            outside = "the ranges of their columns,"
        return (
            f"input '{self.name}': {self.count:,} of {self.total:,} values "
            f"({percent(self.count / self.total)} %) lie outside {outside} and were clipped"
        )


def percent(share: float) -> str:
    """Return a share in percent: two digits, 100 only of all, no exponent."""
    number = 100 * share if share == 1 else min(100 * share, 99.0)
    if number >= 10:
        return f"{number:.0f}"
    return np.format_float_positional(
        number, precision=2, unique=False, fractional=False, trim="-"
    )


@dataclass(frozen=True)
class Quantized:
    """The integers of real values, by input name, and what was clipped to make them fit."""

    integers: dict[str, IntArray]
    clipping: tuple[Clipping, ...]  # one an input, in the program's order

    @property
    def clipped(self) -> tuple[Clipping, ...]:
        """The inputs of which some value was clipped."""
        return tuple(clipping for clipping in self.clipping if clipping.count)

    def require_unclipped(self) -> None:
        """BadInput if any value was clipped."""
        if self.clipped:
            listed = "; ".join(map(str, self.clipped))
            raise BadInput(listed.replace(", and were clipped", ""))


def read_inputs(
    program: Program, arrays: Mapping[str, npt.NDArray[Any]], *, real: bool
) -> Quantized:
    """The inputs' integers, each array asked for once, others not at all; quantized if `real`."""
    require_all_inputs(program, arrays)
    if real:
        return quantize_and_count(program, arrays)
    integers = {
        port.name: _integers(port, arrays[port.name]) for port in program.inputs
    }
    return Quantized(integers, ())


def require_all_inputs(
    program: Program, arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """BadInput naming every input that has no array."""
    missing = [
        f"'{port.name}'" for port in program.inputs if port.name not in arrays
    ]
    if missing:
        raise BadInput(f"no array for input {', '.join(missing)}")


def require_suited(
    program: Program, name: str, header: NpyHeader, *, real: bool
) -> None:
    """BadInput unless the array with this header, which is not in memory yet, suits the input of that name."""
    port = next(port for port in program.inputs if port.name == name)
    _require_numbers(port, header.dtype, real=real, way=_OPTION)
    _require_shape(port, header.shape)


def split_samples(
    program: Program, arrays: Mapping[str, npt.NDArray[Any]]
) -> list[dict[str, IntArray]]:
    """One dict of views per sample, in the declared dtypes, every value inside its interval; BadInput otherwise."""
    require_all_inputs(program, arrays)
    checked = {
        port.name: _integers(port, arrays[port.name]) for port in program.inputs
    }
    shares = {
        port.name: _samples_of(port, checked[port.name])
        for port in program.inputs
    }
    counts = {name: len(share) for name, share in shares.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(
            f"'{name}' {count}" for name, count in counts.items()
        )
        raise BadInput(f"inputs have different numbers of samples: {listed}")
    return [
        {name: share[number, ...] for name, share in shares.items()}
        for number in range(max(counts.values()))
    ]


def is_batch(program: Program, arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Whether the arrays hold samples along an axis: some array has not exactly its input's shape."""
    return any(
        arrays[port.name].shape != port.type.shape for port in program.inputs
    )


def join_outputs(
    form: WellFormed,
    results: Iterable[Mapping[str, IntArray]],
    count: int,
    *,
    batch: bool,
) -> dict[str, IntArray]:
    """The outputs of `count` samples in one array each, batched as an input of that shape would be if `batch`."""
    types = {port.name: form.types[port.value] for port in form.program.outputs}
    joined = {
        name: np.empty(_batch_shape(type_, count, batch), DTYPES[type_.dtype])
        for name, type_ in types.items()
    }
    for number, result in enumerate(results):
        for name, type_ in types.items():
            joined[name].reshape(count, *type_.shape)[number] = result[name]
    return joined


def _batch_shape(type_: TensorType, count: int, batch: bool) -> tuple[int, ...]:
    if not batch:
        return type_.shape
    return (
        count,
        *(type_.shape[1:] if type_.shape[:1] == (1,) else type_.shape),
    )


def _samples_of(port: Input, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view as [N, *S] of an array of shape S, [N, *S] or, where S[0] is 1, [N, *S[1:]]."""
    _require_shape(port, array.shape)
    return array.reshape(-1, *port.type.shape)


def _require_shape(port: Input, shape: tuple[int, ...]) -> None:
    if shape == port.type.shape:
        return
    sample_shape = (
        port.type.shape[1:] if port.type.shape[:1] == (1,) else port.type.shape
    )
    if not shape or shape[1:] not in (sample_shape, port.type.shape):
        many = ",".join(["N", *map(str, sample_shape)])
        single = ",".join(map(str, port.type.shape))
        raise BadInput(
            f"input '{port.name}': shape {list(shape)}; expected [{single}] or, for N samples, [{many}]"
        )
    if not shape[0]:
        raise BadInput(
            f"input '{port.name}': shape {list(shape)} holds no samples"
        )


def _require_numbers(
    port: Input, dtype: np.dtype[Any], *, real: bool, way: str = _METHOD
) -> None:
    if dtype.kind in ("biuf" if real else "biu"):
        return
    expected = "real numbers" if real else f"{port.type.dtype} integers"
    hint = f"; {way}" if dtype.kind == "f" else ""
    raise BadInput(
        f"input '{port.name}': holds {dtype}; expected {expected}{hint}"
    )


def _integers(port: Input, array: npt.NDArray[Any]) -> IntArray:
    """The same integers in the input's dtype, if every one lies in its interval."""
    _require_numbers(port, array.dtype, real=False)
    samples = _samples_of(port, array)
    if int(samples.min()) < port.lo or int(samples.max()) > port.hi:
        raise _outside(port, samples)
    return array.astype(DTYPES[port.type.dtype], copy=False)


def _outside(port: Input, samples: npt.NDArray[Any]) -> BadInput:
    for number, sample in enumerate(samples):
        wide = (
            np.minimum(sample, 2**62).astype(np.int64)
            if sample.dtype == np.uint64
            else sample.astype(np.int64)
        )
        outside = (wide < port.lo) | (wide > port.hi)
        if outside.any():
            index = _first(outside)
            value = int(sample[index])
            return BadInput(
                f"{_place(port, number, index)}: value {value} is outside {port.lo}..{port.hi}"
            )
    raise AssertionError("no value is outside")


def _first(mask: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(
        int(i) for i in np.unravel_index(int(mask.argmax()), mask.shape)
    )


def _place(port: Input, sample: int, index: tuple[int, ...]) -> str:
    return f"input '{port.name}', sample {sample}, index {list(index)}"


def quantize(
    program: Program, arrays: Mapping[str, npt.NDArray[Any]]
) -> dict[str, IntArray]:
    """q = floor(v / scale + 0.5) + zero_point in float64, clipped to the input's interval, by the metadata's scales.

    An input whose meaning has factors has a scale for each index of its last axis.
    """
    return quantize_and_count(program, arrays).integers


def quantize_and_count(
    program: Program, arrays: Mapping[str, npt.NDArray[Any]]
) -> Quantized:
    """As `quantize`, with the number of values of each sample that were clipped; none count of an endless input."""
    meanings = {
        port.name: _meaning(program, "input", port.name)
        for port in program.inputs
    }
    require_all_inputs(program, arrays)
    integers: dict[str, IntArray] = {}
    clipping: list[Clipping] = []
    for port in program.inputs:
        array = arrays[port.name]
        meaning = meanings[port.name]
        integers[port.name], counts = _quantize(port, meaning, array)
        if is_endless(program, port.name):
            counts = tuple(0 for _ in counts)
        scale = float(_scales(meaning).max())
        low, high = (
            (end - meaning.zero_point) * scale for end in (port.lo, port.hi)
        )
        by_column = bool(meaning.channels)
        clipping.append(
            Clipping(port.name, counts, array.size, low, high, by_column)
        )
    return Quantized(integers, tuple(clipping))


def is_endless(program: Program, name: str) -> bool:
    """Whether the metadata states that numbers beyond an input's interval give the same outputs as the nearer end."""
    metadata = program.metadata
    return metadata is not None and f"{ENDLESS}{name}" in metadata.provenance


def _scales(meaning: Meaning) -> RealArray:
    """The scale of each index of the last axis, or the one of all."""
    with np.errstate(over="ignore"):
        return meaning.scale * np.array(meaning.channels or (1.0,))


def _quantize(
    port: Input, meaning: Meaning, array: npt.NDArray[Any]
) -> tuple[IntArray, tuple[int, ...]]:
    """The integers, and how many values of each sample were clipped."""
    scales = _scales(meaning)
    _require_numbers(port, array.dtype, real=True)
    samples = _samples_of(port, array)
    takes_integers = (
        port.type.dtype in _OF_INTEGERS
        and (port.lo, port.hi) != _OF_REALS
        and (meaning.scale, meaning.zero_point) == (1, 0)
        and not meaning.channels
    )
    result = np.empty(samples.shape, DTYPES[port.type.dtype])
    counts: list[int] = []
    rows = max(1, _BLOCK // math.prod(samples.shape[1:]))
    for start in range(0, len(samples), rows):
        # What float64 cannot hold is infinite, and stops at an end like any other; a signalling NaN is found below.
        with np.errstate(over="ignore", invalid="ignore"):
            block = samples[start : start + rows].astype(np.float64)
            if np.isnan(block).any():
                sample, *index = _first(np.isnan(block))
                raise BadInput(
                    f"{_place(port, start + sample, tuple(index))}: value is NaN"
                )
            if takes_integers and (block != np.floor(block)).any():
                raise _no_integer(port, start, block)
            exact = np.floor(block / scales + 0.5) + meaning.zero_point
        outside = (exact < port.lo) | (exact > port.hi)
        counts += np.count_nonzero(
            outside.reshape(len(block), -1), axis=1
        ).tolist()
        result[start : start + rows] = np.clip(exact, port.lo, port.hi)
    return result.reshape(array.shape), tuple(counts)


def _no_integer(port: Input, start: int, block: RealArray) -> BadInput:
    sample, *index = _first(block != np.floor(block))
    value = block[sample, *index]
    kind = {"u8": ", as a picture's bytes are (uint8)"}.get(port.type.dtype, "")
    return BadInput(
        f"{_place(port, start + sample, tuple(index))}: value {value} is a fraction; this input takes integers "
        f"{port.lo}..{port.hi}{kind}"
    )


def dequantize(
    program: Program, arrays: Mapping[str, IntArray]
) -> dict[str, RealArray]:
    """(q - zero_point) * scale in float64, by the metadata's scales of the outputs."""
    meanings = {
        port.name: _meaning(program, "output", port.name)
        for port in program.outputs
    }
    missing = [f"'{name}'" for name in meanings if name not in arrays]
    if missing:
        raise BadInput(
            f"no array for output {', '.join(missing)}; expected what run gives"
        )
    for name in meanings:
        _require_integers(f"output '{name}'", arrays[name])
    return {
        name: (arrays[name].astype(np.float64) - meaning.zero_point)
        * meaning.scale
        for name, meaning in meanings.items()
    }


def _require_integers(where: str, array: npt.NDArray[Any]) -> None:
    if array.dtype.kind not in "biu":
        raise BadInput(
            f"{where}: holds {array.dtype}; expected the integers that run gives"
        )


def require_scales(program: Program) -> None:
    """BadInput unless real values can go in and come out."""
    for port in program.inputs:
        _meaning(program, "input", port.name, _NO_OPTION)
    for output in program.outputs:
        _meaning(program, "output", output.name, _NO_OPTION)


def _meaning(
    program: Program, what: str, name: str, way: str = _INTEGERS
) -> Meaning:
    """The usable scale and zero point of an input or output, or BadInput."""
    if program.metadata is None:
        raise BadInput(f"this program has no metadata, so no scales; {way}")
    meanings = (
        program.metadata.inputs if what == "input" else program.metadata.outputs
    )
    if name not in meanings:
        raise BadInput(f"{what} '{name}' has no scale in the metadata; {way}")
    meaning = meanings[name]
    low, high = DTYPE_RANGES["i32"]
    if not (0 < meaning.scale < math.inf and low <= meaning.zero_point <= high):
        raise BadInput(
            f"{what} '{name}' has the scale {meaning.scale} and zero point {meaning.zero_point}: not usable"
        )
    if meaning.channels:
        _require_factors(program, name, meaning)
    return meaning


def _require_factors(program: Program, name: str, meaning: Meaning) -> None:
    """BadInput unless an input has a usable scale for each index of its last axis."""
    shape = next(
        port for port in program.inputs if port.name == name
    ).type.shape
    scales = _scales(meaning)
    usable = (scales > 0) & np.isfinite(scales)
    if shape[-1:] != scales.shape or not usable.all():
        raise BadInput(
            f"input '{name}' {list(shape)} has {scales.size} factors of its scale, "
            f"scales {scales.min():g} to {scales.max():g}: not usable"
        )
