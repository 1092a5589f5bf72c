"""What a program costs where its integers are secret: look-ups and their widths, comparisons, products, sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from cvm.lower.functions import AppliedFunction, Width
from cvm.lower.lowering import Lowering
from cvm.lower.movements import is_movement
from cvm.lower.parties import all_on_server, parties
from cvm.lower.secret_program import secret_program
from cvm.program import Instruction

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

    `bits` holds the widest proven interval of the argument, `index` that of what is stored of it in units, and
    `needed` what is left without the low bits that cannot matter; 0 where the function is a line, which takes
    no look-up. `steps` is None where there are too many to list.
    """

    value: int
    argument: int
    instructions: int
    elements: int
    bits: int
    index: int
    needed: int
    steps: int | None


@dataclass(frozen=True)
class SecretCost:
    """The functions, and how many elements the other instructions compute, by what an engine must do for them.

    `client` holds the functions that whoever owns the inputs can compute without the engine: before the first sum
    and after the last.
    """

    look_ups: tuple[LookUp, ...]
    client: tuple[int, ...]
    comparisons: Mapping[str, int]
    products: Mapping[str, int]
    sums: Mapping[str, int]
    others: Mapping[str, int]

    def as_json(self) -> dict[str, object]:
        """The same as JSON holds it."""
        return asdict(self)

    def lines(self) -> Iterable[str]:
        """The same as a table."""
        yield f"{'look-up':<10}{'of':<8}{'elements':>10}{'instructions':>14}{'bits':>6}{'index':>7}{'needed':>8}{'steps':>10}"
        for look_up in self.look_ups:
            steps = "many" if look_up.steps is None else f"{look_up.steps:,}"
            yield (
                f"{f'%{look_up.value}':<10}{f'%{look_up.argument}':<8}{look_up.elements:>10,}{look_up.instructions:>14,}"
                f"{look_up.bits:>6}{look_up.index:>7}{look_up.needed:>8}{steps:>10}"
            )
        client_values = " ".join(f"%{value}" for value in self.client)
        yield f"the client's, before the first sum and after the last: {client_values or 'none'}"
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
    program = secret_program(lowering, all_on_server(lowering))
    kinds: dict[str, dict[str, int]] = {
        name: {} for name in ("comparisons", "products", "sums", "others")
    }
    source, types = lowering.form.program, lowering.form.types
    for number in lowering.kept:
        instruction = source.instructions[number - source.first_instruction]
        kind, elements = _kind(lowering, instruction), types[number].elements
        if instruction.name in EXTREMES:
            elements = types[instruction.operands[0]].elements
        if kind:
            kinds[kind].setdefault(instruction.name, 0)
            kinds[kind][instruction.name] += elements
    look_ups = (
        _look_up(lowering, applied) for applied in program.functions.values()
    )
    by_client = set(parties(lowering).client)
    client = tuple(
        number for number in program.functions if number in by_client
    )
    return SecretCost(tuple(look_ups), client, **kinds)


def _look_up(lowering: Lowering, applied: AppliedFunction) -> LookUp:
    function, steps = applied.runner.function, applied.steps
    bounds = lowering.bounds[function.argument]
    width = applied.width or Width(0, 0)
    return LookUp(
        function.value,
        function.argument,
        len(function.members),
        applied.runner.classes.size,
        max(int(n).bit_length() for n in bounds.hi - bounds.lo),
        width.index,
        width.needed,
        None if steps is None else len(steps.starts),
    )


def _kind(lowering: Lowering, instruction: Instruction) -> str:
    """What an engine has to do for an instruction that is no function; empty for a movement."""
    secrets = [
        value
        for value in instruction.operands
        if value not in lowering.constant_values
    ]
    if instruction.name in SUMS:
        return "sums"
    if instruction.name in ("mul", "matmul"):
        return "products" if len(secrets) > 1 else "sums"
    if instruction.name in COMPARING:
        return "comparisons"
    by_secrets = (
        instruction.name == "gather" and instruction.operands[1] in secrets
    )
    return "others" if by_secrets or not is_movement(instruction) else ""
