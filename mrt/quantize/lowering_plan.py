"""What is decided about the values of a graph before any instruction is written; the rules ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mrt.table.table import MeasuredRange


@dataclass(frozen=True)
class LoweringPlan:
    """Names of values that have more bits than others, or another form."""

    output_path: frozenset[str] = frozenset()
    """They keep 16 bits, up to an output that is made of them by moving elements, sums and curves."""

    of_16_bits: frozenset[str] = frozenset()
    """Gates and states of recurrences, which have 16 bits where the options have fewer."""

    shared_ranges: frozenset[str] = frozenset()
    """Measured as one with others, so that no format may depend on what is proven of one of them alone."""

    centrable: frozenset[str] = frozenset()
    """Images whose channels may have centres."""

    masked: frozenset[str] = frozenset()
    """Their range ends above their masks, or without their fills: other numbers saturate."""

    filled: Mapping[str, MeasuredRange] = field(default_factory=dict)
    """Of masked pooling: the ranges without fills, of what is filled and of what moves it."""

    wide: frozenset[str] = frozenset()
    """They keep the bits of their accumulators when they are moved."""

    wide_products: frozenset[str] = frozenset()
    """Products of a wide value and weights without scales of channels."""

    coded: frozenset[str] = frozenset()
    """Sums, products and averages that are octave codes where all their operands are."""

    waveforms: frozenset[str] = frozenset()
    """Linear functions of inputs that are squared."""
