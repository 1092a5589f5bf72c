"""One instruction as the writers of C see it, and the C types of its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cvm.program import (
    DTYPE_RANGES,
    DTYPES,
    Attribute,
    IntArray,
    TensorType,
    WithAttributes,
    dtype_name,
)

C_TYPES = {
    "bool": "uint8_t",
    "i8": "int8_t",
    "u8": "uint8_t",
    "i16": "int16_t",
    "i32": "int32_t",
}


@dataclass(frozen=True)
class Operand:
    """What an instruction reads: its type, the dtype it is stored in, and its integers if it is a constant."""

    type: TensorType
    stored: str
    constant: IntArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
        return self.type.shape

    @property
    def array(self) -> IntArray:
        """The integers of a constant, as stored."""
        assert self.constant is not None
        stored = self.constant.astype(DTYPES[self.stored], copy=False)
        return np.ascontiguousarray(stored)

    @property
    def c_type(self) -> str:
        """The C type of an element, as stored."""
        return C_TYPES[self.stored]


@dataclass(frozen=True)
class CInstruction(WithAttributes):
    """One instruction with the types around it."""

    name: str
    operands: tuple[Operand, ...]
    attributes: Mapping[str, Attribute]
    result: TensorType
    fits32: bool = False
    """Of a rescale: its factors are short ones, and its products fit 32 bits."""

    @property
    def c_type(self) -> str:
        """The C type of an element of the result."""
        return C_TYPES[self.result.dtype]


def smallest_dtype(array: IntArray) -> str:
    """The narrowest signed dtype that holds a constant's integers; bool and u8 stay what they are."""
    array_dtype = dtype_name(array)
    if array_dtype in ("bool", "u8"):
        return array_dtype
    least, most = int(array.min()), int(array.max())
    fitting = (
        dtype
        for dtype in ("i8", "i16", "i32")
        if DTYPE_RANGES[dtype][0] <= least and most <= DTYPE_RANGES[dtype][1]
    )
    return next(fitting)


def narrowed(array: IntArray) -> IntArray:
    """The constant in its narrowest dtype."""
    return np.ascontiguousarray(array).astype(DTYPES[smallest_dtype(array)])


def literal(value: int) -> str:
    """An integer as C99 writes it, wide enough on every machine."""
    if value == DTYPE_RANGES["i32"][0]:
        return "INT32_MIN"
    if value == DTYPE_RANGES["i32"][1]:
        return "INT32_MAX"
    return str(value) if abs(value) < 2**15 else f"INT32_C({value})"
