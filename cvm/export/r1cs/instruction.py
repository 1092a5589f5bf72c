"""One instruction as the writers of constraints see it: the system, the operands as secrets, the types around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cvm.export.r1cs.secret import Secret
from cvm.export.r1cs.system import System
from cvm.program import Attribute, IntArray, TensorType, WithAttributes

Interval = tuple[int, int]


class NoRows(Exception):
    """The instruction has no rows here; the text is the reason."""


@dataclass(frozen=True)
class SecretInstruction(WithAttributes):
    """What a writer is given. `constants` holds the integers of an operand, or None if it is secret."""

    system: System
    name: str
    operands: tuple[Secret, ...]
    constants: tuple[IntArray | None, ...]
    dtypes: tuple[str, ...]
    intervals: tuple[Interval, ...]
    attributes: Mapping[str, Attribute]
    result: TensorType

    def operand(self, index: int) -> Secret:
        """An operand in the shape of the result."""
        return self.operands[index].broadcast(self.result.shape)

    def constant(self, index: int) -> IntArray:
        """The integers of an operand; raises `NoRows` if it is secret."""
        array = self.constants[index]
        if array is None:
            raise NoRows(f"operand {index + 1} is secret")
        return array.astype("i8")


Writer = Callable[[SecretInstruction], Secret]
