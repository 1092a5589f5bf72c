"""Finds the candidates for more bits: values between layers, and weights.

Values that share a format form one candidate, and so do layers that share their
weights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from cvm.program import Program
from cvm.proof.validate import Proven
from mrt.graph.canonical_values import name_of
from mrt.graph.notes import shared_range_of
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.quantize.weight_groups import weight_groups

NARROW = 8
FINER_WEIGHTS = (11, 15)
"""Weights of 11 bits have an eighth of the noise of 8, and their sums with values of 16 bits mostly fit i32 as they are."""
WIDE_VALUES = 16
PASSES_ON = frozenset(
    {
        "max_pool2d",
        "reshape",
        "transpose",
        "concat",
        "slice",
        "pad",
        "tile",
        "reverse",
        "clamp",
        "gather",
        "select",
    }
)
"""Instructions whose results hold their operands' integers, in their format."""


@dataclass(frozen=True)
class Candidate:
    """Layers of these names, whose values or weights go from `before` bits to `after`."""

    weights: bool
    names: tuple[str, ...]
    before: int
    after: int


def raised(
    options: QuantizeOptions, chosen: Iterable[Candidate]
) -> QuantizeOptions:
    """Return the options with these candidates at `after` bits."""
    layers = dict(options.layers)
    for candidate in chosen:
        for name in candidate.names:
            layer_bits = layers.get(name, LayerBits())
            layers[name] = (
                replace(layer_bits, weight_bits=candidate.after)
                if candidate.weights
                else replace(layer_bits, activation_bits=candidate.after)
            )
    return replace(options, layers=layers)


def find_candidates(
    model: ir.Model, start: Proven, options: QuantizeOptions
) -> list[Candidate]:
    """Return all candidates for a program made with these options.

    If any have fewer than 8 bits, only these are returned, to be raised to 8 first.
    """
    candidates = [
        *_candidates(_value_groups(model, start), options, weights=False),
        *_candidates(
            (group.layers for group in weight_groups(model)),
            options,
            weights=True,
        ),
    ]
    under = [candidate for candidate in candidates if candidate.before < NARROW]
    return under or candidates


def _candidates(
    groups: Iterable[Sequence[str]], options: QuantizeOptions, *, weights: bool
) -> Iterator[Candidate]:
    steps = (NARROW, *FINER_WEIGHTS) if weights else (NARROW, WIDE_VALUES)
    bits_of = options.weight_bits_of if weights else options.product_bits_of
    for names in groups:
        before = min(map(bits_of, names))
        if before < steps[-1]:
            after = next(bits for bits in steps if bits > before)
            yield Candidate(weights, tuple(names), before, after)


def values_read(model: ir.Model, layers: Collection[str]) -> set[str]:
    """Return the names of what these layers multiply by their weights."""
    return {
        name_of(value)
        for node in model.graph
        if name_of(node.outputs[0]) in layers
        for value in node.inputs
        if value is not None and value.const_value is None
    }


def _value_groups(model: ir.Model, start: Proven) -> list[list[str]]:
    """Return the names of the values that the program holds in 8 bits, in groups.

    The values of a group have one format and origin.
    """
    words = {
        str(value.name): shared_range_of(value) for value in _values(model)
    }
    sets = _Sets()
    for number, operands in _passing(start.program):
        for operand in operands:
            if start.types[number].dtype == start.types[operand].dtype == "i8":
                sets.join(number, operand)
    named = [
        (number, name)
        for number, name in _sources(start.program)
        if start.types[number].dtype == "i8"
    ]
    for number, name in named:
        if name in words:
            sets.join(number, words[name] or f"={name}")
    groups: dict[object, list[str]] = {}
    for number, name in named:
        if name in words and name not in (
            group := groups.setdefault(sets.of(number), [])
        ):
            group.append(name)
    return list(groups.values())


def _values(model: ir.Model) -> Iterator[ir.Value]:
    yield from model.graph.inputs
    for node in model.graph:
        yield from node.outputs


def _passing(program: Program) -> Iterator[tuple[int, Sequence[int]]]:
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        if instruction.name in PASSES_ON:
            yield (
                number,
                [
                    value
                    for value in instruction.operands
                    if not 0
                    <= value - len(program.inputs)
                    < len(program.constants)
                ],
            )


def _sources(program: Program) -> list[tuple[int, str]]:
    """Return the numbers of the program's values with their float values, in order."""
    assert program.metadata is not None
    inner: Mapping[int, str] = {
        number: meaning.source
        for number, meaning in program.metadata.values.items()
    }
    return sorted(
        [
            *(
                (number, input_.name)
                for number, input_ in enumerate(program.inputs)
            ),
            *inner.items(),
        ]
    )


class _Sets:
    """Disjoint sets of hashable items."""

    def __init__(self) -> None:
        self._above: dict[object, object] = {}

    def of(self, member: object) -> object:
        """Return the member that identifies the set of this one."""
        while (above := self._above.get(member, member)) != member:
            member = above
        return member

    def join(self, left: object, right: object) -> None:
        """Unite two sets."""
        left, right = self.of(left), self.of(right)
        if left != right:
            self._above[left] = right
