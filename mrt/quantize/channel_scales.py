"""Values whose channels may have scales of their own, which all their readers absorb."""

from __future__ import annotations

import onnx_ir as ir

from mrt.errors import BadData
from mrt.graph.canonical_values import name_of, shape_of
from mrt.graph.notes import shared_range_of
from mrt.graph.operators import POOLS
from mrt.quantize.channel_centres import gemms_reading, is_sum
from mrt.quantize.rules.concat import joins_accumulators
from mrt.table.table import CalibrationTable


def candidates(model: ir.Model) -> list[ir.Value]:
    """Return the images that only convolutions and sums of two computed values read, and rows that Gemms read.

    A convolution may read an image behind pools. Other readers of rows have another form of them.
    """
    return [
        value
        for node in model.graph
        for value in node.outputs
        if _can_have_scales(node, value)
    ]


def readers(value: ir.Value) -> list[ir.Node]:
    """Return the readers of an image, directly or behind pools, or the Gemms that read rows."""
    if value.shape is not None and len(value.shape) == 2:
        return gemms_reading(value)
    return [node for node, _ in _uses_behind_pools(value)]


def _uses_behind_pools(value: ir.Value) -> list[tuple[ir.Node, int]]:
    """Return the readers, and the index of the image or of a pool of it in each."""
    return [
        (use.node, use.idx)
        for image in _with_pooled(value)
        for use in image.uses()
        if use.node.op_type not in POOLS
    ]


def check_channel_scales(model: ir.Model, table: CalibrationTable) -> None:
    """Raise BadData where a table has channel scales for a value that cannot have them.

    Scales of a value that no node reads are ignored: the table may come from a longer
    model.
    """
    if not table.decisions.channel_scales:
        return
    channels = {
        name_of(value): shape_of(value)[1] for value in candidates(model)
    }
    values = (
        *model.graph.inputs,
        *(value for node in model.graph for value in node.outputs),
    )
    for value in values:
        scales = table.scales_of_channels(name_of(value))
        if (
            scales is not None
            and value.uses()
            and channels.get(name_of(value)) != len(scales)
        ):
            raise BadData(
                f"the calibration table has {len(scales)} scales of channels for '{value.name}', which can have none or "
                "another number: calibrate this model again"
            )


def _can_have_scales(node: ir.Node, value: ir.Value) -> bool:
    if value.shape is None or shared_range_of(value) is not None:
        return False
    if len(value.shape) == 2:
        return bool(gemms_reading(value))
    if len(value.shape) != 4:
        return False
    if node.op_type in POOLS or (
        node.op_type == "Concat" and not joins_accumulators(node)
    ):
        return False  # they have the scales of the values that they move
    if any(form.is_graph_output() for form in _with_pooled(value)):
        return False
    uses = _uses_behind_pools(value)
    convolutions = sum(
        reader.op_type == "Conv" and index == 0 for reader, index in uses
    )
    sums = sum(is_sum(use.node) for use in value.uses())
    # A single sum reads the accumulator, for which no scale is chosen.
    is_requantized = convolutions > 0 or sums > 1
    return is_requantized and convolutions + sums == len(uses)


def _with_pooled(value: ir.Value) -> list[ir.Value]:
    """Return the value and its pooled forms."""
    values: list[ir.Value] = []
    waiting = [value]
    while waiting:
        values.append(waiting.pop())
        readers = [use.node for use in values[-1].uses()]
        pools = [node for node in readers if node.op_type in POOLS]
        waiting += [node.outputs[0] for node in reversed(pools)]
    return values
