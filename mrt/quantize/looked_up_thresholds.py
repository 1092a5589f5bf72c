"""Thresholds that are looked up in a constant table, as trees compiled to tensors compare with."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import constant_of, name_of
from mrt.graph.operators import LOOKUPS, MOVES_OF_ONE


def looked_up(value: ir.Value | None) -> tuple[set[str], FloatArray] | None:
    """Return the names of a threshold, from the lookup on, and the entries of its table.

    None for any other value, and for one with more readers: these may need another format.
    """
    names = set[str]()
    while value is not None and len(value.uses()) == 1:
        node = value.producer()
        if node is None or value.is_graph_output():
            return None
        names.add(name_of(value))
        if node.op_type in LOOKUPS:
            table = constant_of(node.inputs[0])
            if table is None or value.dtype != ir.DataType.FLOAT:
                return None
            return names, table.ravel().astype(np.float64)
        if node.op_type not in MOVES_OF_ONE:
            return None
        value = node.inputs[0]
    return None
