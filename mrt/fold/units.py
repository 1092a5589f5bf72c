"""Which computations may become one instruction: equal ones of one level, that read nothing of each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from cvm.instructions import INSTRUCTIONS
from cvm.program import Instruction, IntArray
from mrt.fold.lanes import MOST, Lanes, roots_of

ALIKE = (
    3,
    4,
)  # widths of branches in one instruction: the least is 3/4 of the greatest
Kind = Literal["alone", "lanes", "rows", "join", "branches"]
Class = tuple[Hashable, ...]
PRODUCTS = ("dense", "conv2d")


@dataclass(frozen=True)
class Unit:
    """Values that one instruction computes, in the order of their lanes in it.

    rows: the same constants for all, which are stacked as rows. join: one input, weights
    stacked as channels. branches: inputs and weights of their own, in groups. lanes:
    element-wise, all elements in one row.
    """

    kind: Kind
    members: tuple[int, ...]
    class_: Class = ()


@dataclass(frozen=True)
class Position:
    """A value's unit, as its level and number there, and its place among the members."""

    unit: tuple[int, int]
    index: int


@dataclass
class Levels:
    """The computations of a program in levels: each reads earlier levels alone."""

    lanes: Lanes
    level: dict[int, int]
    readers: dict[
        int, tuple[int, int]
    ]  # root -> first reader, and as which operand

    @classmethod
    def of(cls, lanes: Lanes) -> Levels:
        """Find the levels, and who reads each value first."""
        levels = cls(lanes, {}, {})
        for number in range(len(lanes.form.types)):
            if not lanes.is_root(number) or number in lanes.numbers:
                continue
            instruction = lanes.instruction(number)
            levels.level[number] = 0
            if instruction is not None:
                levels._place(number, instruction)
        return levels

    def _place(self, number: int, instruction: Instruction) -> None:
        for place, value in enumerate(instruction.operands):
            lanes = self.lanes.by_value.get(value)
            for root in [value] if lanes is None else roots_of(lanes):
                if root in self.lanes.numbers:
                    continue
                self.readers.setdefault(root, (number, place))
                least = self.level[root] + 1
                self.level[number] = max(self.level[number], least)


def units_of(levels: Levels, refused: Set[Class]) -> list[Unit]:
    """The computations in levels, with equal ones of a level in one unit but for the classes that are refused."""
    lanes, by_level = levels.lanes, defaultdict(list)
    for number, level in levels.level.items():
        if lanes.instruction(number) is not None:
            by_level[level].append(number)
    units_by_level: list[list[Unit]] = []
    place: dict[int, Position] = {}
    for level in sorted(by_level, reverse=True):
        units = _units(levels, by_level[level], refused, place)
        for index, unit in enumerate(units):
            for i, value in enumerate(unit.members):
                place[value] = Position((level, index), i)
        units_by_level.append(units)
    return [unit for units in reversed(units_by_level) for unit in units]


def _units(
    levels: Levels,
    numbers: list[int],
    refused: Set[Class],
    place: Mapping[int, Position],
) -> list[Unit]:
    lanes, groups = levels.lanes, defaultdict(list)

    def order(number: int) -> tuple[Hashable, ...]:
        """Order values by the unit that reads them, then by operand, then by the reader's place in its unit."""
        reader, operand = levels.readers.get(number, (number, 0))
        position = place.get(reader, Position((0, 0), 0))
        return position.unit, operand, position.index, number

    for number in sorted(numbers, key=order):
        groups[_class(lanes, number)].append(number)
    units: list[Unit] = []
    for class_, members in groups.items():
        parts: list[tuple[Kind, list[int]]] = [("alone", members)]
        if class_:
            parts = _parts(lanes, members)
        for kind, values in parts:
            if (
                len(values) > 1
                and kind != "alone"
                and (kind, class_) not in refused
            ):
                units.append(Unit(kind, tuple(values), (kind, class_)))
            else:
                units += [_alone(lanes, number, class_) for number in values]
    return units


def _alone(lanes: Lanes, number: int, class_: Class) -> Unit:
    """A value by itself: a vector that is computed element by element is written in one shape, whatever it had."""
    type_ = lanes.form.types[number]
    is_vector = type_.elements == max((1, *type_.shape))
    if is_vector and class_ and class_[0] not in PRODUCTS:
        return Unit("lanes", (number,))
    return Unit("alone", (number,))


