"""Finds how wide the interval of an integer input may be declared: as far as all exact arithmetic on it is proven.

Samples state no end of such an input: a time stamp of tomorrow lies beyond all of them, and is
computed as exactly as one of today.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np
import onnx_ir as ir

from cvm.errors import Invalid
from cvm.program import DTYPE_RANGES, Input, Meaning, TensorType
from mrt.errors import Unsupported
from mrt.graph.canonical_values import is_constant, name_of, shape_of
from mrt.graph.operators import (
    ARITHMETIC_OF_INTEGER_NUMBERS,
    COMPARISONS,
    LOOKUPS,
    MOVEMENT,
)
from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.lowering import lower
from mrt.quantize.tensor import Tensor, identity

Ends = tuple[int, int]
_FOLLOWED = ARITHMETIC_OF_INTEGER_NUMBERS | MOVEMENT | {"Cast", "Where"}
_LEAST, _MOST = DTYPE_RANGES["i32"]
_HALVINGS = 32


class _Use(Enum):
    """What a node makes of an integer that it reads."""

    COMPUTES = auto()  # another integer or a boolean, exactly
    INDEXES = auto()  # a place in a table, clamped to its axis
    CASTS = auto()  # a float


@dataclass
class _Region:
    """The nodes that compute integers from one input, their results, and the values that floats are made of."""

    nodes: set[ir.Node] = field(default_factory=set)
    values: set[ir.Value] = field(default_factory=set)
    cast_to_floats: set[ir.Value] = field(default_factory=set)

    def ordered(self) -> list[ir.Node]:
        """Return the nodes in the order of their graph."""
        graph = next((node.graph for node in self.nodes), None)
        return [node for node in graph or () if node in self.nodes]

    def computes_from_booleans(self, node: ir.Node) -> bool:
        """Whether a reader of a boolean computes from the region alone; whatever else reads one has it as it is."""
        has_no_float = node.outputs[0].dtype not in (None, ir.DataType.FLOAT)
        return has_no_float and all(map(self._holds, node.inputs))

    def _holds(self, value: ir.Value | None) -> bool:
        return value is None or value in self.values or is_constant(value)

    def is_alone(self) -> bool:
        """Whether arithmetic is done, and all of it with the one input and constants."""
        operands = [it for node in self.nodes for it in node.inputs]
        operators = {node.op_type for node in self.nodes}
        does_arithmetic = bool(operators & ARITHMETIC_OF_INTEGER_NUMBERS)
        return does_arithmetic and all(map(self._holds, operands))


def widest_interval(
    net: LoweringContext, value: ir.Value, measured: Ends
) -> Ends:
    """Return the measured interval, or the widest around it for which all that is computed exactly is proven.

    It starts at 0 where nothing negative was measured. Floats may only be made of what is as
    narrow as before, such as a remainder: the ends of all others are those of the samples.
    """
    region = _region_of(value)
    if (
        region is None
        or net.options.has_few_bits
        or name_of(value) in net.states.values
    ):
        return measured
    before = _bounds_of_floats(net, value, region, measured)
    least, most = measured
    for halvings in range(_HALVINGS if before is not None else 0):
        wide = (
            0 if least >= 0 else min(least, _LEAST >> halvings),
            max(most, _MOST >> halvings),
        )
        if _bounds_of_floats(net, value, region, wide) == before:
            return wide
    return measured


def _region_of(value: ir.Value) -> _Region | None:
    """Return what computes integers from an input; None if anything else reads it, or no arithmetic is done."""
    if not _holds_integers(value):
        return None
    region, waiting = _Region(values={value}), [value]
    while waiting:
        read = waiting.pop()
        for node, index in read.uses():
            result = node.outputs[0]
            if read.dtype == ir.DataType.BOOL:
                computes = region.computes_from_booleans(node)
            else:
                use = _use(node, index)
                if use is None:
                    return None
                if use is _Use.CASTS:
                    region.cast_to_floats.add(read)
                computes = use is _Use.COMPUTES
            if computes and node not in region.nodes:
                region.nodes.add(node)
                region.values.add(result)
                waiting.append(result)
    return region if region.is_alone() else None


def _use(node: ir.Node, index: int) -> _Use | None:
    """Return what a node makes of the integer that is its operand at `index`; None where it does not compute exactly."""
    operator, result = node.op_type, node.outputs[0]
    if operator in LOOKUPS:
        return _Use.INDEXES if index == 1 else None
    if operator == "Cast" and result.dtype == ir.DataType.FLOAT:
        return _Use.CASTS
    if operator in COMPARISONS:
        return _Use.COMPUTES
    is_exact = operator in _FOLLOWED and _holds_integers(result)
    if result.dtype == ir.DataType.BOOL:
        is_exact = operator == "Cast"
    return _Use.COMPUTES if is_exact else None


def _bounds_of_floats(
    net: LoweringContext, value: ir.Value, region: _Region, ends: Ends
) -> dict[str, Ends] | None:
    """Return the proven ends of what floats are made of, for an interval of the input; None if anything is not proven."""
    trial = LoweringContext(net.table, net.options)
    name, shape = name_of(value), shape_of(value)
    declared = Input(name, TensorType("i32", shape), *ends)
    handle = trial.builder.input(declared, Meaning(1.0, 0, name))
    trial.define(value, Tensor(handle, np.ones(1), 0, identity(len(shape))))
    try:
        for node in region.ordered():
            lower(trial, node)
    except (Invalid, Unsupported):
        return None
    bounds = trial.builder.bounds
    proven = {
        it: bounds[trial.as_computed(it).value] for it in region.cast_to_floats
    }
    return {name_of(it): (ends.min, ends.max) for it, ends in proven.items()}


def _holds_integers(value: ir.Value) -> bool:
    """Whether a value has a type of integers."""
    return value.dtype not in (None, ir.DataType.FLOAT, ir.DataType.BOOL)
