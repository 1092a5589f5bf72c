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
    mine = set(head) | set(tail)
    server = tuple(number for number in order if number not in mine)
    inputs = lowering.form.program.inputs
    known = set(head) | set(range(len(inputs)))
    sent = {value for number in server for value in read[number]} & known
    wanted = {item.value for item in lowering.form.program.outputs}
    wanted |= {value for number in tail for value in read[number]}
    back = wanted & set(server)
    computed = tuple(n for n in head if n in _needed(read, sent | wanted))
    return Parties(
        computed, server, tail, tuple(sorted(sent)), tuple(sorted(back))
    )


def all_on_server(lowering: Lowering) -> Parties:
    """The client only encrypts and decrypts."""
    inputs = tuple(range(len(lowering.form.program.inputs)))
    outputs = {item.value for item in lowering.form.program.outputs}
    back = tuple(sorted(outputs.difference(inputs, lowering.known)))
    return Parties((), lowering.secret_order, (), inputs, back)


def operands(lowering: Lowering, number: int) -> tuple[int, ...]:
    """The secrets from which a value is computed."""
    if number in lowering.functions:
        return (lowering.functions[number].argument,)
    program = lowering.form.program
    item = program.instructions[number - program.first_instruction]
    return tuple(x for x in item.operands if x not in lowering.known)


def _is_simple(lowering: Lowering, number: int) -> bool:
    """Whether the value is a function, or a movement at places known before."""
    if number in lowering.functions:
        return True
    program = lowering.form.program
    item = program.instructions[number - program.first_instruction]
    if not is_movement(item):
        return False
    by_secrets = item.name == "gather" and (
        item.operands[1] in operands(lowering, number)
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
    found = set(range(len(lowering.form.program.inputs)))
    chosen = []
    for number, values in read.items():
        if _is_simple(lowering, number) and found.issuperset(values):
            found.add(number)
            chosen.append(number)
    return tuple(chosen)


def _tail(
    lowering: Lowering,
    read: Mapping[int, tuple[int, ...]],
    kept_out: set[int],
    head: tuple[int, ...],
) -> tuple[int, ...]:
    """Functions and movements that nobody but the client reads, and that are not to be kept out."""
    mine = set(head)
    others: set[int] = set()  # what the server reads
    for number in reversed(lowering.secret_order):
        if number in mine:
            continue
        simple = number not in kept_out and _is_simple(lowering, number)
        if simple and number not in others:
            mine.add(number)
        else:
            others.update(read[number])
    return tuple(
        number for number in lowering.secret_order if number in mine - set(head)
    )


def _needed(read: Mapping[int, tuple[int, ...]], wanted: set[int]) -> set[int]:
    """All that these values are computed from, and they themselves."""
    found, waiting = set[int](), [*wanted]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting.extend(read.get(number, ()))
    return found
