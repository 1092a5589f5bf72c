"""Support vector machines of the domain ai.onnx.ml as tensors: the kernel of all vectors at once, then weighted sums."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from mrt.frontend.onnx.ml.features import constant, refuse, word
from mrt.frontend.onnx.opsets.experimental import Nodes

Array = npt.NDArray[np.float32]
Attributes = Mapping[str, Any]
MOST_DEGREE = 8


def decompose_regressor(s: Nodes, attributes: Attributes) -> None:
    """The weighted sum of kernels and rho; of one class, 1 or -1 as it lies above 0 or not."""
    if (transform := word(attributes, "post_transform", "NONE")) != "NONE":
        raise refuse(s.node, f"post_transform={transform}; expected NONE")
    weights, rho = _floats(attributes, "coefficients"), _floats(attributes, "rho")
    count = int(attributes.get("n_supports", 0))
    vectors = _vectors(s, attributes, count) if count else np.zeros((0, 0), np.float32)
    if rho.size != 1 or not weights.size or (count and weights.size != count):
        raise refuse(
            s.node,
            f"{weights.size} coefficients and {rho.size} numbers of rho for {count} vectors",
        )
    total = _sums(s, attributes, vectors, weights.reshape(1, -1), rho)
    if attributes.get("one_class", 0):
        above = s.add("Greater", total, constant(s, 0.0))
        s.add("Where", above, constant(s, 1.0), constant(s, -1.0))


def decompose_classifier(
    s: Nodes, attributes: Attributes, labels: Sequence[int]
) -> None:
    """A sum for each pair of classes, which votes for one of them; the label is the first of those with most votes."""
    sizes = [int(size) for size in attributes.get("vectors_per_class", ())]
    if len(sizes) < 2 or len(labels) != len(sizes) or min(sizes) < 1:
        raise refuse(
            s.node,
            f"{len(sizes)} classes with vectors; expected two or more; {_ADVICE}",
        )
    if attributes.get("prob_a", ()) and len(sizes) > 2:
        raise refuse(s.node, f"its probabilities are found by iteration; {_ADVICE}")
    if (transform := word(attributes, "post_transform", "NONE")) != "NONE":
        raise refuse(s.node, f"post_transform={transform}; expected NONE")
    count, pairs = sum(sizes), list(itertools.combinations(range(len(sizes)), 2))
    weights, rho = _floats(attributes, "coefficients"), _floats(attributes, "rho")
    if weights.size != (len(sizes) - 1) * count or rho.size != len(pairs):
        raise refuse(
            s.node,
            f"{weights.size} coefficients and {rho.size} numbers of rho for {count} vectors",
        )
    rows = _rows_of_pairs(weights.reshape(len(sizes) - 1, count), sizes, pairs)
    sums = _sums(s, attributes, _vectors(s, attributes, count), rows, rho)
    if len(sizes) == 2:
        _choose_of_two(s, attributes, sums, labels)
        return
    s.add("Identity", sums)
    s.made[-1].output[0] = s.node.output[1]
    first = s.add(
        "Cast", s.add("Greater", sums, constant(s, 0.0)), to=onnx.TensorProto.FLOAT
    )
    for_first, for_second = np.zeros((2, len(pairs), len(sizes)), np.float32)
    for row, (one, other) in enumerate(pairs):
        for_first[row, one], for_second[row, other] = 1, 1
    # A vote that does not go to the first of a pair goes to the second.
    votes = s.add(
        "Add",
        s.add("MatMul", first, constant(s, for_first - for_second)),
        constant(s, for_second.sum(0)),
    )
    places = s.add("ArgMax", votes, axis=1, keepdims=0)
    s.add("Gather", constant(s, labels, np.int64), places, axis=0)


def _choose_of_two(
    s: Nodes, attributes: Attributes, total: str, labels: Sequence[int]
) -> None:
    """The first class above 0; the sum comes second, behind its negative. Or the probabilities, by Platt's curve of the sum.

    onnxruntime looks for these by iteration, and stops within 0.005 of them.
    """
    weights, slope, start = (
        _floats(attributes, name) for name in ("coefficients", "prob_a", "prob_b")
    )
    if weights.min() >= 0 or slope.size != start.size or slope.size > 1:
        raise refuse(
            s.node,
            f"weights of one sign, or {slope.size} and {start.size} numbers for probabilities; {_ADVICE}",
        )
    if slope.size:
        steep = s.add(
            "Add", s.add("Mul", total, constant(s, slope[0])), constant(s, start[0])
        )
        scores = [s.add("Sigmoid", value) for value in (s.add("Neg", steep), steep)]
    else:
        scores = [s.add("Neg", total), total]
    s.add("Concat", *scores, axis=1)
    s.made[-1].output[0] = s.node.output[1]
    second = s.add(
        "Cast",
        s.add("Not", s.add("Greater", total, constant(s, 0.0))),
        to=onnx.TensorProto.INT64,
    )
    s.add(
        "Gather",
        constant(s, labels, np.int64),
        s.add("Reshape", second, constant(s, [-1], np.int64)),
        axis=0,
    )


_ADVICE = "export it without probabilities, or end in front of it with --outputs"


def _rows_of_pairs(
    weights: Array, sizes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Array:
    """[pairs, vectors]: against class j, vectors of an earlier class are weighed by row j - 1, of a later one by row j."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.zeros((len(pairs), weights.shape[1]), np.float32)
    for row, (one, other) in enumerate(pairs):
        own, its = (
            slice(starts[one], starts[one + 1]),
            slice(starts[other], starts[other + 1]),
        )
        rows[row, own], rows[row, its] = weights[other - 1, own], weights[one, its]
    return rows


