"""Factors: values that only products of two computed values and sums read, such as the gates of a recurrence.

Such a product reads 16 bits anyway, so that 16 bits cost a factor nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from mrt.graph.canonical_values import is_product_of_computed, name_of
from mrt.quantize.curves.curve import Curve
from mrt.quantize.options import QuantizeOptions

_SUMS = ("Add", "ReduceSum", "Sub")


def factors(
    nodes: Sequence[ir.Node],
    curves: Mapping[str, Curve],
    options: QuantizeOptions,
) -> frozenset[str]:
    """Return their names; none where values have few bits, and none of which a table is made or a layer's bits are given."""
    if options.has_few_bits:
        return frozenset()
    roots = {name_of(curve.root) for curve in curves.values()}
    names = (
        name_of(value)
        for node in nodes
        for value in node.outputs
        if _is_factor(value)
    )
    return frozenset(
        name
        for name in names
        if name not in roots and not options.chooses_activation_bits(name)
    )


def _is_factor(value: ir.Value) -> bool:
    readers = [use.node for use in value.uses()]
    products = [node for node in readers if is_product_of_computed(node)]
    others = [node for node in readers if node not in products]
    if not products or value.is_graph_output():
        return False
    return all(node.op_type in _SUMS for node in others)
