"""Folds the roundings of a model that is quantized already, where what they round is constant."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import replace_by_constant
from mrt.graph.values import Array, constant
from mrt.rewrite.file_grids import NAME


def fold_file_grids(model: ir.Model) -> int:
    """FakeQuantize of a constant -> constant.

    Applies where a table that positions are looked up in becomes constant once shapes are
    known. Safe because each of its operators is rounded once, the same on every machine.
    """
    count = 0
    for node in [node for node in model.graph if node.op_type == NAME]:
        x, output = constant(node.inputs[0]), node.outputs[0]
        if x is None or output.is_graph_output():
            continue
        replace_by_constant(output, _on_grid(node, x))
        model.graph.remove(node, safe=True)
        count += 1
    return count


def _on_grid(node: ir.Node, x: Array) -> Array:
    """Return the numbers of the grid that are nearest, ties to even, in float32."""
    scale, zero, least, most = (
        np.float32(node.attributes[name].as_float())
        for name in ("scale", "zero_point", "least", "most")
    )
    integers = np.clip(np.round(x / scale) + zero, least, most)
    return np.asarray((integers - zero) * scale, np.float32)
