"""Widens narrow integer types where onnxruntime or the rules need wider ones."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes

_BYTES = (ir.DataType.INT8, ir.DataType.UINT8)
_SHORTS = (ir.DataType.INT16, ir.DataType.UINT16)


_WIDENED = {
    "MaxPool": (_BYTES, ir.DataType.FLOAT),
    **dict.fromkeys(("Max", "Min"), (_SHORTS, ir.DataType.INT32)),
    **dict.fromkeys(("Abs", "Add", "Mul", "Neg", "Sub"), (_BYTES + _SHORTS, ir.DataType.INT64)),
}  # fmt: skip
"""The types that each operator has to be widened from, and the type that it gets."""


def widen_types(model: ir.Model) -> int:
    """MaxPool of bytes -> Cast to float, MaxPool, Cast back; Max, Min, Add, Sub, Mul, Neg and Abs -> in wider integers.

    Always equal: the wider type holds every number of the narrow one, and Cast back
    keeps the lowest bits, as arithmetic of the narrow type does.
    """
    count = 0
    for node in nodes(model, *_WIDENED):
        kinds, wide = _WIDENED[node.op_type]
        kind = first(node).dtype
        if kind is None or kind not in kinds:
            continue
        patch = Patch(node)
        operands = [
            patch.add("Cast", value, to=int(wide)) for value in node.inputs
        ]
        value = patch.add(node.op_type, *operands)
        maker = value.producer()
        assert maker is not None
        maker.attributes.update(node.attributes)
        patch.finish(patch.add("Cast", value, to=int(kind)))
        count += 1
    return count
