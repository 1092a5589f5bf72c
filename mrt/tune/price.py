"""The price of a program: the engine's time for one sample, estimated from shapes and dtypes.

The unit is the time of one product of bytes. The rates were fitted to the least times
of the steps of three networks, with values of 8 and 16 bits and weights of 8 and 15, on a
processor with VNNI; most steps are within a tenth. They are constants, so that a search
chooses the same bits whatever else its machine does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cvm.plan.regions import find_regions
from cvm.plan.steps import LINEAR
from cvm.program import DTYPES, Instruction
from cvm.proof.cost import Work, work_of
from cvm.proof.validate import Proven

OF_BYTES, OF_WORDS = 1, 2
"""A product of bytes, and one of which an operand has 16 bits."""
BY_CHANNEL, BY_CHANNEL_OF_WORDS = 4, 5
"""The same in a convolution of each channel by itself."""
VECTOR = 16
"""Outputs that are computed at once: a part of a vector takes as long as all of it."""
STAGE = 15
"""A sum that is added up, and again for each instruction that follows element by element."""
STORED = 50
"""A sum that is stored in 32 bits and read again, as the half of a wide weight's product with bytes is."""
WEIGHT, WEIGHT_OF_WORDS = 4, 12
"""A weight that is fetched, once for all positions; words are multiplied by weights of 16 bits."""
MOVED = 6
"""A byte that another instruction reads or writes."""


LINE = 64
"""The bytes that one look-up in a table brings."""


def price(form: Proven) -> int:
    """Return the price of one sample, by which a search chooses; a table counts whole."""
    return sum(_prices(form, _bytes_moved))


def engine_time(form: Proven) -> int:
    """Return the same as an estimate for people: of a table, what is looked up counts alone."""
    return sum(_prices(form, _bytes_touched))


def _prices(form: Proven, moved: Callable[[Proven, int], int]) -> Iterator[int]:
    """Yield the price of each sum of products, with what follows it element by element, and of all else."""
    program, fused = form.program, set[int]()
    for region in find_regions(form):
        head = next(
            (value for value in region if _at(form, value).name in LINEAR), None
        )
        if head is not None:
            fused.update(region)
            yield _of_sums(form, head, region)
    for number in range(program.first_instruction, len(form.types)):
        if number not in fused:
            yield MOVED * moved(form, number)


def _of_sums(form: Proven, head: int, region: Sequence[int]) -> int:
    x, weights = (form.types[value] for value in _at(form, head).operands[:2])
    by_channel = len(weights.shape) == 4 and weights.shape[-1] == 1
    if "i16" in (x.dtype, weights.dtype):
        rate = BY_CHANNEL_OF_WORDS if by_channel else OF_WORDS
        fetched = WEIGHT_OF_WORDS * weights.elements
    else:
        rate = BY_CHANNEL if by_channel else OF_BYTES
        fetched = WEIGHT * weights.elements
    sums = form.types[head]
    halves = sum(_at(form, value).name in LINEAR for value in region) == 2
    stages = len(region) - (3 if halves else 0)  # that many are one product
    products = _work(form, head).multiply_accumulates // sums.elements
    stored = STORED if form.types[region[-1]].dtype == "i32" else 0
    outputs = sums.shape[-1]
    computed = sums.elements // outputs * (-(-outputs // VECTOR) * VECTOR)
    return computed * (rate * products + STAGE * stages + stored) + fetched


def _bytes_moved(form: Proven, number: int) -> int:
    """Return the bytes that an instruction reads and writes, of which `cvm cost` counts whole operands."""
    name, result = _at(form, number).name, form.types[number]
    if name == "reshape":
        return 0  # the same bytes, where they lie
    if name in ("gather", "slice"):  # which read what they give
        return 2 * result.elements * DTYPES[result.dtype].itemsize
    return _work(form, number).bytes_moved


def _bytes_touched(form: Proven, number: int) -> int:
    """Return the bytes that an instruction moves, of a table no more than a line for each look-up."""
    whole = _bytes_moved(form, number)
    if _at(form, number).name != "table":
        return whole
    table = form.types[_at(form, number).operands[1]]
    size = table.elements * DTYPES[table.dtype].itemsize
    return whole - size + min(size, LINE * form.types[number].elements)


def _at(form: Proven, number: int) -> Instruction:
    return form.program.instructions[number - form.program.first_instruction]


def _work(form: Proven, number: int) -> Work:
    instruction = _at(form, number)
    operands = [form.types[value] for value in instruction.operands]
    return work_of(instruction, operands, form.types[number])
