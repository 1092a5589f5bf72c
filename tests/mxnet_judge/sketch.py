"""A graph while it is drawn: rows of a symbol file, and the arrays of its variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.mxnet_judge.case import Case
from tests.mxnet_judge.draw import Draw
from tests.support.mxnet_files import node, symbol_json, variable

Edge = tuple[int, int]


@dataclass(frozen=True)
class Parameter:
    """An operand that is in the parameter file."""

    array: np.ndarray


@dataclass(frozen=True)
class Label:
    """An operand that only training needs."""

    array: np.ndarray


@dataclass(frozen=True)
class Integers:
    """An operand of floats that a Cast makes integers, as some operators of MXNet want their indices."""

    array: np.ndarray
    dtype: str = "int32"


Operand = np.ndarray | Parameter | Label | Integers


class Sketch:
    """Nodes are added inputs first; the names of variables are those of their groups, numbered."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.rows: list[dict[str, Any]] = []
        self.inputs: dict[str, np.ndarray] = {}
        self.parameters: dict[str, np.ndarray] = {}
        self.labels: dict[str, np.ndarray] = {}

    def add(self, operand: Operand) -> Edge:
        """A variable."""
        match operand:
            case Parameter(array):
                return self._variable("parameter", self.parameters, array)
            case Label(array):
                return self._variable("label", self.labels, array)
            case Integers(array, dtype):
                return self.node(
                    "Cast",
                    [self._variable("data", self.inputs, array)],
                    {"dtype": dtype},
                )
        return self._variable("data", self.inputs, operand)

    def _variable(
        self, word: str, group: dict[str, np.ndarray], array: np.ndarray
    ) -> Edge:
        name = f"{word}{len(group)}"
        group[name] = array
        self.rows.append(variable(name))
        return len(self.rows) - 1, 0

    def node(
        self,
        operator: str,
        inputs: Sequence[Edge],
        attributes: Mapping[str, Any] | None = None,
    ) -> Edge:
        """The first output of a new node."""
        self.rows.append(
            node(
                operator,
                f"node{len(self.rows)}",
                inputs,
                **self.draw.texts(attributes or {}),
            )
        )
        return len(self.rows) - 1, 0

    def case(self, name: str, heads: Sequence[Edge]) -> Case:
        return Case(
            name,
            symbol_json(self.rows, list(heads)),
            self.inputs,
            self.parameters,
            self.labels,
        )
