"""Reasons why an operator has no integer form where no pass lowered it."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.values import constant, operand, shape_of, string_attribute
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT
from mrt.rewrite.elementwise.bitwise import MOST_SHIFT
from mrt.rewrite.lookup.computed_scatter import MOST_UPDATES, is_wide_scatter
from mrt.rewrite.lookup.extreme_scatter import size_of_choices
from mrt.rewrite.lookup.scattered_rows import ScatteredRows, scattered_rows
from mrt.rewrite.lookup.summing_scatter import size_of_sums
from mrt.rewrite.signal.dft import LONGEST, MOST_WEIGHTS

_END_EARLIER = "end in front of it with --outputs"
_KNOWN_WHEN_IT_RUNS = (
    "it has no integer form for values that are only known when it runs; "
    "--value fixes an input"
)
_LENGTH = (
    "the length of its result depends on the data, and every shape of a program is fixed; "
    f"{_END_EARLIER}"
)
_NO_BITS = "programs have no bitwise operations, and only"
_OF_A_MASK = f"{_NO_BITS} one constant mask for all elements is written as arithmetic; {_END_EARLIER}"
_OF_BITS = {
    "BitShift": f"{_NO_BITS} constant shifts of up to {MOST_SHIFT} bits are written as arithmetic; {_END_EARLIER}",
    "BitwiseNot": f"{_NO_BITS} that of integers with a sign, or of up to 16 bits, is written as arithmetic; {_END_EARLIER}",
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), _OF_A_MASK),
}
_OF_A_TRANSFORM = (
    f"a transform has at most {LONGEST:,} numbers and {MOST_WEIGHTS:,} weights, and its lengths, its window and "
    f"the shape of its signal are constants; that of an STFT is real and no shorter than a frame; {_END_EARLIER}"
)
_OF_COMPUTED_LENGTH = ("Compress", "NonZero", "Unique")
_SCATTERS = ("ScatterElements", "ScatterND")


def reason_not_lowered(node: ir.Node) -> str:
    """Return why the operator is in no program, and what to do about it."""
    if 0 in (shape := shape_of(operand(node, 0)) or ()):
        return f"its input {list(shape)} has no elements; {_END_EARLIER}"
    if node.op_type in _OF_COMPUTED_LENGTH:
        return _LENGTH
    if node.op_type in _OF_BITS:
        return _OF_BITS[node.op_type]
    if node.op_type in ("DFT", "STFT"):
        return _OF_A_TRANSFORM
    if node.op_type == "Dropout":
        return "it drops numbers at random, as in training; export the model for inference (model.eval() in PyTorch)"
    if node.op_type == "ConstantOfShape" and _fills_with_nan(node):
        return f"it fills a tensor with NaN, which no integer stands for; {_END_EARLIER}"
    if node.op_type in _SCATTERS and (reason := _reason_of_scatter(node)):
        return f"{reason}; {_END_EARLIER}"
    if node.op_type == "GridSample" and (reason := _reason_of_grid(node)):
        return f"{reason}; {_END_EARLIER}"
    operands = [value for value in node.inputs if value is not None]
    if operands and all(constant(value) is not None for value in operands):
        return _reason_of_constant(node)
    return _KNOWN_WHEN_IT_RUNS


def _reason_of_grid(node: ir.Node) -> str | None:
    """Return what takes a constant grid where that of a GridSample is computed; None for any other reason."""
    if constant(operand(node, 1)) is not None:
        return None
    if string_attribute(node, "mode", "linear") in ("cubic", "bicubic"):
        return "mode cubic takes a constant grid alone, and modes linear and nearest a computed one, too"
    if string_attribute(node, "padding_mode", "zeros") == "reflection":
        return "padding_mode reflection takes a constant grid alone, and zeros and border a computed one, too"
    return None


def _reason_of_scatter(node: ir.Node) -> str | None:
    """Return which limit a scatter exceeds; None if it exceeds none."""
    rows = scattered_rows(node)
    if rows is not None and (too_many := _too_many_choices(rows)):
        return too_many
    if constant(operand(node, 1)) is not None:
        return (
            "one place is written twice, or more than 16 times in a reduction"
        )
    x, updates = shape_of(operand(node, 0)), shape_of(operand(node, 2))
    if node.op_type == "ScatterElements" and rows is None and x and updates:
        return f"its updates {list(updates)} leave out places of {list(x)} in other axes than the one they go along"
    if is_wide_scatter(node):
        return (
            f"more than {MOST_UPDATES} updates at computed indices, each of which is a choice "
            "over the whole tensor (sums, maxima and minima may be more)"
        )
    return None


def _too_many_choices(rows: ScatteredRows) -> str | None:
    """Return how many choices a sum, maximum or minimum needs; None if it may have so many."""
    size = size_of_sums(rows) or size_of_choices(rows)
    if size is None or size <= LARGEST_RESULT:
        return None
    numbers = size // (rows.rows * rows.count)
    of_numbers = f" of {numbers:,} numbers" if numbers > 1 else ""
    return (
        f"its {rows.count:,} updates{of_numbers} for each of {rows.rows:,} places are {size:,} choices; "
        f"at most {LARGEST_RESULT:,}"
    )


def _reason_of_constant(node: ir.Node) -> str:
    """Return why the result of constants stayed an operator."""
    sizes = [math.prod(shape_of(output) or ()) for output in node.outputs]
    if max(sizes) > LARGEST_RESULT:
        return (
            f"its result is constant, but has {max(sizes):,} numbers; at most "
            f"{LARGEST_RESULT:,} are computed before the program is written: "
            "store them in the model's file"
        )
    return (
        "its result is constant, but not computed before the program is written: "
        "store it in the model's file"
    )


def _fills_with_nan(node: ir.Node) -> bool:
    fill = node.attributes.get("value")
    return fill is not None and bool(np.isnan(fill.as_tensor().numpy()).any())


def reason_of_unknown_shape(node: ir.Node) -> str:
    """Return why the shape of a result is not known, and what to do about it."""
    if node.op_type == "Slice" and _has_computed_bound(node):
        return f"its bounds are computed, so {_LENGTH}"
    return "the shape of its result is not known"


def _has_computed_bound(node: ir.Node) -> bool:
    bounds = (operand(node, 1), operand(node, 2))
    return shape_of(operand(node, 0)) is not None and any(
        bound is not None and constant(bound) is None for bound in bounds
    )
