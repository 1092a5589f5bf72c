"""Lowers IsNaN and IsInf of computed values to comparisons of the numbers from which they arise.

A program has no NaN: 0 / 0 has to be found in the two zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    shape_of,
)

DEEPEST = 100  # operators between an IsNaN and what it may depend on


@dataclass(frozen=True)
class NotFinite:
    """Where a value is NaN, and where it is infinite or NaN, as booleans; None for nowhere."""

    nan: ir.Value | None = None
    infinite: ir.Value | None = None


def lower_is_nan(model: ir.Model) -> int:
    """IsNaN(a / b) -> a = 0 and b = 0; IsInf(a / b) -> b = 0 and a not 0; so also behind other operators.

    Applies to logarithms, roots, powers, quotients and reciprocals, and to sums,
    products, choices and casts of these. Equal where inputs are finite and nothing
    overflows, except that a sum of two infinities counts as NaN whatever their signs.
    IsInf of one sign stays, and is false. A float that equals itself is one that is not
    NaN: Equal(x, x) -> Not(IsNaN(x)), as a NaN guard may be written.
    """
    count = sum(_equal_to_itself(node) for node in nodes(model, "Equal"))
    for node in nodes(model, "IsNaN", "IsInf"):
        if node.op_type == "IsInf" and not _of_both_signs(node):
            continue
        patch = _BooleanPatch(node)
        not_finite = patch.of(first(node))
        mask = not_finite.nan
        if node.op_type == "IsInf":
            mask = not_finite.infinite
            if mask is not None and not_finite.nan is not None:
                mask = patch.both(mask, patch.negated(not_finite.nan))
        if mask is not None:
            patch.put(mask)
            count += 1
    return count


def may_be_infinite(value: ir.Value, node: ir.Node) -> bool:
    """Return whether a value that a node reads may be infinite or NaN; the graph stays as it is."""
    return _DryPatch(node).of(value) != NotFinite()


def _equal_to_itself(node: ir.Node) -> bool:
    """Ask for NaN where a float is compared with itself; return False for any other comparison."""
    left, right = node.inputs
    if left is not right or first(node).dtype != ir.DataType.FLOAT:
        return False
    patch = Patch(node)
    patch.finish(patch.add("Not", patch.add("IsNaN", left)))
    return True


def _of_both_signs(node: ir.Node) -> bool:
    names = ("detect_positive", "detect_negative")
    return all(int_attribute(node, name, 1) for name in names)


class _BooleanPatch:
    """Adds the comparisons that find where values are not finite, each once."""

    def __init__(self, node: ir.Node) -> None:
        self._node = node
        self._patch = Patch(node)
        self._not_finite: dict[ir.Value, NotFinite] = {}

    def of(self, value: ir.Value) -> NotFinite:
        """Find where a value is not finite; what is too far away is taken to be finite."""
        near = _values_near(value)
        waiting = [value]
        while waiting:
            missing = [
                it
                for it in _deciding_operands(waiting[-1])
                if it in near and it not in self._not_finite
            ]
            if missing:
                waiting.append(missing[0])
            else:
                current = waiting.pop()
                self._not_finite[current] = self._of_operands(current)
        return self._not_finite[value]

    def _of_operands(self, value: ir.Value) -> NotFinite:
        """Find where a value is not finite, given where its operands are not."""
        node = value.producer()
        if node is None or node.op_type not in _RULES:
            return NotFinite()
        operands = [
            NotFinite()
            if source is None
            else self._not_finite.get(source, NotFinite())
            for source in node.inputs
        ]
        return _RULES[node.op_type](self, node, operands)

    def put(self, condition: ir.Value) -> None:
        """Put a result in the place of the node, in its shape."""
        shape = shape_of(first(self._node))
        if condition.producer() is None or shape_of(condition) != shape:
            nowhere = self._patch.constant(
                np.zeros(shape or (), np.bool_), "false"
            )
            condition = self._patch.add("Or", condition, nowhere)
        self._patch.finish(condition)

    def compare(
        self, operator: str, value: ir.Value, number: float = 0.0
    ) -> ir.Value:
        """Compare a value with a number."""
        result = self._patch.add(
            operator, value, self._patch.number(number, "number")
        )
        result.shape = value.shape
        return result

    def some(self, *values: ir.Value | None) -> ir.Value | None:
        """Where one of these is true."""
        return self._joined("Or", [mask for mask in values if mask is not None])

    def both(self, *values: ir.Value | None) -> ir.Value | None:
        """Where all of these are true; nowhere if one is true nowhere."""
        masks = [mask for mask in values if mask is not None]
        return self._joined("And", masks) if len(masks) == len(values) else None

    def negated(self, value: ir.Value) -> ir.Value:
        """Where this is false."""
        result = self._patch.add("Not", value)
        result.shape = value.shape
        return result

    def given(self, array: Array) -> ir.Value | None:
        """Booleans that are known; None if all are false."""
        return self._patch.constant(array, "where") if array.any() else None

    def zero(self, value: ir.Value | None) -> ir.Value | None:
        """Where a value is 0; None if it is a constant that is nowhere 0."""
        array = constant(value)
        if value is None or array is None:
            return None if value is None else self.compare("Equal", value)
        return self.given(array == 0)

    def _joined(self, operator: str, values: list[ir.Value]) -> ir.Value | None:
        result: ir.Value | None = None
        for value in values:
            if result is None:
                result = value
                continue
            before, result = result, self._patch.add(operator, result, value)
            shapes = [shape_of(before), shape_of(value)]
            if None not in shapes:
                sizes = np.broadcast_shapes(
                    *(s for s in shapes if s is not None)
                )
                result.shape = ir.Shape(sizes)
        return result


class _DryPatch(_BooleanPatch):
    """Finds out whether there would be anything to compare, and adds nothing: any value stands for a condition."""

    def compare(
        self, operator: str, value: ir.Value, number: float = 0.0
    ) -> ir.Value:
        """Return the value in place of its comparison."""
        return value

    def negated(self, value: ir.Value) -> ir.Value:
        """Return the condition itself."""
        return value

    def given(self, array: Array) -> ir.Value | None:
        """Return any value unless all are false."""
        return self._node.outputs[0] if array.any() else None

    def _joined(self, operator: str, values: list[ir.Value]) -> ir.Value | None:
        return values[0] if values else None


def _values_near(value: ir.Value) -> set[ir.Value]:
    """Return the values that decide whether one is finite, fewer than DEEPEST operators away from it on the shortest way."""
    near, nearest = {value}, [value]
    for _ in range(DEEPEST - 1):
        further = [
            it for result in nearest for it in _deciding_operands(result)
        ]
        nearest = [it for it in dict.fromkeys(further) if it not in near]
        near.update(nearest)
    return near


def _deciding_operands(value: ir.Value) -> list[ir.Value]:
    """Return the operands that decide whether a value is finite; none where no rule is known."""
    node = value.producer()
    if node is None or node.op_type not in _RULES:
        return []
    return [it for it in node.inputs if it is not None]


Rule = Callable[[_BooleanPatch, ir.Node, list[NotFinite]], NotFinite]


def _log(patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]) -> NotFinite:
    below = patch.compare("Less", first(node))
    infinite = patch.some(patch.zero(first(node)), x[0].infinite)
    return NotFinite(patch.some(below, x[0].nan), infinite)


def _sqrt(patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]) -> NotFinite:
    below = patch.compare("Less", first(node))
    return NotFinite(patch.some(below, x[0].nan), x[0].infinite)


def _reciprocal(
    patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]
) -> NotFinite:
    return NotFinite(x[0].nan, patch.zero(first(node)))


def _power(
    patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]
) -> NotFinite:
    exponents = constant(operand(node, 1))
    if exponents is None:
        return NotFinite(x[0].nan)
    fractions = patch.given(exponents != np.floor(exponents))
    below = patch.both(fractions, patch.compare("Less", first(node)))
    falling = patch.both(patch.given(exponents < 0), patch.zero(first(node)))
    rising = patch.both(patch.given(exponents > 0), x[0].infinite)
    return NotFinite(patch.some(below, x[0].nan), patch.some(falling, rising))


def _quotient(
    patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]
) -> NotFinite:
    if node.outputs[0].dtype not in (None, ir.DataType.FLOAT):
        return NotFinite()
    left, right = node.inputs
    zero_below = patch.zero(right)
    if left is right:
        return NotFinite(patch.some(zero_below, x[0].nan, x[0].infinite))
    zero_above = None if zero_below is None else patch.zero(left)
    nan = patch.some(
        patch.both(zero_above, zero_below),
        x[0].nan,
        x[1].nan,
        patch.both(x[0].infinite, x[1].infinite),
    )
    infinite = zero_below
    if zero_above is not None:
        infinite = patch.both(zero_below, patch.negated(zero_above))
    return NotFinite(nan, patch.some(infinite, x[0].infinite))


def _sum(patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]) -> NotFinite:
    """Infinities on both sides are taken to cancel."""
    cancelled = patch.both(x[0].infinite, x[1].infinite)
    return NotFinite(
        patch.some(x[0].nan, x[1].nan, cancelled),
        patch.some(x[0].infinite, x[1].infinite),
    )


def _product(
    patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]
) -> NotFinite:
    left, right = node.inputs
    terms = [x[0].nan, x[1].nan]
    if x[0].infinite is not None:
        terms.append(patch.both(x[0].infinite, patch.zero(right)))
    if x[1].infinite is not None:
        terms.append(patch.both(x[1].infinite, patch.zero(left)))
    return NotFinite(
        patch.some(*terms), patch.some(x[0].infinite, x[1].infinite)
    )


def _choice(
    patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]
) -> NotFinite:
    condition = first(node)

    def chosen(yes: ir.Value | None, no: ir.Value | None) -> ir.Value | None:
        of_no = None
        if no is not None:
            of_no = patch.both(patch.negated(condition), no)
        return patch.some(patch.both(condition, yes), of_no)

    return NotFinite(
        chosen(x[1].nan, x[2].nan), chosen(x[1].infinite, x[2].infinite)
    )


def _same(patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]) -> NotFinite:
    return x[0]


def _bounded(
    patch: _BooleanPatch, node: ir.Node, x: list[NotFinite]
) -> NotFinite:
    return NotFinite(x[0].nan)


_RULES: dict[str, Rule] = {
    "Abs": _same,
    "Add": _sum,
    "Atan": _bounded,
    "Cast": _same,
    "Div": _quotient,
    "Exp": _bounded,
    "Identity": _same,
    "Log": _log,
    "Mul": _product,
    "Neg": _same,
    "Pow": _power,
    "Reciprocal": _reciprocal,
    "Sigmoid": _bounded,
    "Sqrt": _sqrt,
    "Sub": _sum,
    "Tanh": _bounded,
    "Where": _choice,
}
