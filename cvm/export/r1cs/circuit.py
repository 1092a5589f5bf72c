"""The constraints of a whole program, and the witness of one sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cvm.export.r1cs import functions, pooling, spared
from cvm.export.r1cs.disclosure import Disclosure
from cvm.export.r1cs.instruction import SecretInstruction
from cvm.export.r1cs.interface import Interface
from cvm.export.r1cs.opening import Opening
from cvm.export.r1cs.rules import written
from cvm.export.r1cs.secret import Secret, constant
from cvm.export.r1cs.system import System, in_interval
from cvm.export.refusals import Refusal, refuse
from cvm.lower import Lowering, lower
from cvm.lower.runnable import runnable
from cvm.program import IntArray
from cvm.proof.validate import Proven

NO_SALTS = Opening()
ADVICE = (
    "A function of one value has rows wherever its steps are those of a division, or its argument has few bits: "
    "fewer bits may help"
)


@dataclass(frozen=True)
class Circuit:
    """Rows and the wires' values; wires are numbered 1, then the public ones, then the inputs, then all others."""

    system: System
    public: int
    private: int


def circuit_of(
    form: Proven,
    inputs: Mapping[str, IntArray],
    disclosure: Disclosure | None = None,
    opening: Opening = NO_SALTS,
) -> Circuit:
    """The public wires are the program id and the disclosure, then the elements or the commitment of each output and input."""
    system, program = System(), form.program
    shown = disclosure or Disclosure.chosen(program, ())
    ports = Interface.of(system, form, inputs, shown, opening)
    values: dict[int, Secret] = {}
    for number, input_ in enumerate(program.inputs):
        values[number] = ports.elements[number]
        in_interval(system, values[number], input_.lo, input_.hi)
        if not shown.inputs[number]:
            ports.inputs[number].publish(system, values[number])
    lowering = lower(form)
    for number, array in lowering.constant_values.items():
        values[number] = constant(array)
    refusals = list(_write(system, lowering, values))
    refuse("r1cs", refusals, ADVICE)
    for output, port in zip(program.outputs, ports.outputs, strict=True):
        port.publish(system, values[output.value])
    system.require_limits()
    return Circuit(system, ports.public, ports.private)


def _write(
    system: System, lowering: Lowering, values: dict[int, Secret]
) -> Iterator[Refusal]:
    """Write the rows of every value that is kept, in order; after a refusal go on only to find others."""
    bare = spared.spared_of(lowering)
    waiting = pooling.waiting_of(lowering, bare.plans)
    late = {function.function.value for function in waiting.values()}
    for number in lowering.secret_order:
        if number in late:
            values[number] = values[lowering.functions[number].argument]
            continue
        function = lowering.functions.get(number)
        if number in waiting:
            instruction = _instruction(system, lowering, number, values)
            values[number], refusals = pooling.apply(
                instruction, waiting[number]
            )
        elif function is None:
            instruction = _instruction(system, lowering, number, values)
            values[number], refusals = written(instruction, number)
        else:
            argument = values[function.argument]
            if number not in bare.plans:
                argument = system.single(argument)
            ready = runnable(lowering, function)
            divisions = bare.divisions.get(number)
            if divisions is None:
                plans = bare.plans.get(number)
                values[number], refusals = functions.apply(
                    system, argument, ready, plans
                )
            else:
                values[number], refusals = spared.apply(
                    system, argument, ready, divisions
                )
        yield from refusals


def _instruction(
    system: System,
    lowering: Lowering,
    number: int,
    values: Mapping[int, Secret],
) -> SecretInstruction:
    form = lowering.form
    program = form.program
    instruction = program.instructions[number - program.first_instruction]
    constants = tuple(
        lowering.constant_values.get(value) for value in instruction.operands
    )
    return SecretInstruction(
        system,
        instruction.name,
        tuple(values[value] for value in instruction.operands),
        constants,
        tuple(form.types[value].dtype for value in instruction.operands),
        tuple(form.intervals[value] for value in instruction.operands),
        instruction.attributes,
        form.types[number],
    )
