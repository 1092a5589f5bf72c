"""The end of a sum of products: it is stored, or the instructions after it read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cvm.export.c.constants import Constants
from cvm.export.c.elements import Elements
from cvm.export.c.function import Function
from cvm.export.c.instruction import C_TYPES
from cvm.export.c.nest import indented
from cvm.export.c.program import CFunction, CProgram

FOUR = 4  # neighbouring outputs that a thread finishes together


@dataclass
class FourElements(Elements):
    """Four elements side by side: what they read and write moves at once, before and after the lines of each."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def lines_of(
        self, sums: int, values: Sequence[int], writes: Sequence[int]
    ) -> list[str]:
        """The lines for the four elements from `first` of a `row`, whose sums are an array of that name."""
        self.names[sums] = "v0"
        self.lines.append("const int32_t v0 = sums[k];")
        self._compute_all(values, writes)
        places = self._places_in_rows("first")
        before, body, after = (
            [line.format(*places, own=places[-1]) for line in lines]
            for lines in (self.before, self.lines, self.after)
        )
        head = f"for (int32_t k = 0; k < {FOUR}; k++) {{"
        return [*before, "#pragma unroll", head, *indented(body), "}", *after]

    def _loaded(self, array: str, number: int, c_type: str) -> str:
        shape, _ = self.views[number]
        name = f"l{number}"
        if shape[-1] == 1:
            line = f"const {c_type} {name} = {array}[{{{number}}}];"
            self.before.append(line)
            return name
        self.before.append(f"const auto {name} = four({array} + {{{number}}});")
        return f"{name}.at[k]"

    def _store(self, number: int, name: str) -> None:
        c_type = C_TYPES[self.plan.form.types[number].dtype]
        self.before.append(f"Four<{c_type}> to_{name};")
        self.lines.append(f"to_{name}.at[k] = ({c_type}){self.names[number]};")
        self.after.append(f"four({name} + {{own}}) = to_{name};")
        self.function.writes(c_type, name, number)


def one_by_one(
    plan: CProgram, step: CFunction, constants: Constants, function: Function
) -> list[str]:
    """The lines for the `sum` of a `row` and an output `o`."""
    first, *others = step.values
    node = plan.node(first)
    if others:
        elements = Elements(plan, constants, function, node.result.shape)
        return elements.place(first, "sum", others, step.writes)
    function.writes(node.c_type, "y", first)
    return [f"y[row * {node.result.shape[-1]} + o] = sum;"]


def four_at_once(
    plan: CProgram, step: CFunction, constants: Constants, function: Function
) -> list[str]:
    """The lines for the array `sums` of a `row` and the outputs from `first` on."""
    number, *others = step.values
    shape = plan.node(number).result.shape
    if shape[-1] % FOUR == 0:
        elements = FourElements(plan, constants, function, shape)
        return elements.lines_of(number, others, step.writes)
    lines = one_by_one(plan, step, constants, function)
    return [
        f"for (int32_t k = 0; k < {FOUR} && first + k < {shape[-1]}; k++) {{",
        "  const int32_t o = first + k, sum = sums[k];",
        *indented(lines),
        "}",
    ]
