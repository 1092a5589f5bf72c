"""Waveforms whose spectrum a network computes itself: they keep 16 bits whatever the others have.

8 bits hold a waveform over 48 dB, of which its spectrum would keep the loudest bins alone. What
lies between the inputs and the squares is linear, and little of a network's work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import onnx_ir as ir

from mrt.graph.canonical_values import is_constant, name_of
from mrt.quantize.options import LayerBits, QuantizeOptions
from mrt.quantize.tensor import Format
from mrt.table.table import MeasuredRange

WAVEFORM_BITS = 16
FULL_SCALE = 1.0
"""Samples of sound lie within -1 .. 1."""

_LINEAR = frozenset(
    {"Reshape", "Transpose", "Slice", "Concat", "Pad", "Neg", "Add", "Sub",
     "Mul", "Conv", "Gemm", "MatMul"}
)  # fmt: skip


def find_waveforms(squared: Iterable[ir.Value]) -> frozenset[str]:
    """Return the names of the values from which squared ones are computed, where that is linear up to the inputs."""
    names: set[str] = set()
    for value in squared:
        names |= _linear_path(value) or set()
    return frozenset(names)


def _linear_path(value: ir.Value) -> set[str] | None:
    """Return the names of a value and all before it; None if any is not a linear function of the inputs."""
    names: set[str] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if is_constant(value) or name_of(value) in names:
            continue
        names.add(name_of(value))
        node = value.producer()
        if node is None:
            continue
        operands = [x for x in node.inputs if x is not None]
        computed = [x for x in operands if not is_constant(x)]
        is_product = node.op_type in ("Mul", "MatMul")
        if node.op_type not in _LINEAR or (is_product and len(computed) > 1):
            return None
        waiting += computed
    return names


def with_waveform_bits(
    options: QuantizeOptions, waveforms: Iterable[str]
) -> QuantizeOptions:
    """Give waveforms 16 bits where the options choose none for the single value."""
    bits = LayerBits(activation_bits=WAVEFORM_BITS)
    widened = {
        name: replace(layer_bits, activation_bits=WAVEFORM_BITS)
        for name, layer_bits in options.layers.items()
        if layer_bits.activation_bits is None
    }
    layers = {name: widened.get(name, bits) for name in waveforms}
    chosen = {
        name: layer_bits
        for name, layer_bits in options.layers.items()
        if name not in layers or layer_bits.activation_bits is not None
    }
    return replace(options, layers={**layers, **chosen})


def sound_format(given: Format, range_: MeasuredRange) -> Format:
    """Return the format of 16-bit sound, 2^-15 from -1 to 1, where its steps are finer than the format given.

    Sound of 16 bits then has no rounding error at all.
    """
    greatest = max(-range_.min, range_.max)
    step = FULL_SCALE / 2 ** (WAVEFORM_BITS - 1)
    if given.dtype != "i16" or greatest > FULL_SCALE or given.scale <= step:
        return given
    return replace(given, scale=step)
