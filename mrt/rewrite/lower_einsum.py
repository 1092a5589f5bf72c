"""Einsum is sums, transpositions and one product of matrices for each operand after the first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from mrt.rewrite.edit import Patch, constant, nodes, shape_of, word


@dataclass(frozen=True)
class Term:
    """A value, and one letter for each of its axes."""

    value: ir.Value
    letters: str


def lower_einsum(model: ir.Model) -> int:
    """Einsum(a, b, ..) -> for each next operand Transpose, Reshape, MatMul (Mul where nothing is summed), Reshape.

    Applies to known shapes and letters that no operand has twice; an ellipsis stays. Equal up to the order of sums.
    """
    count = 0
    for node in nodes(model, "Einsum"):
        equation = _parse(word(node, "equation", ""), len(node.inputs))
        shapes = [shape_of(value) for value in node.inputs]
        if equation is None or any(shape is None for shape in shapes):
            continue
        operands, result = equation
        sizes = {letter: size for letters, shape in zip(operands, shapes, strict=True)
                 for letter, size in zip(letters, shape or (), strict=True)}  # fmt: skip
        terms = [
            Term(value, letters) for value, letters in zip(node.inputs, operands, strict=True) if value is not None
        ]
        patch = Patch(node)
        einsum = _Einsum(patch, sizes)
        total, *others = terms
        for index, other in enumerate(others):
            later = set(result).union(*(term.letters for term in others[index + 1 :]))
            total = einsum.product(total, other, later)
        total = einsum.transposed(einsum.summed(total, set(result)), result)
        patch.finish(patch.add("Identity", total.value))
        count += 1
    return count


def _parse(equation: str, count: int) -> tuple[list[str], str] | None:
    left, arrow, right = equation.replace(" ", "").partition("->")
    operands = left.split(",")
    everything = "".join(operands)
    if "." in equation or len(operands) != count or any(len(set(letters)) < len(letters) for letters in operands):
        return None
    result = right if arrow else "".join(sorted(letter for letter in set(everything) if everything.count(letter) == 1))
    return (operands, result) if set(result) <= set(everything) and len(set(result)) == len(result) else None


class _Einsum:
    """Terms become terms: new nodes in the place of an Einsum whose letters have these sizes."""

    def __init__(self, patch: Patch, sizes: dict[str, int]) -> None:
        self._patch = patch
        self._sizes = sizes

    def summed(self, term: Term, kept: set[str]) -> Term:
        """Without the axes that nobody needs."""
        axes = [axis for axis, letter in enumerate(term.letters) if letter not in kept]
        if not axes:
            return term
        value = self._patch.add("ReduceSum", term.value, self._patch.axes(axes), keepdims=0, noop_with_empty_axes=0)
        return Term(value, "".join(letter for letter in term.letters if letter in kept))

    def transposed(self, term: Term, letters: str) -> Term:
        """With the axes in this order."""
        if term.letters == letters:
            return term
        perm = tuple(term.letters.index(letter) for letter in letters)
        return Term(self._patch.add("Transpose", term.value, perm=perm), letters)

    def product(self, a: Term, b: Term, later: set[str]) -> Term:
        """Both as stacks of matrices [batch, left, sum] and [batch, sum, right]."""
        if constant(a.value) is not None:
            a, b = b, a  # a constant matrix stands on the right
        a, b = self.summed(a, later | set(b.letters)), self.summed(b, later | set(a.letters))
        shared = [letter for letter in a.letters if letter in b.letters]
        batch = "".join(letter for letter in shared if letter in later)
        inner = "".join(letter for letter in shared if letter not in later)
        left = "".join(letter for letter in a.letters if letter not in shared)
        right = "".join(letter for letter in b.letters if letter not in shared)
        stack = [self._size(batch)] if batch else []
        x = self._shaped(self.transposed(a, batch + left + inner), [*stack, self._size(left), self._size(inner)])
        y = self._shaped(self.transposed(b, batch + inner + right), [*stack, self._size(inner), self._size(right)])
        value = self._patch.add("MatMul" if inner else "Mul", x, y)
        result = batch + left + right
        return Term(self._shaped(Term(value, result), [self._sizes[letter] for letter in result]), result)

    def _size(self, letters: Iterable[str]) -> int:
        return math.prod(self._sizes[letter] for letter in letters)

    def _shaped(self, term: Term, shape: list[int]) -> ir.Value:
        return self._patch.add("Reshape", term.value, self._patch.axes(shape, "shape"), allowzero=0)
