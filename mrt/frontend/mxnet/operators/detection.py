"""Non-maximum suppression of boxes: box_nms and MultiBoxDetection."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
from mrt.frontend.mxnet.suppression import (
    SuppressionAttributes,
    next_above,
    suppress,
)

FORMATS = ("corner", "center")
FLOAT = onnx.TensorProto.FLOAT


def slice_range(
    call: OperatorCall, value: ir.Value, axis: int, start: int, end: int
) -> ir.Value:
    """Write the indices from start up to end, exclusive, of one axis."""
    bounds = [call.constant([number]) for number in (start, end, axis)]
    return call.add("Slice", value, *bounds)


def _gather_rows(
    call: OperatorCall, rows: ir.Value, indices: ir.Value
) -> ir.Value:
    """Gather, for each sample, the rows at its indices [batch, kept].

    An index equal to the number of rows selects a row of -1.
    """
    batch, count, width = call.shape(rows)
    pads = call.constant([0, 0, 0, 0, 1, 0])
    padded = call.add("Pad", rows, pads, call.constant(-1.0), mode="constant")
    if batch > 1:
        first_rows = np.arange(batch, dtype=np.int64) * (count + 1)
        offsets = call.array(first_rows.reshape(-1, 1))
        indices = call.add("Add", indices, offsets)
        padded = call.reshape(padded, [1, batch * (count + 1), width])
    flat = call.reshape(indices, [-1])
    gathered = call.add("Gather", padded, flat, axis=1)
    return call.reshape(gathered, [batch, -1, width])


def _padded_rows(call: OperatorCall, rows: ir.Value, count: int) -> ir.Value:
    """Append rows of -1 up to this count."""
    missing = count - call.shape(rows)[1]
    if not missing:
        return rows
    pads = call.constant([0, 0, 0, 0, missing, 0])
    return call.add("Pad", rows, pads, call.constant(-1.0), mode="constant")


def _number_of_candidates(nms_topk: int, count: int) -> int:
    """Return how many boxes are candidates: at most `nms_topk`, or all if that is 0 or negative."""
    return min(nms_topk, count) if nms_topk > 0 else count


def _zeros_like(call: OperatorCall, value: ir.Value) -> ir.Value:
    return call.array(np.zeros(call.shape(value), np.float32))


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


@operator(
    "_contrib_box_nms", "_contrib_box_non_maximum_suppression", attributes=NMS
)
def box_nms(call: OperatorCall) -> ir.Value:
    """Write the kept rows of each sample, best first, then rows of -1.

    The result is the input if topk is 0.
    """
    call.require_rank(2)
    if call.int_attribute("topk") == 0:
        return call.add("Identity", call.data)
    *leading, count, width = call.shape()
    rows = call.reshape(call.data, [math.prod(leading), count, width])
    start = call.int_attribute("coord_start")
    call.require(
        0 <= start <= width - 4,
        f"coord_start={start}: rows of {width} numbers have no box there",
    )
    indices = _kept_indices(call, rows, start)
    kept = _gather_rows(call, _in_output_format(call, rows, start), indices)
    result = _padded_rows(call, kept, count)
    if len(leading) == 1:
        return result
    return call.reshape(result, [*leading, count, width])


def _kept_indices(call: OperatorCall, rows: ir.Value, start: int) -> ir.Value:
    """Return the indices of the kept rows, whose boxes begin at column `start`."""
    boxes = slice_range(call, rows, 2, start, start + 4)
    if call.string_attribute("in_format") != "corner":
        boxes = to_corner(call, boxes)
    count = call.shape(rows)[1]
    candidates = _number_of_candidates(call.int_attribute("topk"), count)
    has_classes = call.int_attribute("id_index") >= 0
    attributes = SuppressionAttributes(
        keep=candidates,
        candidates=candidates,
        least_score=next_above(call.float_attribute("valid_thresh")),
        overlap=call.float_attribute("overlap_thresh"),
        background=call.int_attribute("background_id") if has_classes else -1,
    )
    scores = _column(call, rows, "score_index")
    classes = _classes(call, rows)
    return suppress(call, boxes, scores, classes, attributes)


def _column(call: OperatorCall, rows: ir.Value, name: str) -> ir.Value:
    """Return the column whose index an attribute holds."""
    batch, count, width = call.shape(rows)
    index = call.int_attribute(name)
    call.require(
        0 <= index < width, f"{name}={index} of rows of {width} numbers"
    )
    column = slice_range(call, rows, 2, index, index + 1)
    return call.reshape(column, [batch, count])


def _classes(call: OperatorCall, rows: ir.Value) -> ir.Value:
    """Return the class of each row.

    Rows without classes all share one. With force_suppress all rows share one too, except
    those of the background, which keep theirs.
    """
    if call.int_attribute("id_index") < 0:
        return call.array(np.zeros(call.shape(rows)[:2], np.float32))
    classes = _column(call, rows, "id_index")
    if not call.bool_attribute("force_suppress"):
        return classes
    background = float(call.int_attribute("background_id"))
    is_background = call.add("Equal", classes, call.constant(background))
    own_class = call.constant(background)
    shared_class = call.constant(background + 1)
    return call.add("Where", is_background, own_class, shared_class)


def _in_output_format(
    call: OperatorCall, rows: ir.Value, start: int
) -> ir.Value:
    """Return the rows with their boxes in the format of the output."""
    in_format = call.string_attribute("in_format")
    out_format = call.string_attribute("out_format")
    if in_format == out_format:
        return rows
    width = call.shape(rows)[2]
    boxes = slice_range(call, rows, 2, start, start + 4)
    convert = to_corner if out_format == "corner" else to_center
    converted = convert(call, boxes)
    pieces = [converted]
    if start > 0:
        pieces.insert(0, slice_range(call, rows, 2, 0, start))
    if start + 4 < width:
        pieces.append(slice_range(call, rows, 2, start + 4, width))
    if len(pieces) == 1:
        return converted
    return call.add("Concat", *pieces, axis=2)


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
    """Write a row (class, score, box) for each anchor whose best class reaches the threshold.

    Rows are in the order of their scores; a suppressed row has class -1. Class 0 is the
    background, whatever background_id is.
    """
    call.require_rank(3, 3)
    batch, classes, count = call.shape()
    call.require(
        classes >= 2,
        f"input of shape {call.shape()} has no class beside the background",
    )
    boxes = _decoded_boxes(call, batch, count)
    foreground = slice_range(call, call.data, 1, 1, classes)
    scores = call.add("ReduceMax", foreground, call.constant([1]), keepdims=0)
    best = call.add("ArgMax", foreground, axis=1, keepdims=0)
    labels = call.add("Cast", best, to=FLOAT)
    label_column = call.reshape(labels, [batch, count, 1])
    score_column = call.reshape(scores, [batch, count, 1])
    rows = call.add("Concat", label_column, score_column, boxes, axis=2)
    candidates = _Candidates(rows, boxes, scores, labels)
    if 0 < call.float_attribute("nms_threshold") <= 1:
        return _suppressed(call, candidates)
    return _gather_rows(call, rows, _indices_in_order(call, candidates))


def _decoded_boxes(call: OperatorCall, batch: int, count: int) -> ir.Value:
    anchors = call.inputs[2]
    offsets = call.reshape(call.inputs[1], [batch, count, 4])
    variances = call.floats_attribute("variances")
    call.require(
        len(variances) == 4, f"variances={variances}: expected four numbers"
    )
    centers = to_center(call, call.reshape(anchors, [1, count, 4]))
    boxes = decode(call, offsets, centers, variances)
    if not call.bool_attribute("clip"):
        return boxes
    return call.add("Clip", boxes, call.constant(0.0), call.constant(1.0))


@dataclass(frozen=True)
class _Candidates:
    """Each anchor's row (class, score, box), box, best score and class."""

    rows: ir.Value
    boxes: ir.Value
    scores: ir.Value
    labels: ir.Value


