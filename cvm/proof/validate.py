"""The only door to execution: well-formedness, then the interval proof. `cvm/SPEC.md` numbers the rules V1..V13."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cvm.errors import Invalid, Unproven, brief
from cvm.instructions import INSTRUCTIONS, InstructionSpec
from cvm.program import (
    DTYPE_RANGES,
    MAX_ELEMENTS,
    MAX_RANK,
    Attribute,
    Instruction,
    IntArray,
    Program,
    TensorType,
    bounds,
    dtype_name,
    fits_4_bits,
)
from cvm.program.bounds import Bounds
from cvm.program.limits import (
    MAX_CONSTANTS,
    MAX_INPUTS,
    MAX_INSTRUCTIONS,
    MAX_LIVE_INTERVALS,
    MAX_NAME_BYTES,
    MAX_OUTPUTS,
    MAX_PROOF_WORK,
    PROOF_READS_PER_CONSTANT,
)
from cvm.proof.rescale_facts import RescaleFacts
from cvm.reference.call import Call
from cvm.reference.registry import RULES

_DTYPES = ", ".join(DTYPE_RANGES)


@dataclass(frozen=True)
class WellFormed:
    """A program whose every rule of form holds, with the type of each value."""

    program: Program
    types: tuple[TensorType, ...]


@dataclass(frozen=True)
class Proven(WellFormed):
    """A well-formed program for which an interval is proven for every value: (lo, hi) over the whole tensor.

    `rescales` has the facts that follow from the intervals of channels, by the value that a rescale gives.
    """

    intervals: tuple[tuple[int, int], ...]
    rescales: Mapping[int, RescaleFacts]


def validate(program: Program) -> Proven:
    """Check every rule and prove every interval, or raise `Invalid` or `Unproven` naming rule and instruction."""
    return prove(check(program))


def check(program: Program) -> WellFormed:
    """The rules of form, without the proof."""
    _check_counts(program)
    _check_reads(program)
    types = [*_input_types(program), *_constant_types(program)]
    _check_packed(program)
    for index, instruction in enumerate(program.instructions):
        try:
            types.append(
                infer_type(
                    instruction, types, constants_of(program, instruction)
                )
            )
        except Invalid as problem:
            raise _located(problem, program, index) from None
    _check_outputs(program)
    _check_uses(program)
    return WellFormed(program, tuple(types))


def prove(form: WellFormed) -> Proven:
    """Prove an interval for every value, or raise `Unproven` naming the instruction."""
    program = form.program
    intervals = [(0, 0)] * (
        program.first_instruction + len(program.instructions)
    )
    rescales = {}
    for number, interval, operands in _walk(form):
        intervals[number] = (interval.min, interval.max)
        if operands:
            instruction = program.instructions[
                number - program.first_instruction
            ]
            if instruction.name == "rescale":
                rescales[number] = RescaleFacts.of(
                    program, instruction, operands[0]
                )
    return Proven(program, form.types, tuple(intervals), rescales)


def channel_intervals(form: WellFormed) -> Iterator[tuple[int, Bounds]]:
    """Every value that something reads or defines, with its interval per channel: a value comes after its operands.

    A constant may come more than once.
    """
    for number, interval, _ in _walk(form):
        yield number, interval


def _walk(
    form: WellFormed,
) -> Iterator[tuple[int, Bounds, tuple[Bounds, ...]]]:
    """As `channel_intervals`, with the intervals of the operands, which are kept only as long as an instruction reads them."""
    program, types = form.program, form.types
    _check_proof_work(form)
    last_use = program.last_uses()
    live: dict[int, Bounds] = {}
    for number, port in enumerate(program.inputs):
        live[number] = bounds.full(port.type, port.lo, port.hi)
        yield number, live[number], ()
    for index, instruction in enumerate(program.instructions):
        number = program.first_instruction + index
        constants = constants_of(program, instruction)
        for value, array in zip(instruction.operands, constants, strict=True):
            if array is not None and value not in live:
                live[value] = bounds.of_constant(array, types[value])
                yield value, live[value], ()
        operands = tuple(live[value] for value in instruction.operands)
        try:
            result = infer_bounds(
                instruction, types, constants, operands, types[number]
            )
        except Invalid as problem:
            raise _located(problem, program, index) from None
        for value in instruction.operands:
            if last_use[value] == index:
                live.pop(value, None)
        yield number, result, operands
        if number in last_use:
            live[number] = result


def infer_type(
    instruction: Instruction,
    types: Sequence[TensorType],
    constants: tuple[IntArray | None, ...],
) -> TensorType:
    """The type of an instruction's result; `types` are those of all earlier values."""
    spec = INSTRUCTIONS.get(instruction.name)
    if spec is None:
        raise Invalid("V6", f"unknown instruction {brief(instruction.name)}")
    _check_operands(spec, instruction, len(types), constants)
    _check_attributes(spec, instruction)
    operand_types = tuple(types[value] for value in instruction.operands)
    result = RULES[spec.name].check(
        Call(spec.name, operand_types, constants, instruction.attributes)
    )
    _check_type(result, "V9")
    return result


