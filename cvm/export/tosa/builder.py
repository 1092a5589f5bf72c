"""A TOSA graph being written: operators in order, each constant once, every value with its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvm.program import IntArray
from cvm.tosa.graph import TosaOperator, TosaShape, TosaTensor

ELEMENTS = {
    "bool": "BOOL",
    "i8": "INT8",
    "u8": "INT8",
    "i16": "INT16",
    "i32": "INT32",
}
STORAGE = {
    "BOOL": np.dtype(np.bool_),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT48": np.dtype("<i8"),
}


@dataclass(frozen=True)
class TosaValue:
    """A tensor of the graph."""

    name: str
    element: str
    shape: tuple[int, ...]


@dataclass
class TosaBuilder:
    """What has been written. Every operator has one result."""

    taken: set[str]
    tensors: list[TosaTensor] = field(default_factory=list)
    shapes: dict[tuple[int, ...], TosaShape] = field(default_factory=dict)
    operators: list[TosaOperator] = field(default_factory=list)
    interned: dict[tuple[Any, ...], TosaValue] = field(default_factory=dict)

    def operation(
        self,
        operator: str,
        operands: Sequence[TosaValue | str],
        element: str,
        shape: Sequence[int],
        **attributes: Any,
    ) -> TosaValue:
        """Add an operator; a text among the operands is the name of a shape."""
        result = self.value(self._fresh("v"), element, shape)
        self.connect(operator, operands, result, **attributes)
        return result

    def connect(
        self,
        operator: str,
        operands: Sequence[TosaValue | str],
        result: TosaValue,
        **attributes: Any,
    ) -> None:
        """Add an operator whose result is an existing tensor."""
        names = tuple(
            operand if isinstance(operand, str) else operand.name
            for operand in operands
        )
        written = TosaOperator(operator, names, (result.name,), attributes)
        self.operators.append(written)

    def value(
        self, name: str, element: str, shape: Sequence[int], data: bytes = b""
    ) -> TosaValue:
        """Add a tensor."""
        self.taken.add(name)
        sizes = tuple(int(size) for size in shape)
        self.tensors.append(TosaTensor(name, element, sizes, data))
        return TosaValue(name, element, sizes)

    def constant(self, values: IntArray, element: str) -> TosaValue:
        """A constant; equal ones exist once."""
        stored = np.array(values, STORAGE[element], order="C")
        key = (element, stored.shape, stored.tobytes())
        if key not in self.interned:
            data = _packed(stored) if element == "INT48" else stored.tobytes()
            name = self._fresh("c")
            value = self.value(name, element, stored.shape, data)
            self.connect("CONST", [], value)
            self.interned[key] = value
        return self.interned[key]

    def of_array(self, values: IntArray) -> TosaValue:
        """A constant of the program; bytes without sign become those with the same bits."""
        if values.dtype == np.uint8:
            values = values.view(np.int8)
        codes = {dtype.str[1:]: name for name, dtype in STORAGE.items()}
        return self.constant(values, codes[values.dtype.str[1:]])

    def one(self, value: int, element: str) -> TosaValue:
        """A constant with one element, as TOSA takes zero points."""
        return self.constant(np.array([value]), element)

    def splat(self, value: int, element: str, rank: int) -> TosaValue:
        """A constant with one element that broadcasts."""
        return self.constant(np.full((1,) * rank, value), element)

    def sizes(self, values: Sequence[int]) -> str:
        """The name of a constant shape."""
        key = tuple(map(int, values))
        if key not in self.shapes:
            shape = TosaShape(self._fresh("s"), len(key), key)
            self.shapes[key] = shape
            self.operators.append(
                TosaOperator("CONST_SHAPE", (), (shape.name,))
            )
        return self.shapes[key].name

    def reshape(self, x: TosaValue, shape: Sequence[int]) -> TosaValue:
        """The same elements in another shape."""
        if x.shape == tuple(shape):
            return x
        operands: list[TosaValue | str] = [x, self.sizes(shape)]
        return self.operation("RESHAPE", operands, x.element, shape)

    def cast(self, x: TosaValue, element: str) -> TosaValue:
        """The same integers in another element type; to fewer bits it keeps the low ones."""
        if x.element == element:
            return x
        return self.operation("CAST", [x], element, x.shape)

    def _fresh(self, letter: str) -> str:
        number = len(self.tensors) + len(self.shapes)
        while f"{letter}{number}" in self.taken:
            number += 1
        name = f"{letter}{number}"
        self.taken.add(name)
        return name


def _packed(values: IntArray) -> bytes:
    """Integers of 48 bits: the low six bytes of each."""
    wide = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return wide.reshape(-1, 8)[:, :6].tobytes()
