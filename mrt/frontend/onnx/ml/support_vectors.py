"""Decompose support vector machines of ai.onnx.ml: a kernel of all vectors, then weighted sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from mrt.errors import Unsupported
from mrt.frontend.onnx.ml.features import constant, refuse, word
from mrt.frontend.onnx.opsets.proto_patch import ProtoPatch

Array = npt.NDArray[np.float32]
Attributes = Mapping[str, Any]
MOST_DEGREE = 8
MOST_ENTRIES = 1 << 25
"""The most weights and votes of all pairs of classes: a vector and a class count once for each pair."""
_ADVICE = (
    "export it without probabilities, or end in front of it with --outputs"
)


def decompose_regressor(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write the weighted sum of kernels plus rho; with one_class, 1 if it is above 0, else -1."""
    _refuse_transform(patch, attributes)
    weights = _floats(attributes, "coefficients")
    rho = _floats(attributes, "rho")
    count = int(attributes.get("n_supports", 0))
    fits = count in (0, weights.size)
    if rho.size != 1 or not weights.size or not fits:
        raise _wrong_sizes(patch, weights, rho, count)
    vectors = np.zeros((0, 0), np.float32)
    if count:
        vectors = _vectors(patch, attributes, count)
    total = _sums(
        patch, attributes, vectors, Machines(weights.reshape(1, -1), rho)
    )
    if attributes.get("one_class", 0):
        above = patch.add("Greater", total, constant(patch, 0.0))
        patch.add("Where", above, constant(patch, 1.0), constant(patch, -1.0))


@dataclass(frozen=True)
class Machines:
    """The machines of a node, with one sum each.

    `weights` [machines, vectors] are those of all vectors, and `rho` is added to the
    sums.
    """

    weights: Array
    rho: Array


def decompose_classifier(
    patch: ProtoPatch, attributes: Attributes, labels: Sequence[int]
) -> None:
    """Write one machine for each pair of classes, which votes for one of the two.

    The label is the first of those with most votes.
    """
    sizes = [int(size) for size in attributes.get("vectors_per_class", ())]
    _check_classes(patch, attributes, sizes, labels)
    count, classes = sum(sizes), len(sizes)
    weights = _floats(attributes, "coefficients")
    rho = _floats(attributes, "rho")
    machines = math.comb(classes, 2)
    if weights.size != (classes - 1) * count or rho.size != machines:
        raise _wrong_sizes(patch, weights, rho, count)
    _refuse_large(patch, machines, count, classes)
    pairs = list(itertools.combinations(range(classes), 2))
    rows = _rows_of_pairs(weights.reshape(classes - 1, count), sizes, pairs)
    vectors = _vectors(patch, attributes, count)
    sums = _sums(patch, attributes, vectors, Machines(rows, rho))
    if classes == 2:
        _choose_of_two(patch, attributes, sums, labels)
        return
    patch.add("Identity", sums)
    patch.added[-1].output[0] = patch.node.output[1]
    votes = _votes(patch, sums, pairs, classes)
    places = patch.add("ArgMax", votes, axis=1, keepdims=0)
    patch.add("Gather", constant(patch, labels, np.int64), places, axis=0)


def _check_classes(
    patch: ProtoPatch,
    attributes: Attributes,
    sizes: Sequence[int],
    labels: Sequence[int],
) -> None:
    if len(sizes) < 2 or len(labels) != len(sizes) or min(sizes) < 1:
        problem = f"{len(sizes)} classes with vectors; expected two or more"
        raise refuse(patch.node, f"{problem}; {_ADVICE}")
    if attributes.get("prob_a", ()) and len(sizes) > 2:
        raise refuse(
            patch.node, f"its probabilities are found by iteration; {_ADVICE}"
        )
    _refuse_transform(patch, attributes)


def _refuse_large(
    patch: ProtoPatch, machines: int, vectors: int, classes: int
) -> None:
    """Refuse a node that would have too many weights; a small file can state very many."""
    entries = machines * (vectors + classes)
    if entries > MOST_ENTRIES:
        raise refuse(
            patch.node,
            f"{machines} pairs of {classes} classes, with {vectors} vectors, need {entries} weights and votes; "
            f"at most {MOST_ENTRIES}: convert a model of fewer classes or vectors",
        )


def _refuse_transform(patch: ProtoPatch, attributes: Attributes) -> None:
    transform = word(attributes, "post_transform", "NONE")
    if transform != "NONE":
        raise refuse(patch.node, f"post_transform={transform}; expected NONE")


def _wrong_sizes(
    patch: ProtoPatch, weights: Array, rho: Array, count: int
) -> Unsupported:
    numbers = f"{weights.size} coefficients and {rho.size} numbers of rho"
    return refuse(patch.node, f"{numbers} for {count} vectors")


def _votes(
    patch: ProtoPatch, sums: str, pairs: Sequence[tuple[int, int]], classes: int
) -> str:
    """Write the votes [rows, classes] of the machines.

    A sum above 0 is a vote for the first class of the pair, any other for the second.
    """
    positive = patch.add("Greater", sums, constant(patch, 0.0))
    is_first = patch.add("Cast", positive, to=onnx.TensorProto.FLOAT)
    for_first = np.zeros((len(pairs), classes), np.float32)
    for_second = np.zeros((len(pairs), classes), np.float32)
    for row, (first, second) in enumerate(pairs):
        for_first[row, first] = 1
        for_second[row, second] = 1
    moved = patch.add(
        "MatMul", is_first, constant(patch, for_first - for_second)
    )
    return patch.add("Add", moved, constant(patch, for_second.sum(0)))


