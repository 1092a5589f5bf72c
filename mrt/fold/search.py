"""Which classes of computations are worth folding: found by trying, judged by the number of instructions."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from cvm.errors import Invalid
from cvm.program import Program
from cvm.proof.validate import Proven, validate
from mrt.fold.lanes import Lanes
from mrt.fold.units import Class, Levels, Unit, units_of
from mrt.fold.writer import Writer

RANKS = (2, 4)
MOST_ROUNDS = 8


@dataclass(frozen=True)
class Folded:
    """A folded program, and the old instruction for which each of its instructions stands."""

    program: Program
    sources: dict[int, int]

    @property
    def count(self) -> int:
        """The number of its instructions."""
        return len(self.program.instructions)


def fold(form: Proven) -> Folded:
    """Fold a program again and again, while that takes instructions away."""
    program = form.program
    first = program.first_instruction
    numbers = range(first, first + len(program.instructions))
    best = Folded(program, {number: number for number in numbers})
    for _ in range(MOST_ROUNDS):
        found = _once(validate(best.program))
        if found.count >= best.count:
            break
        sources = {new: best.sources[old] for new, old in found.sources.items()}
        best = Folded(found.program, sources)
    return best


def _once(form: Proven) -> Folded:
    lanes = Lanes(form)
    levels = Levels.of(lanes)
    tries = [_search(lanes, levels, rank) for rank in RANKS]
    return min(tries, key=lambda found: found.count)


def _search(lanes: Lanes, levels: Levels, rank: int) -> Folded:
    """Refuse one class after another, and keep the refusals that leave fewer instructions."""
    classes = _classes(units_of(levels, frozenset()))
    refused: frozenset[Class] = frozenset()
    best = _attempt(lanes, levels, rank, refused)
    for start in (refused, frozenset(classes)):
        chosen, found = start, _attempt(lanes, levels, rank, start)
        for class_ in classes:
            other = chosen ^ {class_}
            tried = _attempt(lanes, levels, rank, other)
            if tried is not None and (found is None or tried.count < found.count):
                chosen, found = other, tried
        if found is not None and (best is None or found.count < best.count):
            best = found
    assert best is not None  # nothing folded is the program itself
    return best


def _classes(units: list[Unit]) -> list[Class]:
    return list(dict.fromkeys(unit.class_ for unit in units if unit.class_))


def _attempt(
    lanes: Lanes, levels: Levels, rank: int, refused: Set[Class]
) -> Folded | None:
    """The program without folds of these classes; None if it cannot be proven."""
    writer = Writer(lanes, rank)
    try:
        program = writer.write(units_of(levels, refused))
    except Invalid:
        return None
    written = writer.builder.written
    numbers = enumerate(written, program.first_instruction)
    first = lanes.form.program.first_instruction
    return Folded(program, {new: writer.sources.get(handle, first) for new, handle in numbers})
