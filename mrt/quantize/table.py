"""Table fusion: a connected element-wise subgraph that hangs on one quantised tensor becomes one table.

The subgraph is evaluated on every integer its root can take. It is a table only if something in it is curved: sums, products
by constants and clips alone are exact without one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPES, IntArray
from mrt.quantize.functions import BINARY, CURVED, ELEMENTWISE, UNARY
from mrt.quantize.lowering import Lowering, constant_of, name_of, shape_of
from mrt.quantize.precision import HALF, PRECISION, add, divide, multiply
from mrt.quantize.tensor import Format, Tensor

_KINDS = (ir.DataType.FLOAT, ir.DataType.BOOL)


@dataclass(frozen=True)
class Curve:
    """A value that is a function of one other value: the nodes to evaluate, in order, from `root` on."""

    root: ir.Value
    nodes: tuple[ir.Node, ...]

    @property
    def curved(self) -> bool:
        """Whether a table is needed."""
        return any(node.op_type in CURVED for node in self.nodes)

    @property
    def kind(self) -> ir.DataType | None:
        """Floats or truths; a truth alone is compared, not looked up."""
        return self.nodes[-1].outputs[0].dtype


def find_curves(nodes: Sequence[ir.Node]) -> dict[str, Curve]:
    """For every value that is an element-wise function of one other value: which, and how. `nodes` in topological order."""
    curves: dict[str, Curve] = {}
    for node in nodes:
        curve = _curve_of(node, curves)
        if curve is not None:
            curves[name_of(node.outputs[0])] = curve
    return {name: curve for name, curve in curves.items() if curve.curved and curve.kind == ir.DataType.FLOAT}


def _curve_of(node: ir.Node, known: dict[str, Curve]) -> Curve | None:
    if node.op_type not in ELEMENTWISE:
        return None
    computed = [value for value in node.inputs if value is not None and constant_of(value) is None]
    scalars = [array for array in map(constant_of, node.inputs) if array is not None]
    if any(value.dtype not in _KINDS for value in (*computed, *node.outputs)):
        return None
    if not computed or any(array.size != 1 for array in scalars):
        return None
    roots = {id(root): root for root in (_root(value, known) for value in computed)}
    if node.op_type in ("Sqrt", "Reciprocal", "Div") and any(map(_is_sum, roots.values())):
        return None
    if len(roots) != 1 or any(shape_of(value) != shape_of(node.outputs[0]) for value in computed):
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


def lower_curve(net: Lowering, value: ir.Value, curve: Curve) -> None:
    """One table from the root's narrow form to the value's format."""
    x = net.settled(curve.root)
    integers = np.arange(-128, 128) if net.dtype(x) == "i8" else np.arange(-32768, 32768)
    proven = net.builder.bounds[x.value]
    alike = name_of(curve.root) in net.alike  # one table for all its twins, whatever is proven of each
    reachable = integers if alike else integers.clip(proven.min, proven.max)
    points = (_recipe(value, curve), float(x.scale[0]), x.zero_point, int(reachable[0]), int(reachable[-1]))
    reals = net.curves.reals(points, lambda: _evaluate(value, curve, float(x.scale[0]), x.zero_point, reachable))
    numbers = [real for real in reals.values() if not real.is_nan()] or [Decimal(0)]
    ends = float(min(numbers)), float(max(numbers))
    target = net.format(value, head=True if _only_divides(value) else None, reach=ends)
    if x.whole and all(number == number.to_integral_value() for number in numbers) and max(map(abs, ends)) < 2**15:
        target = Format("i16", 1.0, 0, -(2**15), 2**15 - 1)  # whole numbers of whole numbers stay what they are
    values = net.curves.entries((points, target), lambda: _entries(reals, reachable, target))
    table = net.builder.emit("table", x.value, net.constant(values))
    net.define(value, Tensor(table, np.array([target.scale]), target.zero_point, x.layout))


def _only_divides(value: ir.Value) -> bool:
    """A divisor, whose small values matter as much as its great ones, gets 16 bits."""
    return bool(value.uses()) and all(use.node.op_type == "Div" and use.idx == 1 for use in value.uses())


def _recipe(value: ir.Value, curve: Curve) -> Hashable:
    """What a curve does, without names: equal for the same function of another root."""
    places: dict[str, object] = {name_of(curve.root): 0}
    steps: list[Hashable] = []
    for index, node in enumerate(curve.nodes, 1):
        arrays = [(name, constant_of(operand)) for operand in node.inputs if (name := name_of(operand))]
        operands = [places[name] if array is None else ("constant", float(array.ravel()[0])) for name, array in arrays]
        numbers = sorted((name, str(attribute.value)) for name, attribute in node.attributes.items())
        steps.append((node.op_type, tuple(operands), tuple(numbers)))
        places[name_of(node.outputs[0])] = index
    return (tuple(steps), places[name_of(value)])


def _entries(reals: dict[int, Decimal], reachable: IntArray, target: Format) -> IntArray:
    entries = {integer: _quantized(real, target) for integer, real in _numbers(reals).items()}
    return np.array([entries[int(integer)] for integer in reachable], DTYPES[target.dtype])


def _numbers(reals: dict[int, Decimal]) -> dict[int, Decimal]:
    """Where the function is no number, as Acosh is right below 1, that of the nearest integer: what rounding came from."""
    known = np.array([integer for integer, real in reals.items() if not real.is_nan()])
    if not 0 < known.size < len(reals):
        return reals
    behind = np.searchsorted(known, list(reals)).clip(1, known.size - 1) if known.size > 1 else np.ones(len(reals), int)
    pairs = zip(known[behind - 1], known[behind % known.size], strict=True)
    return {
        integer: reals[int(before if integer - before <= after - integer else after)]
        for integer, (before, after) in zip(reals, pairs, strict=True)
    }


def _evaluate(value: ir.Value, curve: Curve, scale: float, zero_point: int, integers: IntArray) -> dict[int, Decimal]:
    """The function's value at each distinct integer."""
    step = Decimal(scale)
    constants = {
        name_of(operand): Decimal(float(array.ravel()[0]))
        for node in curve.nodes
        for operand in node.inputs
        if operand is not None and (array := constant_of(operand)) is not None
    }
    results: dict[int, Decimal] = {}
    for integer in sorted({int(item) for item in integers}):
        known = {**constants, name_of(curve.root): multiply(step, Decimal(integer - zero_point))}
        for node in curve.nodes:
            known[name_of(node.outputs[0])] = _apply(node, [known[name_of(operand)] for operand in node.inputs])
        results[integer] = known[name_of(value)]
    return results


def _apply(node: ir.Node, operands: list[Decimal]) -> Decimal:
    if any(operand.is_nan() for operand in operands):
        return Decimal("NaN")
    if node.op_type == "Clip":
        x, low, high = operands
        return min(max(x, low), high)
    if node.op_type == "Where":
        return operands[1] if operands[0] else operands[2]
    if node.op_type in UNARY:
        return UNARY[node.op_type](node, operands[0])
    return BINARY[node.op_type](operands[0], operands[1])


def _quantized(real: Decimal, target: Format) -> int:
    """Half up, saturated; where the function is nowhere a number, the least integer."""
    if real.is_nan():
        return target.least
    if real.is_infinite():
        return target.most if real > 0 else target.least
    steps = add(divide(real, Decimal(target.scale)), HALF).to_integral_value("ROUND_FLOOR", PRECISION)
    least, most = target.least - target.zero_point, target.most - target.zero_point
    return int(min(max(steps, Decimal(least)), Decimal(most))) + target.zero_point
