"""One operator as the rules of import see it: its operands as values of the program, its attributes, its declared result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cvm.errors import BadInput, brief
from cvm.program import IntArray
from cvm.tosa.graph import TosaOperator, TosaTensor
from cvm.tosa.importing.draft import DraftValue, ProgramDraft

Operand = DraftValue | tuple[int, ...]  # a tensor, or a constant shape


@dataclass(frozen=True)
class TosaReading:
    """What a rule is given."""

    draft: ProgramDraft
    operator: TosaOperator
    operands: tuple[Operand, ...]
    declared: TosaTensor

    @property
    def values(self) -> tuple[DraftValue, ...]:
        """Every operand that is a tensor."""
        return tuple(
            operand
            for operand in self.operands
            if isinstance(operand, DraftValue)
        )

    @property
    def x(self) -> DraftValue:
        """The first operand."""
        return self.values[0]

    def name(self, index: int) -> str:
        """The name of an operand that is a tensor."""
        names = [
            name
            for name, operand in zip(
                self.operator.inputs, self.operands, strict=True
            )
            if isinstance(operand, DraftValue)
        ]
        return brief(names[index])

    def constant(self, index: int) -> IntArray:
        """The elements of an operand that must be a constant."""
        array = self.values[index].constant
        if array is None:
            raise BadInput(
                f"{self.name(index)} is computed; it must be a constant"
            )
        return array

    def one(self, index: int) -> int:
        """A constant with one element, such as a zero point."""
        array = self.constant(index)
        if array.shape != (1,):
            raise BadInput(
                f"{self.name(index)} has the shape {list(array.shape)}; expected [1]"
            )
        return int(array[0])

    def sizes(self, index: int) -> tuple[int, ...]:
        """The integers of an operand that is a shape."""
        operand = self.operands[index]
        assert isinstance(operand, tuple)
        return operand

    def integer(self, name: str) -> int:
        """An attribute; absent is 0."""
        return int(self.operator.attributes.get(name, 0))

    def integers(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list."""
        return tuple(self.operator.attributes.get(name, ()))

    def bits(self, name: str) -> int:
        """An attribute that is the bytes of one integer of x's type; Arm's serializer adds bytes of 0."""
        data = self.operator.attributes.get(name, b"")
        width = {"i8": 1, "i16": 2}[self.x.type.dtype]
        if len(data) < width or any(data[width:]):
            raise BadInput(f"{name} has {len(data)} bytes; expected {width}")
        return int.from_bytes(data[:width], "little", signed=True)


Rule = Callable[[TosaReading], DraftValue]
