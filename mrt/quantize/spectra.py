"""Which values of a graph are spectra, and which keep more than 16 bits for them.

    re, im -> sum of squares -> (curve) -> product with bands -> steep curve

The sum of squares becomes an octave code. What is squared, and the product that a steep curve
reads, keep the bits of their accumulators while they are moved; the product multiplies both
halves of 30 bits.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.canonical_values import is_constant, name_of
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.octave_roots import steep_roots
from mrt.quantize.curves.table_fusion import find_curves
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.sums_of_squares import (
    MOVES,
    Sums,
    find_sums,
    read_by_curves,
)
from mrt.quantize.waveforms import find_waveforms, fine_waveforms

CARRIES = MOVES | {"Neg", "Concat", "Add", "Sub"}
"""Operators of which a wide result needs wide operands."""


@dataclass(frozen=True)
class Spectra:
    """Sums of squares and curves by the name of their value; names of wide values, wide products and waveforms."""

    sums: Sums
    curves: dict[str, Curve]
    wide: frozenset[str] = frozenset()
    wide_products: frozenset[str] = frozenset()
    waveforms: frozenset[str] = frozenset()


def find_spectra(
    nodes: Sequence[ir.Node], options: QuantizeOptions, *, coded: bool
) -> Spectra:
    """Return the curves of a graph, and its spectra if any may be coded."""
    if not coded:
        return Spectra({}, find_curves(nodes))
    sums, curves = _sums_and_curves(nodes)
    steep = wide_values(steep_roots(curves))
    products = _wide_products(nodes, sums, curves, steep)
    terms = [term for total in sums.values() for term in total.terms]
    operands = [node.inputs[0] for node in products]
    wide = wide_values([*terms, *(x for x in operands if x is not None)])
    waveforms = find_waveforms(terms)
    fine = fine_waveforms(nodes, waveforms, options)
    products += _layers_between(nodes, fine)
    names = frozenset(name_of(node.outputs[0]) for node in products)
    return Spectra(sums, curves, steep | wide | fine, names, waveforms)


def _layers_between(
    nodes: Iterable[ir.Node], waveforms: Container[str]
) -> list[ir.Node]:
    """Return the layers that make one of these waveforms from another."""
    return [
        node
        for node in nodes
        if node.op_type in ("Conv", "Gemm")
        and name_of(node.inputs[0]) in waveforms
        and name_of(node.outputs[0]) in waveforms
    ]


def _sums_and_curves(
    nodes: Sequence[ir.Node],
) -> tuple[Sums, dict[str, Curve]]:
    """Return the sums of squares that curves or wide products read, and all curves."""
    sums = find_sums(nodes)
    while True:
        curves = find_curves(nodes, sums)
        steep = wide_values(steep_roots(curves))
        products = _wide_products(nodes, sums, curves, steep)
        operands = [name_of(node.inputs[0]) for node in products]
        remaining = read_by_curves(nodes, sums, curves, operands)
        if len(remaining) == len(sums):
            return sums, curves
        sums = remaining


def wide_values(values: Iterable[ir.Value]) -> frozenset[str]:
    """Return the names of these values, and of all that reach one by movements and sums.

    They keep the bits of their accumulators.
    """
    names: set[str] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        node = value.producer()
        if name_of(value) in names or is_constant(value):
            continue
        if node is None:
            continue
        names.add(name_of(value))
        if carries(node):
            waiting += [x for x in node.inputs if x is not None]
    return frozenset(names)


def carries(node: ir.Node) -> bool:
    """Whether a node moves, negates or adds elements, or multiplies them by constants."""
    if node.op_type == "Mul":
        return any(is_constant(value) for value in node.inputs)
    return node.op_type in CARRIES


def _wide_products(
    nodes: Sequence[ir.Node],
    sums: Sums,
    curves: Mapping[str, Curve],
    steep: Container[str],
) -> list[ir.Node]:
    """Return the Gemms that sum a spectrum to bands of which a steep curve is taken.

    The spectrum is a sum of squares or a curve of one, moved or not. In 16 linear bits
    the quiet bands would be lost.
    """
    return [
        node
        for node in nodes
        if node.op_type == "Gemm"
        and name_of(node.outputs[0]) in steep
        and _is_spectrum(node.inputs[0], sums, curves)
    ]


def _is_spectrum(
    value: ir.Value | None, sums: Sums, curves: Mapping[str, Curve]
) -> bool:
    source = _source(value)
    curve = curves.get(name_of(source))
    if curve is not None:
        source = _source(curve.root)
    return name_of(source) in sums


def _source(value: ir.Value | None) -> ir.Value:
    """Return the value that is moved to this one."""
    assert value is not None
    node = value.producer()
    if node is None or node.op_type not in MOVES:
        return value
    return _source(node.inputs[0])