def _floats(attributes: Attributes, name: str) -> Array:
    return np.array(attributes.get(name, ()), np.float32)


def _vectors(s: Nodes, attributes: Attributes, count: int) -> Array:
    vectors = _floats(attributes, "support_vectors")
    if not vectors.size or vectors.size % count:
        raise refuse(s.node, f"{vectors.size} numbers for {count} vectors")
    return vectors.reshape(count, -1)


def _sums(
    s: Nodes, attributes: Attributes, vectors: Array, rows: Array, rho: Array
) -> str:
    """What rows of weights make of the kernels; linear ones are weighed before x is seen, since most of them cancel."""
    if vectors.size and word(attributes, "kernel_type", "LINEAR") == "LINEAR":
        together = rows.astype(np.float64) @ vectors.astype(np.float64)
        return s.add(
            "Gemm",
            s.x,
            constant(s, together.astype(np.float32)),
            constant(s, rho),
            transB=1,
        )
    seen = _kernel(s, attributes, vectors) if vectors.size else s.x
    return s.add("Gemm", seen, constant(s, rows), constant(s, rho), transB=1)


def _kernel(s: Nodes, attributes: Attributes, vectors: Array) -> str:
    """[rows, vectors]."""
    kind, numbers = (
        word(attributes, "kernel_type", "LINEAR"),
        _floats(attributes, "kernel_params"),
    )
    gamma, start, degree = (
        float(number) for number in (numbers if numbers.size == 3 else (0.0, 0.0, 0.0))
    )
    if kind not in ("POLY", "RBF", "SIGMOID") or numbers.size != 3:
        raise refuse(
            s.node,
            f"kernel_type={kind} with {numbers.size} parameters; expected LINEAR, POLY, RBF or SIGMOID",
        )
    if kind == "RBF":
        return _distances(s, vectors, gamma)
    products = s.add("MatMul", s.x, constant(s, vectors.T))
    moved = s.add("Add", s.add("Mul", products, constant(s, gamma)), constant(s, start))
    if kind == "SIGMOID":
        return s.add("Tanh", moved)
    if degree != int(degree) or not 1 <= degree <= MOST_DEGREE:
        raise refuse(
            s.node, f"degree={degree}; expected a whole number up to {MOST_DEGREE}"
        )
    return s.add("Pow", moved, constant(s, degree))


def _distances(s: Nodes, vectors: Array, gamma: float) -> str:
    """exp(-gamma * (x - v)^2), the differences taken before they are squared: no precision goes in large squares."""
    rows = s.add("Reshape", s.x, constant(s, [0, 1, vectors.shape[1]], np.int64))
    apart = s.add("Sub", rows, constant(s, vectors[None]))
    squares = s.reduce("ReduceSum", s.add("Mul", apart, apart), 2)
    flat = s.add("Reshape", squares, constant(s, [0, len(vectors)], np.int64))
    return s.add("Exp", s.add("Mul", flat, constant(s, -gamma)))
