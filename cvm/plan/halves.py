"""Products of 16-bit values with weights in two halves, which the engine multiplies at once.

`mrt` writes a weight of more than 8 bits as 2^k * high + low, and its product with x as

    (x * high << k) + x * low

Kernels for 16-bit rows hold weights of 16 bits, so that one product with the undivided weight takes no longer than one
with a half. Sums are taken modulo 2^32 either way, and the proof holds the last of them inside i32: they are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cvm.program import Instruction
from cvm.proof.validate import WellFormed

JOINED = frozenset(("conv2d", "dense"))
MOST_BITS = 7  # of a low half: 2^7 * 127 + 127 fits 16 bits


@dataclass(frozen=True, slots=True)
class Halves:
    """The two products and the shift that an `add` joins, by value number."""

    high: int
    shifted: int
    low: int
    low_bits: int


def find_halves(form: WellFormed) -> dict[int, Halves]:
    """The sums of halves of a program, by the number of their `add`."""
    program = form.program
    readers: dict[int, int] = {}
    for instruction in program.instructions:
        for value in instruction.operands:
            readers[value] = readers.get(value, 0) + 1
    for output in program.outputs:
        readers[output.value] = readers.get(output.value, 0) + 1
    return {
        number: halves
        for number, instruction in enumerate(
            program.instructions, program.first_instruction
        )
        if instruction.name == "add"
        and (halves := _halves(form, instruction.operands, readers)) is not None
        and form.types[number] == form.types[halves.high]
    }


def _halves(
    form: WellFormed, operands: tuple[int, ...], readers: Mapping[int, int]
) -> Halves | None:
    shifted, low = operands
    shift = _at(form, shifted)
    if shift is None or shift.name != "shift_left":
        return None
    high, amount = shift.operands
    bits = _low_bits(form, amount)
    if bits is None or any(
        readers[value] != 1 for value in (high, shifted, low)
    ):
        return None
    return Halves(high, shifted, low, bits) if _alike(form, high, low) else None


def _alike(form: WellFormed, high: int, low: int) -> bool:
    """Whether both are the same product of 16-bit values with weights of one shape."""
    high_product, low_product = _at(form, high), _at(form, low)
    return (
        high_product is not None
        and low_product is not None
        and high_product.name == low_product.name
        and high_product.name in JOINED
        and high_product.attributes == low_product.attributes
        and high_product.operands[0] == low_product.operands[0]
        and form.types[high_product.operands[0]].dtype == "i16"
        and form.types[high_product.operands[1]]
        == form.types[low_product.operands[1]]
        and not _multiplies_channels(form, high_product)
    )


def _multiplies_channels(form: WellFormed, product: Instruction) -> bool:
    """Whether each channel by itself has several outputs, for which there are no kernels."""
    if product.name != "conv2d":
        return False
    channels = form.types[product.operands[0]].shape[-1]
    outputs = form.types[product.operands[1]].shape[0]
    return product.attributes["groups"] == channels > 1 and outputs != channels


def _low_bits(form: WellFormed, amount: int) -> int | None:
    """The bits by which all of the high half is shifted, if they are constant and a low half has so many."""
    program = form.program
    if not program.first_constant <= amount < program.first_instruction:
        return None
    shifts = np.unique(program.constants[amount - program.first_constant])
    return (
        int(shifts[0])
        if len(shifts) == 1 and 1 <= shifts[0] <= MOST_BITS
        else None
    )


def _at(form: WellFormed, value: int) -> Instruction | None:
    place = value - form.program.first_instruction
    return form.program.instructions[place] if place >= 0 else None