def infer_bounds(
    instruction: Instruction,
    types: Sequence[TensorType],
    constants: tuple[IntArray | None, ...],
    operands: tuple[Bounds, ...],
    result: TensorType,
) -> Bounds:
    """The interval of an instruction's result; raises `Unproven` if it does not fit `result.dtype`."""
    operand_types = tuple(types[value] for value in instruction.operands)
    call = Call(
        instruction.name,
        operand_types,
        constants,
        instruction.attributes,
        operands,
        result,
    )
    interval = RULES[instruction.name].bound(call).spread(result)
    if not interval.fits(result.dtype):
        low, high = DTYPE_RANGES[result.dtype]
        message = f"result interval {interval.min}..{interval.max} does not fit {result.dtype} ({low}..{high})"
        raise Unproven(f"{instruction.name}.fits", message)
    return interval


def constants_of(
    program: Program, instruction: Instruction
) -> tuple[IntArray | None, ...]:
    """The operands of an instruction that are constants; None for the others."""
    first, after = program.first_constant, program.first_instruction
    return tuple(
        program.constants[value - first] if first <= value < after else None
        for value in instruction.operands
    )


def _located(problem: Invalid, program: Program, index: int) -> Invalid:
    number = program.first_instruction + index
    where = f"%{number} = {program.instructions[index].name[:32]}"
    return type(problem)(problem.rule, problem.message, where=where)


def _check_counts(program: Program) -> None:
    for what, count, least, most in (
        ("inputs", len(program.inputs), 1, MAX_INPUTS),
        ("outputs", len(program.outputs), 1, MAX_OUTPUTS),
        ("constants", len(program.constants), 0, MAX_CONSTANTS),
        ("instructions", len(program.instructions), 1, MAX_INSTRUCTIONS),
    ):
        if not least <= count <= most:
            raise Invalid("V1", f"{count} {what}; allowed are {least}..{most}")


def _input_types(program: Program) -> Iterator[TensorType]:
    _check_names([port.name for port in program.inputs], "input")
    for port in program.inputs:
        _check_type(port.type, "V3")
        low, high = DTYPE_RANGES[port.type.dtype]
        if not low <= port.lo <= port.hi <= high:
            interval = f"{brief(port.lo)}..{brief(port.hi)}"
            raise Invalid(
                "V4",
                f"input {port.name!r}: interval {interval} is not inside {low}..{high}",
            )
        yield port.type


def _constant_types(program: Program) -> Iterator[TensorType]:
    for number, array in enumerate(program.constants):
        try:
            type_ = TensorType(dtype_name(array), array.shape)
            _check_type(type_, "V3")
        except KeyError:
            raise Invalid(
                "V3",
                f"dtype {array.dtype}; expected {_DTYPES}",
                where=f"constant {number}",
            ) from None
        except Invalid as problem:
            raise Invalid(
                "V3", problem.message, where=f"constant {number}"
            ) from None
        yield type_


def _check_packed(program: Program) -> None:
    for number in sorted(program.packed):
        fitting = map(fits_4_bits, program.constants[number : number + 1])
        if number < 0 or not any(fitting):
            raise Invalid(
                "V3",
                "is to be stored in 4 bits; expected an i8 constant in -8..7",
                where=f"constant {number}",
            )


def _check_names(names: list[str], what: str) -> None:
    for name in names:
        if not 1 <= _utf8_bytes(name) <= MAX_NAME_BYTES:
            raise Invalid(
                "V2",
                f"{what} name {brief(name)}: allowed are 1..{MAX_NAME_BYTES} bytes of UTF-8",
            )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Invalid("V2", f"two {what}s are named {brief(twice)}")


def _utf8_bytes(name: str) -> int:
    """The length in UTF-8; 0, which no name may have, for text that is not Unicode."""
    try:
        return len(name.encode())
    except UnicodeEncodeError:
        return 0


def _check_type(type_: TensorType, rule: str) -> None:
    if type_.dtype not in DTYPE_RANGES:
        raise Invalid(rule, f"dtype {brief(type_.dtype)}; expected {_DTYPES}")
    if type_.rank > MAX_RANK:
        raise Invalid(rule, f"rank {type_.rank}; at most {MAX_RANK}")
    if any(dimension < 1 for dimension in type_.shape):
        raise Invalid(
            rule, f"shape {brief(type_.shape)} has a dimension below 1"
        )
    if type_.elements > MAX_ELEMENTS:
        raise Invalid(
            rule,
            f"shape {brief(type_.shape)} has more than {MAX_ELEMENTS} elements",
        )


