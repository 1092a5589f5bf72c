"""The texts of the header and of the source: structures, constants, arena, helpers, functions, and their calls."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cvm.export.c.arena import PARTS, Arena, lay_out
from cvm.export.c.constants import Constants
from cvm.export.c.function import Function
from cvm.export.c.functions import function_of
from cvm.export.c.helpers import needed
from cvm.export.c.identifiers import comment, distinct
from cvm.export.c.instruction import C_TYPES, literal
from cvm.export.c.nest import indented
from cvm.export.c.program import CFunction, CProgram, plan
from cvm.program import DTYPE_RANGES, TensorType
from cvm.proof.validate import Proven

WIDTH = 110
MOST_IN_LINE = 16  # calls of one function that a compiler may put in line; for each of hundreds, one takes minutes
APART = "#ifdef __GNUC__\n__attribute__((noinline))\n#endif\n"


@dataclass(frozen=True)
class Ports:
    """The fields of inputs and outputs, as the header declares them."""

    form: Proven
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, form: Proven) -> Ports:
        """Identifiers made of the names."""
        program = form.program
        return cls(
            form,
            tuple(distinct(port.name for port in program.inputs)),
            tuple(distinct(port.name for port in program.outputs)),
        )

    def declarations(self) -> dict[str, str]:
        """The fields of both structures, as the header has them."""
        program, types = self.form.program, self.form.types
        inputs, outputs = [], []
        for field, input_ in zip(self.inputs, program.inputs, strict=True):
            inputs.append(
                _field(field, input_.name, input_.type, (input_.lo, input_.hi))
            )
        for field, output in zip(self.outputs, program.outputs, strict=True):
            interval = self.form.intervals[output.value]
            outputs.append(
                _field(field, output.name, types[output.value], interval)
            )
        return {"INPUTS": "\n".join(inputs), "OUTPUTS": "\n".join(outputs)}

    def checks(self) -> list[str]:
        """Loops over the inputs whose intervals are narrower than their C types."""
        lines = []
        program = self.form.program
        for number, input_ in enumerate(program.inputs):
            field = f"inputs->{self.inputs[number]}[i]"
            low, high = DTYPE_RANGES[input_.type.dtype]
            violations = []
            if input_.lo > low:
                violations.append(f"{field} < {literal(input_.lo)}")
            if input_.hi < high or input_.type.dtype == "bool":
                violations.append(f"{field} > {literal(input_.hi)}")
            if violations:
                lines += [
                    f"for (int32_t i = 0; i < {input_.type.elements}; i++) {{",
                    f"  if ({' || '.join(violations)}) return {number + 1};",
                    "}",
                ]
        return lines


@dataclass(frozen=True)
class Source:
    """The parts of the source: the texts of functions by name, the names of those with many calls, and the calls in order."""

    plan: CProgram
    ports: Ports
    arena: Arena
    constants: Constants
    functions: dict[str, str]
    apart: frozenset[str]
    calls: list[str]

    @classmethod
    def of(cls, form: Proven) -> Source:
        """The program in C. Equal functions exist once."""
        steps, ports, constants = plan(form), Ports.of(form), Constants()
        places = _ports_places(ports)
        arena = lay_out(steps, set(places))
        places |= arena.values
        names: dict[str, str] = {}
        counts: Counter[str] = Counter()
        calls = []
        for index, step in enumerate(steps.steps):
            scratch = arena.scratch.get(index)
            function = function_of(steps, step, constants, scratch)
            text = _text(function)
            name = names.setdefault(text, _name(steps, step, len(names)))
            arguments = [
                value if isinstance(value, str) else places[steps.root(value)]
                for value in function.arguments
            ]
            counts[name] += 1
            calls.append(_call(steps, step, name, arguments))
        functions = {name: text for text, name in names.items()}
        apart = frozenset(x for x in functions if counts[x] > MOST_IN_LINE)
        return cls(steps, ports, arena, constants, functions, apart, calls)

    def texts(self, base: str) -> dict[str, str]:
        """The texts for the places in the template of the source."""
        bodies = [
            f"{APART if name in self.apart else ''}static void {name}{text}"
            for name, text in self.functions.items()
        ]
        sections = [
            self.constants.text(),
            self._arena(),
            *needed(bodies),
            *bodies,
        ]
        run = [*self.ports.checks(), *self.calls, *self._copies()]
        if not any("inputs->" in line for line in run):
            run.insert(0, "(void)inputs;")
        return {
            "BODY": "\n\n".join(section for section in sections if section),
            "RUN": "\n".join(indented(run)),
        }

    def _arena(self) -> str:
        fields = [
            f"{PARTS[width]} bits{8 * width}[{size // width}];"
            for width, size in self.arena.parts.items()
        ]
        if not fields:
            return ""
        return "\n".join(["static struct {", *indented(fields), "} arena;"])

    def _copies(self) -> list[str]:
        """Loops that copy an output whose value is that of an earlier one."""
        first: dict[int, str] = {}
        lines = []
        form = self.plan.form
        for field, output in zip(
            self.ports.outputs, form.program.outputs, strict=True
        ):
            origin = first.setdefault(output.value, field)
            if origin != field:
                count = form.types[output.value].elements
                lines.append(
                    f"for (int32_t i = 0; i < {count}; i++) outputs->{field}[i] = outputs->{origin}[i];"
                )
        return lines


def _ports_places(ports: Ports) -> dict[int, str]:
    """Where inputs and outputs lie: in the structures of the caller."""
    places = {
        number: f"inputs->{field}" for number, field in enumerate(ports.inputs)
    }
    pairs = zip(ports.outputs, ports.form.program.outputs, strict=True)
    for field, output in pairs:
        places.setdefault(output.value, f"outputs->{field}")
    return places


def _field(
    field: str, name: str, type_: TensorType, interval: tuple[int, int]
) -> str:
    low, high = interval
    description = comment(f"{name[:80]}: {type_} in {low}..{high}")
    return f"  {C_TYPES[type_.dtype]} {field}[{type_.elements}]; /* {description} */"


def _text(function: Function) -> str:
    """A function without its name."""
    parameters = textwrap.fill(
        ", ".join(function.parameters), WIDTH, subsequent_indent="    "
    )
    body = "\n".join(indented(function.body.splitlines()))
    return f"({parameters})\n{{\n{body}\n}}"


def _name(steps: CProgram, step: CFunction, count: int) -> str:
    """The first instruction's name and a number."""
    return f"{steps.node(step.values[0]).name}_{count + 1}"


def _call(
    steps: CProgram, step: CFunction, name: str, arguments: Sequence[str]
) -> str:
    defined = [f"%{v} {steps.node(v).name}" for v in step.values]
    description = comment(", ".join(defined))
    line = f"{name}({', '.join(arguments)});"
    call = textwrap.fill(line, WIDTH, subsequent_indent="    ")
    return "\n  ".join([f"/* {description} */", *call.splitlines()])
