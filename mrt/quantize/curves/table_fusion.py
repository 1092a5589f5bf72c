"""Table fusion: a connected element-wise subgraph that hangs on one quantised tensor becomes one table.

The subgraph is evaluated on every integer its root can take. It is a table only if something in it is curved: sums, products
by constants and clips alone are exact without one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPE_RANGES
from mrt.exact.functions import ELEMENTWISE
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.sampled_curve import SampledCurve
from mrt.quantize.integer_values import always_integer
from mrt.quantize.tensor import Format, Tensor

_KINDS = (ir.DataType.FLOAT, ir.DataType.BOOL)


def find_curves(nodes: Sequence[ir.Node]) -> dict[str, Curve]:
    """For every value that is an element-wise function of one other value: which, and how. `nodes` in topological order."""
    curves: dict[str, Curve] = {}
    for node in nodes:
        curve = _curve_of(node, curves)
        if curve is not None:
            curves[name_of(node.outputs[0])] = curve
    return {
        name: curve
        for name, curve in curves.items()
        if curve.curved and curve.kind == ir.DataType.FLOAT
    }


def _curve_of(node: ir.Node, known: dict[str, Curve]) -> Curve | None:
    if node.op_type not in ELEMENTWISE:
        return None
    computed = [
        value
        for value in node.inputs
        if value is not None and constant_of(value) is None
    ]
    scalars = [array for array in map(constant_of, node.inputs) if array is not None]
    if any(value.dtype not in _KINDS for value in (*computed, *node.outputs)):
        return None
    if not computed or any(array.size != 1 for array in scalars):
        return None
    roots = {id(root): root for root in (_root(value, known) for value in computed)}
    if node.op_type in ("Sqrt", "Reciprocal", "Div") and any(
        map(_is_sum, roots.values())
    ):
        return None
    if len(roots) != 1 or any(
        shape_of(value) != shape_of(node.outputs[0]) for value in computed
    ):
        return None
    before: dict[ir.Node, None] = {}
    for value in computed:
        if name_of(value) in known:
            before |= dict.fromkeys(known[name_of(value)].nodes)
    return Curve(next(iter(roots.values())), (*before, node))


def _is_sum(value: ir.Value) -> bool:
    """A sum or its root, which range over too many octaves for a narrow form: what divides by it reads the accumulator."""
    node = value.producer()
    return node is not None and node.op_type in ("ReduceSum", "Sqrt")


def _root(value: ir.Value, known: dict[str, Curve]) -> ir.Value:
    return known[name_of(value)].root if name_of(value) in known else value


def lower_curve(net: LoweringContext, value: ir.Value, curve: Curve) -> None:
    """One table from the root's narrow form to the value's format."""
    x = net.requantized(curve.root)
    integers = (
        np.arange(-128, 128) if net.dtype(x) == "i8" else np.arange(-32768, 32768)
    )
    proven = net.builder.bounds[x.value]
    alike = (
        name_of(curve.root) in net.shared_ranges
    )  # one table for all its twins, whatever is proven of each
    reachable = integers if alike else integers.clip(proven.min, proven.max)
    first, last, scale = int(reachable[0]), int(reachable[-1]), float(x.scale[0])
    key = (curve.recipe, scale, x.zero_point, first, last)
    sampled = net.curves.sampled(
        key,
        lambda: SampledCurve(curve, scale, x.zero_point, np.arange(first, last + 1)),
    )
    ends = sampled.ends()
    target = net.format(
        value, on_output_path=True if _only_divides(value) else None, interval=ends
    )
    reach, made_integer = max(map(abs, ends)), always_integer(value)
    if (
        (made_integer or (x.integral and reach < 2**15))
        and reach < 2**31
        and sampled.is_integer()
    ):
        dtype = "i16" if reach < 2**15 else "i32"
        target = Format(
            dtype, 1.0, 0, *DTYPE_RANGES[dtype]
        )  # whole numbers stay what they are
    values = net.curves.entries(
        (key, target), lambda: sampled.entries(target)[reachable - first]
    )
    table = net.builder.emit("table", x.value, net.constant(values))
    net.define(
        value, Tensor(table, np.array([target.scale]), target.zero_point, x.layout)
    )


def _only_divides(value: ir.Value) -> bool:
    """A divisor, whose small values matter as much as its great ones, gets 16 bits."""
    return bool(value.uses()) and all(
        use.node.op_type == "Div" and use.idx == 1 for use in value.uses()
    )
