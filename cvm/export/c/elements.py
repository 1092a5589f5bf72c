"""Loops over elements: one for many instructions; values that they alone read stay in variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from cvm.export.c.constants import Constants
from cvm.export.c.elementwise import READ_BY_INDEX
from cvm.export.c.function import Function
from cvm.export.c.instruction import C_TYPES, Operand, literal, narrowed
from cvm.export.c.nest import (
    View,
    broadcast,
    collapsed,
    contiguous,
    loop,
    nest,
)
from cvm.export.c.program import CProgram
from cvm.export.c.table import TABLE

Shape = tuple[int, ...]


Key = int | tuple[int, int]
"""Of a variable: the value that it holds, or which operand of the instruction that gives a value."""


@dataclass
class Elements:
    """The lines of a loop body, in which `{k}` stands for the place of view k and `{own}` for that of a result."""

    plan: CProgram
    constants: Constants
    function: Function
    shape: Shape
    lines: list[str] = field(default_factory=list)
    names: dict[Key, str] = field(default_factory=dict)
    views: list[tuple[Shape, View]] = field(default_factory=list)

    def nest(self, values: Sequence[int], writes: Sequence[int]) -> str:
        """As few loops as the shapes allow."""
        return "\n".join(nest(*self.walk(values, writes)))

    def walk(
        self, values: Sequence[int], writes: Sequence[int]
    ) -> tuple[list[int], list[str]]:
        """The counts of i0, i1, .., and the lines for one place among them."""
        self._compute_all(values, writes)
        result_view = contiguous(self.shape)
        seen = [view for _, view in self.views]
        counts, views = collapsed(self.shape, [*seen, result_view])
        return counts, self._placed([view.index() for view in views])

    def row(
        self, sums: int, values: Sequence[int], writes: Sequence[int]
    ) -> str:
        """A loop over one `row`, whose elements of the value `sums` lie in an array of that name."""
        lines = self.place(sums, "sums[o]", values, writes)
        return "\n".join(loop("o", self.shape[-1], lines))

    def place(
        self,
        sums: int,
        loaded: str,
        values: Sequence[int],
        writes: Sequence[int],
    ) -> list[str]:
        """The lines for the element `o` of a `row`; `loaded` is that of the value `sums`."""
        self.names[sums] = "v0"
        self.lines.append(f"const int32_t v0 = {loaded};")
        self._compute_all(values, writes)
        return self._placed(self._places_in_rows("o"))

    def _places_in_rows(self, output: str) -> list[str]:
        """Where each view and, last, a result has its element at `row` and an output."""
        shapes = [shape for shape, _ in self.views]
        views = [broadcast((prod(s[:-1]), s[-1])) for s in shapes]
        views.append(contiguous((prod(self.shape[:-1]), self.shape[-1])))
        return [view.index("row", output) for view in views]

    def _compute_all(
        self, values: Sequence[int], writes: Sequence[int]
    ) -> None:
        for number in values:
            self._compute(number)
        for index, number in enumerate(writes):
            self._store(number, f"y{index}" if index else "y")

    def _placed(self, places: Sequence[str]) -> list[str]:
        return [line.format(*places, own=places[-1]) for line in self.lines]

    def _compute(self, number: int) -> None:
        node = self.plan.node(number)
        row = TABLE[node.name]
        assert row.expression
        terms = []
        for index, value in enumerate(self.plan.operands(number)):
            operand = node.operands[index]
            if (node.name, index) in READ_BY_INDEX:
                terms.append(self._array(value, operand))
            else:
                key = (number, index) if node.fits32 and index else value
                terms.append(self._term(value, operand, key))
        self._set_apart(terms)
        name = f"v{len(self.names)}"
        expression = row.expression(node, terms)
        self.lines.append(f"const int32_t {name} = {expression};")
        self.names[number] = name

    def _set_apart(self, terms: list[str]) -> None:
        """Give an operand that occurs twice a second name: compilers warn where a variable is compared with itself."""
        for index, term in enumerate(terms):
            if term in terms[:index]:
                terms[index] = f"w{len(self.lines)}"
                self.lines.append(f"const int32_t {terms[index]} = {term};")

    def _term(self, value: int, operand: Operand, key: Key) -> str:
        """The variable of an operand's element, loaded at its first use.

        A short factor depends on its multiplier and its shift, so that each rescale has its own.
        """
        if key not in self.names:
            loaded = self._load(value, operand)
            name = f"v{len(self.names)}"
            self.lines.append(f"const int32_t {name} = {loaded};")
            self.names[key] = name
        return self.names[key]

    def _load(self, value: int, operand: Operand) -> str:
        if operand.constant is not None and operand.constant.size == 1:
            return literal(int(operand.constant.reshape(-1)[0]))
        missing = len(self.shape) - len(operand.shape)
        aligned = (1,) * missing + operand.shape
        number = len(self.views)
        self.views.append((aligned, broadcast(aligned)))
        array = self._array(value, operand)
        return self._loaded(array, number, operand.c_type)

    def _loaded(self, array: str, number: int, c_type: str) -> str:
        """The element of an array that view `number` shows."""
        return f"{array}[{{{number}}}]"

    def _array(self, value: int, operand: Operand) -> str:
        """A parameter for an operand."""
        argument: int | str = value
        if operand.constant is not None:
            argument = self.constants.name(narrowed(operand.constant))
        return self.function.reads(operand.c_type, argument)

    def _store(self, number: int, name: str) -> None:
        c_type = C_TYPES[self.plan.form.types[number].dtype]
        stored = self.names[number]
        if c_type != "int32_t":
            stored = f"({c_type}){stored}"
        self.lines.append(f"{name}[{{own}}] = {stored};")
        self.function.writes(c_type, name, number)
