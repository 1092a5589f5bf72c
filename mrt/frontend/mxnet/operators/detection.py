"""Choosing among boxes: box_nms and MultiBoxDetection, on the one function of `mrt.frontend.mxnet.suppression`."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.boxes import decode, to_center, to_corner
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    boolean,
    choice,
    integer,
    operator,
    real,
    reals,
)
from mrt.frontend.mxnet.suppression import SuppressionAttributes, above, suppress

FORMATS = ("corner", "center")
FLOAT = onnx.TensorProto.FLOAT
EVERYTHING = float(np.finfo(np.float32).min)


def part(
    call: OperatorCall, value: ir.Value, axis: int, first: int, end: int
) -> ir.Value:
    """Some indices of one axis."""
    bounds = [call.constant([number]) for number in (first, end, axis)]
    return call.add("Slice", value, *bounds)


def _pick(call: OperatorCall, rows: ir.Value, indices: ir.Value) -> ir.Value:
    """Of each sample the rows at the indices [B,K]; an index that is the number of rows gives -1 everywhere."""
    batch, count, width = call.shape(rows)
    pads = call.constant([0, 0, 0, 0, 1, 0])
    longer = call.add("Pad", rows, pads, call.constant(-1.0), mode="constant")
    if batch > 1:
        starts = call.array(
            np.arange(batch, dtype=np.int64).reshape(-1, 1) * (count + 1)
        )
        indices, longer = (
            call.add("Add", indices, starts),
            call.reshape(longer, [1, batch * (count + 1), width]),
        )
    flat = call.reshape(indices, [-1])
    return call.reshape(call.add("Gather", longer, flat, axis=1), [batch, -1, width])


def _filled(call: OperatorCall, rows: ir.Value, count: int) -> ir.Value:
    """Rows of -1 behind, up to that many."""
    missing = count - call.shape(rows)[1]
    if not missing:
        return rows
    return call.add(
        "Pad",
        rows,
        call.constant([0, 0, 0, 0, missing, 0]),
        call.constant(-1.0),
        mode="constant",
    )


NMS: dict[str, Attribute] = {
    "overlap_thresh": real(0.5),
    "valid_thresh": real(0.0),
    "topk": integer(-1),
    "coord_start": integer(2),
    "score_index": integer(1),
    "id_index": integer(-1),
    "background_id": integer(-1),
    "force_suppress": boolean(False),
    "in_format": choice(*FORMATS, default="corner"),
    "out_format": choice(*FORMATS, default="corner"),
}


@operator("_contrib_box_nms", "_contrib_box_non_maximum_suppression", attributes=NMS)
def box_nms(call: OperatorCall) -> ir.Value:
    """The kept rows of each sample, best first, then rows of -1. Nothing happens if topk is 0."""
    call.require_rank(2)
    if call.int_attribute("topk") == 0:
        return call.add("Identity", call.data)
    *lead, count, width = call.shape()
    data = call.reshape(call.data, [int(np.prod(lead, dtype=np.int64)), count, width])
    start = call.int_attribute("coord_start")
    call.require(
        0 <= start <= width - 4,
        f"coord_start={start}: rows of {width} numbers have no box there",
    )
    boxes = part(call, data, 2, start, start + 4)
    corners = (
        boxes
        if call.string_attribute("in_format") == "corner"
        else to_corner(call, boxes)
    )
    wanted = call.int_attribute("topk")
    candidates = min(wanted, count) if wanted > 0 else count
    choice = SuppressionAttributes(
        candidates,
        candidates,
        above(call.float_attribute("valid_thresh")),
        call.float_attribute("overlap_thresh"),
        background=call.int_attribute("background_id")
        if call.int_attribute("id_index") >= 0
        else -1,
    )
    indices = suppress(
        call, corners, _column(call, data, "score_index"), _classes(call, data), choice
    )
    rows = _filled(call, _pick(call, _converted(call, data, start), indices), count)
    return rows if len(lead) == 1 else call.reshape(rows, [*lead, count, width])


def _column(call: OperatorCall, data: ir.Value, name: str) -> ir.Value:
    """One number of each row."""
    (batch, count, width), index = call.shape(data), call.int_attribute(name)
    call.require(0 <= index < width, f"{name}={index} of rows of {width} numbers")
    return call.reshape(part(call, data, 2, index, index + 1), [batch, count])


def _classes(call: OperatorCall, data: ir.Value) -> ir.Value:
    """One for all where there are none; under force_suppress too, except that those of the background stay so."""
    if call.int_attribute("id_index") < 0:
        return call.array(np.zeros(call.shape(data)[:2], np.float32))
    classes = _column(call, data, "id_index")
    if not call.bool_attribute("force_suppress"):
        return classes
    background = float(call.int_attribute("background_id"))
    same = call.add("Equal", classes, call.constant(background))
    return call.add(
        "Where", same, call.constant(background), call.constant(background + 1)
    )


def _converted(call: OperatorCall, rows: ir.Value, start: int) -> ir.Value:
    """The rows with their boxes in the format that is wanted."""
    given, wanted = (
        call.string_attribute("in_format"),
        call.string_attribute("out_format"),
    )
    if given == wanted:
        return rows
    width = call.shape(rows)[2]
    boxes = part(call, rows, 2, start, start + 4)
    made = to_corner(call, boxes) if wanted == "corner" else to_center(call, boxes)
    pieces = [part(call, rows, 2, 0, start)] if start else []
    pieces.append(made)
    if start + 4 < width:
        pieces.append(part(call, rows, 2, start + 4, width))
    return call.add("Concat", *pieces, axis=2) if len(pieces) > 1 else made


@operator(
    "_contrib_MultiBoxDetection",
    attributes={
        "clip": boolean(True),
        "threshold": real(0.01),
        "background_id": integer(0),
        "nms_threshold": real(0.5),
        "force_suppress": boolean(False),
        "variances": reals((0.1, 0.1, 0.2, 0.2)),
        "nms_topk": integer(-1),
    },
    slots=("cls_prob", "loc_pred", "anchor"),
)
def multi_box_detection(call: OperatorCall) -> ir.Value:
    """Rows (class, score, box) of the anchors whose best class reaches the threshold, by score; a suppressed one has class -1.

    Class 0 is the background, whatever background_id says.
    """
    call.require_rank(3, 3)
    batch, classes, count = call.shape()
    call.require(
        classes >= 2,
        f"input of shape {call.shape()} has no class beside the background",
    )
    anchors, offsets = call.inputs[2], call.reshape(call.inputs[1], [batch, count, 4])
    variances = call.floats_attribute("variances")
    call.require(len(variances) == 4, f"variances={variances}: expected four numbers")
    boxes = decode(
        call, offsets, to_center(call, call.reshape(anchors, [1, count, 4])), variances
    )
    if call.bool_attribute("clip"):
        boxes = call.add("Clip", boxes, call.constant(0.0), call.constant(1.0))
    foreground = part(call, call.data, 1, 1, classes)
    scores = call.add("ReduceMax", foreground, call.constant([1]), keepdims=0)
    best = call.add("ArgMax", foreground, axis=1, keepdims=0)
    labels = call.add("Cast", best, to=FLOAT)
    columns = [call.reshape(column, [batch, count, 1]) for column in (labels, scores)]
    rows = call.add("Concat", *columns, boxes, axis=2)
    return _detections(call, rows, boxes, scores, labels)


def _detections(
    call: OperatorCall,
    rows: ir.Value,
    boxes: ir.Value,
    scores: ir.Value,
    labels: ir.Value,
) -> ir.Value:
    count, limit = call.shape(rows)[1], call.float_attribute("nms_threshold")
    threshold, wanted = (
        call.float_attribute("threshold"),
        call.int_attribute("nms_topk"),
    )
    if not 0 < limit <= 1:
        return _pick(call, rows, _in_place(call, boxes, scores, threshold))
    candidates = min(wanted, count) if wanted > 0 else count
    one = (
        call.array(np.zeros(call.shape(scores), np.float32))
        if call.bool_attribute("force_suppress")
        else labels
    )
    every = suppress(
        call,
        boxes,
        scores,
        one,
        SuppressionAttributes(candidates, candidates, threshold, 1.0),
    )
    choice = SuppressionAttributes(
        candidates, candidates, threshold, limit, inclusive=True, gaps=True
    )
    kept = call.add(
        "Less",
        suppress(call, boxes, scores, one, choice),
        call.array(np.array(count, np.int64)),
    )
    if (
        candidates < count
    ):  # MXNet leaves the others where they were before it sorted, without a class
        others = part(
            call, _in_place(call, boxes, scores, threshold), 1, candidates, count
        )
        every = call.add("Concat", every, others, axis=1)
        none = call.array(
            np.zeros((call.shape(scores)[0], count - candidates), np.bool_)
        )
        kept = call.add("Concat", kept, none, axis=1)
    found = _pick(call, rows, every)
    shown = call.reshape(kept, [*call.shape(kept), 1])
    label = call.add("Where", shown, part(call, found, 2, 0, 1), call.constant(-1.0))
    return call.add("Concat", label, part(call, found, 2, 1, 6), axis=2)


def _in_place(
    call: OperatorCall, boxes: ir.Value, scores: ir.Value, threshold: float
) -> ir.Value:
    """Indices of all that reach the threshold, in their own order."""
    count = call.shape(scores)[1]
    reaches = call.add("GreaterOrEqual", scores, call.constant(threshold))
    found = call.add("Cast", reaches, to=FLOAT)
    return suppress(
        call,
        boxes,
        found,
        call.array(np.zeros(call.shape(scores), np.float32)),
        SuppressionAttributes(count, count, 1.0, 1.0),
    )
