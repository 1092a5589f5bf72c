"""One instruction as the writers of TOSA see it: the graph, its operands, the types around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cvm.export.tosa.builder import ELEMENTS, TosaBuilder, TosaValue
from cvm.program import Attribute, IntArray, TensorType, WithAttributes


@dataclass(frozen=True)
class TosaInstruction(WithAttributes):
    """What a writer is given. `values` and `constants` go by value number; constants are stored when they are read."""

    graph: TosaBuilder
    operands: tuple[int, ...]
    types: tuple[TensorType, ...]
    intervals: tuple[tuple[int, int], ...]
    result: TensorType
    attributes: Mapping[str, Attribute]
    values: dict[int, TosaValue]
    constants: Mapping[int, IntArray]

    @property
    def element(self) -> str:
        """The element type of the result."""
        return ELEMENTS[self.result.dtype]

    @property
    def all(self) -> list[TosaValue]:
        """Every operand."""
        return [self.operand(index) for index in range(len(self.operands))]

    def operand(self, index: int) -> TosaValue:
        """An operand, in its own type."""
        number = self.operands[index]
        if number not in self.values:
            array = self.constants[number]
            self.values[number] = self.graph.of_array(array)
        return self.values[number]

    def constant(self, index: int) -> IntArray:
        """The integers of an operand that the list of instructions calls constant."""
        return self.constants[self.operands[index]]

    def write(
        self, operator: str, *operands: TosaValue | str, **more: Any
    ) -> TosaValue:
        """Add the operator whose value is the result."""
        shape = self.result.shape
        return self.graph.operation(
            operator, operands, self.element, shape, **more
        )


Writer = Callable[[TosaInstruction], TosaValue]


def plain(operator: str, **attributes: Any) -> Writer:
    """One operator over all operands, whose meaning is the instruction's."""

    def write(instruction: TosaInstruction) -> TosaValue:
        return instruction.write(operator, *instruction.all, **attributes)

    return write
