"""Non-maximum suppression as a node of domain "mrt": ONNX's own operator has no static shape.

The node is defined by the body of a function, which onnxruntime runs. The body uses
operators of opset 13 only, so that a model with it can be written at any later opset.
`cvm/SPEC.md`, nms, defines the same on integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx import parser

from mrt.frontend.mxnet.operator_call import OperatorCall

NAME = "NonMaxSuppression"

# boxes[B,N,4] as corners, scores[B,N], classes[B,N] -> indices[B,keep]; index N is none.
# A box is a candidate if its score is at least `least_score` and its class is not
# `background`. The first `candidates` of these by score, then index, are visited in order.
# Each is kept unless it overlaps one of its class that is already kept. With `gaps`,
# position j of the result belongs to candidate j.
_TEXT = """
<domain: "mrt", opset_import: ["" : 20]>
NonMaxSuppression <keep, candidates, least_score, overlap, inclusive, gaps, background> (boxes, scores, classes)
  => (indices)
{
  one = Constant <value = int64[1] {1}> ()
  flat = Constant <value = int64[1] {-1}> ()
  zero = Constant <value = float {0.0}> ()
  first = Constant <value = int64 {0}> ()
  lowest = Constant <value = float {-3.4028234663852886e38}> ()
  keep_count = Constant <value_int: int = @keep> ()
  count = Constant <value_int: int = @candidates> ()
  least = Constant <value_float: float = @least_score> ()
  limit = Constant <value_float: float = @overlap> ()
  inclusive_count = Constant <value_int: int = @inclusive> ()
  at_limit = Cast <to = 9> (inclusive_count)
  gaps_count = Constant <value_int: int = @gaps> ()
  with_gaps = Cast <to = 9> (gaps_count)
  left_out = Constant <value_float: float = @background> ()
  reaches = GreaterOrEqual (scores, least)
  in_background = Equal (classes, left_out)
  in_front = Not (in_background)
  takes_part = And (reaches, in_front)
  masked = Where (takes_part, scores, lowest)
  candidate_shape = Reshape (count, flat)
  best, order = TopK <axis = 1> (masked, candidate_shape)
  valid = Greater (best, lowest)
  label = GatherElements <axis = 1> (classes, order)
  rows = Unsqueeze (order, flat)
  box = GatherND <batch_dims = 1> (boxes, rows)
  second = Constant <value = int64 {1}> ()
  third = Constant <value = int64 {2}> ()
  fourth = Constant <value = int64 {3}> ()
  x0 = Gather <axis = 2> (box, first)
  y0 = Gather <axis = 2> (box, second)
  x1 = Gather <axis = 2> (box, third)
  y1 = Gather <axis = 2> (box, fourth)
  signed_width = Sub (x1, x0)
  signed_height = Sub (y1, y0)
  width = Max (signed_width, zero)
  height = Max (signed_height, zero)
  area = Mul (width, height)
  invalid = Not (valid)
  none = And (valid, invalid)
  places = Range (first, count, second)
  true = Constant <value = bool {1}> ()
  kept = Loop (count, true, none) <body = consider (int64 j, bool go, bool[B, C] before) => (bool on, bool[B, C] after) {
    on = Identity (go)
    place = Reshape (j, flat)
    left = Gather <axis = 1> (x0, place)
    top = Gather <axis = 1> (y0, place)
    right = Gather <axis = 1> (x1, place)
    bottom = Gather <axis = 1> (y1, place)
    own_area = Gather <axis = 1> (area, place)
    own_label = Gather <axis = 1> (label, place)
    is_valid = Gather <axis = 1> (valid, place)
    inner_left = Max (left, x0)
    inner_right = Min (right, x1)
    inner_top = Max (top, y0)
    inner_bottom = Min (bottom, y1)
    across = Sub (inner_right, inner_left)
    down = Sub (inner_bottom, inner_top)
    common_width = Max (across, zero)
    common_height = Max (down, zero)
    intersection = Mul (common_width, common_height)
    both = Add (own_area, area)
    union = Sub (both, intersection)
    share = Div (intersection, union)
    above = Greater (share, limit)
    exactly = Equal (share, limit)
    counts = And (exactly, at_limit)
    too_much = Or (above, counts)
    exists = Greater (union, zero)
    alike = Equal (own_label, label)
    rival = And (before, alike)
    real = And (rival, exists)
    hit = And (real, too_much)
    hits = Cast <to = 1> (hit)
    number = ReduceSum <keepdims = 1> (hits, one)
    free = Equal (number, zero)
    stays = And (is_valid, free)
    here = Equal (places, place)
    added = And (stays, here)
    after = Or (before, added)
  }>
  shown = Or (kept, with_gaps)
  from_behind = Sub (count, places)
  rank = Where (shown, from_behind, first)
  keep_shape = Reshape (keep_count, flat)
  ranks, chosen = TopK <axis = 1> (rank, keep_shape)
  picked = GatherElements <axis = 1> (order, chosen)
  is_kept = GatherElements <axis = 1> (kept, chosen)
  shape = Shape (scores)
  size = Gather (shape, one)
  indices = Where (is_kept, picked, size)
}
"""


@dataclass(frozen=True)
class SuppressionAttributes:
    """The attributes of the node. `overlap` and `least_score` are numbers of float32."""

    keep: int
    candidates: int
    least_score: float
    overlap: float
    inclusive: bool = False
    gaps: bool = False
    background: float = -1.0


def function() -> ir.Function:
    """Return the function that defines the node."""
    return ir.serde.deserialize_function(parser.parse_function(_TEXT))


def suppress(
    call: OperatorCall,
    boxes: ir.Value,
    scores: ir.Value,
    classes: ir.Value,
    choice: SuppressionAttributes,
) -> ir.Value:
    """Add a suppression; return the indices of the kept boxes, int64[B,keep]."""
    attributes = {
        "keep": choice.keep,
        "candidates": choice.candidates,
        "least_score": float(np.float32(choice.least_score)),
        "overlap": float(np.float32(choice.overlap)),
        "inclusive": int(choice.inclusive),
        "gaps": int(choice.gaps),
        "background": float(choice.background),
    }
    indices = call.add_function(
        function(), [boxes, scores, classes], attributes
    )
    indices.shape = ir.Shape((call.shape(scores)[0], choice.keep))
    indices.type = ir.TensorType(ir.DataType.INT64)
    return indices


def next_above(threshold: float) -> float:
    """Return the least float32 that is greater than a threshold."""
    return float(np.nextafter(np.float32(threshold), np.float32(np.inf)))
