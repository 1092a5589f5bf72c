"""Widens narrow integer types where onnxruntime or the rules need wider ones."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes

_BYTES = (ir.DataType.INT8, ir.DataType.UINT8)
_SHORTS = (ir.DataType.INT16, ir.DataType.UINT16)


def widen_types(model: ir.Model) -> int:
    """MaxPool of bytes -> Cast to float, MaxPool, Cast back; Max and Min -> in int32.

    Max and Min are widened for 16-bit integers. Always equal: the wider type holds
    every number of the narrow one.
    """
    count = 0
    for node in nodes(model, "MaxPool", "Max", "Min"):
        kind, pool = first(node).dtype, node.op_type == "MaxPool"
        if kind is None or kind not in (_BYTES if pool else _SHORTS):
            continue
        patch, wide = (
            Patch(node),
            ir.DataType.FLOAT if pool else ir.DataType.INT32,
        )
        operands = [
            _typed(patch.add("Cast", value, to=int(wide)), wide)
            for value in node.inputs
        ]
        value = _typed(patch.add(node.op_type, *operands), wide)
        maker = value.producer()
        assert maker is not None
        maker.attributes.update(node.attributes)
        patch.finish(patch.add("Cast", value, to=int(kind)))
        count += 1
    return count


def _typed(value: ir.Value, kind: ir.DataType) -> ir.Value:
    value.type = ir.TensorType(kind)
    return value
