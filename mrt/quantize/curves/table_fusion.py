"""Table fusion: an element-wise subgraph of one quantized tensor becomes one lookup table.

The subgraph is evaluated on every integer of its root. It becomes a table only if some
operator in it is curved: sums, products by constants and clips are exact without one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPE_RANGES, IntArray
from mrt.exact.functions import ELEMENTWISE
from mrt.graph.canonical_values import (
    constant_of,
    is_constant,
    name_of,
    shape_of,
)
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.curve_memo import CurveResults
from mrt.quantize.curves.octave_roots import octave_form
from mrt.quantize.curves.sampled_curve import SampledCurve
from mrt.quantize.integer_values import always_integer
from mrt.quantize.tensor import Format, Tensor, wide_format
from mrt.quantize.wide_tables import close_lines, emit_lines

_KINDS = (ir.DataType.FLOAT, ir.DataType.BOOL)
_WIDE_RANGE_READERS = ("Sqrt", "Reciprocal", "Div")
# The most nodes of one curve: every value of a chain has a curve with all nodes before
# it. A longer chain becomes several tables.
LONGEST = 128
GATE_STEPS = 8
"""How many steps of 16 bits lines may be off where a gate is a function of a sum: a table of all entries is 128 times as long."""


def find_curves(nodes: Sequence[ir.Node]) -> dict[str, Curve]:
    """Return the curve of every value that one lookup table can compute, by name, if it needs a table."""
    return needing_tables(all_curves(nodes))


def needing_tables(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Return the curves that need tables."""
    return {name: curve for name, curve in curves.items() if needs_table(curve)}


def all_curves(
    nodes: Sequence[ir.Node], coded: Container[str] = ()
) -> dict[str, Curve]:
    """Return the curve of every value that is a function of one other, sums with constants and clips included.

    `nodes` are in topological order. `coded` names sums that are octave codes.
    """
    curves: dict[str, Curve] = {}
    for node in nodes:
        curve = _curve_of(node, curves, coded)
        if curve is not None:
            curves[name_of(node.outputs[0])] = curve
    return curves


def needs_table(curve: Curve) -> bool:
    """Whether a curve is more than sums, products by constants and clips, which are exact without a table."""
    return curve.is_curved and curve.kind == ir.DataType.FLOAT


def _curve_of(
    node: ir.Node, curves: dict[str, Curve], coded: Container[str]
) -> Curve | None:
    """Return the curve of a node's output; None if it is not a function of one other value.

    `curves` are those of the nodes before. Where a curve would become too long, it begins
    anew at the operand.
    """
    if node.op_type not in ELEMENTWISE:
        return None
    operands = [value for value in node.inputs if value is not None]
    computed = [value for value in operands if not is_constant(value)]
    if not computed or not _has_scalar_constants(node):
        return None
    if any(value.dtype not in _KINDS for value in (*computed, *node.outputs)):
        return None
    shape = shape_of(node.outputs[0])
    if any(shape_of(value) != shape for value in computed):
        return None
    roots = {
        id(root): root for root in (_root(value, curves) for value in computed)
    }
    if len(roots) != 1:
        return None
    root = next(iter(roots.values()))
    needs_accumulator = _is_sum(root) and name_of(root) not in coded
    if node.op_type in _WIDE_RANGE_READERS and needs_accumulator:
        return None
    before: dict[ir.Node, None] = {}
    for value in computed:
        if name_of(value) in curves:
            before |= dict.fromkeys(curves[name_of(value)].nodes)
    if len(before) < LONGEST:
        return Curve(root, (*before, node))
    if len({id(value) for value in computed}) == 1:
        return Curve(computed[0], (node,))
    return None


def _has_scalar_constants(node: ir.Node) -> bool:
    """Whether every constant operand has one element."""
    arrays = [constant_of(value) for value in node.inputs]
    return all(array is None or array.size == 1 for array in arrays)


def _is_sum(value: ir.Value) -> bool:
    """Whether this is a sum, or the root of one.

    Its values range over too many octaves for a narrow form, so an operator that
    divides by it or takes its root reads the accumulator.
    """
    node = value.producer()
    return node is not None and node.op_type in ("ReduceSum", "Sqrt")


def _root(value: ir.Value, curves: dict[str, Curve]) -> ir.Value:
    """Return the value of which this one is a function."""
    curve = curves.get(name_of(value))
    return value if curve is None else curve.root


