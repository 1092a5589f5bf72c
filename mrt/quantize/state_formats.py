"""The formats of states: an output that is an input of the next step has that input's format, so that it passes unchanged.

A state keeps the least and the greatest number measured, and where only products read it, it has
the bits that products read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.graph.values import moved_from, producer
from mrt.quantize.lowering_plan import LoweringPlan
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.tensor import Format, Interval
from mrt.table.table import MeasuredRange

PASS_STATES_ON = frozenset(
    {"Reshape", "Transpose", "Slice", "Tile", "Expand", "Concat", "Where"}
)
"""Operators that pass a state on to its readers."""
NEARLY = 0.01
"""By how much of a state's range the value that it is a slice of may reach beyond it."""
RangeOf = Callable[[str], MeasuredRange | None]
"""The measured range of a value."""


class Formats(Protocol):
    """What chooses formats: the context of the lowering."""

    options: QuantizeOptions
    plan: LoweringPlan

    def format_for(
        self, name: str, bits: int, *, interval: Interval, clipped: bool
    ) -> Format:
        """Return the format of a value at a given precision."""


@dataclass(frozen=True)
class StateFormats:
    """By input: the values that have its format. `formats` has those of the inputs declared so far, by value."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of_products: frozenset[str] = frozenset()
    formats: dict[str, Format] = field(default_factory=dict)

    @staticmethod
    def of(
        graph: ir.Graph, states: Mapping[str, str], range_of: RangeOf
    ) -> StateFormats:
        """Find the values of every state in a canonical graph."""
        inputs = {name_of(value): value for value in graph.inputs}
        outputs = {name_of(value): value for value in graph.outputs}
        values: dict[str, tuple[str, ...]] = {}
        of_products: set[str] = set()
        for name, output in states.items():
            if name not in inputs or output not in outputs:
                continue
            sources = list(_values_of_state(outputs[output], range_of))
            values[name] = tuple(map(name_of, sources))
            if all(map(_only_products_read, (inputs[name], *sources))):
                of_products.add(name)
        return StateFormats(values, frozenset(of_products))

    def declare(self, name: str, formats: Formats) -> Format:
        """Choose the format of an input, which is then that of all values of its state."""
        options = formats.options
        bits = options.activation_bits_of(name)
        if name in self.of_products:
            bits = options.product_bits_of(name)
        if not formats.plan.of_16_bits.isdisjoint(self.values[name]):
            bits = max(bits, 16)
        everything = (-math.inf, math.inf)
        chosen = formats.format_for(
            name, bits, interval=everything, clipped=False
        )
        self.formats.update(dict.fromkeys(self.values[name], chosen))
        return chosen


def _values_of_state(output: ir.Value, range_of: RangeOf) -> Iterator[ir.Value]:
    """Yield an output, and the values it was reshaped, transposed or sliced from that may share its format."""
    yield output
    for moved, source in pairwise(moved_from(output)):
        is_slice = producer(moved, "Slice") is not None
        if is_slice and not _holds_the_rest(moved, source, range_of):
            return
        yield source


def _holds_the_rest(part: ir.Value, full: ir.Value, range_of: RangeOf) -> bool:
    """Return whether the range of a slice also holds what was cut off, as that of a cache holds the place it gives up."""
    full_range = range_of(name_of(full))
    part_range = range_of(name_of(part))
    if full_range is None or part_range is None:
        return False
    more = NEARLY * (part_range.max - part_range.min)
    return (
        part_range.min - more <= full_range.min
        and full_range.max <= part_range.max + more
    )


def _only_products_read(value: ir.Value) -> bool:
    """Whether every reader, behind operators that move numbers, is a product of two computed matrices."""
    waiting, seen = [value], {value}
    while waiting:
        for use in waiting.pop().uses():
            if use.node.op_type == "MatMul":
                continue
            if use.node.op_type not in PASS_STATES_ON:
                return False
            fresh = [
                output for output in use.node.outputs if output not in seen
            ]
            seen.update(fresh)
            waiting.extend(fresh)
    return True
