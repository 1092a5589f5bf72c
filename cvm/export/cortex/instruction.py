"""One instruction as the writers of Cortex's graph see it: the graph, the operands as values, the types around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cvm.export.cortex.graph import CortexGraph, CortexValue
from cvm.program import Attribute, IntArray, TensorType, WithAttributes


@dataclass(frozen=True)
class CortexInstruction(WithAttributes):
    """What a writer is given. An operand is a value or, if it is a constant, its integers."""

    graph: CortexGraph
    operands: tuple[CortexValue | IntArray, ...]
    types: tuple[TensorType, ...]
    result: TensorType
    interval: tuple[int, int]
    attributes: Mapping[str, Attribute]

    def value(self, index: int) -> CortexValue:
        """An operand; integers become a parameter."""
        operand = self.operands[index]
        if isinstance(operand, CortexValue):
            return operand
        return self.graph.parameter(
            operand.reshape(shape_of(self.types[index]))
        )

    def constant_or_none(self, index: int) -> IntArray | None:
        """The integers of an operand, in 64 bits; None if it is computed."""
        operand = self.operands[index]
        if isinstance(operand, CortexValue):
            return None
        return operand.astype(np.int64)

    def constant(self, index: int) -> IntArray:
        """The integers of an operand that the list of instructions calls constant."""
        array = self.constant_or_none(index)
        assert array is not None
        return array

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the result."""
        return shape_of(self.result)


def shape_of(type_: TensorType) -> tuple[int, ...]:
    """The dimensions in Cortex, which has no rank 0."""
    return type_.shape or (1,)


def narrowed(value: CortexValue, interval: tuple[int, int]) -> CortexValue:
    """The same value, in the intersection of its interval and another one that is proven."""
    low, high = value.interval
    return replace(
        value, interval=(max(low, interval[0]), min(high, interval[1]))
    )
