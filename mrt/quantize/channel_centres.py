"""Centres of channels: each channel's integers are counted from a real number of its own.

    real = scale * (integer - zero_point) + centre

A channel around its centre needs a smaller range, so its 8 bits have finer steps. A
convolution without padding absorbs the centres of its input in its bias, and its bias
also subtracts those of its output. A sum adds the centres of its operands. So no
instruction is added. Rows that Gemms read have their centres subtracted where they
become 8 bits for these, if that is worth the instruction.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.errors import BadData
from mrt.exact.fixed_point import FloatArray
from mrt.exact.ordered_sum import row_sums
from mrt.graph.canonical_values import is_constant, name_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.tensor import Tensor

SUMS = ("Add", "Sub")


def centrable(graph: ir.Graph) -> frozenset[str]:
    """Return the names of the values whose channels may have centres.

    Such a value is the output of a convolution, or a sum of two computed images. All
    its readers, directly or behind more sums, are convolutions without padding. Rows
    that Gemms read may have them, too.
    """
    names: set[str] = set()
    for node in reversed(graph):
        value = node.outputs[0]
        if gemms_reading(value):
            names.add(name_of(value))
        if not _can_make_centres(node) or value.is_graph_output():
            continue
        if all(_absorbs(use.node, use.idx, names) for use in value.uses()):
            names.add(name_of(value))
    return frozenset(names)


def _can_make_centres(node: ir.Node) -> bool:
    value = node.outputs[0]
    if value.shape is None or len(value.shape) != 4:
        return False
    return node.op_type == "Conv" or is_sum(node)


def gemms_reading(value: ir.Value) -> list[ir.Node]:
    """Return the Gemms that multiply a value of two axes, [rows, channels]."""
    if value.shape is None or len(value.shape) != 2:
        return []
    uses = list(value.uses())
    return [
        use.node for use in uses if use.node.op_type == "Gemm" and use.idx == 0
    ]


def is_sum(node: ir.Node) -> bool:
    """Whether a node adds or subtracts two computed values of one shape."""
    return node.op_type in SUMS and all(
        not is_constant(value)
        and value is not None
        and value.shape == node.outputs[0].shape
        for value in node.inputs
    )


def _absorbs(reader: ir.Node, index: int, centrable_names: set[str]) -> bool:
    if reader.op_type == "Conv":
        return index == 0 and not any(reader.attributes["pads"].as_ints())
    return is_sum(reader) and name_of(reader.outputs[0]) in centrable_names


def output_centres(net: LoweringContext, node: ir.Node) -> FloatArray:
    """Return the centres to subtract from a convolution's outputs: [O], or [1] of 0.

    A convolution that only a sum reads has no centres of its own. It takes the centres
    that give the sum the ones decided for it.
    """
    value = node.outputs[0]
    centres = decided_centres(net, value)
    if centres is not None:
        return centres
    sums = [use for use in value.uses() if is_sum(use.node)]
    if len(value.uses()) != 1 or not sums:
        return np.zeros(1)
    total, index = sums[0].node, sums[0].idx
    sum_centres = decided_centres(net, total.outputs[0])
    other = net.computed_or_none(total.inputs[1 - index])
    if sum_centres is None or other is None:
        return np.zeros(1)
    if total.op_type == "Add":
        return np.asarray(sum_centres - other.centres)
    if index == 0:
        return np.asarray(sum_centres + other.centres)
    return np.asarray(other.centres - sum_centres)


def decided_centres(net: LoweringContext, value: ir.Value) -> FloatArray | None:
    """Return the centres [C] that the calibration table has for a value, or None."""
    name = name_of(value)
    centres = net.table.decisions.centres.get(name)
    if centres is None:
        return None
    assert value.shape is not None
    if name not in net.plan.centrable or len(centres) != value.shape[1]:
        raise BadData(
            f"the calibration table has {len(centres)} centres for '{name}', which can have none or another number: "
            "calibrate this model again"
        )
    return np.array(centres)


def summed(
    node: ir.Node, left: Tensor | None, right: Tensor | None
) -> FloatArray:
    """Return the centres of an element-wise result; None stands for a constant operand."""
    first, second = (
        np.zeros(1) if tensor is None else tensor.centres
        for tensor in (left, right)
    )
    return np.asarray(
        first - second if node.op_type == "Sub" else first + second
    )


def absorbed_centres(x: Tensor, weights: FloatArray) -> FloatArray:
    """Return the sums of real weights [O,KH,KW,C/groups] times their inputs' centres, [O]."""
    if not x.centred:
        return np.zeros(len(weights))
    inputs = weights.shape[-1]
    centres = x.centres.reshape(-1, inputs)  # [groups, C/groups]
    outputs_per_group = len(weights) // len(centres)
    per_output = np.repeat(centres, outputs_per_group, axis=0)
    terms = weights.reshape(len(weights), -1, inputs) * per_output[:, None, :]
    return row_sums(terms.reshape(len(weights), -1))
