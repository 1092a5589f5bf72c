"""Makes Gather return 0 for the index -1 of padded NMS rows, in place of the last element."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from mrt.graph.operators import LOOKUPS
from mrt.graph.patch import Patch
from mrt.graph.values import int_attribute, shape_of

_MOVES = (
    "Cast",
    "Concat",
    "Flatten",
    "Gather",
    "Identity",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
_LOOKUPS = LOOKUPS | {"GatherND"}


def blank_padded_rows(rows: ir.Value) -> int:
    """Gather(x, i) -> Where(i >= 0, Gather(x, i), 0).

    Applies to every index that comes from these rows by movement alone.
    """
    count = 0
    for node, index in list(_lookups(rows)):
        shape = shape_of(index)
        if shape is None or shape_of(node.outputs[0]) is None:
            continue
        _blank(node, index, shape)
        count += 1
    return count


def _lookups(rows: ir.Value) -> Iterator[tuple[ir.Node, ir.Value]]:
    """Yield the lookups by these rows, also when they were moved: depth first, without recursion."""
    seen = {rows}
    waiting = [(rows, iter(list(rows.uses())))]
    while waiting:
        value, uses = waiting[-1]
        use = next(uses, None)
        if use is None:
            waiting.pop()
        elif use.node.op_type in _LOOKUPS and use.idx == 1:
            yield use.node, value
        elif use.node.op_type in _MOVES and (
            use.node.op_type == "Concat" or use.idx == 0
        ):
            for output in reversed(use.node.outputs):
                if output not in seen:
                    seen.add(output)
                    waiting.append((output, iter(list(output.uses()))))


def _blank(node: ir.Node, index: ir.Value, shape: tuple[int, ...]) -> None:
    output = node.outputs[0]
    result = shape_of(output) or ()
    patch = Patch(node)
    if node.op_type == "GatherND":
        index = patch.add(
            "ReduceMin", index, patch.axes([len(shape) - 1]), keepdims=0
        )
        shape = shape[:-1]
        wide = (*shape, *(1,) * (len(result) - len(shape)))
    elif node.op_type == "Gather":
        axis = int_attribute(node, "axis", 0) % (len(result) - len(shape) + 1)
        wide = (*(1,) * axis, *shape, *(1,) * (len(result) - len(shape) - axis))
    else:
        wide = shape
    assert index.dtype is not None and output.dtype is not None
    zero = patch.constant(np.array(0, index.dtype.numpy()), "first")
    exists = patch.add("GreaterOrEqual", index, zero)
    spread = patch.add("Reshape", exists, patch.axes(wide, "wide"), allowzero=0)
    inputs = list(node.inputs)
    attributes = {
        name: attribute.value for name, attribute in node.attributes.items()
    }
    looked_up = patch.add(node.op_type, *inputs, **attributes)
    nothing = patch.constant(np.zeros((), output.dtype.numpy()), "nothing")
    patch.finish(patch.add("Where", spread, looked_up, nothing))