def _choose_of_two(
    patch: ProtoPatch, attributes: Attributes, total: str, labels: Sequence[int]
) -> None:
    """Write the label, the first class where the sum is above 0, and the scores (-total, total).

    With `prob_a`, the scores are probabilities, by Platt's curve of the sum. onnxruntime
    computes these by iteration, and stops within 0.005 of them.
    """
    weights = _floats(attributes, "coefficients")
    slope, start = _floats(attributes, "prob_a"), _floats(attributes, "prob_b")
    if weights.min() >= 0 or slope.size != start.size or slope.size > 1:
        sizes = f"{slope.size} and {start.size} numbers for probabilities"
        raise refuse(patch.node, f"weights of one sign, or {sizes}; {_ADVICE}")
    if not slope.size:
        scores = [patch.add("Neg", total), total]
    else:
        product = patch.add("Mul", total, constant(patch, slope[0]))
        logit = patch.add("Add", product, constant(patch, start[0]))
        below = patch.add("Sigmoid", patch.add("Neg", logit))
        scores = [below, patch.add("Sigmoid", logit)]
    patch.add("Concat", *scores, axis=1)
    patch.added[-1].output[0] = patch.node.output[1]
    negative = patch.add(
        "Not", patch.add("Greater", total, constant(patch, 0.0))
    )
    place = patch.add("Cast", negative, to=onnx.TensorProto.INT64)
    places = patch.add("Reshape", place, constant(patch, [-1], np.int64))
    patch.add("Gather", constant(patch, labels, np.int64), places, axis=0)


def _rows_of_pairs(
    weights: Array, sizes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Array:
    """Return the weights [pairs, vectors] of each pair of classes.

    Against class j, vectors of an earlier class have the weights in row j - 1 of
    `weights`; those of a later class have the weights in row j.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.zeros((len(pairs), weights.shape[1]), np.float32)
    for row, (first, second) in enumerate(pairs):
        of_first = slice(starts[first], starts[first + 1])
        of_second = slice(starts[second], starts[second + 1])
        rows[row, of_first] = weights[second - 1, of_first]
        rows[row, of_second] = weights[first, of_second]
    return rows


def _floats(attributes: Attributes, name: str) -> Array:
    return np.array(attributes.get(name, ()), np.float32)


def _vectors(patch: ProtoPatch, attributes: Attributes, count: int) -> Array:
    vectors = _floats(attributes, "support_vectors")
    if not vectors.size or vectors.size % count:
        raise refuse(patch.node, f"{vectors.size} numbers for {count} vectors")
    return vectors.reshape(count, -1)


def _sums(
    patch: ProtoPatch,
    attributes: Attributes,
    vectors: Array,
    machines: Machines,
) -> str:
    """Write the sums [rows, machines]; without vectors, the weights apply to the features.

    Linear kernels are multiplied by the weights at conversion, since most of them cancel.
    """
    weights, kernels = machines.weights, patch.x
    if vectors.size and word(attributes, "kernel_type", "LINEAR") == "LINEAR":
        product = weights.astype(np.float64) @ vectors.astype(np.float64)
        weights = product.astype(np.float32)
    elif vectors.size:
        kernels = _kernel(patch, attributes, vectors)
    coefficients, rho = constant(patch, weights), constant(patch, machines.rho)
    return patch.add("Gemm", kernels, coefficients, rho, transB=1)


def _kernel(patch: ProtoPatch, attributes: Attributes, vectors: Array) -> str:
    """Write the kernel of each row with each vector, [rows, vectors]."""
    kind = word(attributes, "kernel_type", "LINEAR")
    parameters = _floats(attributes, "kernel_params")
    if kind not in ("POLY", "RBF", "SIGMOID") or parameters.size != 3:
        problem = f"kernel_type={kind} with {parameters.size} parameters"
        raise refuse(
            patch.node, f"{problem}; expected LINEAR, POLY, RBF or SIGMOID"
        )
    gamma, start, degree = (float(number) for number in parameters)
    if kind == "RBF":
        return _radial(patch, vectors, gamma)
    products = patch.add("MatMul", patch.x, constant(patch, vectors.T))
    scaled = patch.add("Mul", products, constant(patch, gamma))
    shifted = patch.add("Add", scaled, constant(patch, start))
    if kind == "SIGMOID":
        return patch.add("Tanh", shifted)
    if degree != int(degree) or not 1 <= degree <= MOST_DEGREE:
        expected = f"expected an integer up to {MOST_DEGREE}"
        raise refuse(patch.node, f"degree={degree}; {expected}")
    return patch.add("Pow", shifted, constant(patch, degree))


def _radial(patch: ProtoPatch, vectors: Array, gamma: float) -> str:
    """Write exp(-gamma * (x - v)^2).

    The differences are taken before they are squared, so that no precision is lost in
    large squares.
    """
    rows = patch.add(
        "Reshape", patch.x, constant(patch, [0, 1, vectors.shape[1]], np.int64)
    )
    differences = patch.add("Sub", rows, constant(patch, vectors[None]))
    squares = patch.reduce(
        "ReduceSum", patch.add("Mul", differences, differences), 2
    )
    flat = patch.add(
        "Reshape", squares, constant(patch, [0, len(vectors)], np.int64)
    )
    return patch.add("Exp", patch.add("Mul", flat, constant(patch, -gamma)))
