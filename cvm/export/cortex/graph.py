"""A graph of Cortex's operators being written, with the precision that the runtime infers and the interval that is proven.

A precision of p bits holds |v| <= 2^(p-1) - 1. The runtime's rules for it are coarser than a proof: where an operator's rule
would leave 32 bits, a `cvm_clip` that changes no proven value brings the precision down first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from cvm.program import IntArray

MAX_PRECISION = 32
MAX_DIMENSION = 2**24
MAX_ELEMENTS = 2**30
MAX_ATTRIBUTE = 4096
Interval = tuple[int, int]


class Refused(Exception):
    """Raised where an instruction has no equal in Cortex; the text is the reason."""


def bits(interval: Interval) -> int:
    """The least precision that holds every integer of an interval."""
    return max(abs(end) for end in interval).bit_length() + 1


@dataclass(frozen=True)
class CortexValue:
    """The result of a node: its shape, the precision that the runtime infers, the interval that is proven."""

    node: int
    shape: tuple[int, ...]
    precision: int
    interval: Interval


@dataclass(frozen=True)
class CortexNode:
    """An operator, or a variable, which has no operator: the input, or a parameter with its integers."""

    operator: str
    inputs: tuple[int, ...]
    attributes: dict[str, str]
    shape: tuple[int, ...]
    precision: int
    array: IntArray | None = None


@dataclass
class CortexGraph:
    """Nodes in order; the input is the first."""

    nodes: list[CortexNode] = field(default_factory=list)
    parameters: dict[tuple[Any, ...], CortexValue] = field(default_factory=dict)
    clipped: dict[int, tuple[CortexValue, Interval]] = field(
        default_factory=dict
    )
    shifted: dict[int, tuple[CortexValue, int]] = field(default_factory=dict)

    def data(self, shape: tuple[int, ...], interval: Interval) -> CortexValue:
        """The input."""
        return self._added("", (), {}, shape, bits(interval), interval, None)

    def parameter(self, array: IntArray) -> CortexValue:
        """Fixed integers; equal ones exist once."""
        array = np.ascontiguousarray(array, np.int64)
        key = (array.shape, array.tobytes())
        if key not in self.parameters:
            interval = int(array.min()), int(array.max())
            self.parameters[key] = self._added(
                "", (), {}, array.shape, bits(interval), interval, array
            )
        return self.parameters[key]

    def number(self, value: int, rank: int) -> CortexValue:
        """One integer that broadcasts over a rank."""
        return self.parameter(np.full((1,) * rank, value, np.int64))

    def node(
        self,
        operator: str,
        values: tuple[CortexValue, ...],
        precision: int,
        interval: Interval,
        shape: tuple[int, ...] = (),
        /,
        **attributes: Any,
    ) -> CortexValue:
        """Add an operator; its result has the first operand's shape unless one is given."""
        texts = {name: str(value) for name, value in attributes.items()}
        inputs = tuple(value.node for value in values)
        shape = shape or values[0].shape
        return self._added(
            operator, inputs, texts, shape, precision, interval, None
        )

    def tight(self, x: CortexValue, most: int) -> CortexValue:
        """The same integers with a precision of at most so many bits."""
        if x.precision <= most:
            return x
        needed = bits(x.interval)
        if needed > most:
            low, high = x.interval
            raise Refused(
                f"{low}..{high} needs {needed} bits where Cortex takes {most}"
            )
        return self.node("cvm_clip", (x,), needed, x.interval, precision=needed)

    def _added(
        self,
        operator: str,
        inputs: tuple[int, ...],
        attributes: dict[str, str],
        shape: tuple[int, ...],
        precision: int,
        interval: Interval,
        array: IntArray | None,
    ) -> CortexValue:
        if precision > MAX_PRECISION:
            subject = operator or "a value"
            raise Refused(
                f"{subject} would have {precision} bits, and Cortex has 32"
            )
        if not 1 <= len(shape) <= 6 or max(shape) > MAX_DIMENSION:
            raise Refused(f"the shape {list(shape)} is beyond Cortex's limits")
        if prod(shape) > MAX_ELEMENTS:
            raise Refused(f"the shape {list(shape)} is beyond Cortex's limits")
        self.nodes.append(
            CortexNode(operator, inputs, attributes, shape, precision, array)
        )
        return CortexValue(len(self.nodes) - 1, shape, precision, interval)
