"""The constants of a program as arrays of C: equal ones exist once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cvm.export.c.instruction import C_TYPES
from cvm.program import IntArray, dtype_name

NUMBERS_A_LINE = 20


@dataclass
class Constants:
    """Arrays by their dtype and integers, in order of their first use."""

    names: dict[tuple[str, bytes], str] = field(default_factory=dict)
    arrays: list[IntArray] = field(default_factory=list)

    def name(self, array: IntArray) -> str:
        """The name of an array of C with these integers."""
        key = (dtype_name(array), array.tobytes())
        if key not in self.names:
            self.names[key] = f"c{len(self.arrays)}"
            self.arrays.append(array)
        return self.names[key]

    @property
    def size(self) -> int:
        """The bytes of all."""
        return sum(array.nbytes for array in self.arrays)

    def text(self) -> str:
        """The definitions."""
        named = zip(self.names.values(), self.arrays, strict=True)
        return "\n".join(_definition(name, array) for name, array in named)


def _definition(name: str, array: IntArray) -> str:
    c_type = C_TYPES[dtype_name(array)]
    numbers = [
        "INT32_MIN" if number == -(2**31) else str(number)
        for number in array.astype(np.int64).reshape(-1).tolist()
    ]
    rows = [
        ", ".join(numbers[start : start + NUMBERS_A_LINE])
        for start in range(0, len(numbers), NUMBERS_A_LINE)
    ]
    body = ",\n".join(rows)
    return f"static const {c_type} {name}[{array.size}] = {{\n{body}\n}};"
