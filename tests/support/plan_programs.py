"""Makes valid tiny programs like networks, from a seed.

They have branches, shortcuts, concats, gates and extra outputs. While `cvm_programs`
uses every instruction, these programs test how a plan treats instructions that belong
together.
"""

from collections.abc import Callable
from dataclasses import replace

from cvm.errors import Invalid
from cvm.program import DTYPE_RANGES, Output, Program
from tests.support.cvm_programs import Draft, Frozen, generator_of

MAX_CHANNELS = 48


def branching_program(
    seed: int | Frozen, blocks: int = 6, names: tuple[str, ...] = ()
) -> Program:
    """Return about `blocks` blocks, of the kinds in `names` or of all kinds."""
    draft = Draft(generator_of(seed))
    x = draft.input("i8", 4)
    if draft.chance():
        x = draft.apply("transpose", x, perm=(0, 2, 3, 1))
    x = conv(draft, x) if draft.chance() else x
    for _ in range(blocks):
        kind = {**BLOCKS, "halves": halves, "part": part}[
            draft.either(*(names or tuple(BLOCKS)))
        ]
        try:
            found = kind(draft, x)
        except Invalid:
            continue
        if draft.types[found].shape[-1] <= MAX_CHANNELS:
            x = found
    return _with_outputs(draft, draft.finish())


def halves_program(seed: int) -> Program:
    """Return one with products of which weights come in halves; blocks of `branching_program` stay as they are."""
    return branching_program(
        seed, names=("conv", "shortcut", "fire", *["halves"] * 4)
    )


def parts_program(seed: int) -> Program:
    """Return one with shortcuts of which products multiply a part."""
    return branching_program(
        seed, names=("conv", "shortcut", "fire", "growth", *["part"] * 4)
    )


def _with_outputs(d: Draft, program: Program) -> Program:
    """Make some values that are read outputs, too; one of them may be two outputs."""
    after = program.first_instruction + len(program.instructions)
    values = [
        d.between(program.first_instruction, after - 1)
        for _ in range(d.below(4))
    ]
    more = tuple(
        Output(f"extra{index}", value) for index, value in enumerate(values)
    )
    return replace(program, outputs=(*program.outputs, *more))


def rescale(d: Draft, x: int, dtype: str = "i8") -> int:
    """Rescale to i32, small enough for sums of four."""
    count = d.types[x].shape[-1] if d.chance() else 1
    least = {"i32": 33, "i16": 31, "i8": 28, "u8": 28}[d.types[x].dtype]
    multiplier = d.constant("i32", (count,), 2**30, 2**31 - 1)
    zero_points = [
        d.between(*DTYPE_RANGES[t]) if t in ("i8", "u8") else 0
        for t in (d.types[x].dtype, dtype)
    ]
    shift = d.constant("i8", (count,), least, least + 3)
    return d.apply(
        "rescale",
        x,
        multiplier,
        shift,
        input_zp=zero_points[0],
        output_zp=zero_points[1],
        dtype=dtype,
    )


