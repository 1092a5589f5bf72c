"""A program as one module of MLIR: a function `main` from the inputs, in order, to the outputs, in order."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.export.mlir.instruction import MlirInstruction
from cvm.export.mlir.table import TABLE
from cvm.export.mlir.text import ELEMENTS, MlirValue, Text
from cvm.proof.validate import Proven


def module_of(form: Proven) -> str:
    """The generic form of MLIR's text."""
    return module_of_functions({"main": form})


def module_of_functions(forms: Mapping[str, Proven]) -> str:
    """One function for each program, under its name."""
    lines = [
        '"builtin.module"() ({',
        *(line for name in forms for line in _function(name, forms[name])),
        "}) : () -> ()",
    ]
    return "\n".join(lines) + "\n"


def _function(name: str, form: Proven) -> list[str]:
    """All instructions in order."""
    program, text = form.program, Text()
    values = {
        number: MlirValue(
            f"%arg{number}", ELEMENTS[item.type.dtype], item.type.shape
        )
        for number, item in enumerate(program.inputs)
    }
    arguments = list(values.values())
    _write_instructions(form, text, values)
    outputs = [values[item.value] for item in program.outputs]
    return _lines(name, text, arguments, outputs)


def _write_instructions(
    form: Proven, text: Text, values: dict[int, MlirValue]
) -> None:
    program = form.program
    constants = dict(enumerate(program.constants, program.first_constant))
    for number, item in enumerate(
        program.instructions, program.first_instruction
    ):
        instruction = MlirInstruction(
            text,
            item.operands,
            tuple(form.types[value] for value in item.operands),
            tuple(form.intervals[value] for value in item.operands),
            form.types[number],
            item.attributes,
            values,
            constants,
        )
        values[number] = TABLE[item.name](instruction)


def _lines(
    name: str, text: Text, arguments: list[MlirValue], outputs: list[MlirValue]
) -> list[str]:
    taken = ", ".join(item.type for item in arguments)
    given = ", ".join(item.type for item in outputs)
    listed = ", ".join(f"{item.name}: {item.type}" for item in arguments)
    names = ", ".join(item.name for item in outputs)
    type_ = f"({taken}) -> ({given})"
    return [
        f'  "func.func"() <{{function_type = {type_}, sym_name = "{name}"}}> ({{',
        f"  ^bb0({listed}):",
        *(f"    {line}" for line in text.lines),
        f'    "func.return"({names}) : ({given}) -> ()',
        "  }) : () -> ()",
    ]
