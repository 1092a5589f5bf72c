"""Which classes of computations are worth folding: found by trying, judged by the number of instructions."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from cvm.errors import Invalid
from cvm.proof.validate import Proven, validate
from mrt.fold.folded import Folded
from mrt.fold.lanes import Lanes
from mrt.fold.tables import compose_tables
from mrt.fold.units import Class, Levels, Unit, units_of
from mrt.fold.writer import Writer

RANKS = (2, 4)  # of vectors: that of products, that of grouped convolutions
MOST_ROUNDS = 8
NOTHING: frozenset[Class] = frozenset()


@dataclass(frozen=True)
class _Attempt(Folded):
    """The program that results if the classes in `refused` stay unfolded."""

    rank: int
    refused: frozenset[Class]


def fold(form: Proven) -> Folded:
    """Fold a program again and again, while that takes instructions away."""
    first = form.program.first_instruction
    numbers = range(first, first + len(form.program.instructions))
    best = Folded(form.program, {number: number for number in numbers})
    for _ in range(MOST_ROUNDS):
        composed = compose_tables(validate(best.program)).of(best)
        folded = _once(validate(composed.program))
        if folded is None or folded.count >= best.count:
            break
        best = folded.of(composed)
    return best


def _once(form: Proven) -> Folded | None:
    """Fold all classes, then leave one after another unfolded, and keep what has fewer instructions.

    None if nothing that was tried can be proven.
    """
    lanes = Lanes(form)
    levels = Levels.of(lanes)
    every = _classes(units_of(levels, NOTHING))
    best = _best(
        _attempt(lanes, levels, rank, refused)
        for rank in RANKS
        for refused in dict.fromkeys((NOTHING, frozenset(every)))
    )
    if best is None:
        return None
    for class_ in every:
        other = best.refused ^ {class_}
        best = _best((best, _attempt(lanes, levels, best.rank, other))) or best
    return best


def _best(attempts: Iterable[_Attempt | None]) -> _Attempt | None:
    """The first of those with the fewest instructions."""
    tried = [attempt for attempt in attempts if attempt is not None]
    return min(tried, key=lambda attempt: attempt.count, default=None)


def _classes(units: Iterable[Unit]) -> list[Class]:
    return list(dict.fromkeys(unit.class_ for unit in units if unit.class_))


def _attempt(
    lanes: Lanes, levels: Levels, rank: int, refused: Set[Class]
) -> _Attempt | None:
    """The program without folds of these classes; None if an interval would be too wide to be proven."""
    writer = Writer(lanes, rank)
    try:
        folded = writer.write(units_of(levels, refused))
    except Invalid:
        return None
    return _Attempt(folded.program, folded.sources, rank, frozenset(refused))
