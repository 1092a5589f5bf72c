"""The calibration table: the range of every value of one model, measured on samples.

It is a small, readable file. All results after calibration are a function of (model
bytes, this table, options).
"""

from __future__ import annotations

import hashlib
import json
import os
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from mrt.errors import BadData, BadOption
from mrt.option_values import Percentile, Precision
from mrt.options import check_options, option
from mrt.table.decisions import Decisions, file_of, read_layers

FORMAT = "mrt calibration table"
VERSION = 1
MOST_RELATIVE = 2**16
"""The limit of a channel's scale, relative to that of its value."""
_OPTIONAL = {"centres", "channel_scales", "input_shapes", "layers", "twins"}
"""The entries, all objects, that a table may lack."""
OBSERVERS = ("minmax", "percentile", "entropy", "mse")


@dataclass(frozen=True)
class MeasuredRange:
    """A measured range from `min` to `max`; the observer clips at `lo` and `hi` within it."""

    min: float
    max: float
    lo: float
    hi: float

    @property
    def magnitude(self) -> float:
        """The greatest magnitude that was measured."""
        return max(abs(self.min), abs(self.max))

    @property
    def clipped_magnitude(self) -> float:
        """The greatest magnitude that the observer keeps."""
        return max(abs(self.lo), abs(self.hi))


Ranges = Mapping[str, MeasuredRange]
"""Measured ranges by the name of the value."""


@dataclass(frozen=True)
class CalibrationOptions:
    """The observer and the options that it uses.

    `percentile` is the share of the numbers that the observer of that name keeps on either
    side. `bits` is the precision for which entropy and mse weigh clipping against rounding.
    """

    observer: str = option(
        "mse", help="Rule that chooses ranges.", allowed=OBSERVERS
    )
    percentile: Percentile = option(
        99.999,
        help="The share that the observer of that name keeps.",
        on_command_line=False,
    )
    bits: Precision = option(
        8, help="What entropy and mse fit to.", on_command_line=False
    )

    def __post_init__(self) -> None:
        check_options(self)

    def key(self) -> dict[str, Any]:
        """Return the options that affect the ranges."""
        used = {
            "minmax": (),
            "percentile": ("percentile",),
            "entropy": ("bits",),
            "mse": ("bits",),
        }[self.observer]
        return {
            name: value
            for name, value in asdict(self).items()
            if name == "observer" or name in used
        }


