"""Input tables with a scale for each column: rewriting noted a product with a factor for each, which takes no instruction.

The integers of the input are those of the product. What a real number of a column is follows from the factor.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.graph.notes import has_scaled_columns
from mrt.quantize.options import QuantizeOptions


def product_with_factors(table: ir.Value) -> ir.Value | None:
    """Return the product of an input with the factors of its columns, if it is noted as such and nothing else reads the input.

    The note may come from a file, so that the node is looked at as well.
    """
    uses = list(table.uses())
    if len(uses) != 1 or table.is_graph_output() or uses[0].idx:
        return None
    node = uses[0].node
    product = node.outputs[0]
    if node.op_type != "Mul" or not has_scaled_columns(product):
        return None
    factors = constant_of(node.inputs[1])
    if factors is None or factors.shape != shape_of(table)[-1:]:
        return None
    usable = (factors > 0) & np.isfinite(factors)
    return product if usable.all() and not product.is_graph_output() else None


def scales_of_columns(product: ir.Value, scale: float) -> tuple[float, ...]:
    """Return the real number that 1 stands for in each column, where it is `scale` in the product."""
    node = product.producer()
    assert node is not None
    factors = constant_of(node.inputs[1])
    assert factors is not None
    scales: FloatArray = scale / factors
    return tuple(scales.tolist())


def is_product_with_factors(node: ir.Node) -> bool:
    """Whether a node is such a product, of an input."""
    table = node.inputs[0] if node.inputs else None
    if table is None or not table.is_graph_input():
        return False
    return product_with_factors(table) is node.outputs[0]


def with_bits_of_tables(
    graph: ir.Graph, options: QuantizeOptions
) -> QuantizeOptions:
    """Give such a product the bits of its input, unless it has bits of its own."""
    layers = dict(options.layers)
    for table in graph.inputs:
        product = product_with_factors(table)
        if product is not None and name_of(table) in layers:
            layers.setdefault(name_of(product), layers[name_of(table)])
    return replace(options, layers=layers)
