"""The parts of a program, as frozen data without behaviour. `cvm/SPEC.md` section 2 has their meaning.

Values are numbered in one sequence: the inputs, then the constants, then one per instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cvm.program.attributes import Attribute, WithAttributes

IntArray = npt.NDArray[
    Any
]  # bool, i8, u8, i16, i32 where it is a value; i64 inside a computation

DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
}
DTYPE_CODES = {"bool": 0, "i8": 1, "u8": 2, "i16": 3, "i32": 4}
DTYPE_RANGES = {
    "bool": (0, 1),
    "i8": (-128, 127),
    "u8": (0, 255),
    "i16": (-32768, 32767),
    "i32": (-(2**31), 2**31 - 1),
}
MAX_RANK = 6
MAX_ELEMENTS = 2**31 - 1
MAX_CHANNELS = (
    65536  # intervals are kept per index of the last axis up to this many
)


def dtype_name(array: IntArray) -> str:
    """The program dtype of a numpy array; KeyError for a dtype that programs do not have."""
    return {
        "|b1": "bool",
        "|i1": "i8",
        "|u1": "u8",
        "<i2": "i16",
        "<i4": "i32",
    }[array.dtype.newbyteorder("<").str]


def fits_4_bits(array: IntArray) -> bool:
    """Whether a file can store a constant in 4 bits an element: i8, in -8..7."""
    if array.dtype != np.int8 or not array.size:
        return False
    return bool(array.min() >= -8 and array.max() <= 7)


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dtype and a static shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """The number of elements, exact at any size."""
        count = 1
        for dimension in self.shape:
            count *= dimension
        return count

    @property
    def channels(self) -> int:
        """How many intervals a proof keeps for this tensor: one per index of the last axis, or one for all."""
        return (
            self.shape[-1]
            if self.shape and self.shape[-1] <= MAX_CHANNELS
            else 1
        )

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Input:
    """A named operand of the whole program; integers outside [lo, hi] are refused before anything runs."""

    name: str
    type: TensorType
    lo: int
    hi: int


@dataclass(frozen=True, slots=True)
class Output:
    """A named result: the value of one instruction."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class Instruction(WithAttributes):
    """One step: reads earlier values, defines exactly one value."""

    name: str
    operands: tuple[int, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(frozen=True)
class Meaning:
    """The meaning of an integer: real = scale * (integer - zero_point). `source` names the float tensor.

    With `channels`, the scale of index i of the last axis is scale * channels[i]; with `centres`
    (as many), centres[i] is added. Inputs have no centres, and outputs neither.
    """

    scale: float
    zero_point: int
    source: str = ""
    channels: tuple[float, ...] = ()
    centres: tuple[float, ...] = ()


ENDLESS = "endless:"
"""Before an input's name, the key of a provenance entry: numbers beyond its interval give the same outputs as the nearer end."""


@dataclass(frozen=True)
class Metadata:
    """Data that no result depends on: meanings of inputs, outputs and values, labels, provenance."""

    inputs: Mapping[str, Meaning] = field(default_factory=dict)
    outputs: Mapping[str, Meaning] = field(default_factory=dict)
    values: Mapping[int, Meaning] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """Inputs, constants and instructions in order, and which values are the outputs.

    `packed` are the constants, by index, that the file stores in 4 bits an element.
    """

    inputs: tuple[Input, ...]
    constants: tuple[IntArray, ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[Output, ...]
    metadata: Metadata | None = None
    packed: frozenset[int] = frozenset()

    @property
    def first_constant(self) -> int:
        """Value number of constant 0."""
        return len(self.inputs)

    @property
    def first_instruction(self) -> int:
        """Value number of the first instruction's result."""
        return len(self.inputs) + len(self.constants)

    def provenance_of(self, key: str) -> str | None:
        """The provenance under this key; None without such an entry."""
        return (
            None if self.metadata is None else self.metadata.provenance.get(key)
        )

    def last_uses(self) -> dict[int, int]:
        """For every value that an instruction reads: the index of the last one that does."""
        return {
            value: index
            for index, instruction in enumerate(self.instructions)
            for value in instruction.operands
        }
