"""Values that calibration measures as one, such as the states of a recurrence."""

from __future__ import annotations

from collections.abc import Set

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.graph.notes import shared_range_of


def groups_of(model: ir.Model) -> list[list[str]]:
    """The names of values that share a range, for each range that is shared."""
    groups: dict[str, list[str]] = {}
    values = [value for node in model.graph for value in node.outputs]
    for value in (*model.graph.inputs, *values):
        shared = shared_range_of(value)
        if shared is not None:
            groups.setdefault(shared, []).append(name_of(value))
    return list(groups.values())


def completed(names: Set[str], model: ir.Model) -> set[str]:
    """The names, with all that share a range with one of them."""
    all_names = set(names)
    for group in groups_of(model):
        if all_names.intersection(group):
            all_names.update(group)
    return all_names
