"""Unrolls LSTM, GRU and RNN with a known number of steps into copies of their cell."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.graph.patch import Patch
from mrt.graph.values import constant, first, int_attribute, nodes, operand
from mrt.rewrite.recurrent.cells import Cell, GruCell, LstmCell, RnnCell, State
from mrt.rewrite.recurrent.parameters import (
    GATES,
    Direction,
    Recurrent,
    read_recurrent,
)


def lower_lstm_gru_rnn(model: ir.Model) -> int:
    """LSTM, GRU or RNN -> its cell for each step and direction, then Concat.

    Writes the outputs that are read. Applies when steps are known and parameters
    constant; other nodes are refused here, by name. Equal but for the order of sums.
    """
    found = [(node, read_recurrent(node)) for node in nodes(model, *GATES)]
    problems = [
        f"{node.name or node.outputs[0].name} ({node.op_type}): {what}"
        for node, what in found
        if isinstance(what, str)
    ]
    if problems:
        raise Unsupported(problems)
    for _, what in found:
        assert isinstance(what, Recurrent)
        _unroll(model.graph, what)
    return len(found)


def _unroll(graph: ir.Graph, what: Recurrent) -> None:
    node = what.node
    patch = Patch(node)
    rows = _rows(patch, what)
    runs = [
        _run(patch, what, index, direction, rows)
        for index, direction in enumerate(what.directions)
    ]
    last = [
        run[0 if direction.reverse else -1]
        for run, direction in zip(runs, what.directions, strict=True)
    ]
    for index, output in enumerate(node.outputs):
        if not output.name or (
            not output.uses() and not output.is_graph_output()
        ):
            continue
        made = Patch(node, output)
        if index == 0:
            made.take_over(_all_steps(made, what, runs))
        else:
            made.take_over(
                _last_step(
                    made,
                    what,
                    [
                        state.hidden if index == 1 else state.cell
                        for state in last
                    ],
                )
            )
    graph.remove(node, safe=True)


def _rows(patch: Patch, what: Recurrent) -> ir.Value:
    """Return the operand of all steps, [steps * batch, inputs]."""
    x = first(what.node)
    if what.batches_first:
        x = patch.add("Transpose", x, perm=(1, 0, 2))
    shape = patch.axes((what.steps * what.batch, what.inputs), "rows")
    return patch.add("Reshape", x, shape, allowzero=0)


def _run(
    patch: Patch,
    what: Recurrent,
    index: int,
    direction: Direction,
    rows: ir.Value,
) -> list[State]:
    """Return the state after each step of one direction, in the order of time."""
    cell = _cell(patch, what, direction, ("forward", "reverse")[index], rows)
    state = State(*(_initial(patch, what, index, place) for place in (5, 6)))
    states = []
    steps = range(what.steps)
    for step in reversed(steps) if direction.reverse else steps:
        state = cell.step(step, state)
        states.append(state)
    return states[::-1] if direction.reverse else states


def _cell(
    patch: Patch,
    what: Recurrent,
    direction: Direction,
    name: str,
    rows: ir.Value,
) -> Cell:
    if what.node.op_type == "GRU":
        reset_behind = bool(int_attribute(what.node, "linear_before_reset", 0))
        return GruCell(
            patch, what, direction, name, rows, reset_behind=reset_behind
        )
    return {"LSTM": LstmCell, "RNN": RnnCell}[what.node.op_type](
        patch, what, direction, name, rows
    )


def _initial(
    patch: Patch, what: Recurrent, index: int, place: int
) -> ir.Value | None:
    """Return the initial state [batch, hidden] of a direction; None for zeros."""
    value = operand(what.node, place)
    known = constant(value)
    if value is None or (known is not None and not known.any()):
        return None
    axis, shape = int(what.batches_first), (what.batch, what.hidden)
    if known is not None:
        return patch.constant(
            np.take(known, index, axis).reshape(shape), "initial"
        )
    own = patch.slice(value, axis, index, index + 1)
    return patch.add("Reshape", own, patch.axes(shape, "shape"), allowzero=0)


def _all_steps(
    patch: Patch, what: Recurrent, runs: list[list[State]]
) -> ir.Value:
    """Return Y: [steps, directions, batch, hidden], or batch first."""
    shape = (what.steps, 1, what.batch, what.hidden)
    joined = [
        patch.add("Concat", *(state.hidden for state in run), axis=0)
        for run in runs
    ]
    wide = [
        patch.add("Reshape", value, patch.axes(shape, "shape"), allowzero=0)
        for value in joined
    ]
    whole = wide[0] if len(wide) == 1 else patch.add("Concat", *wide, axis=1)
    return (
        patch.add("Transpose", whole, perm=(2, 0, 1, 3))
        if what.batches_first
        else whole
    )


def _last_step(
    patch: Patch, what: Recurrent, states: list[ir.Value | None]
) -> ir.Value:
    """Return Y_h or Y_c: [directions, batch, hidden], or batch first."""
    shape = (1, what.batch, what.hidden)
    wide = [
        patch.add("Reshape", value, patch.axes(shape, "shape"), allowzero=0)
        for value in states
    ]
    whole = wide[0] if len(wide) == 1 else patch.add("Concat", *wide, axis=0)
    return (
        patch.add("Transpose", whole, perm=(1, 0, 2))
        if what.batches_first
        else whole
    )
