"""The real numbers that integers stand for, as MLIR's `quant` types: attributes by which nothing is computed."""

from __future__ import annotations

from math import inf

from cvm.export.mlir.text import MlirValue, Text
from cvm.program import DTYPE_RANGES, Meaning, TensorType

NAME = "quant.type"
LEAST_SCALE = 2.0**-1022  # MLIR takes no smaller one


def attribute(meaning: Meaning | None, type_: TensorType) -> str:
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
        return f"{NAME} = !quant.uniform<{type_.dtype}:f64, {written}>"
    axis = type_.rank - 1
    return f"{NAME} = !quant.uniform<{type_.dtype}:f64:{axis}, {{{written}}}>"


def annotate(
    text: Text, value: MlirValue, meaning: Meaning | None, type_: TensorType
) -> None:
    """Give the attribute to the operation that defines a value, unless an argument or a value before it is that value."""
    given = attribute(meaning, type_)
    place = text.ends.pop(value.name, None)
    if given and place is not None:
        head, colon, types = text.lines[place].rpartition(" : (")
        text.lines[place] = f"{head} {{{given}}}{colon}{types}"


def listed(
    name: str, meanings: list[Meaning | None], types: list[TensorType]
) -> str:
    """The attributes of all arguments or all results of a function, after a comma; nothing if none has any."""
    pairs = zip(meanings, types, strict=True)
    found = [attribute(meaning, type_) for meaning, type_ in pairs]
    if not any(found):
        return ""
    inside = ", ".join(f"{{{item}}}" for item in found)
    return f", {name} = [{inside}]"
