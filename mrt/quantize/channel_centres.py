"""Values between layers of which each channel is counted from a centre of its own, so that 8 bits reach less far.

real = scale * (integer - zero_point) + centre. A convolution without padding takes its input's centres up in its bias, and
takes those that its output shall have off there; a sum adds the centres of its operands. So no instruction is added.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.errors import BadData
from mrt.exact.fixed_point import FloatArray
from mrt.exact.ordered_sum import row_sums
from mrt.graph.canonical_values import constant_of, name_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.tensor import Tensor

SUMS = ("Add", "Sub")


def centrable(graph: ir.Graph) -> frozenset[str]:
    """Names of the values whose channels may have centres: convolutions' outputs, and sums of two computed images.

    Whatever reads them, directly or behind more sums, is a convolution without padding.
    """
    found: set[str] = set()
    for node in reversed(graph):
        value = node.outputs[0]
        if (
            _is_source(node)
            and not value.is_graph_output()
            and all(_takes(use.node, use.idx, found) for use in value.uses())
        ):
            found.add(name_of(value))
    return frozenset(found)


def _is_source(node: ir.Node) -> bool:
    value = node.outputs[0]
    if value.shape is None or len(value.shape) != 4:
        return False
    return node.op_type == "Conv" or is_sum(node)


def is_sum(node: ir.Node) -> bool:
    """Of two computed values of one shape."""
    return node.op_type in SUMS and all(
        constant_of(value) is None
        and value is not None
        and value.shape == node.outputs[0].shape
        for value in node.inputs
    )


def _takes(reader: ir.Node, index: int, found: set[str]) -> bool:
    if reader.op_type == "Conv":
        return index == 0 and not any(reader.attributes["pads"].as_ints())
    return is_sum(reader) and name_of(reader.outputs[0]) in found


def output_centres(net: LoweringContext, node: ir.Node) -> FloatArray:
    """[O], or [1] of 0: what shall be taken off a convolution's outputs."""
    value = node.outputs[0]
    own = _decided(net, value)
    if own is not None:
        return own
    sums = [use for use in value.uses() if is_sum(use.node)]
    if len(value.uses()) == 1 and sums:
        wanted, index = _decided(net, sums[0].node.outputs[0]), sums[0].idx
        other = net.computed_or_none(sums[0].node.inputs[1 - index])
        if wanted is not None and other is not None:
            if sums[0].node.op_type == "Add":
                return np.asarray(wanted - other.centres)
            return np.asarray(
                wanted + other.centres if index == 0 else other.centres - wanted
            )
    return np.zeros(1)


def _decided(net: LoweringContext, value: ir.Value) -> FloatArray | None:
    name = name_of(value)
    centres = net.table.decisions.centres.get(name)
    if centres is None:
        return None
    assert value.shape is not None
    if name not in net.centrable or len(centres) != value.shape[1]:
        raise BadData(
            f"the calibration table has {len(centres)} centres for '{name}', which can have none or another number: "
            "calibrate this model again"
        )
    return np.array(centres)


def summed(node: ir.Node, left: Tensor | None, right: Tensor | None) -> FloatArray:
    """The centres of what an element-wise operator makes of two operands; None is a constant one."""
    one, two = (
        np.zeros(1) if tensor is None else tensor.centres for tensor in (left, right)
    )
    return np.asarray(one - two if node.op_type == "Sub" else one + two)


def absorbed_centres(x: Tensor, weights: FloatArray) -> FloatArray:
    """[O]: what real weights [O,KH,KW,C/groups] make of the centres of their input."""
    if not x.centred:
        return np.zeros(len(weights))
    inputs = weights.shape[-1]
    centres = x.centres.reshape(-1, inputs)  # [groups, C/groups]
    met = np.repeat(centres, len(weights) // len(centres), axis=0)
    terms = weights.reshape(len(weights), -1, inputs) * met[:, None, :]
    return row_sums(terms.reshape(len(weights), -1))
