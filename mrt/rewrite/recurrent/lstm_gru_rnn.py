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
    recurrents = [(node, read_recurrent(node)) for node in nodes(model, *GATES)]
    problems = [
        f"{node.name or node.outputs[0].name} ({node.op_type}): {recurrent}"
        for node, recurrent in recurrents
        if isinstance(recurrent, str)
    ]
    if problems:
        raise Unsupported(problems)
    for _, recurrent in recurrents:
        assert isinstance(recurrent, Recurrent)
        _unroll(model.graph, recurrent)
    return len(recurrents)


def _unroll(graph: ir.Graph, recurrent: Recurrent) -> None:
    node = recurrent.node
    patch = Patch(node)
    rows = _rows(patch, recurrent)
    runs = [
        _run(patch, recurrent, index, direction, rows)
        for index, direction in enumerate(recurrent.directions)
    ]
    last = [
        run[0 if direction.reverse else -1]
        for run, direction in zip(runs, recurrent.directions, strict=True)
    ]
    for index, output in enumerate(node.outputs):
        if not output.name or (
            not output.uses() and not output.is_graph_output()
        ):
            continue
        output_patch = Patch(node, output)
        if index == 0:
            output_patch.take_over(_all_steps(output_patch, recurrent, runs))
        else:
            output_patch.take_over(
                _last_step(
                    output_patch,
                    recurrent,
                    [
                        state.hidden if index == 1 else state.cell
                        for state in last
                    ],
                )
            )
    graph.remove(node, safe=True)


def _rows(patch: Patch, recurrent: Recurrent) -> ir.Value:
    """Return the operand of all steps, [steps * batch, inputs]."""
    x = first(recurrent.node)
    if recurrent.batches_first:
        x = patch.add("Transpose", x, perm=(1, 0, 2))
    shape = patch.axes(
        (recurrent.steps * recurrent.batch, recurrent.inputs), "rows"
    )
    return patch.add("Reshape", x, shape, allowzero=0)


def _run(
    patch: Patch,
    recurrent: Recurrent,
    index: int,
    direction: Direction,
    rows: ir.Value,
) -> list[State]:
    """Return the state after each step of one direction, in the order of time."""
    cell = _cell(
        patch, recurrent, direction, ("forward", "reverse")[index], rows
    )
    state = State(
        *(_initial(patch, recurrent, index, place) for place in (5, 6))
    )
    states = []
    steps = range(recurrent.steps)
    for step in reversed(steps) if direction.reverse else steps:
        state = cell.step(step, state)
        states.append(state)
    return states[::-1] if direction.reverse else states


def _cell(
    patch: Patch,
    recurrent: Recurrent,
    direction: Direction,
    name: str,
    rows: ir.Value,
) -> Cell:
    if recurrent.node.op_type == "GRU":
        reset_behind = bool(
            int_attribute(recurrent.node, "linear_before_reset", 0)
        )
        return GruCell(
            patch, recurrent, direction, name, rows, reset_behind=reset_behind
        )
    return {"LSTM": LstmCell, "RNN": RnnCell}[recurrent.node.op_type](
        patch, recurrent, direction, name, rows
    )


def _initial(
    patch: Patch, recurrent: Recurrent, index: int, place: int
) -> ir.Value | None:
    """Return the initial state [batch, hidden] of a direction; None for zeros."""
    value = operand(recurrent.node, place)
    state = constant(value)
    if value is None or (state is not None and not state.any()):
        return None
    axis = int(recurrent.batches_first)
    shape = (recurrent.batch, recurrent.hidden)
    if state is not None:
        return patch.constant(
            np.take(state, index, axis).reshape(shape), "initial"
        )
    sliced = patch.slice(value, axis, index, index + 1)
    return patch.add("Reshape", sliced, patch.axes(shape, "shape"), allowzero=0)


def _all_steps(
    patch: Patch, recurrent: Recurrent, runs: list[list[State]]
) -> ir.Value:
    """Return Y: [steps, directions, batch, hidden], or batch first."""
    shape = (recurrent.steps, 1, recurrent.batch, recurrent.hidden)
    joined = [
        patch.add("Concat", *(state.hidden for state in run), axis=0)
        for run in runs
    ]
    wide = [
        patch.add("Reshape", value, patch.axes(shape, "shape"), allowzero=0)
        for value in joined
    ]
    stacked = wide[0] if len(wide) == 1 else patch.add("Concat", *wide, axis=1)
    return (
        patch.add("Transpose", stacked, perm=(2, 0, 1, 3))
        if recurrent.batches_first
        else stacked
    )


def _last_step(
    patch: Patch, recurrent: Recurrent, states: list[ir.Value | None]
) -> ir.Value:
    """Return Y_h or Y_c: [directions, batch, hidden], or batch first."""
    shape = (1, recurrent.batch, recurrent.hidden)
    wide = [
        patch.add("Reshape", value, patch.axes(shape, "shape"), allowzero=0)
        for value in states
    ]
    stacked = wide[0] if len(wide) == 1 else patch.add("Concat", *wide, axis=0)
    return (
        patch.add("Transpose", stacked, perm=(1, 0, 2))
        if recurrent.batches_first
        else stacked
    )
