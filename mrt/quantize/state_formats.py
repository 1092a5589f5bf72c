"""The formats of states: an output that is an input of the next step has that input's format, so that it passes unchanged.

A state keeps the least and the greatest number measured, and where only products read it, it has
the bits that products read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.tensor import Format, Interval

MOVEMENT = frozenset(
    {"Reshape", "Transpose", "Slice", "Tile", "Expand", "Concat", "Where"}
)
"""Operators that pass a state on to its readers."""
FROM_ONE = frozenset({"Reshape", "Transpose", "Slice"})
"""Operators whose only computed operand has the same numbers as their result."""


class Formats(Protocol):
    """What chooses formats: the context of the lowering."""

    options: QuantizeOptions

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
    def of(graph: ir.Graph, states: Mapping[str, str]) -> StateFormats:
        """Find the values of every state in a canonical graph."""
        inputs = {name_of(value): value for value in graph.inputs}
        outputs = {name_of(value): value for value in graph.outputs}
        values: dict[str, tuple[str, ...]] = {}
        of_products: set[str] = set()
        for name, output in states.items():
            if name not in inputs or output not in outputs:
                continue
            made = list(_made_of(outputs[output]))
            values[name] = tuple(map(name_of, made))
            if all(map(_only_products_read, (inputs[name], *made))):
                of_products.add(name)
        return StateFormats(values, frozenset(of_products))

    def declare(self, name: str, formats: Formats) -> Format:
        """Choose the format of an input, which is then that of all values of its state."""
        options = formats.options
        bits = options.activation_bits_of(name)
        if name in self.of_products:
            bits = options.product_bits_of(name)
        everything = (-math.inf, math.inf)
        chosen = formats.format_for(
            name, bits, interval=everything, clipped=False
        )
        self.formats.update(dict.fromkeys(self.values[name], chosen))
        return chosen


def _made_of(value: ir.Value) -> Iterator[ir.Value]:
    """An output, and the values that it is moved from."""
    yield value
    node = value.producer()
    if node is not None and node.op_type in FROM_ONE and node.inputs[0]:
        yield from _made_of(node.inputs[0])


def _only_products_read(value: ir.Value) -> bool:
    """Whether every reader, behind operators that move numbers, is a product of two computed matrices."""
    waiting, seen = [value], {value}
    while waiting:
        for use in waiting.pop().uses():
            if use.node.op_type == "MatMul":
                continue
            if use.node.op_type not in MOVEMENT:
                return False
            fresh = [item for item in use.node.outputs if item not in seen]
            seen.update(fresh)
            waiting.extend(fresh)
    return True
