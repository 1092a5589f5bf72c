"""One maker per family of operators: it draws shapes, attributes and data for any name of the family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.mxnet_judge.draw import Draw
from tests.mxnet_judge.sketch import Operand


@dataclass(frozen=True)
class Drawn:
    """One use of an operator. `outputs` are all it has."""

    operands: Sequence[Operand]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1


Make = Callable[[Draw, str], Drawn]


@dataclass(frozen=True)
class Maker:
    """`cases` are drawn for each name."""

    make: Make
    cases: int


MAKERS: dict[str, Maker] = {}


def maker(*names: str, cases: int = 8) -> Callable[[Make], Make]:
    """Register a function that draws uses of each of these operators."""

    def register(make: Make) -> Make:
        for name in names:
            assert name not in MAKERS, f"{name} has two makers"
            MAKERS[name] = Maker(make, cases)
        return make

    return register