@dataclass(frozen=True)
class CalibrationTable:
    """The ranges of values by name, and their origin.

    Values that sums of products read also have means per channel.
    """

    model_sha256: str
    options: CalibrationOptions
    samples: int
    # Over the prepared samples, so that two tables can be told apart.
    data_sha256: str
    ranges: Mapping[str, MeasuredRange]
    channel_means: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    decisions: Decisions = field(default_factory=Decisions)
    # Duplicated channels that the model had (`mrt.duplicate.add_duplicates`).
    duplicates: Mapping[str, Sequence[int]] = field(default_factory=dict)
    # Of the model as it was read; tables of former versions have none.
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def scales_of_channels(self, name: str) -> tuple[float, ...] | None:
        """Return the scales of the value's channels, relative to its own, if they have any."""
        return self.decisions.channel_scales.get(name)

    def require(
        self, *, model_sha256: str, options: CalibrationOptions | None = None
    ) -> None:
        """Raise BadData unless the table was made for this model.

        If options are given, it must also have been made with equivalent ones.
        """
        if self.model_sha256 != model_sha256:
            raise BadData(
                f"the calibration table is for the model with SHA-256 {self.model_sha256}, not for {model_sha256}"
                "; calibrate again"
            )
        if options is not None and self.options.key() != options.key():
            raise BadData(
                f"the calibration table was made with {_described(self.options)}, not with {_described(options)}"
                "; calibrate again"
            )

    @property
    def sha256(self) -> str:
        """The digest of what the table adds to a model: of its text without shapes, which the model has at last itself."""
        bare = replace(self, input_shapes={})
        return hashlib.sha256(bare.text().encode()).hexdigest()

    def text(self) -> str:
        """Return the file's content.

        It is JSON, sorted, with one value a line and floats that read back to the same
        bits.
        """
        ranges = {
            name: [range_.min, range_.max, range_.lo, range_.hi]
            for name, range_ in self.ranges.items()
        }
        lines = [
            f'"channel_means": {_object(self.channel_means)}',
            f'"data_sha256": {json.dumps(self.data_sha256)}',
            f'"format": {json.dumps(FORMAT)}',
            f'"model_sha256": {json.dumps(self.model_sha256)}',
            f'"options": {json.dumps(self.options.key(), sort_keys=True)}',
            f'"ranges": {_object(ranges)}',
            f'"samples": {self.samples}',
            f'"version": {VERSION}',
        ]
        if self.decisions.channel_scales:
            lines.append(
                f'"channel_scales": {_object(self.decisions.channel_scales)}'
            )
        if self.decisions.centres:
            lines.append(f'"centres": {_object(self.decisions.centres)}')
        if self.duplicates:
            lines.append(f'"twins": {_object(self.duplicates)}')
        if self.input_shapes:
            lines.append(f'"input_shapes": {_object(self.input_shapes)}')
        if self.decisions.layers:
            lines.append(f'"layers": {self._layers_text()}')
        return "{\n" + ",\n".join(sorted(lines)) + "\n}\n"

    def _layers_text(self) -> str:
        """Return the decided layers, the key of their options, and their file's SHA-256."""
        decided = self.decisions
        content = {
            "key": decided.key,
            "names": sorted(decided.layers),
            "sha256": decided.sha256,
        }
        return json.dumps(content, sort_keys=True)

    def save(self, path: Path) -> None:
        """Write the file whole or not at all.

        If there are integers of layers, their file is written before it, beside it.
        """
        if self.decisions.layers:
            layers = file_of(path, self.decisions.sha256)
            _write(layers, self.decisions.write)
        text = self.text().encode()
        _write(path, lambda stream: stream.write(text))

    @classmethod
    def load(cls, path: Path) -> CalibrationTable:
        """Read a table; raise BadData for anything that `save` would not have written."""
        try:
            text = path.read_text(encoding="utf-8")
            content = json.loads(
                text,
                object_pairs_hook=_no_duplicates,
                parse_constant=_no_constants,
            )
        except OSError as problem:
            raise BadData(
                f"{path}: cannot be read ({problem.strerror}); expected a calibration table"
            ) from None
        except (ValueError, RecursionError) as problem:
            raise BadData(
                f"{path}: is not a calibration table ({_brief(problem)}); mrt calibrate writes one"
            ) from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise BadData(
                f"{path}: is not a '{FORMAT}'; mrt calibrate writes one"
            )
        try:
            return _from_json(content, path)
        except (_LieError, BadOption) as problem:
            raise BadData(f"{path}: {problem}; calibrate again") from None


def _brief(problem: Exception) -> str:
    is_binary = isinstance(problem, UnicodeDecodeError)
    return "it holds no text" if is_binary else str(problem)


class _LieError(Exception):
    """The description of an error in the content of a table."""


def _from_json(content: dict[str, Any], path: Path) -> CalibrationTable:
    _expect(
        content.get("version") == VERSION,
        f"has version {content.get('version')}, expected {VERSION}",
    )
    keys = {
        "channel_means",
        "data_sha256",
        "format",
        "model_sha256",
        "options",
        "ranges",
        "samples",
        "version",
    }
    _expect(
        set(content) - _OPTIONAL == keys,
        f"has the entries {sorted(content)}, expected {sorted(keys)}",
    )
    _expect(
        type(content["samples"]) is int and content["samples"] > 0,
        "samples must be an integer above 0",
    )
    for key in ("data_sha256", "model_sha256"):
        _expect(isinstance(content[key], str), f"{key} must be text")
    content = {key: {} for key in _OPTIONAL} | content
    for key in ("ranges", "channel_means", "options", *sorted(_OPTIONAL)):
        _expect(isinstance(content[key], dict), f"{key} must be an object")
    return CalibrationTable(
        model_sha256=content["model_sha256"],
        options=_read_options(content["options"]),
        samples=content["samples"],
        data_sha256=content["data_sha256"],
        ranges={
            name: _read_range(name, entry)
            for name, entry in content["ranges"].items()
        },
        channel_means={
            name: _numbers(name, entry)
            for name, entry in content["channel_means"].items()
        },
        decisions=_read_decisions(content, path),
        duplicates={
            name: _read_duplicates(name, entry)
            for name, entry in content["twins"].items()
        },
        input_shapes={
            name: _read_shape(name, entry)
            for name, entry in content["input_shapes"].items()
        },
    )


