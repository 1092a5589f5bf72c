"""Finds divisions whose divisor is a sum of squares, and decides which values around them become octave codes.

    x / f(sum of |z|^2)

Shares of bands, centroids and phases are such, and sounds evened by their own size. A power
ranges over twice as many octaves as sound, so a quotient needs both operands in their own
exponents. The divisor becomes an octave code, and so does a numerator that is a power, too;
another one keeps the bits of its accumulator (`rules/octave_division.py`). Between a sum of
squares and the quotient, movements leave codes as they are, functions of one number are tables
from code to code, sums along axes are sums of codes (`rules/octave_sums.py`), and the code of the
greatest number is the greatest code.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from mrt.graph.canonical_values import (
    constant_of,
    integers_of,
    is_constant,
    name_of,
    shape_of,
)
from mrt.graph.operators import MOVES_OF_ONE
from mrt.graph.values import producer, source_of_moves
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.octave_roots import is_steep
from mrt.quantize.curves.table_fusion import needs_table
from mrt.quantize.sums_of_squares import MOST_IN_A_SUM, Sums
from mrt.table.table import MeasuredRange

MOST_CODES, MOST_TABLES = 128, 16
"""Of a model: a sum of codes takes 60 instructions, and a function of one a table of 128 kB; long recurrences have many."""

FEWEST_OCTAVES = 5
"""Numbers of fewer octaves are as exact in 30 linear bits, from which 15 are taken, and in fewer instructions."""

_STRAIGHT = frozenset({"Add", "Mul", "Max", "Min", "Clip", "Relu"})
_POSITIVE = _STRAIGHT | {"Div", "Pow", "Sqrt", "Reciprocal", "Exp"}
"""Operators of which functions of nonnegative values are nonnegative, unless a constant is negative."""

JOINS = ("Add", "Max", "Min", "Concat")
"""Operators of which all operands are nonnegative where the result is."""

EXTREMES = ("ReduceMax", "ReduceMin", "MaxPool")
"""Operators of which each result is an element of the operand."""

_CODED = ("ReduceSum", "Mul", "AveragePool", *EXTREMES, *JOINS)
_REALS = (None, ir.DataType.FLOAT)


@dataclass
class Quotients:
    """Values that become octave codes, since a division or a logarithm by a sum of squares needs their octaves.

    `sums` are sums of squares; `coded` sums, products, averages and extremes of codes; `products` layers
    with weights that are never negative (bands). `curves` are functions of a code, curved or
    not, and `numerators` functions of other values. `wide` are numerators that become no
    codes, but keep the bits of their accumulators.
    """

    sums: set[str] = field(default_factory=set)
    coded: set[str] = field(default_factory=set)
    products: set[str] = field(default_factory=set)
    curves: dict[str, Curve] = field(default_factory=dict)
    numerators: dict[str, Curve] = field(default_factory=dict)
    wide: list[ir.Value] = field(default_factory=list)


def find_quotients(
    nodes: Sequence[ir.Node],
    sums: Sums,
    curves: Mapping[str, Curve],
    ranges: Mapping[str, MeasuredRange],
) -> Quotients:
    """Return the values that quotients by `sums` read; `curves` are all functions of one value, straight ones too.

    A divisor, or what a logarithm is taken of, must range over FEWEST_OCTAVES in the samples.
    """
    nonnegative = _nonnegative_values(nodes, sums, curves)
    quotients = Quotients()
    for curve in curves.values():
        root = curve.root
        is_read = is_steep(curve) and _is_reduced(root, nonnegative, sums)
        if is_read and _ranges_far(root, ranges):
            _record_operands(root, quotients, sums, curves)
    for x, divisor in _divisions(nodes):
        if name_of(divisor) not in nonnegative or not _ranges_far(
            divisor, ranges
        ):
            continue
        _record_operands(divisor, quotients, sums, curves)
        function = curves.get(name_of(x))
        if name_of(x) in nonnegative:
            _record_operands(x, quotients, sums, curves)
        elif function is not None and _is_far_function(x, function, ranges):
            quotients.numerators[name_of(x)] = function
        else:
            quotients.wide.append(x)
    return quotients if _is_small(quotients) else Quotients()


def _divisions(
    nodes: Iterable[ir.Node],
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Yield the operands of each Div of computed reals."""
    for node in nodes:
        if node.op_type == "Div" and not any(map(is_constant, node.inputs)):
            x, divisor = node.inputs
            if (
                x is not None
                and divisor is not None
                and divisor.dtype in _REALS
            ):
                yield x, divisor


def _is_far_function(
    value: ir.Value, curve: Curve, ranges: Mapping[str, MeasuredRange]
) -> bool:
    """Whether a numerator is a function, as a geometric mean is, of which only the quotient reads the octaves."""
    is_read_once = len(value.uses()) == 1 and not value.is_graph_output()
    return needs_table(curve) and is_read_once and _ranges_far(value, ranges)


