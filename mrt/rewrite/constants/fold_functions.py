"""Folds functions of constants in decimal arithmetic, and sums of constants exactly.

The results are the same on every machine, unlike those of a libm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.exact import enclosed_functions
from mrt.exact.enclosure import Enclosure
from mrt.exact.functions import UNARY, sigmoid, softplus, tanh
from mrt.exact.precision import ONE, PRECISION, exp
from mrt.exact.trigonometry import cosine, sine
from mrt.graph.patch import replace_by_constant, set_attributes
from mrt.graph.values import (
    Array,
    constant,
    constant_integers,
    int_attribute,
    nodes,
    operand,
    shape_of,
)
from mrt.rewrite.linear.affine import to_single

MOST_RESULTS = 1 << 18
"""The most different results of one function; each takes tens of microseconds."""

MOST_TERMS = 1 << 22
"""The most numbers of a constant, and terms of a sum."""


FUNCTIONS: dict[str, Callable[[Decimal], Decimal]] = {
    "Cos": cosine,
    "Exp": exp,
    "Log": PRECISION.ln,
    "Sigmoid": sigmoid,
    "Sin": sine,
    "Softplus": softplus,
    "Tanh": tanh,
}

# Activations that a network of constants has: enclosed between float64 numbers, and in
# decimal where these do not round to one float32, as they do nearly always.
ACTIVATIONS = ("Erf", "Gelu", "HardSwish", "Mish", "Softsign")


def _root(squares: Iterable[float]) -> float:
    return float(np.sqrt(math.fsum(squares)))


# Functions of the terms of one sum, in float64: squares of float32 numbers are exact
# there, and fsum rounds once.
SUMS: dict[str, Callable[[npt.NDArray[np.float64]], float]] = {
    "ReduceL1": lambda terms: math.fsum(abs(terms)),
    "ReduceL2": lambda terms: _root(terms * terms),
    "ReduceMean": lambda terms: math.fsum(terms) / len(terms),
    "ReduceSum": math.fsum,
    "ReduceSumSquare": lambda terms: math.fsum(terms * terms),
}


def fold_functions(model: ir.Model) -> int:
    """Pow, Exp, Sin, Gelu, ..., or a sum of float constants -> constant.

    Applies where the result is finite and has at most MOST_RESULTS different numbers (a
    sum, MOST_TERMS terms), since they are computed one by one: a matrix of a Fourier
    transform holds each many times. `fold_constants` folds integers. The logarithm of 0
    is minus infinity, as in the relative positions of T5, where it is not chosen later.
    """
    count = 0
    for node in nodes(model, "Pow", *FUNCTIONS, *ACTIVATIONS, *SUMS):
        result = _result(node)
        if (
            result is None
            or node.outputs[0].is_graph_output()
            or not _is_allowed(node, result)
        ):
            continue
        replace_by_constant(node.outputs[0], result)
        model.graph.remove(node, safe=True)
        count += 1
    return count


def _is_allowed(node: ir.Node, result: Array) -> bool:
    least = -np.inf if node.op_type == "Log" else np.finfo(np.float32).min
    return bool(((result >= least) & (result < np.inf)).all())


def _result(node: ir.Node) -> Array | None:
    x, shape = constant(node.inputs[0]), shape_of(node.outputs[0])
    if (
        x is None
        or shape is None
        or x.dtype != np.float32
        or not np.isfinite(x).all()
    ):
        return None
    if node.op_type in SUMS:
        return _summed(node, x) if x.size <= MOST_TERMS else None
    if math.prod(shape) > MOST_TERMS:
        return None
    if node.op_type == "Pow":
        return _power(x, constant(node.inputs[1]), shape)
    different, places = np.unique(x, return_inverse=True)
    if different.size > MOST_RESULTS:
        return None
    if node.op_type in ACTIVATIONS:
        return _activation(node, different)[places].reshape(shape)
    function = FUNCTIONS[node.op_type]
    results = [function(Decimal(float(number))) for number in different]
    return _written(results, different.shape)[places].reshape(shape)


def _activation(node: ir.Node, x: Array) -> Array:
    if node.op_type == "Gelu" and "approximate" not in node.attributes:
        set_attributes(node, approximate="none")
    enclosed = enclosed_functions.UNARY[node.op_type](node, Enclosure.of(x))
    results = to_single(enclosed.low)
    for place in np.flatnonzero(results != to_single(enclosed.high)):
        exact = UNARY[node.op_type](node, Decimal(float(x[place])))
        results[place] = to_single(np.array(float(exact)))
    return results


def _power(x: Array, y: Array | None, shape: tuple[int, ...]) -> Array | None:
    if y is None or not np.isfinite(y).all() or math.prod(shape) > MOST_RESULTS:
        return None
    bases, exponents = (
        np.broadcast_to(array, shape).ravel() for array in (x, y)
    )
    pairs = zip(bases, exponents, strict=True)
    return _written(
        [
            PRECISION.power(Decimal(float(b)), Decimal(float(e))) if e else ONE
            for b, e in pairs
        ],
        shape,
    )


def _written(numbers: list[Decimal], shape: tuple[int, ...]) -> Array:
    with np.errstate(over="ignore"):
        return (
            np.array([float(number) for number in numbers], np.float64)
            .astype(np.float32)
            .reshape(shape)
        )


def _summed(node: ir.Node, x: Array) -> Array | None:
    """Return the sums; a sum of no terms is 0, and their mean is unknown."""
    axes, listed = operand(node, 1), constant_integers(operand(node, 1))
    if (axes is not None and listed is None) or (
        not listed and int_attribute(node, "noop_with_empty_axes", 0)
    ):
        return None
    summed = sorted(
        {axis % x.ndim for axis in listed} if listed else range(x.ndim)
    )
    kept = [axis for axis in range(x.ndim) if axis not in summed]
    terms = math.prod(x.shape[axis] for axis in summed)
    if not terms and node.op_type == "ReduceMean":
        return None
    count = math.prod(x.shape[axis] for axis in kept)
    rows = x.transpose(*kept, *summed).reshape(count, terms).astype(np.float64)
    sums = np.array([SUMS[node.op_type](row) for row in rows], np.float64)
    shape = shape_of(node.outputs[0])
    assert shape is not None
    with np.errstate(over="ignore"):
        return sums.astype(np.float32).reshape(shape)
