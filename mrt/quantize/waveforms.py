"""Waveforms whose spectrum a network computes itself: they keep 16 bits whatever the others have.

8 bits hold a waveform over 48 dB, of which its spectrum would keep the loudest bins alone. What
lies between the inputs and the squares is linear, and little of a network's work.

An input is sound of 16 bits and has no rounding error. Where other values have 16 bits, what is
computed from it keeps 30: windows, filters and the stages of a Fourier transform would each add
as much noise as sound itself has, which quiet parts would not hide. Weights have 15 bits then.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from itertools import filterfalse

import onnx_ir as ir

from mrt.graph.canonical_values import is_constant, name_of
from mrt.quantize.options import WEIGHT_BITS, LayerBits, QuantizeOptions
from mrt.quantize.tensor import Format
from mrt.table.table import MeasuredRange

WAVEFORM_BITS = 16
FULL_SCALE = 1.0
"""Samples of sound lie within -1 .. 1."""

_MOVED = frozenset(
    {"Reshape", "Transpose", "Slice", "Gather", "Concat", "Pad", "Neg"}
)
_LINEAR = _MOVED | {"Add", "Sub", "Mul", "Conv", "Gemm", "MatMul"}


def find_waveforms(
    squared: Iterable[ir.Value], nonlinear: Container[ir.Value]
) -> frozenset[str]:
    """Return the names of the values from which squared ones are computed, where that is linear up to the inputs."""
    names: set[str] = set()
    waiting = [value for value in squared if value not in nonlinear]
    while waiting:
        value = waiting.pop()
        if is_constant(value) or name_of(value) in names:
            continue
        names.add(name_of(value))
        node = value.producer()
        if node is not None:
            waiting += [x for x in node.inputs if x is not None]
    return frozenset(names)


def nonlinear_values(nodes: Iterable[ir.Node]) -> frozenset[ir.Value]:
    """Return the values that are no linear function of the inputs; each node stands behind those that it reads."""
    nonlinear: set[ir.Value] = set()
    for node in nodes:
        operands = [x for x in node.inputs if x is not None]
        computed = [x for x in operands if not is_constant(x)]
        takes_one = node.op_type in ("Mul", "MatMul", "Gather")
        is_product = takes_one and len(computed) > 1
        is_linear = node.op_type in _LINEAR and not is_product
        if not is_linear or not nonlinear.isdisjoint(computed):
            nonlinear.update(node.outputs)
    return frozenset(nonlinear)


def have_30_bits(options: QuantizeOptions) -> bool:
    """Whether waveforms that are computed keep 30 bits: where other values have 16."""
    return options.activation_bits >= WAVEFORM_BITS


def waveforms_of_30_bits(
    nodes: Iterable[ir.Node],
    waveforms: Container[str],
    options: QuantizeOptions,
) -> frozenset[str]:
    """Return the names of the waveforms that keep 30 bits.

    They are more than an input moved or negated, and the options choose no bits for the
    single value.
    """
    if not have_30_bits(options):
        return frozenset()
    computed: set[str] = set()
    for node in nodes:
        name = name_of(node.outputs[0])
        operands = [x for x in node.inputs if x is not None]
        is_computed = node.op_type not in _MOVED or any(
            name_of(x) in computed for x in operands
        )
        if name in waveforms and is_computed:
            computed.add(name)
    return frozenset(filterfalse(options.chooses_activation_bits, computed))


def with_waveform_bits(
    options: QuantizeOptions, waveforms: Iterable[str]
) -> QuantizeOptions:
    """Give waveforms 16 bits where the options choose none for the single value, and weights of 15 where they keep 30."""
    weight_bits = WEIGHT_BITS[-1] if have_30_bits(options) else None
    layers = dict(options.layers)
    for name in filterfalse(options.chooses_activation_bits, waveforms):
        chosen = layers.get(name, LayerBits()).weight_bits
        layers[name] = LayerBits(chosen or weight_bits, WAVEFORM_BITS)
    return replace(options, layers=layers)


def sound_format(given: Format, range_: MeasuredRange) -> Format:
    """Return the format of 16-bit sound, 2^-15 from -1 to 1, where its steps are finer than the format given.

    Sound of 16 bits then has no rounding error at all.
    """
    greatest = max(-range_.min, range_.max)
    step = FULL_SCALE / 2 ** (WAVEFORM_BITS - 1)
    if given.dtype != "i16" or greatest > FULL_SCALE or given.scale <= step:
        return given
    return replace(given, scale=step)
