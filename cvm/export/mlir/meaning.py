"""The real numbers that integers stand for, as types of MLIR's `quant`: attributes by which nothing is computed."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from cvm.export.mlir.text import MlirValue, Text
from cvm.program import DTYPE_RANGES, Meaning, TensorType

TYPE = "quant.type"
CALIBRATED = "quant.calibrated"
LEAST_SCALE = 2.0**-1022  # MLIR takes no smaller one
Ranges = Mapping[str, tuple[float, float]]
"""Least and greatest number that calibration met, by float value."""


def attributes(
    meaning: Meaning | None, type_: TensorType, ranges: Ranges
) -> str:
    """Both attributes of a value, as far as it has them, with a comma between."""
    texts = [_type(meaning, type_), _calibrated(meaning, ranges)]
    return ", ".join(text for text in texts if text)


def _type(meaning: Meaning | None, type_: TensorType) -> str:
    """`quant.type = !quant.uniform<...>`, per tensor or along the last axis; nothing where the type has no such meaning.

    It has none of centres, of a zero point outside of its integers, nor of a scale that is no normal number.
    """
    if meaning is None or meaning.centres or type_.dtype == "bool":
        return ""
    least, most = DTYPE_RANGES[type_.dtype]
    if not least <= meaning.zero_point <= most:
        return ""
    scales = [meaning.scale * by for by in meaning.channels or (1.0,)]
    if not all(LEAST_SCALE <= scale < inf for scale in scales):
        return ""
    written = ", ".join(f"{x:.17e}:{meaning.zero_point}" for x in scales)
    if not meaning.channels:
        return f"{TYPE} = !quant.uniform<{type_.dtype}:f64, {written}>"
    axis = type_.rank - 1
    return f"{TYPE} = !quant.uniform<{type_.dtype}:f64:{axis}, {{{written}}}>"


def _calibrated(meaning: Meaning | None, ranges: Ranges) -> str:
    """`quant.calibrated = !quant.calibrated<f64<min:max>>`; the type has no range of a single number."""
    low, high = ranges.get(meaning.source if meaning else "", (0.0, 0.0))
    if low == high:
        return ""
    return f"{CALIBRATED} = !quant.calibrated<f64<{low:.17e}:{high:.17e}>>"


def annotate(text: Text, value: MlirValue, given: str) -> None:
    """Give attributes to the operation that defines a value, unless it is an argument or the value of an earlier instruction."""
    place = text.last_lines.pop(value.name, None)
    if given and place is not None:
        head, colon, types = text.lines[place].rpartition(" : (")
        text.lines[place] = f"{head} {{{given}}}{colon}{types}"


def listed(name: str, given: list[str]) -> str:
    """The attributes of all arguments or all results of a function, after a comma; an empty text if none has any."""
    if not any(given):
        return ""
    inside = ", ".join(f"{{{text}}}" for text in given)
    return f", {name} = [{inside}]"