def _check_operands(
    spec: InstructionSpec,
    instruction: Instruction,
    available: int,
    constants: tuple[IntArray | None, ...],
) -> None:
    count = len(instruction.operands)
    if count != len(spec.inputs) and not (
        spec.variadic and count >= len(spec.inputs)
    ):
        raise Invalid(
            "V5",
            f"{count} operands; expected {len(spec.inputs)}{' or more' if spec.variadic else ''}",
        )
    for value in instruction.operands:
        if not 0 <= value < available:
            raise Invalid(
                "V5",
                f"operand %{brief(value)} is not an earlier value (0..{available - 1})",
            )
    for name, constant in zip(spec.inputs, constants, strict=False):
        if name in spec.constant and constant is None:
            raise Invalid("V7", f"operand '{name}' must be a constant")


def _check_attributes(spec: InstructionSpec, instruction: Instruction) -> None:
    if set(instruction.attributes) != set(spec.attributes):
        expected = ", ".join(spec.attributes) or "none"
        raise Invalid(
            "V8",
            f"attributes {brief([*instruction.attributes])}; expected {expected}",
        )
    for name, kind in spec.attributes.items():
        value = instruction.attributes[name]
        if not has_kind(value, kind):
            raise Invalid(
                "V8", f"attribute {name} = {brief(value)}; expected {kind}"
            )


def has_kind(value: Attribute, kind: str) -> bool:
    """Whether an attribute's value is of a kind of `instructions.toml`; integers are held to 64 bits."""
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "dtype":
        return isinstance(value, str) and value in DTYPE_RANGES
    if kind.startswith("mode:"):
        return isinstance(value, str) and value in kind[5:].split("|")
    if kind == "int":
        return _is_int64(value)
    length = kind.removeprefix("ints")
    allowed = (
        range(int(length), int(length) + 1)
        if length
        else range(2 * MAX_RANK + 1)
    )
    return (
        isinstance(value, tuple)
        and len(value) in allowed
        and all(map(_is_int64, value))
    )


def _is_int64(value: object) -> bool:
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and -(2**63) <= value < 2**63
    )


def _check_outputs(program: Program) -> None:
    _check_names([output.name for output in program.outputs], "output")
    after = program.first_instruction + len(program.instructions)
    for output in program.outputs:
        if not program.first_instruction <= output.value < after:
            raise Invalid(
                "V10",
                f"output {output.name!r} is %{brief(output.value)}, not the value of an instruction",
            )


def _check_uses(program: Program) -> None:
    order = dict.fromkeys(
        value for reader in program.instructions for value in reader.operands
    )
    constants = range(program.first_constant, program.first_instruction)
    used = [value for value in order if value in constants]
    if len(used) != len(constants):
        raise Invalid(
            "V11",
            f"constant %{next(value for value in constants if value not in order)} is unused",
        )
    if used != list(constants):
        raise Invalid(
            "V12", "constants are not in the order of their first use"
        )
    alive = order.keys() | {reader.value for reader in program.outputs}
    for index, instruction in enumerate(program.instructions):
        if program.first_instruction + index not in alive:
            raise Invalid(
                "V11",
                f"%{program.first_instruction + index} = {instruction.name} is dead: nothing reads it",
            )


def _check_reads(program: Program) -> None:
    """V13, first part: a rule may read its constant operands whole, so they are counted before any rule runs."""
    first, after = program.first_constant, program.first_instruction
    reads, allowed = 0, _allowed_work(program)
    for index, instruction in enumerate(program.instructions):
        reads += sum(
            program.constants[value - first].size
            for value in instruction.operands
            if first <= value < after
        )
        if reads > allowed:
            problem = Invalid(
                "V13",
                f"the proof reads {reads} elements of constants so far; at most {allowed}",
            )
            raise _located(problem, program, index)


def _check_proof_work(form: WellFormed) -> None:
    """V13, second part: a small file must not demand a large proof."""
    program, types = form.program, form.types
    last_use = program.last_uses()
    live = sum(type_.channels for type_ in types[: program.first_constant])
    work = sum(type_.channels for type_ in types[: program.first_instruction])
    constants = range(program.first_constant, program.first_instruction)
    next_constant = (
        program.first_constant
    )  # they are in the order of their first use (V12)
    allowed = _allowed_work(program)
    for index, instruction in enumerate(program.instructions):
        number = program.first_instruction + index
        while (
            next_constant in constants and next_constant in instruction.operands
        ):
            live += types[next_constant].channels
            next_constant += 1
        live += types[number].channels
        work += types[number].channels + sum(
            types[value].channels for value in instruction.operands
        )
        work += sum(
            types[value].elements
            for value in instruction.operands
            if value in constants
        )
        if live > MAX_LIVE_INTERVALS or work > allowed:
            demand = f"{live} intervals at once (at most {MAX_LIVE_INTERVALS}) and {work} steps (at most {allowed})"
            raise _located(
                Invalid("V13", f"the proof needs {demand}"), program, index
            )
        live -= sum(
            types[value].channels
            for value in set(instruction.operands)
            if last_use[value] == index
        )
        if number not in last_use:
            live -= types[number].channels


def _allowed_work(program: Program) -> int:
    return MAX_PROOF_WORK + PROOF_READS_PER_CONSTANT * sum(
        array.size for array in program.constants
    )
