"""Who computes what: all before the first sum and after the last is the client's, who holds the key.

Functions and movements of inputs alone are computed before encryption, and those that only outputs follow
from after decryption. What is between, the server computes on secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cvm.lower.lowering import Lowering
from cvm.lower.movements import is_movement


@dataclass(frozen=True)
class Parties:
    """Values by who computes them, in order; `encrypted` are sent to the server, `decrypted` sent back."""

    head: tuple[int, ...]
    server: tuple[int, ...]
    tail: tuple[int, ...]
    encrypted: tuple[int, ...]
    decrypted: tuple[int, ...]

    @property
    def client(self) -> tuple[int, ...]:
        """The values that the client computes."""
        return self.head + self.tail


def parties(lowering: Lowering, *, hides_head: bool = False) -> Parties:
    """Divide the values of a program.

    With `hides_head` the client encrypts its inputs as they are: the server computes on them from the first function
    on, and the client never sees the constants of these, such as the thresholds of a tree.
    """
    order = lowering.secret_order
    read = {number: operands(lowering, number) for number in order}
    head = () if hides_head else _head(lowering, read)
    hidden = _of_inputs(lowering, read) if hides_head else ()
    tail = _tail(lowering, read, {*head, *hidden}, head)
    by_client = set(head) | set(tail)
    server = tuple(number for number in order if number not in by_client)
    inputs = lowering.form.program.inputs
    client_values = set(head) | set(range(len(inputs)))
    encrypted = {
        value for number in server for value in read[number]
    } & client_values
    needed = {output.value for output in lowering.form.program.outputs}
    needed |= {value for number in tail for value in read[number]}
    decrypted = needed & set(server)
    computed = tuple(n for n in head if n in _needed(read, encrypted | needed))
    return Parties(
        computed,
        server,
        tail,
        tuple(sorted(encrypted)),
        tuple(sorted(decrypted)),
    )


def all_on_server(lowering: Lowering) -> Parties:
    """The client only encrypts and decrypts."""
    inputs = tuple(range(len(lowering.form.program.inputs)))
    outputs = {output.value for output in lowering.form.program.outputs}
    decrypted = tuple(
        sorted(outputs.difference(inputs, lowering.constant_values))
    )
    return Parties((), lowering.secret_order, (), inputs, decrypted)


def operands(lowering: Lowering, number: int) -> tuple[int, ...]:
    """The secrets from which a value is computed."""
    if number in lowering.functions:
        return (lowering.functions[number].argument,)
    program = lowering.form.program
    instruction = program.instructions[number - program.first_instruction]
    return tuple(
        x for x in instruction.operands if x not in lowering.constant_values
    )


def _is_simple(lowering: Lowering, number: int) -> bool:
    """Whether the value is a function, or a movement at places known before."""
    if number in lowering.functions:
        return True
    program = lowering.form.program
    instruction = program.instructions[number - program.first_instruction]
    if not is_movement(instruction):
        return False
    by_secrets = instruction.name == "gather" and (
        instruction.operands[1] in operands(lowering, number)
    )
    return not by_secrets


def _head(
    lowering: Lowering, read: Mapping[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """Functions and movements of inputs; a movement that repeats elements would have more sent, and is the server's."""
    types = lowering.form.types

    def grows(number: int) -> bool:
        before = sum(types[value].elements for value in read[number])
        return types[number].elements > before

    small = {n: values for n, values in read.items() if not grows(n)}
    return _of_inputs(lowering, small)


def _of_inputs(
    lowering: Lowering, read: Mapping[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """Those of the values in `read` that are functions and movements of inputs alone, in order."""
    computed = set(range(len(lowering.form.program.inputs)))
    chosen = []
    for number, values in read.items():
        if _is_simple(lowering, number) and computed.issuperset(values):
            computed.add(number)
            chosen.append(number)
    return tuple(chosen)


def _tail(
    lowering: Lowering,
    read: Mapping[int, tuple[int, ...]],
    kept_out: set[int],
    head: tuple[int, ...],
) -> tuple[int, ...]:
    """Functions and movements that only the client reads, without those to be kept out."""
    by_client = set(head)
    read_by_server: set[int] = set()  # what the server reads
    for number in reversed(lowering.secret_order):
        if number in by_client:
            continue
        simple = number not in kept_out and _is_simple(lowering, number)
        if simple and number not in read_by_server:
            by_client.add(number)
        else:
            read_by_server.update(read[number])
    return tuple(
        number
        for number in lowering.secret_order
        if number in by_client - set(head)
    )


def _needed(read: Mapping[int, tuple[int, ...]], targets: set[int]) -> set[int]:
    """The targets, and all values that they are computed from."""
    needed, waiting = set[int](), [*targets]
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting.extend(read.get(number, ()))
    return needed
