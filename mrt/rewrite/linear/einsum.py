"""Lowers Einsum to sums, transposes and one matrix product for each operand after the first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import constant, nodes, shape_of, string_attribute

Shape = tuple[int, ...]

DIGITS = "0123456789"  # an equation has no digits, so these can stand for the axes of an ellipsis


@dataclass(frozen=True)
class Term:
    """A value and one letter for each of its axes."""

    value: ir.Value
    letters: str


def lower_einsum(model: ir.Model) -> int:
    """Einsum(a, b, ..) -> Transpose, Reshape, MatMul, Reshape per further operand.

    Where nothing is summed, a Mul takes the place of MatMul. An operand with the same
    letter twice is replaced by its diagonal, by a Gather. An ellipsis is replaced by
    letters of its own. Applies to known shapes. Equal up to the order of sums.
    """
    count = 0
    for node in nodes(model, "Einsum"):
        shapes = [
            shape
            for value in node.inputs
            if (shape := shape_of(value)) is not None
        ]
        if len(shapes) < len(node.inputs):
            continue
        equation = _parse(string_attribute(node, "equation", ""), shapes)
        if equation is None:
            continue
        operands, result = equation
        sizes: dict[str, int] = {}
        for letters, shape in zip(operands, shapes, strict=True):
            sizes |= {
                letter: size
                for letter, size in zip(letters, shape, strict=True)
                if sizes.get(letter, 1) == 1
            }
        patch = Patch(node)
        einsum = _Einsum(patch, sizes)
        total, *others = (
            einsum.plain(Term(value, letters), shape)
            for value, letters, shape in zip(
                node.inputs, operands, shapes, strict=True
            )
            if value is not None
        )
        for index, other in enumerate(others):
            later = set(result).union(
                *(term.letters for term in others[index + 1 :])
            )
            total = einsum.product(total, other, later)
        total = einsum.transposed(einsum.summed(total, set(result)), result)
        patch.finish(patch.add("Identity", total.value))
        count += 1
    return count


def _parse(equation: str, shapes: list[Shape]) -> tuple[list[str], str] | None:
    """Return the letters of each operand and of the result; None if not understood.

    Digits stand for the axes of an ellipsis, aligned at the last axis.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    written = left.split(",")
    if len(written) != len(shapes):
        return None
    ranks = [
        len(shape) - len(letters.replace("...", ""))
        for letters, shape in zip(written, shapes, strict=True)
    ]
    hidden = [
        rank
        for rank, letters in zip(ranks, written, strict=True)
        if "..." in letters
    ]
    if min(ranks) < 0 or max(hidden, default=0) > len(DIGITS) or any(
        rank and "..." not in letters for rank, letters in zip(ranks, written, strict=True)
    ):  # fmt: skip
        return None
    everywhere = DIGITS[len(DIGITS) - max(hidden, default=0) :]
    operands = [
        letters.replace("...", everywhere[len(everywhere) - rank :])
        for letters, rank in zip(written, ranks, strict=True)
    ]
    everything = "".join(operands)
    once = "".join(
        sorted(
            letter
            for letter in set(left) - set(",.")
            if left.count(letter) == 1
        )
    )
    result = right.replace("...", everywhere) if arrow else everywhere + once
    return (
        (operands, result)
        if set(result) <= set(everything) and len(set(result)) == len(result)
        else None
    )


class _Einsum:
    """Writes new nodes, term by term, in the place of one Einsum.

    `sizes` has the size of each letter.
    """

    def __init__(self, patch: Patch, sizes: dict[str, int]) -> None:
        self._patch = patch
        self._sizes = sizes

    def plain(self, term: Term, shape: Shape) -> Term:
        """Make each letter occur once, and drop axes of 1 that are broadcast."""
        repeated = {
            letter
            for letter, size in zip(term.letters, shape, strict=True)
            if size < self._sizes[letter]
        }
        if repeated:
            kept = "".join(
                letter for letter in term.letters if letter not in repeated
            )
            term = Term(
                self._shaped(term, [self._sizes[letter] for letter in kept]),
                kept,
            )
        while twice := next(
            (
                letter
                for letter in term.letters
                if term.letters.count(letter) > 1
            ),
            None,
        ):
            term = self._diagonal(term, twice)
        return term

    def _diagonal(self, term: Term, letter: str) -> Term:
        places = [
            axis for axis, other in enumerate(term.letters) if other == letter
        ]
        first_axis, second_axis = places[:2]
        rest = [
            axis
            for axis in range(len(term.letters))
            if axis not in (first_axis, second_axis)
        ]
        others = "".join(term.letters[axis] for axis in rest)
        size = self._sizes[letter]
        transposed = Term(
            self._patch.add(
                "Transpose", term.value, perm=(*rest, first_axis, second_axis)
            ),
            "",
        )
        flat = self._shaped(
            transposed, [*(self._sizes[other] for other in others), size * size]
        )
        along = self._patch.axes(
            [place * (size + 1) for place in range(size)], "diagonal"
        )
        return Term(
            self._patch.add("Gather", flat, along, axis=len(rest)),
            others + letter,
        )

    def summed(self, term: Term, kept: set[str]) -> Term:
        """Sum over the axes whose letters are not in `kept`."""
        axes = [
            axis
            for axis, letter in enumerate(term.letters)
            if letter not in kept
        ]
        if not axes:
            return term
        value = self._patch.add(
            "ReduceSum",
            term.value,
            self._patch.axes(axes),
            keepdims=0,
            noop_with_empty_axes=0,
        )
        return Term(
            value, "".join(letter for letter in term.letters if letter in kept)
        )

    def transposed(self, term: Term, letters: str) -> Term:
        """Put the axes into the order of `letters`."""
        if term.letters == letters:
            return term
        perm = tuple(term.letters.index(letter) for letter in letters)
        return Term(
            self._patch.add("Transpose", term.value, perm=perm), letters
        )

    def product(self, a: Term, b: Term, later: set[str]) -> Term:
        """Multiply two terms as stacks of matrices.

        They have the shapes [batch, left, sum] and [batch, sum, right]. Letters in
        `later` are kept, since the result or a further operand has them.
        """
        if constant(a.value) is not None:
            a, b = b, a  # a constant matrix comes second
        a, b = (
            self.summed(a, later | set(b.letters)),
            self.summed(b, later | set(a.letters)),
        )
        shared = [letter for letter in a.letters if letter in b.letters]
        batch = "".join(letter for letter in shared if letter in later)
        inner = "".join(letter for letter in shared if letter not in later)
        left = "".join(letter for letter in a.letters if letter not in shared)
        right = "".join(letter for letter in b.letters if letter not in shared)
        stack = [self._size(batch)] if batch else []
        x = self._shaped(
            self.transposed(a, batch + left + inner),
            [*stack, self._size(left), self._size(inner)],
        )
        y = self._shaped(
            self.transposed(b, batch + inner + right),
            [*stack, self._size(inner), self._size(right)],
        )
        value = self._patch.add("MatMul" if inner else "Mul", x, y)
        result = batch + left + right
        return Term(
            self._shaped(
                Term(value, result), [self._sizes[letter] for letter in result]
            ),
            result,
        )

    def _size(self, letters: Iterable[str]) -> int:
        return math.prod(self._sizes[letter] for letter in letters)

    def _shaped(self, term: Term, shape: list[int]) -> ir.Value:
        return self._patch.add(
            "Reshape", term.value, self._patch.axes(shape, "shape"), allowzero=0
        )
