"""Which values of a graph are spectra, and which keep more than 16 bits for them.

    re, im -> sum of squares -> (curve) -> product with bands -> steep curve

The sum of squares becomes an octave code. What is squared, and the product that a steep curve
reads, keep the bits of their accumulators while they are moved; the product multiplies both
halves of 30 bits.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from mrt.graph.canonical_values import is_constant, name_of
from mrt.graph.operators import MOVES_OF_ONE
from mrt.graph.values import first, source_of_moves
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.octave_roots import steep_roots
from mrt.quantize.curves.table_fusion import (
    all_curves,
    find_curves,
    needing_tables,
)
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.quotients import (
    Quotients,
    find_quotients,
    names_of_reductions,
    sums_of_linear_terms,
)
from mrt.quantize.sums_of_squares import (
    Sums,
    find_sums,
    read_by_curves,
)
from mrt.quantize.waveforms import (
    find_waveforms,
    nonlinear_values,
    waveforms_of_30_bits,
)
from mrt.table.table import MeasuredRange

CARRIES = MOVES_OF_ONE | {"Neg", "Concat", "Add", "Sub"}
"""Operators of which a wide result needs wide operands."""


@dataclass(frozen=True)
class Spectra:
    """Sums of squares and curves by the name of their value; names of wide values, wide products and waveforms; quotients."""

    sums: Sums
    curves: dict[str, Curve]
    wide: frozenset[str] = frozenset()
    wide_products: frozenset[str] = frozenset()
    waveforms: frozenset[str] = frozenset()
    quotients: Quotients = field(default_factory=Quotients)


def find_spectra(
    nodes: Sequence[ir.Node],
    options: QuantizeOptions,
    ranges: Mapping[str, MeasuredRange],
    *,
    coded: bool,
) -> Spectra:
    """Return the curves of a graph, and its spectra if any may be coded."""
    if not coded:
        return Spectra({}, find_curves(nodes))
    nonlinear = nonlinear_values(nodes)
    sums, curves, quotients = _sums_and_curves(nodes, ranges, nonlinear)
    steep = wide_values(steep_roots(curves))
    products = _wide_products(nodes, sums, curves, steep, quotients)
    terms = [term for total in sums.values() for term in total.terms]
    operands = [node.inputs[0] for node in products]
    wide = wide_values(
        [*terms, *quotients.wide, *(x for x in operands if x is not None)]
    )
    waveforms = find_waveforms(terms, nonlinear)
    computed = waveforms_of_30_bits(nodes, waveforms, options)
    products += _layers_between(nodes, computed)
    names = frozenset(name_of(node.outputs[0]) for node in products)
    return Spectra(
        sums,
        curves,
        steep | wide | computed,
        names,
        waveforms,
        quotients,
    )


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
    ranges: Mapping[str, MeasuredRange],
    nonlinear: Container[ir.Value],
) -> tuple[Sums, dict[str, Curve], Quotients]:
    """Return the sums of squares that curves, wide products or quotients read, all curves, and the quotients.

    A sum that nothing reads as a code stays linear; the curves of it are then linear, too, so
    that other sums may lose their reader. Sums are only ever removed, so that this ends.
    """
    sums = find_sums(nodes)
    of_linear_terms = sums_of_linear_terms(sums, nonlinear)
    reduced = names_of_reductions(nodes, of_linear_terms)
    while True:
        functions = all_curves(nodes, sums.keys() | reduced)
        curves = needing_tables(functions)
        quotients = find_quotients(nodes, of_linear_terms, functions, ranges)
        steep = wide_values(steep_roots(curves))
        products = _wide_products(nodes, sums, curves, steep, quotients)
        operands = [name_of(node.inputs[0]) for node in products]
        read = [*operands, *quotients.sums]
        remaining = read_by_curves(nodes, sums, curves, read)
        still_reduced = reduced & quotients.coded
        if len(remaining) + len(still_reduced) == len(sums) + len(reduced):
            return sums, curves, quotients
        sums, reduced = remaining, still_reduced
        of_linear_terms = {
            name: it for name, it in of_linear_terms.items() if name in sums
        }


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
    """Whether a node moves, negates or adds elements, multiplies them by constants, or chooses some at constant places."""
    if node.op_type == "Mul":
        return any(is_constant(value) for value in node.inputs)
    if node.op_type == "Gather":
        return is_constant(node.inputs[1])
    return node.op_type in CARRIES


def _wide_products(
    nodes: Sequence[ir.Node],
    sums: Sums,
    curves: Mapping[str, Curve],
    steep: Container[str],
    quotients: Quotients,
) -> list[ir.Node]:
    """Return the layers that sum a spectrum to bands of which a steep curve, or a quotient, is taken.

    The spectrum is a sum of squares or a curve of one, moved or not. In 16 linear bits
    the quiet bands would be lost.
    """
    return [
        node
        for node in nodes
        if name_of(node.outputs[0]) in quotients.products
        or (
            node.op_type == "Gemm"
            and name_of(node.outputs[0]) in steep
            and _is_spectrum(first(node), sums, curves)
        )
    ]


def _is_spectrum(
    value: ir.Value, sums: Sums, curves: Mapping[str, Curve]
) -> bool:
    source = source_of_moves(value)
    curve = curves.get(name_of(source))
    if curve is not None:
        source = source_of_moves(curve.root)
    return name_of(source) in sums
