"""Writes the roundings of a model that is quantized already as nodes of the float graph."""

from __future__ import annotations

import onnx_ir as ir
from onnx import parser

from mrt.graph.notes import IntegerGrid, grid_of
from mrt.graph.patch import Patch
from mrt.graph.values import OWN_DOMAIN, first

NAME = "FakeQuantize"

# onnxruntime runs this function; it is QuantizeLinear, then DequantizeLinear.
_MEANING = """
<domain: "mrt", opset_import: ["" : 20]>
FakeQuantize <scale, zero_point, least, most> (x) => (y)
{
  step = Constant <value_float: float = @scale> ()
  zero = Constant <value_float: float = @zero_point> ()
  low = Constant <value_float: float = @least> ()
  high = Constant <value_float: float = @most> ()
  quotient = Div (x, step)
  nearest = Round (quotient)
  moved = Add (nearest, zero)
  integers = Clip (moved, low, high)
  steps = Sub (integers, zero)
  y = Mul (steps, step)
}
"""


def keep_file_grids(model: ir.Model) -> int:
    """Clip or Identity of a value with the grid of the file -> FakeQuantize.

    Reading leaves the rounding out (`frontend/onnx/quantized/qdq.py`) and notes its grid.
    Here the rounding comes back, as one node that no pass looks into. Return the number
    of these nodes.
    """
    count = 0
    for node in list(model.graph):
        grid = grid_of(node.outputs[0]) if len(node.outputs) == 1 else None
        if grid is not None and node.op_type in ("Clip", "Identity"):
            _become_rounding(node, grid)
            count += 1
    if count:
        function = ir.serde.deserialize_function(
            parser.parse_function(_MEANING)
        )
        model.functions[function.identifier()] = function
        model.graph.opset_imports[OWN_DOMAIN] = 1
    return count


def has_file_grids(model: ir.Model) -> bool:
    """Whether `keep_file_grids` left roundings in the model."""
    return any(node.op_type == NAME for node in model.graph)


def _become_rounding(node: ir.Node, grid: IntegerGrid) -> None:
    patch = Patch(node)
    patch.become(
        NAME,
        first(node),
        scale=grid.scale,
        zero_point=float(grid.zero_point),
        least=float(grid.least),
        most=float(grid.most),
    )
    node.domain = OWN_DOMAIN