def _class(lanes: Lanes, number: int) -> Class:
    """Return what values that may be one instruction have in common; nothing for a value that may not."""
    instruction, types = lanes.instruction(number), lanes.form.types
    assert instruction is not None
    constants = [lanes.constant(value) for value in instruction.operands]
    read = zip(instruction.operands, constants, strict=True)
    large = [value for value, integers in read if integers is None]
    if any(types[value].elements > MOST for value in (number, *large)):
        return ()
    same = (
        instruction.name,
        tuple(instruction.attributes.items()),
        tuple(types[value].dtype for value in instruction.operands),
        tuple(array is not None for array in constants),
    )
    if instruction.name in PRODUCTS:
        return same
    if not INSTRUCTIONS[instruction.name].stage:
        return ()
    for value, constant in zip(instruction.operands, constants, strict=True):
        if constant is None and types[value].shape != types[number].shape:
            return ()
    if instruction.name in ("table", "interpolate"):
        return (*same, _digest(constants[1:]))
    return same


def _digest(arrays: Iterable[IntArray | None]) -> str:
    parts = [
        f"{array.dtype}{array.shape}".encode() + array.tobytes()
        for array in arrays
        if array is not None
    ]
    return sha256(b"|".join(parts)).hexdigest()


def _parts(
    lanes: Lanes, members: Sequence[int]
) -> list[tuple[Kind, list[int]]]:
    """Values of one class, in parts that may each be one instruction."""
    instruction = lanes.instruction(members[0])
    assert instruction is not None
    if instruction.name not in PRODUCTS:
        return [
            _elementwise(lanes, values)
            for values in _of_like_width(lanes, members)
        ]
    parts: list[tuple[Kind, list[int]]] = []
    rest = list(members)
    groups = _grouped(members, lambda value: _constants(lanes, value))
    if instruction.name == "dense" and len({*map(len, groups)} | {1}) == 2:
        parts, rest = [("rows", same) for same in groups], []
    branches: list[int] = []
    for same in _grouped(rest, lambda value: _input(lanes, value)):
        if len(same) > 1:
            parts.append(("join", same))
        else:
            branches += same
    vectors = [value for value in branches if _is_vector_product(lanes, value)]
    others = [value for value in branches if value not in vectors]
    parts += [("branches", values) for values in _of_like_width(lanes, vectors)]
    return [*parts, ("alone", others)]


def _grouped(
    members: Iterable[int], key: Callable[[int], Hashable]
) -> list[list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for value in members:
        groups.setdefault(key(value), []).append(value)
    return list(groups.values())


def _constants(lanes: Lanes, number: int) -> str:
    """A digest of the constants that a computation reads."""
    operands = lanes.operands(number)
    return _digest(lanes.constant(value) for value in operands)


def _input(lanes: Lanes, number: int) -> Hashable:
    """Return a key that is the same for products that can be joined: of one input, with kernels of one size and one group."""
    instruction = lanes.instruction(number)
    assert instruction is not None
    if instruction.attributes.get("groups", 1) != 1:
        return number
    x, w = instruction.operands[:2]
    return lanes.by_value[x].tobytes(), lanes.form.types[w].shape[1:]


def _is_vector_product(lanes: Lanes, number: int) -> bool:
    instruction = lanes.instruction(number)
    assert instruction is not None
    x = lanes.form.types[instruction.operands[0]]
    return instruction.name == "dense" and x.shape[0] == 1


def _of_like_width(lanes: Lanes, members: Sequence[int]) -> list[list[int]]:
    """The members in parts of like width, each in the given order; of at most MOST lanes."""
    types = lanes.form.types
    parts: list[tuple[int, list[int]]] = []
    for value in sorted(members, key=lambda value: -types[value].elements):
        width = types[value].elements
        full = not parts or (len(parts[-1][1]) + 1) * parts[-1][0] > MOST
        if full or width * ALIKE[1] < parts[-1][0] * ALIKE[0]:
            parts.append((width, []))
        parts[-1][1].append(value)
    order = {value: place for place, value in enumerate(members)}
    return [sorted(values, key=order.__getitem__) for _, values in parts]


def _elementwise(lanes: Lanes, members: list[int]) -> tuple[Kind, list[int]]:
    """Return "rows" if the members share their constants and have as many channels, else "lanes", with the members."""
    types = lanes.form.types
    first = types[members[0]]
    channels = first.shape[-1] if first.shape else 1
    is_vector = first.elements == max((1, *first.shape))
    sizes = {
        types[value].elements
        for value in lanes.operands(members[0])
        if lanes.constant(value) is not None
    }
    same = {_constants(lanes, value) for value in members}
    last = {types[value].shape[-1:] for value in members}
    if is_vector and (sizes <= {1} or channels == 1):
        return "lanes", members
    if len(same) == len(last) == 1 and sizes <= {1, channels}:
        return "rows", members
    return "lanes", members
