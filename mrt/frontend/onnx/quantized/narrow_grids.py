"""Read grids that are narrower than their type: QuantizeLinear, Clip of the integers, DequantizeLinear.

Brevitas writes values and weights of 4 bits so, in integers of 8 bits.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.frontend.onnx.quantized.stored_weights import (
    fold_quantized,
    hold,
    release,
    stored_array,
)
from mrt.graph.patch import bypass
from mrt.graph.values import operand, producer

Bounds = tuple[int, int]


def take_clips(model: ir.Model) -> dict[ir.Node, Bounds]:
    """Remove every Clip of integers in front of a DequantizeLinear; return what it leaves of each QuantizeLinear.

    Integers of weights are clipped at once.
    """
    narrowed: dict[ir.Node, Bounds] = {}
    for node in [node for node in model.graph if node.op_type == "Clip"]:
        bounds = _bounds(node)
        if bounds is None or not _is_dequantized(node):
            continue
        quantizer = producer(node.inputs[0], "QuantizeLinear")
        if quantizer is not None and quantizer.op_type == "QuantizeLinear":
            fold_quantized(quantizer)
        integers, clipped = node.inputs[0], list(node.inputs[1:])
        stored = stored_array(integers)
        if stored is not None and stored.dtype.kind in "iu":
            hold(node, np.clip(stored, *bounds).astype(stored.dtype))
        elif quantizer is not None and _is_narrowed_alone(quantizer):
            assert integers is not None
            narrowed[quantizer] = bounds
            bypass(node, integers)
            release(quantizer, clipped)
    return narrowed


def _bounds(node: ir.Node) -> Bounds | None:
    """Return the bounds of a Clip of integers, both constant; else None."""
    bounds = [stored_array(operand(node, place)) for place in (1, 2)]
    numbers = [
        int(bound.reshape(()))
        for bound in bounds
        if bound is not None and bound.size == 1 and bound.dtype.kind in "iu"
    ]
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        return None
    return numbers[0], numbers[1]


def _is_dequantized(node: ir.Node) -> bool:
    """Whether DequantizeLinear alone reads the result of a Clip."""
    output = node.outputs[0]
    uses = list(output.uses())
    readers = {(use.node.op_type, use.idx) for use in uses}
    return readers == {("DequantizeLinear", 0)} and not output.is_graph_output()


def _is_narrowed_alone(quantizer: ir.Node) -> bool:
    """Whether one Clip alone reads the integers of a QuantizeLinear."""
    output = quantizer.outputs[0]
    is_one = len(list(output.uses())) == 1 and not output.is_graph_output()
    return quantizer.op_type == "QuantizeLinear" and is_one
