"""What a program costs where its integers are secret: look-ups and their widths, comparisons, products, sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from cvm.instructions import INSTRUCTIONS
from cvm.lower.lowering import Lowering
from cvm.lower.runnable import RunnableFunction, runnable
from cvm.lower.step_function import step_function
from cvm.program import Instruction, IntArray

SUMS = frozenset(
    {"conv2d", "conv2d_transpose", "dense", "reduce_sum", "add", "sub"}
)
EXTREMES = frozenset({"max_pool2d", "reduce_max", "reduce_min"})
COMPARING = EXTREMES | {
    "maximum",
    "minimum",
    "equal",
    "greater",
    "greater_equal",
    "select",
}


@dataclass(frozen=True)
class LookUp:
    """One function: how many elements look it up, how wide an index is, and of how many instructions it takes the place.

    `bits` holds the widest proven interval; `needed` is that without the low bits at which no
    step begins; both are of the worst class. `steps` is None where there are too many to list.
    """

    value: int
    argument: int
    instructions: int
    elements: int
    bits: int
    needed: int
    steps: int | None


@dataclass(frozen=True)
class SecretCost:
    """The functions, and how many elements the other instructions compute, by what an engine must do for them."""

    look_ups: tuple[LookUp, ...]
    comparisons: Mapping[str, int]
    products: Mapping[str, int]
    sums: Mapping[str, int]
    others: Mapping[str, int]

    def as_json(self) -> dict[str, object]:
        """The same as JSON holds it."""
        return asdict(self)

    def lines(self) -> Iterable[str]:
        """The same as a table."""
        yield f"{'look-up':<10}{'of':<8}{'elements':>10}{'instructions':>14}{'bits':>6}{'needed':>8}{'steps':>10}"
        for item in self.look_ups:
            steps = "many" if item.steps is None else f"{item.steps:,}"
            yield (
                f"{f'%{item.value}':<10}{f'%{item.argument}':<8}{item.elements:>10,}{item.instructions:>14,}"
                f"{item.bits:>6}{item.needed:>8}{steps:>10}"
            )
        for title, counts in (
            ("comparisons", self.comparisons),
            ("products of two secrets", self.products),
            ("sums", self.sums),
            ("others that are not movements", self.others),
        ):
            shown = [f"{name} {count:,}" for name, count in counts.items()]
            yield f"{title}, elements: {', '.join(shown) or 'none'}"


def secret_cost(lowering: Lowering) -> SecretCost:
    """Count what an engine computes on secrets."""
    runners = [runnable(lowering, item) for item in lowering.functions.values()]
    kinds: dict[str, dict[str, int]] = {
        name: {} for name in ("comparisons", "products", "sums", "others")
    }
    program, types = lowering.form.program, lowering.form.types
    for number in lowering.kept:
        item = program.instructions[number - program.first_instruction]
        kind, elements = _kind(lowering, item), types[number].elements
        if item.name in EXTREMES:
            elements = types[item.operands[0]].elements
        if kind:
            kinds[kind].setdefault(item.name, 0)
            kinds[kind][item.name] += elements
    return SecretCost(tuple(map(_look_up, runners)), **kinds)


def _look_up(runner: RunnableFunction) -> LookUp:
    function = runner.function
    steps = step_function(runner)
    widths = [int(n).bit_length() for n in runner.high - runner.low]
    spared = [0] * len(widths)
    if steps is not None:
        spared = [_spared(steps.of(i)[0]) for i in range(len(widths))]
    needed = [
        max(width - low, 0) for width, low in zip(widths, spared, strict=True)
    ]
    return LookUp(
        function.value,
        function.argument,
        len(function.members),
        runner.classes.size,
        max(widths),
        max(needed),
        None if steps is None else len(steps.starts),
    )


def _spared(starts: IntArray) -> int:
    """The low bits that no step needs, once an offset is added: all steps begin at places congruent modulo 2^k."""
    if len(starts) < 2:
        return 64
    step = int(np.gcd.reduce(starts[1:] - starts[1]))
    return 63 if step == 0 else (step & -step).bit_length() - 1


def _kind(lowering: Lowering, item: Instruction) -> str:
    """What an engine has to do for an instruction that is no function; empty for a movement."""
    program = lowering.form.program
    constant = range(program.first_constant, program.first_instruction)
    secrets = [value for value in item.operands if value not in constant]
    if item.name in SUMS:
        return "sums"
    if item.name in ("mul", "matmul"):
        return "products" if len(secrets) > 1 else "sums"
    if item.name in COMPARING:
        return "comparisons"
    moves = INSTRUCTIONS[item.name].family == "movement"
    return "" if moves else "others"