def _is_small(quotients: Quotients) -> bool:
    functions = quotients.curves.values()
    tables = [
        curve
        for curve in functions
        if any(node.op_type != "Mul" for node in curve.nodes)
    ]
    codes = len(quotients.coded) + len(functions)
    return codes <= MOST_CODES and len(tables) <= MOST_TABLES


def _ranges_far(value: ir.Value, ranges: Mapping[str, MeasuredRange]) -> bool:
    measured = ranges.get(name_of(value))
    if measured is None:
        return False
    return 0 <= math.ldexp(measured.min, FEWEST_OCTAVES) <= measured.max


def _is_reduced(
    value: ir.Value, nonnegative: Container[str], sums: Sums
) -> bool:
    """Whether a value, moved or not, is a long sum of squares, or an operator of _CODED made it of such sums."""
    source = source_of_moves(value)
    if name_of(source) not in nonnegative:
        return False
    if name_of(source) in sums:
        return sums[name_of(source)].is_long
    return producer(source, *_CODED, "Conv") is not None


def sums_of_linear_terms(sums: Sums, nonlinear: Container[ir.Value]) -> Sums:
    """Return the sums of squares of linear functions of the inputs."""
    return {
        name: total
        for name, total in sums.items()
        if not any(term in nonlinear for term in total.terms)
    }


def _nonnegative_values(
    nodes: Iterable[ir.Node], sums: Iterable[str], curves: Mapping[str, Curve]
) -> set[str]:
    """Return the names of the sums, and of all values made of them alone, which are never negative either."""
    nonnegative = set(sums)
    for node in nodes:
        name = name_of(node.outputs[0])
        curve = curves.get(name)
        if curve is not None:
            is_positive = all(it.op_type in _POSITIVE for it in curve.nodes)
            sources = [curve.root] if is_positive else []
        elif _keeps_signs(node):
            sources = [x for x in node.inputs[:1] if x is not None]
        elif node.op_type in JOINS:
            sources = [x for x in node.inputs if x is not None]
        else:
            continue
        if sources and all(name_of(x) in nonnegative for x in sources):
            nonnegative.add(name)
    return nonnegative


def has_nonnegative_weights(node: ir.Node) -> bool:
    """Whether no weight of a layer is negative, and its bias is one number that is not negative either."""
    if node.op_type not in ("Gemm", "Conv"):
        return False
    weights, bias = map(constant_of, node.inputs[1:3])
    if weights is None or bias is None or weights.min() < 0:
        return False
    least, most = float(bias.min()), float(bias.max())
    return least == most >= 0


def _keeps_signs(node: ir.Node) -> bool:
    """Whether a node makes nonnegative values of a nonnegative first operand."""
    is_element = node.op_type in MOVES_OF_ONE or node.op_type in EXTREMES
    return is_element or _is_short_nonnegative_sum(node)


def _is_short_nonnegative_sum(node: ir.Node) -> bool:
    """Whether a node sums few elements along axes, or multiplies elements by constants of which none is negative."""
    if has_nonnegative_weights(node):
        return True
    if node.op_type == "Mul":
        factors = constant_of(node.inputs[1])
        return factors is not None and bool(factors.min() >= 0)
    if node.op_type == "AveragePool":
        kernel = node.attributes["kernel_shape"].as_ints()
        return math.prod(kernel) <= MOST_IN_A_SUM
    if node.op_type != "ReduceSum":
        return False
    shape = shape_of(node.inputs[0])
    axes = integers_of(node, 1)
    return math.prod(shape[axis] for axis in axes) <= MOST_IN_A_SUM


def names_of_reductions(nodes: Sequence[ir.Node], sums: Sums) -> frozenset[str]:
    """Return the names of the ReduceSums of values made of sums of squares, each by operators of one computed operand."""
    made_of_sums, names = set(sums), set[str]()
    for node in nodes:
        computed = [
            x for x in node.inputs if x is not None and not is_constant(x)
        ]
        if len(computed) != 1 or name_of(computed[0]) not in made_of_sums:
            continue
        made_of_sums.add(name_of(node.outputs[0]))
        if node.op_type == "ReduceSum" and _is_short_nonnegative_sum(node):
            names.add(name_of(node.outputs[0]))
    return frozenset(names - sums.keys())


def _record_operands(
    value: ir.Value,
    quotients: Quotients,
    sums: Sums,
    curves: Mapping[str, Curve],
) -> None:
    """Record a value that a quotient reads, and all values that it is made of."""
    waiting, visited = [value], set[str]()
    while waiting:
        value = waiting.pop()
        name = name_of(value)
        if name in visited:
            continue
        visited.add(name)
        if name in sums:
            quotients.sums.add(name)
            continue
        curve, node = curves.get(name), value.producer()
        assert node is not None, "an input is no sum of squares"
        if curve is not None:
            quotients.curves[name] = curve
            waiting.append(curve.root)
            continue
        if node.op_type in _CODED:
            quotients.coded.add(name)
        elif node.op_type in ("Gemm", "Conv"):
            quotients.products.add(name)
        count = len(node.inputs) if node.op_type in JOINS else 1
        waiting += [x for x in node.inputs[:count] if x is not None]
