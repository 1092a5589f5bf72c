"""Writes one step of an LSTM, GRU or RNN as Gemm, Add, Mul and activations.

All steps share weights and ranges. What they make of the input alone is one product of
all steps, of which each takes its rows: its weights are read once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.notes import set_shared_range
from mrt.graph.patch import Patch
from mrt.graph.values import Array, constant
from mrt.rewrite.linear.affine import to_single
from mrt.rewrite.recurrent.parameters import Direction, Recurrent


@dataclass(frozen=True)
class State:
    """The state that one step passes to the next; None stands for zeros."""

    hidden: ir.Value | None
    cell: ir.Value | None = None


class Cell(ABC):
    """Writes the steps of one direction; all steps use the same constants."""

    def __init__(
        self,
        patch: Patch,
        recurrent: Recurrent,
        direction: Direction,
        name: str,
        rows: ir.Value,
    ) -> None:
        self.patch, self.hidden, self.batch = (
            patch,
            recurrent.hidden,
            recurrent.batch,
        )
        self._steps, self._rows = recurrent.steps, rows
        self._products: dict[tuple[int, int], ir.Value] = {}
        self.direction, self._name, self._clip = direction, name, recurrent.clip
        self._constants: dict[object, ir.Value] = {}

    @abstractmethod
    def step(self, step: int, state: State) -> State:
        """Return the state after the step of this number."""

    def activate(self, index: int, x: ir.Value) -> ir.Value:
        """Apply one of the direction's activations."""
        return self.share_range(
            self.direction.activations[index](self.patch, x),
            f"activation{index}",
        )

    def from_input(
        self, step: int, first: int, stop: int, *, both: bool = True
    ) -> ir.Value:
        """Return x @ W.T + b of some gates, [batch, gates * hidden].

        b includes the bias of the recurrence if `both`.
        """
        role = f"input{first}to{stop}"
        if (first, stop) not in self._products:
            input_bias = self.direction.bias[0]
            recurrence_bias = self.direction.bias[1]
            bias = input_bias + recurrence_bias if both else input_bias
            product = self._product(
                self._rows, self.direction.weights, bias, (first, stop)
            )
            self._products[first, stop] = self.share_range(product, role)
        product = self._products[first, stop]
        if self._steps == 1:
            return product
        rows = self._slice(
            product, 0, step * self.batch, (step + 1) * self.batch
        )
        return self.share_range(rows, role)

    def from_state(
        self, state: ir.Value, first: int, stop: int, *, bias: bool = False
    ) -> ir.Value:
        """Return h @ R.T of some gates, plus the bias of the recurrence if `bias`."""
        recurrence_bias = self.direction.bias[1]
        return self._product(
            state,
            self.direction.recurrence,
            recurrence_bias if bias else np.zeros_like(recurrence_bias),
            (first, stop),
        )

    def preactivation(
        self, step: int, state: ir.Value | None, first: int, stop: int
    ) -> ir.Value:
        """Return x @ W.T + h @ R.T + b of some gates."""
        total = self.from_input(step, first, stop)
        if state is not None:
            total = self.patch.add(
                "Add", total, self.from_state(state, first, stop)
            )
        return self.share_range(total, f"gates{first}")

    def clipped(self, x: ir.Value) -> ir.Value:
        """Clip the operand of an activation, if the node has a clip."""
        if self._clip is None:
            return x
        bounds = (
            self.constant(np.array(bound, np.float32), role)
            for bound, role in ((-self._clip, "low"), (self._clip, "high"))
        )
        return self.share_range(self.patch.add("Clip", x, *bounds), "clipped")

    def gates(self, value: ir.Value, first: int, stop: int) -> ir.Value:
        """Slice some of the gates from [batch, gates * hidden]."""
        sliced = self._slice(value, 1, first * self.hidden, stop * self.hidden)
        return self.share_range(sliced, f"gates{first}to{stop}")

    def _slice(
        self, value: ir.Value, axis: int, start: int, end: int
    ) -> ir.Value:
        bounds = {"starts": start, "ends": end, "axes": axis, "steps": 1}
        operands = (
            self.constant(np.array([number], np.int64), role)
            for role, number in bounds.items()
        )
        return self.patch.add("Slice", value, *operands)

    def constant(self, array: Array, role: str) -> ir.Value:
        """Return a constant for all steps; equal constants are one initializer."""
        key = (role, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.patch.constant(
                array, f"{self._name}.{role}"
            )
        return self._constants[key]

    def share_range(self, value: ir.Value, role: str) -> ir.Value:
        """Give a value the same range as in other steps.

        Equal ranges let the steps share weights and tables.
        """
        set_shared_range(value, f"{self.patch.base}.{self._name}.{role}")
        return value

    def _product(
        self, x: ir.Value, weights: Array, bias: Array, gates: tuple[int, int]
    ) -> ir.Value:
        rows = slice(gates[0] * self.hidden, gates[1] * self.hidden)
        states = constant(x)
        if states is not None:  # a constant state before the first step
            matrix = weights[rows].astype(np.float64)
            sums = [
                [math.fsum(row) for row in (matrix * state).tolist()]
                for state in states.astype(np.float64)
            ]
            return self.constant(
                to_single(np.array(sums) + bias[rows]), "product"
            )
        w = self.constant(np.ascontiguousarray(weights[rows]), "weight")
        b = self.constant(to_single(bias[rows].astype(np.float64)), "bias")
        return self.patch.add(
            "Gemm", x, w, b, transA=0, transB=1, alpha=1.0, beta=1.0
        )


class RnnCell(Cell):
    """h = f(x W + h R + b)."""

    def step(self, step: int, state: State) -> State:
        """One addition and one activation."""
        hidden = self.activate(
            0, self.clipped(self.preactivation(step, state.hidden, 0, 1))
        )
        return State(self.share_range(hidden, "hidden"))


class LstmCell(Cell):
    """An LSTM, with or without peepholes.

    i, o, f = f(x W + h R + b), g = g(x W + h R + b), c = f * c + i * g, h = o * h(c).
    With peepholes, i, o and f depend on c too.
    """

    def step(self, step: int, state: State) -> State:
        """Gates are in the order input, output, forget, cell."""
        add = self.patch.add
        total = self.preactivation(step, state.hidden, 0, 4)
        candidate = self.activate(1, self.clipped(self.gates(total, 3, 4)))
        if self.direction.peepholes is None:
            activated = self.activate(0, self.clipped(self.gates(total, 0, 3)))
            input_gate, output_gate, forget_gate = (
                self.gates(activated, index, index + 1) for index in range(3)
            )
        else:
            input_gate, forget_gate = (
                self._peephole_gate(total, gate, state.cell) for gate in (0, 2)
            )
        cell = add("Mul", input_gate, candidate)
        if state.cell is not None:
            cell = add("Add", add("Mul", forget_gate, state.cell), cell)
        cell = self.share_range(cell, "cell")
        if self.direction.peepholes is not None:
            output_gate = self._peephole_gate(total, 1, cell)
        hidden = add("Mul", output_gate, self.activate(2, cell))
        return State(self.share_range(hidden, "hidden"), cell)

    def _peephole_gate(
        self, total: ir.Value, gate: int, cell: ir.Value | None
    ) -> ir.Value:
        """Return one gate that also depends on the cell, by a factor for each element."""
        seen = self.gates(total, gate, gate + 1)
        if cell is not None and self.direction.peepholes is not None:
            factor = self.constant(
                self.direction.peepholes[gate], f"peephole{gate}"
            )
            seen = self.patch.add(
                "Add", seen, self.patch.add("Mul", cell, factor)
            )
        return self.activate(
            0, self.clipped(self.share_range(seen, f"gate{gate}"))
        )


class GruCell(Cell):
    """A GRU, with the reset before or behind the product with R.

    z, r = f(x W + h R + b), h = (1 - z) * n + z * h. n = g(x W + (r * h) R + b), or if
    `reset_behind`, n = g(x W + b + r * (h R + b)).
    """

    def __init__(
        self,
        patch: Patch,
        recurrent: Recurrent,
        direction: Direction,
        name: str,
        rows: ir.Value,
        *,
        reset_behind: bool,
    ) -> None:
        super().__init__(patch, recurrent, direction, name, rows)
        self._reset_behind = reset_behind

    def step(self, step: int, state: State) -> State:
        """Gates are in the order update, reset, hidden."""
        add, old = self.patch.add, state.hidden
        activated = self.activate(
            0, self.clipped(self.preactivation(step, old, 0, 2))
        )
        update, reset = self.gates(activated, 0, 1), self.gates(activated, 1, 2)
        candidate = self.activate(
            1,
            self.clipped(
                self.share_range(self._candidate(step, old, reset), "proposal")
            ),
        )
        kept = self.share_range(
            add("Sub", self.constant(np.ones((), np.float32), "one"), update),
            "kept",
        )
        new = add("Mul", kept, candidate)
        if old is not None:
            new = add("Add", new, add("Mul", update, old))
        return State(self.share_range(new, "hidden"))

    def _candidate(
        self, step: int, old: ir.Value | None, reset: ir.Value
    ) -> ir.Value:
        add = self.patch.add
        if not self._reset_behind:
            total = self.from_input(step, 2, 3)
            return (
                total
                if old is None
                else add(
                    "Add", total, self.from_state(add("Mul", reset, old), 2, 3)
                )
            )
        if old is None:
            seen = self.constant(
                to_single(
                    self.direction.bias[1][2 * self.hidden :].astype(np.float64)
                ),
                "bias",
            )
        else:
            seen = self.from_state(old, 2, 3, bias=True)
        return add(
            "Add",
            self.from_input(step, 2, 3, both=False),
            add("Mul", reset, seen),
        )
