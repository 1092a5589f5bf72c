"""One instruction as its rule receives it: operand types, constants, attributes and, for bounds, intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cvm.errors import Invalid, Unproven
from cvm.program import Attribute, IntArray, TensorType, WithAttributes
from cvm.program.bounds import Bounds


@dataclass(frozen=True)
class Call(WithAttributes):
    """One instruction as `check_x` and `bound_x` see it. `bounds` and `result` are set only when bounding."""

    name: str
    types: tuple[TensorType, ...]
    constants: tuple[IntArray | None, ...]
    attributes: Mapping[str, Attribute]
    bounds: tuple[Bounds, ...] = ()
    result: TensorType | None = None

    def require(self, holds: bool, constraint: str, message: str) -> None:
        """Raise `Invalid` naming `<instruction>.<constraint>` unless the rule holds."""
        if not holds:
            raise Invalid(f"{self.name}.{constraint}", message)

    def prove(self, holds: bool, constraint: str, message: str) -> None:
        """Raise `Unproven` naming `<instruction>.<constraint>` unless the interval fits."""
        if not holds:
            raise Unproven(f"{self.name}.{constraint}", message)

    def constant(self, index: int) -> IntArray:
        """An operand that validation has already shown to be a constant."""
        value = self.constants[index]
        assert value is not None
        return value
