"""Lowers ONNX's NonMaxSuppression to one with a fixed number of rows.

The number of rows of ONNX's operator is not known before it runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx import parser

from mrt.errors import Unsupported
from mrt.graph.infer_shapes import infer_shapes
from mrt.graph.names import fresh_name
from mrt.graph.patch import Patch
from mrt.graph.values import (
    OWN_DOMAIN,
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    shape_of,
)
from mrt.rewrite.lookup.padded_rows import blank_padded_rows

NAME = "NonMaxSuppression"
MOST_ROWS = 1 << 16

# MXNet's detectors use the same node. There, `classes` separates the boxes; here, all
# boxes of a row have one class. It takes scores[B,N] and returns indices[B,keep], where
# N stands for none. onnxruntime runs this function, in operators of opset 13.
_MEANING = """
<domain: "mrt", opset_import: ["" : 20]>
NonMaxSuppression <keep, candidates, least_score, overlap, inclusive, gaps, background, threshold>
  (boxes, scores, classes) => (indices)
{
  flat = Constant <value = int64[1] {-1}> ()
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  two = Constant <value = int64 {2}> ()
  front = Constant <value = int64[1] {0}> ()
  middle = Constant <value = int64[1] {1}> ()
  count = Constant <value_int: int = @keep> ()
  limit = Constant <value_float: float = @overlap> ()
  least = Constant <value_float: float = @threshold> ()
  count_row = Reshape (count, flat)
  limit_row = Reshape (limit, flat)
  least_row = Reshape (least, flat)
  one_class = Unsqueeze (scores, middle)
  chosen = NonMaxSuppression (boxes, one_class, count_row, limit_row, least_row)
  batch = Gather <axis = 1> (chosen, zero)
  box = Gather <axis = 1> (chosen, two)
  shape = Shape (scores)
  batches = Gather (shape, zero)
  size = Gather (shape, one)
  all = Range (zero, batches, one)
  column = Unsqueeze (batch, middle)
  own = Equal (column, all)
  owned = Cast <to = 7> (own)
  counts = ReduceSum <keepdims = 0> (owned, front)
  starts = CumSum <exclusive = 1> (counts, zero)
  start = Gather (starts, batch)
  found_row = Shape (box)
  found = Gather (found_row, zero)
  places = Range (zero, found, one)
  rank = Sub (places, start)
  row = Mul (batch, count)
  place = Add (row, rank)
  total = Mul (batches, count)
  total_row = Reshape (total, flat)
  none = Expand (size, total_row)
  filled = ScatterElements (none, place, box)
  batches_row = Reshape (batches, flat)
  wide = Concat <axis = 0> (batches_row, count_row)
  indices = Reshape (filled, wide)
}
"""


@dataclass(frozen=True)
class _Choice:
    batches: int
    classes: int
    boxes: int
    keep: int
    overlap: float
    threshold: float

    @property
    def rows(self) -> int:
        return self.batches * self.classes * self.keep


def lower_non_max_suppression(model: ir.Model) -> int:
    """NonMaxSuppression -> one choice for each batch and class, and their rows.

    The rows [batch, class, box] are in ONNX's order. Applies to constant bounds and
    known shapes. The result has the greatest possible number of rows. After the rows
    that ONNX returns, each number is -1, and lookups by it return 0.
    """
    count = 0
    for node in nodes(model, NAME):
        choice = _choice(node)
        if choice is None:
            continue
        function = ir.serde.deserialize_function(
            parser.parse_function(_MEANING)
        )
        model.functions[function.identifier()] = function
        model.graph.opset_imports[OWN_DOMAIN] = 1
        rows = _lower(node, choice)
        infer_shapes(model)
        blank_padded_rows(rows)
        count += 1
    return count


def _choice(node: ir.Node) -> _Choice | None:
    boxes, scores = shape_of(first(node)), shape_of(operand(node, 1))
    numbers = [_number(node, place) for place in (2, 3, 4)]
    if (
        boxes is None
        or scores is None
        or None in numbers
        or min(*boxes, *scores) < 1
    ):
        return None
    most, overlap, threshold = (
        0.0 if number is None else number for number in numbers
    )
    batches, classes, count = scores
    choice = _Choice(
        batches, classes, count, int(min(most, count)), overlap, threshold
    )
    problem = None
    if boxes != (scores[0], scores[2], 4):
        problem = (
            f"boxes {list(boxes)} and scores {list(scores)} do not go together"
        )
    elif not 0 < choice.rows <= MOST_ROWS:
        problem = (
            f"it gives up to {choice.rows} rows; expected 1 to {MOST_ROWS}"
        )
    elif not 0 <= overlap <= 1:
        problem = f"iou_threshold={overlap}; expected 0 to 1"
    if problem is not None:
        names = ",".join(
            str(value.name)
            for value in node.inputs[:2]
            if value is not None and value.producer()
        )
        hint = f"to end in front of it: --outputs {names}" if names else ""
        raise Unsupported(
            [f"{node.name or node.outputs[0].name} ({NAME}): {problem}"], hint
        )
    return choice


def _number(node: ir.Node, place: int) -> float | None:
    """Return a constant operand; None where it is not constant.

    Where it is absent, the defaults are 0 boxes, no overlap, and any score.
    """
    value = operand(node, place)
    if value is None:
        return float(np.finfo(np.float32).min) if place == 4 else 0.0
    array = constant(value)
    return (
        None if array is None or array.size != 1 else float(array.reshape(()))
    )


def _lower(node: ir.Node, choice: _Choice) -> ir.Value:
    patch = Patch(node)
    rows = choice.batches * choice.classes
    boxes = _corners(
        patch, first(node), bool(int_attribute(node, "center_point_box", 0))
    )
    if choice.classes > 1:
        boxes = patch.add(
            "Gather",
            boxes,
            patch.axes([row // choice.classes for row in range(rows)]),
            axis=0,
        )
    scores = patch.add(
        "Reshape",
        operand(node, 1),
        patch.axes((rows, choice.boxes), "rows"),
        allowzero=0,
    )
    chosen = _suppressed(patch, boxes, scores, choice)
    places = np.arange(choice.rows) // choice.keep
    box = patch.add(
        "Reshape", chosen, patch.axes((choice.rows,), "flat"), allowzero=0
    )
    label = patch.constant(places % choice.classes, "label")
    batch = patch.constant(places // choice.classes, "batch")
    if rows > 1:
        order = _order(patch, _exists(patch, box, choice), choice.rows)
        box, label, batch = (
            patch.add("Gather", value, order, axis=0)
            for value in (box, label, batch)
        )
    exists = _exists(patch, box, choice)
    none = patch.constant(np.array(-1, np.int64), "none")
    shape = patch.axes((choice.rows, 1), "column")
    columns = [
        patch.add("Where", exists, value, none) for value in (batch, label, box)
    ]
    table = patch.add(
        "Concat",
        *(patch.add("Reshape", c, shape, allowzero=0) for c in columns),
        axis=1,
    )
    node.outputs[0].shape = ir.Shape((choice.rows, 3))
    node.outputs[0].type = ir.TensorType(ir.DataType.INT64)
    patch.finish(table)
    return table


def _corners(patch: Patch, boxes: ir.Value, around_centers: bool) -> ir.Value:
    """Return boxes as [low, low, high, high], whichever corner comes first."""
    axis, step = patch.axes([2]), patch.axes([1], "step")
    edges = [patch.axes([number], "edge") for number in (0, 2, 4)]
    first_pair, second_pair = (
        patch.add("Slice", boxes, edges[i], edges[i + 1], axis, step)
        for i in range(2)
    )
    if around_centers:
        half = patch.add(
            "Mul",
            second_pair,
            patch.constant(np.array(0.5, np.float32), "half"),
        )
        low = patch.add("Sub", first_pair, half)
        high = patch.add("Add", first_pair, half)
    else:
        low = patch.add("Min", first_pair, second_pair)
        high = patch.add("Max", first_pair, second_pair)
    return patch.add("Concat", low, high, axis=2)


def _suppressed(
    patch: Patch, boxes: ir.Value, scores: ir.Value, choice: _Choice
) -> ir.Value:
    """Add the node of domain "mrt" that chooses among the boxes."""
    shape = (choice.batches * choice.classes, choice.boxes)
    classes = patch.constant(np.zeros(shape, np.float32), "classes")
    attributes = {
        "keep": choice.keep, "candidates": choice.boxes, "inclusive": 0, "gaps": 0, "background": -1.0,
        "least_score": float(np.nextafter(np.float32(choice.threshold), np.float32(np.inf))),
        "overlap": choice.overlap, "threshold": choice.threshold,
    }  # fmt: skip
    name = fresh_name(patch.graph, f"{patch.base}.chosen")
    suppression = ir.node(
        NAME, [boxes, scores, classes], attributes, domain=OWN_DOMAIN, name=name
    )
    suppression.outputs[0].name = name
    suppression.outputs[0].shape = ir.Shape((shape[0], choice.keep))
    suppression.outputs[0].type = ir.TensorType(ir.DataType.INT64)
    patch.graph.insert_before(patch.node, suppression)
    return suppression.outputs[0]


def _exists(patch: Patch, box: ir.Value, choice: _Choice) -> ir.Value:
    return patch.add(
        "Less", box, patch.constant(np.array(choice.boxes, np.int64), "boxes")
    )


def _order(patch: Patch, exists: ir.Value, rows: int) -> ir.Value:
    """Return the indices of the rows that exist, in order, then of the others.

    TopK puts the greatest rank first, so the earliest row has the greatest rank.
    """
    ranks = patch.constant(np.arange(rows, 0, -1), "ranks")
    rank = patch.add(
        "Where",
        exists,
        ranks,
        patch.constant(np.array(0, np.int64), "zero"),
    )
    name = fresh_name(patch.graph, f"{patch.base}.order")
    top_k = ir.node(
        "TopK",
        [rank, patch.axes([rows], "rows")],
        {"axis": 0, "largest": 1, "sorted": 1},
        num_outputs=2,
        name=name,
    )
    for output, role in zip(top_k.outputs, ("ranked", "order"), strict=True):
        output.name = fresh_name(patch.graph, f"{patch.base}.{role}")
        output.shape = ir.Shape((rows,))
        output.type = ir.TensorType(ir.DataType.INT64)
    patch.graph.insert_before(patch.node, top_k)
    return top_k.outputs[1]
