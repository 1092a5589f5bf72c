"""The differences that stay, each with its reason: documented refusals of the front end, and bugs of MXNet."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.mxnet_judge.case import Case

REFUSES = ("mrt refuses",)
ACCEPTS = ("mxnet refuses",)
DIFFERS = ("differ",)


@dataclass(frozen=True)
class Known:
    """Holds for cases of these outcomes that use one of `operators`, where `detail` is found in what was said."""

    why: str
    operators: tuple[str, ...]
    outcomes: tuple[str, ...]
    detail: str = ""
    where: Callable[[dict[str, str]], bool] = lambda _: True

    def fits(self, case: Case, detail: str) -> bool:
        """Whether a node of the case has one of the operators, with attributes for which this is known."""
        if not re.search(self.detail, detail):
            return False
        rows = [row for row in case.symbol["nodes"] if row["op"] in self.operators]
        return any(self.where(row["attrs"]) for row in rows)


KNOWN: tuple[Known, ...] = ()
