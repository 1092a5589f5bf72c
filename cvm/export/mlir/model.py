"""A program as one module of MLIR: a function `main` from the inputs, in order, to the outputs, in order."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.export.mlir import meaning
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
    return _lines(name, form, text, (arguments, outputs))


def _meanings(form: Proven) -> str:
    """Attributes of arguments and results."""
    program, metadata = form.program, form.program.metadata
    if metadata is None:
        return ""
    arguments = [metadata.inputs.get(item.name) for item in program.inputs]
    results = [metadata.outputs.get(item.name) for item in program.outputs]
    before = [item.type for item in program.inputs]
    after = [form.types[item.value] for item in program.outputs]
    return meaning.listed("arg_attrs", arguments, before) + meaning.listed(
        "res_attrs", results, after
    )


def _write_instructions(
    form: Proven, text: Text, values: dict[int, MlirValue]
) -> None:
    program = form.program
    constants = dict(enumerate(program.constants, program.first_constant))
    meanings = program.metadata.values if program.metadata else {}
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
        value = values[number] = TABLE[item.name](instruction)
        meaning.annotate(text, value, meanings.get(number), form.types[number])


def _lines(
    name: str,
    form: Proven,
    text: Text,
    ports: tuple[list[MlirValue], list[MlirValue]],
) -> list[str]:
    arguments, outputs = ports
    taken = ", ".join(item.type for item in arguments)
    given = ", ".join(item.type for item in outputs)
    listed = ", ".join(f"{item.name}: {item.type}" for item in arguments)
    names = ", ".join(item.name for item in outputs)
    type_ = f"({taken}) -> ({given})"
    return [
        f'  "func.func"() <{{function_type = {type_}, sym_name = "{name}"{_meanings(form)}}}> ({{',
        f"  ^bb0({listed}):",
        *(f"    {line}" for line in text.lines),
        f'    "func.return"({names}) : ({given}) -> ()',
        "  }) : () -> ()",
    ]
