"""One instruction as the writers of MLIR see it: the text, its operands, the types around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cvm.export.mlir.text import ELEMENTS, MlirValue, Text
from cvm.program import Attribute, IntArray, TensorType, WithAttributes


@dataclass(frozen=True)
class MlirInstruction(WithAttributes):
    """What a writer is given. `values` and `constants` go by value number; constants are stored when they are read."""

    text: Text
    operands: tuple[int, ...]
    types: tuple[TensorType, ...]
    intervals: tuple[tuple[int, int], ...]
    result: TensorType
    attributes: Mapping[str, Attribute]
    values: dict[int, MlirValue]
    constants: Mapping[int, IntArray]

    @property
    def element(self) -> str:
        """The element type of the result."""
        return ELEMENTS[self.result.dtype]

    @property
    def all(self) -> list[MlirValue]:
        """Every operand."""
        return [self.operand(index) for index in range(len(self.operands))]

    def operand(self, index: int) -> MlirValue:
        """An operand, in its own type."""
        number = self.operands[index]
        if number not in self.values:
            self.values[number] = self.text.constant(self.constants[number])
        return self.values[number]

    def constant(self, index: int) -> IntArray:
        """The integers of an operand that the list of instructions calls constant."""
        return self.constants[self.operands[index]]

    def write(
        self, operator: str, *operands: MlirValue, **more: str
    ) -> MlirValue:
        """Add the operation whose value is the result."""
        shape = self.result.shape
        return self.text.operation(
            operator, operands, self.element, shape, **more
        )


Writer = Callable[[MlirInstruction], MlirValue]


def plain(operator: str) -> Writer:
    """One operation of TOSA over all operands, whose meaning is the instruction's."""

    def write(instruction: MlirInstruction) -> MlirValue:
        return instruction.write(f"tosa.{operator}", *instruction.all)

    return write