def _suppressed(call: OperatorCall, candidates: _Candidates) -> ir.Value:
    """Return all rows that reach the threshold, with class -1 where a better row overlaps."""
    count = call.shape(candidates.rows)[1]
    candidate_count = _number_of_candidates(
        call.int_attribute("nms_topk"), count
    )
    classes = candidates.labels
    if call.bool_attribute("force_suppress"):
        classes = _zeros_like(call, candidates.scores)
    sort_only = SuppressionAttributes(
        keep=candidate_count,
        candidates=candidate_count,
        least_score=call.float_attribute("threshold"),
        overlap=1.0,
    )
    attributes = replace(
        sort_only,
        overlap=call.float_attribute("nms_threshold"),
        inclusive=True,
        gaps=True,
    )
    order = suppress(
        call, candidates.boxes, candidates.scores, classes, sort_only
    )
    kept_indices = suppress(
        call, candidates.boxes, candidates.scores, classes, attributes
    )
    is_kept = call.add("Less", kept_indices, call.index(count))
    if candidate_count < count:
        order, is_kept = _with_unsorted(call, candidates, order, is_kept)
    rows = _gather_rows(call, candidates.rows, order)
    condition = call.reshape(is_kept, [*call.shape(is_kept), 1])
    label = slice_range(call, rows, 2, 0, 1)
    label = call.add("Where", condition, label, call.constant(-1.0))
    return call.add("Concat", label, slice_range(call, rows, 2, 1, 6), axis=2)


def _with_unsorted(
    call: OperatorCall,
    candidates: _Candidates,
    order: ir.Value,
    is_kept: ir.Value,
) -> tuple[ir.Value, ir.Value]:
    """Append the rows after nms_topk, without a class.

    MXNet leaves them where they were before sorting.
    """
    batch, count = call.shape(candidates.scores)
    candidate_count = call.shape(order)[1]
    in_order = _indices_in_order(call, candidates)
    others = slice_range(call, in_order, 1, candidate_count, count)
    order = call.add("Concat", order, others, axis=1)
    none = call.array(np.zeros((batch, count - candidate_count), np.bool_))
    return order, call.add("Concat", is_kept, none, axis=1)


def _indices_in_order(call: OperatorCall, candidates: _Candidates) -> ir.Value:
    """Return the indices of all rows that reach the threshold, in the order of the anchors."""
    threshold = call.constant(call.float_attribute("threshold"))
    is_candidate = call.add("GreaterOrEqual", candidates.scores, threshold)
    scores = call.add("Cast", is_candidate, to=FLOAT)
    classes = _zeros_like(call, candidates.scores)
    count = call.shape(scores)[1]
    attributes = SuppressionAttributes(
        count, count, least_score=1.0, overlap=1.0
    )
    return suppress(call, candidates.boxes, scores, classes, attributes)
