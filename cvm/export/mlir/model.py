"""A program as one module of MLIR: a function `main` from the inputs, in order, to the outputs, in order."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.export.mlir.instruction import MlirInstruction
from cvm.export.mlir.meaning import Ranges, annotate, attributes, listed
from cvm.export.mlir.table import TABLE
from cvm.export.mlir.text import ELEMENTS, MlirValue, Text
from cvm.proof.validate import Proven

NO_RANGES: Ranges = {}


def module_of(form: Proven, ranges: Ranges = NO_RANGES) -> str:
    """The generic form of MLIR's text; with what calibration met, where it is given."""
    return _module(_function("main", form, ranges))


def module_of_functions(forms: Mapping[str, Proven]) -> str:
    """One function for each program, under its name."""
    functions = [
        _function(name, form, NO_RANGES) for name, form in forms.items()
    ]
    return _module([line for lines in functions for line in lines])


def _module(functions: list[str]) -> str:
    lines = ['"builtin.module"() ({', *functions, "}) : () -> ()"]
    return "\n".join(lines) + "\n"


def _function(name: str, form: Proven, ranges: Ranges) -> list[str]:
    """All instructions in order."""
    program, text = form.program, Text()
    values = {
        number: MlirValue(
            f"%arg{number}", ELEMENTS[port.type.dtype], port.type.shape
        )
        for number, port in enumerate(program.inputs)
    }
    arguments = list(values.values())
    _write_instructions(form, text, values, ranges)
    outputs = [values[port.value] for port in program.outputs]
    head = _head(name, arguments, outputs, _meanings(form, ranges))
    return [
        *head,
        *(f"    {line}" for line in text.lines),
        f'    "func.return"({_names(outputs)}) : ({_types(outputs)}) -> ()',
        "  }) : () -> ()",
    ]


def _meanings(form: Proven, ranges: Ranges) -> str:
    """Attributes of arguments and results."""
    program, metadata = form.program, form.program.metadata
    if metadata is None:
        return ""
    arguments = [
        attributes(metadata.inputs.get(port.name), port.type, ranges)
        for port in program.inputs
    ]
    results = [
        attributes(
            metadata.outputs.get(port.name), form.types[port.value], ranges
        )
        for port in program.outputs
    ]
    return listed("arg_attrs", arguments) + listed("res_attrs", results)


def _write_instructions(
    form: Proven, text: Text, values: dict[int, MlirValue], ranges: Ranges
) -> None:
    program = form.program
    constants = dict(enumerate(program.constants, program.first_constant))
    meanings = program.metadata.values if program.metadata else {}
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        mlir_instruction = MlirInstruction(
            text,
            instruction.operands,
            tuple(form.types[value] for value in instruction.operands),
            tuple(form.intervals[value] for value in instruction.operands),
            form.types[number],
            instruction.attributes,
            values,
            constants,
        )
        value = values[number] = TABLE[instruction.name](mlir_instruction)
        meaning = meanings.get(number)
        annotate(text, value, attributes(meaning, form.types[number], ranges))


def _head(
    name: str,
    arguments: list[MlirValue],
    outputs: list[MlirValue],
    meanings: str,
) -> list[str]:
    type_ = f"({_types(arguments)}) -> ({_types(outputs)})"
    named = ", ".join(
        f"{argument.name}: {argument.type}" for argument in arguments
    )
    return [
        f'  "func.func"() <{{function_type = {type_}, sym_name = "{name}"{meanings}}}> ({{',
        f"  ^bb0({named}):",
    ]


def _names(values: list[MlirValue]) -> str:
    return ", ".join(value.name for value in values)


def _types(values: list[MlirValue]) -> str:
    return ", ".join(value.type for value in values)
