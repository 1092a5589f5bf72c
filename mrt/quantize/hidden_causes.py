"""Causes of noise that no layer's own noise shows: parts that share a scale, and rows that change places.

Advice on a program that is not good names them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, is_constant, name_of
from mrt.graph.states import states_of
from mrt.graph.values import first
from mrt.quantize.file_formats import file_formats
from mrt.quantize.lowering_ranges import ranges_for_lowering
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.output_paths import output_path_values
from mrt.quantize.uneven_outputs import UNEVEN, uneven_outputs
from mrt.table.table import CalibrationTable, Ranges


def hidden_causes(
    model: ir.Model, table: CalibrationTable, options: QuantizeOptions
) -> list[str]:
    """Return a sentence for each of the two causes that apply to a model."""
    causes: list[str] = []
    shared = _worst_shared_scale(model, table, options)
    if shared is not None:
        causes.append(str(shared))
    chosen = _chosen_rows(model.graph)
    if chosen:
        causes.append(
            "its outputs are rows in the order of their scores, so that rows whose scores are close may change places; "
            f"--outputs {','.join(chosen)} compares them before they are put in order"
        )
    return causes


@dataclass(frozen=True)
class _SharedScale:
    """A value with one scale, its size, and the part of it that has the fewest steps."""

    name: str
    size: float
    part: str
    size_of_part: float

    @property
    def ratio(self) -> float:
        return self.size / self.size_of_part

    def __str__(self) -> str:
        return (
            f"'{self.name}' has one scale for numbers up to {self.size:.3g}, "
            f"which leaves little of its part '{self.part}', up to {self.size_of_part:.3g}"
        )


def _worst_shared_scale(
    model: ir.Model, table: CalibrationTable, options: QuantizeOptions
) -> _SharedScale | None:
    """Return the most uneven Concat, or Where that fills with a constant, of those that do not have 30 bits."""
    graph, nodes = model.graph, list(model.graph)
    formats, states = file_formats(graph, nodes), states_of(model).values()
    ranges = ranges_for_lowering(graph, table, formats, states).ranges
    table = replace(table, ranges=ranges)
    apart = uneven_outputs(graph, table, options)
    apart |= table.decisions.channel_scales.keys()
    shared_scales = [
        shared
        for node in nodes
        if node.op_type in ("Concat", "Where")
        and node.outputs[0].dtype == ir.DataType.FLOAT
        and name_of(node.outputs[0]) not in apart
        for shared in _shared_scales(node, ranges)
        if shared.ratio > UNEVEN
    ]
    return max(shared_scales, key=lambda shared: shared.ratio, default=None)


def _shared_scales(node: ir.Node, ranges: Ranges) -> Iterator[_SharedScale]:
    joined_range = ranges.get(name_of(node.outputs[0]))
    operands = node.inputs[1:] if node.op_type == "Where" else node.inputs
    if joined_range is None:
        return
    if node.op_type == "Where" and not any(map(_is_fill, operands)):
        return
    for operand in operands:
        range_ = None if operand is None else ranges.get(name_of(operand))
        if range_ is not None and range_.magnitude > 0:
            yield _SharedScale(
                name_of(node.outputs[0]),
                joined_range.magnitude,
                name_of(operand),
                range_.magnitude,
            )


def _is_fill(value: ir.Value | None) -> bool:
    array = constant_of(value)
    return array is not None and np.ptp(array) == 0


def _chosen_rows(graph: ir.Graph) -> list[str]:
    """Return the names of the rows among which a TopK chooses those that outputs are made of, and of its scores."""
    nodes = list(graph)
    path = output_path_values(graph, nodes, {})
    behind: set[ir.Value | None] = set()
    rows: list[ir.Value] = []
    scores: list[ir.Value] = []
    for node in nodes:
        source = first(node)
        is_chosen_here = source not in behind and _is_float(source)
        if node.op_type == "TopK" and is_chosen_here:
            scores.append(source)
        elif _looks_up(node, behind, path) and is_chosen_here:
            rows.append(source)
        if node.op_type == "TopK" or behind.intersection(node.inputs):
            behind.update(node.outputs)
    if not rows:
        return []
    # A model that looks up its scores, too, chooses by the best class of each.
    names = map(name_of, rows if len(set(rows)) > 1 else rows + scores)
    return list(dict.fromkeys(names))


def _looks_up(
    node: ir.Node, behind: Container[ir.Value | None], path: Container[str]
) -> bool:
    """Whether outputs are made of what a node reads at the places that a TopK gives."""
    return (
        node.op_type in ("Gather", "GatherElements")
        and node.inputs[1] in behind
        and name_of(node.outputs[0]) in path
    )


def _is_float(value: ir.Value) -> bool:
    return value.dtype == ir.DataType.FLOAT and not is_constant(value)