def sums(d: Draft, x: int, outputs: int = 0) -> int:
    """Add a convolution that keeps height and width."""
    channels = d.types[x].shape[3]
    size = 1 if d.chance() else 3
    groups = channels if d.below(4) == 0 and outputs in (0, channels) else 1
    outputs = outputs or (channels if groups > 1 else d.between(1, 20))
    w = d.constant("i8", (outputs, size, size, channels // groups), -128, 127)
    b = d.constant("i32", (outputs,), -(2**20), 2**20)
    return d.apply(
        "conv2d", x, w, b, pad=(size // 2,) * 4, stride=(1, 1), dilation=(1, 1), groups=groups,
        input_zp=d.between(-128, 127),
    )  # fmt: skip


def conv(d: Draft, x: int, outputs: int = 0) -> int:
    return rescale(d, sums(d, x, outputs))


def _added(d: Draft, x: int, y: int) -> int:
    return rescale(d, d.apply("add", *((x, y) if d.chance() else (y, x))))


def shortcut(d: Draft, x: int) -> int:
    y = rescale(d, sums(d, conv(d, x), d.types[x].shape[3]), "i32")
    return _added(d, y, rescale(d, x, "i32"))


def projection(d: Draft, x: int) -> int:
    outputs = d.between(1, 20)
    branches = [rescale(d, sums(d, x, outputs), "i32") for _ in range(2)]
    return _added(d, *branches)


def halves(d: Draft, x: int) -> int:
    """Multiply 16-bit values by weights in two halves, of which others may read one."""
    y = d.apply("clamp", rescale(d, x, "i16"), min=-300, max=300)
    channels = d.types[x].shape[3]
    size = 1 if d.chance() else 3
    groups = channels if d.chance() else 1
    outputs = channels if groups > 1 else d.between(1, 20)
    parts = []
    for _ in range(2):
        w = d.constant(
            "i8", (outputs, size, size, channels // groups), -128, 127
        )
        b = d.constant("i32", (outputs,), -(2**12), 2**12)
        parts.append(
            d.apply(
                "conv2d", y, w, b, pad=(size // 2,) * 4, stride=(1, 1), dilation=(1, 1), groups=groups, input_zp=0,
            )
        )  # fmt: skip
    bits = d.between(1, 7)
    amount = d.constant("i32", (1, 1, 1, 1), bits, bits)
    high = d.apply("shift_left", parts[0], amount)
    found = rescale(d, d.apply("add", high, parts[1]))
    if d.below(4) == 0:
        d.apply("shift_right", parts[d.below(2)], amount, round=True)
    return found


def fire(d: Draft, x: int) -> int:
    return d.apply(
        "concat", *(conv(d, x) for _ in range(d.between(1, 3))), axis=3
    )


def growth(d: Draft, x: int) -> int:
    """Join each new value with all earlier ones."""
    for _ in range(d.between(1, 3)):
        before = rescale(d, x) if d.chance() else x
        x = d.apply("concat", x, conv(d, before), axis=3)
    return x


def part(d: Draft, x: int) -> int:
    """Add a convolution of a part of a concat to all of it."""
    left, right = conv(d, x), conv(d, x)
    both = d.apply("concat", left, right, axis=3)
    multiplied = d.either(left, right, both)
    y = rescale(d, sums(d, multiplied, d.types[both].shape[3]), "i32")
    return _added(d, y, rescale(d, both, "i32"))


def stacked(d: Draft, x: int) -> int:
    """Put rows of the image under one another."""
    return d.apply("concat", x, conv(d, x, d.types[x].shape[3]), axis=1)


def gate(d: Draft, x: int) -> int:
    """Return x * table(x)."""
    y = conv(d, x)
    values = d.constant("i8", (256,), -128, 127)
    return rescale(d, d.apply("mul", y, d.apply("table", y, values), shift=0))


def excited(d: Draft, x: int) -> int:
    """Multiply every channel, or every pixel, by a factor of its own."""
    y = rescale(d, x, "i16")
    axes = (1, 2) if d.chance() else (3,)
    factor = y
    for axis in axes:
        factor = d.apply("reduce_max", factor, axis=axis)
    return rescale(d, d.apply("mul", y, factor, shift=0)) if d.chance() else x


def reshaped(d: Draft, x: int) -> int:
    shape = d.types[x].shape
    flat = d.apply(
        "reshape", x, shape=(1, shape[0] * shape[1] * shape[2], shape[3])
    )
    y = rescale(d, flat) if d.chance() else flat
    if d.chance():
        d.apply("concat", y, flat, axis=1 + d.below(2))
    return d.apply("reshape", y, shape=shape)


def pooled(d: Draft, x: int) -> int:
    return d.apply(
        "max_pool2d", x, kernel=(2, 2), stride=(1, 1), pad=(1, 0, 0, 1)
    )


def product(d: Draft, x: int) -> int:
    """Add a second head: a product of pixels and pixels."""
    shape = d.types[x].shape
    rows = d.apply(
        "reshape", x, shape=(1, shape[0] * shape[1] * shape[2], shape[3])
    )
    found = d.apply(
        "matmul",
        rows,
        d.apply("transpose", rows, perm=(0, 2, 1)),
        a_zp=0,
        b_zp=3,
    )
    rescale(d, found, "i16")
    return x


BLOCKS: dict[str, Callable[[Draft, int], int]] = {
    "conv": conv,
    "shortcut": shortcut,
    "projection": projection,
    "fire": fire,
    "growth": growth,
    "stacked": stacked,
    "gate": gate,
    "excited": excited,
    "reshaped": reshaped,
    "pooled": pooled,
    "product": product,
}
