"""Programs as plain frozen data, with the intervals and the rounding rules that every other room of `cvm` shares."""

from cvm.program.attributes import Attribute, WithAttributes
from cvm.program.program import (
    DTYPE_CODES,
    DTYPE_RANGES,
    DTYPES,
    ENDLESS,
    MAX_CHANNELS,
    MAX_ELEMENTS,
    MAX_RANK,
    Input,
    Instruction,
    IntArray,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
    dtype_name,
    fits_4_bits,
)

__all__ = [
    "DTYPES",
    "DTYPE_CODES",
    "DTYPE_RANGES",
    "ENDLESS",
    "MAX_CHANNELS",
    "MAX_ELEMENTS",
    "MAX_RANK",
    "Attribute",
    "Input",
    "Instruction",
    "IntArray",
    "Meaning",
    "Metadata",
    "Output",
    "Program",
    "TensorType",
    "WithAttributes",
    "dtype_name",
    "fits_4_bits",
]
