"""The price of a program: the engine's time for one sample, estimated from shapes and dtypes.

The unit is the time of one product of bytes. The rates were fitted to the measured times
of the steps of three networks, with values of 8 and 16 bits and weights of 8 and 15, on a
processor with VNNI; they miss a step's time by a fifth. They are constants, so that a
search chooses the same bits whatever else its machine does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cvm.plan.regions import find_regions
from cvm.plan.steps import LINEAR
from cvm.program import Instruction
from cvm.proof.cost import Work, work_of
from cvm.proof.validate import Proven

OF_BYTES, OF_WORDS = 1, 2
"""A product of bytes, and one of which an operand has 16 bits."""
BY_CHANNEL_OF_WORDS = 5
"""One of 16 bits in a convolution of each channel by itself."""
IN_REGISTERS, IN_MEMORY = 40, 130
"""A sum that is rescaled where it was added up, and one that is stored on the way."""
MOVED = 6
"""A byte that another instruction reads or writes."""


def price(form: Proven) -> int:
    """Return the price of one sample."""
    return sum(_prices(form))


def _prices(form: Proven) -> Iterator[int]:
    """Yield the price of each sum of products, with what follows it element by element, and of all else."""
    program, fused = form.program, set[int]()
    for region in find_regions(form):
        head = next((v for v in region if _at(form, v).name in LINEAR), None)
        if head is not None:
            fused.update(region)
            yield _of_sums(form, head, region)
    for number in range(program.first_instruction, len(form.types)):
        if number not in fused:
            yield MOVED * _work(form, number).bytes_moved


def _of_sums(form: Proven, head: int, region: Sequence[int]) -> int:
    x, weights = (form.types[value] for value in _at(form, head).operands[:2])
    words = "i16" in (x.dtype, weights.dtype)
    by_channel = len(weights.shape) == 4 and weights.shape[-1] == 1
    rate = OF_BYTES
    if words:
        rate = BY_CHANNEL_OF_WORDS if by_channel else OF_WORDS
    products = _work(form, head).multiply_accumulates
    result = form.types[region[-1]].dtype
    is_rescaled = len(region) > 1 and _at(form, region[1]).name == "rescale"
    fits = (
        result == "i8" if by_channel else result in ("i8", "i16") and not words
    )
    in_registers = is_rescaled and fits
    end = IN_REGISTERS if in_registers else IN_MEMORY
    return rate * products + end * form.types[head].elements


def _at(form: Proven, number: int) -> Instruction:
    return form.program.instructions[number - form.program.first_instruction]


def _work(form: Proven, number: int) -> Work:
    item = _at(form, number)
    operands = [form.types[value] for value in item.operands]
    return work_of(item, operands, form.types[number])