def curve_root(net: LoweringContext, curve: Curve) -> Tensor:
    """Return the root as its table reads it: as a code where it is one or the curve is steep, else requantized."""
    return (
        net.code_of(curve.root)
        or octave_form(net, curve)
        or net.requantized(curve.root)
    )


@dataclass(frozen=True)
class CurveTable:
    """The results of a curve on the integers from `first` on that its root can have."""

    x: Tensor
    first: int
    results: CurveResults

    @classmethod
    def of(cls, net: LoweringContext, curve: Curve, x: Tensor) -> CurveTable:
        """Sample a curve, or take what is known of it.

        For a root that shares its range with others all integers are taken, so that one
        table serves all of them.
        """
        first, last = least, most = DTYPE_RANGES[net.dtype(x)]
        if name_of(curve.root) not in net.plan.shared_ranges:
            proven = net.builder.bounds[x.value]
            first, last = proven.min, proven.max
        scale = float(x.scale[0])
        key = (curve.recipe, scale, x.zero_point, x.octaves, first, last)

        def sample() -> SampledCurve:
            numbers = _numbers(least, most, x)[first - least : last - least + 1]
            return SampledCurve(curve, scale, x.zero_point, numbers)

        return cls(x, first, net.curves.of(key, sample))

    def emit(self, net: LoweringContext, entries: IntArray) -> Handle:
        """Emit a table with an entry for each integer of the root's dtype.

        `entries` are those of the integers that can occur. Where an integer is proven
        not to occur, the entry is that of the nearest one that can.
        """
        least, most = DTYPE_RANGES[net.dtype(self.x)]
        places = np.arange(least, most + 1) - self.first
        all_entries = entries[places.clip(0, len(entries) - 1)]
        constant = net.constant(all_entries)
        return net.builder.emit("table", self.x.value, constant)


def lower_curve(net: LoweringContext, value: ir.Value, curve: Curve) -> None:
    """Emit one table from the root's form to the value's format; a root of 16 bits gets lines instead where these are close."""
    x = curve_root(net, curve)
    table = CurveTable.of(net, curve, x)
    results = table.results
    target = _format(net, value, x, results)
    lines = None
    is_linear = net.dtype(x) == "i16" and x.octaves is None
    if is_linear and not _must_be_nearest(value, target):
        scales = net.options.scales
        nearest = results.entries(target)
        tolerance = (
            GATE_STEPS if name_of(curve.root) in net.plan.of_16_bits else 1
        )
        lines = close_lines(
            target, nearest, table.first, results.entries, scales, tolerance
        )
    if lines is not None:
        handle = emit_lines(net, x.value, lines)
    else:
        handle = table.emit(net, results.entries(target))
    result_scale = np.array([target.scale])
    net.define(value, Tensor(handle, result_scale, target.zero_point, x.layout))


def _numbers(least: int, most: int, x: Tensor) -> IntArray:
    """Return what each integer of x's dtype is, or is a code of."""
    if x.octaves is None:
        return np.arange(least, most + 1)
    return x.octaves.numbers()


def _format(
    net: LoweringContext, value: ir.Value, x: Tensor, curve: CurveResults
) -> Format:
    """Return the value's format; its scale is 1 where the curve's integers must stay exact."""
    interval = curve.interval()
    if name_of(value) in net.plan.wide and x.octaves is not None:
        range_ = net.ranges.of(name_of(value))
        return wide_format(range_, interval, net.options.scales)
    on_output_path = True if _only_divides(value) else None
    target = net.format(value, on_output_path=on_output_path, interval=interval)
    greatest = max(abs(interval[0]), abs(interval[1]))
    fits_i16 = greatest < 2**15
    is_integral = always_integer(value) or (x.integral and fits_i16)
    if is_integral and greatest < 2**31 and curve.is_integer():
        dtype = "i16" if fits_i16 else "i32"
        return Format(dtype, 1.0, 0, *DTYPE_RANGES[dtype])
    return target


def _must_be_nearest(value: ir.Value, target: Format) -> bool:
    """Whether each entry must be the nearest integer: those that are the reals, and divisors."""
    return target.scale == 1.0 or _only_divides(value)


def _only_divides(value: ir.Value) -> bool:
    """Whether a value is only a divisor.

    Its small values matter as much as its great ones, so it gets 16 bits.
    """
    readers = value.uses()
    if not readers:
        return False
    return all(use.node.op_type == "Div" and use.idx == 1 for use in readers)