def _read_decisions(content: dict[str, Any], path: Path) -> Decisions:
    scales, centres = (
        {name: _numbers(name, entry) for name, entry in content[key].items()}
        for key in ("channel_scales", "centres")
    )
    for name, numbers in scales.items():
        _expect(
            bool(numbers) and 0 < min(numbers) <= max(numbers) < MOST_RELATIVE,
            f"channel scales of '{name}' are not between 0 and {MOST_RELATIVE}",
        )
    layers = content["layers"]
    if not layers:
        return Decisions(channel_scales=scales, centres=centres)
    _expect(
        set(layers) == {"key", "names", "sha256"},
        "layers must have a key, names and sha256",
    )
    names, sha256 = layers["names"], layers["sha256"]
    good = (
        isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and names == sorted(set(names))
    )
    _expect(
        good and isinstance(layers["key"], dict),
        "layers must have sorted names and an object as key",
    )
    _expect(
        isinstance(sha256, str) and len(sha256) == 64,
        "the sha256 of layers must be 64 digits",
    )
    _expect(
        all(digit in string.hexdigits for digit in sha256),
        "the sha256 of layers must be 64 digits",
    )
    return Decisions(
        layers["key"],
        scales,
        centres,
        read_layers(file_of(path, sha256), names, sha256),
    )


def _read_options(content: dict[str, Any]) -> CalibrationOptions:
    kinds: dict[str, tuple[type, ...]] = {
        "observer": (str,),
        "percentile": (int, float),
        "bits": (int,),
    }
    for name, value in content.items():
        _expect(
            name in kinds and type(value) in kinds[name],
            f"has an unusable option {name} = {value!r}",
        )
    options = CalibrationOptions(**content)
    _expect(
        options.key() == content,
        f"has the options {content}, expected {options.key()}",
    )
    return options


def _read_range(name: str, content: Any) -> MeasuredRange:
    numbers = _numbers(name, content)
    _expect(
        len(numbers) == 4,
        f"the range of '{name}' has {len(numbers)} numbers, expected min, max, lo, hi",
    )
    range_ = MeasuredRange(*numbers)
    _expect(
        range_.min <= range_.lo <= range_.hi <= range_.max,
        f"the range of '{name}' breaks min <= lo <= hi <= max: {list(numbers)}",
    )
    return range_


def _read_duplicates(name: str, content: Any) -> tuple[int, ...]:
    _expect(
        are_channels(content),
        f"the twins of '{name}' must be channels, integers from 0",
    )
    return tuple(content)


def _read_shape(name: str, content: Any) -> tuple[int, ...]:
    _expect(
        are_channels(content) and 0 not in content,
        f"the shape of '{name}' must be integers from 1",
    )
    return tuple(content)


def are_channels(content: Any) -> bool:
    """Whether a JSON value is a list of channels; it cannot check how many channels there are."""
    return isinstance(content, list) and all(
        type(channel) is int and channel >= 0 for channel in content
    )


def _numbers(name: str, content: Any) -> tuple[float, ...]:
    good = isinstance(content, list) and all(
        type(number) in (int, float) for number in content
    )
    _expect(
        good and all(abs(number) <= sys.float_info.max for number in content),
        f"'{name}' needs a list of finite numbers",
    )
    return tuple(float(number) for number in content)


def _expect(good: bool, problem: str) -> None:
    if not good:
        raise _LieError(problem)


def _object(content: Mapping[str, Sequence[float]]) -> str:
    rows = [
        f"  {json.dumps(name)}: {json.dumps(list(numbers))}"
        for name, numbers in sorted(content.items())
    ]
    return "{\n" + ",\n".join(rows) + "\n}" if rows else "{}"


def _described(options: CalibrationOptions) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.key().items())


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name appears twice")
    return content


def _no_constants(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _write(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as stream:
            write(stream)
        temporary.replace(path)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        raise BadData(
            f"{path}: cannot be written ({problem.strerror})"
        ) from None
