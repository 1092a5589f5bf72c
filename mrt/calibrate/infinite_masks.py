"""Says of a value that a mask of infinity excludes entries from, who reads the mask, and what to do.

Rewriting replaces such masks where all readers exclude the entries or choose others.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.masked_logits import EXCLUDING, handed_on

_TAKEN = (
    "a program can exclude what is masked from a Softmax, ArgMax, TopK, ReduceMax, ReduceLogSumExp or Exp, "
    "or from these and Gather behind a LogSoftmax, but holds no infinity"
)


def advice_on_mask(model: ir.Model, name: str) -> str | None:
    """Return what to do about a value of this name; None where no mask of infinity is put on it."""
    node = next((it for it in model.graph if it.outputs[0].name == name), None)
    if node is None:
        return None
    operands = [node.inputs[it] for it in _masking(node)]
    masks = [it.name for it in operands if it is not None and _is_infinite(it)]
    if not masks:
        return None
    ends = [it.name for it in operands if it is not None and it.producer()]
    way_on = "mask by a number that lies not far below the others"
    if ends:
        way_on = (
            f"end in front of the mask with --outputs {ends[0]}, or {way_on}"
        )
    return (
        f"it is masked by '{masks[0]}', and {_reader(node)}: {_TAKEN}; {way_on}"
    )


def _masking(node: ir.Node) -> range:
    """Return the places of the operands that a node masks, or masks with."""
    return range(2) if node.op_type == "Add" else handed_on(node)


def _is_infinite(value: ir.Value) -> bool:
    if value.const_value is None:
        return False
    array = value.const_value.numpy()
    return array.dtype.kind == "f" and bool(np.isinf(array).any())


def _reader(node: ir.Node) -> str:
    """Say who reads the infinity behind a node: what neither moves it nor excludes it, or an output."""
    waiting = [node.outputs[0]]
    visited = set[ir.Value]()
    while waiting:
        current = waiting.pop(0)
        if current in visited:
            continue
        visited.add(current)
        if current.is_graph_output():
            return f"the output '{current.name}' has it"
        for reader, index in current.uses():
            if index in _masking(reader) and reader.op_type != "LogSoftmax":
                waiting.append(reader.outputs[0])
            elif reader.op_type not in EXCLUDING:
                return f"{reader.name} ({reader.op_type}) reads it"
    return "several read it"
