"""Outputs that hold no classes, whatever their shape: an output along time, or a state of a recurrence."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from mrt.graph.states import states_of

CLASS_FREE = "mrt.class_free"
"""Key of the model's note: the names of the outputs that a front end found to hold no classes."""


def set_class_free(model: ir.Model, names: Iterable[str]) -> None:
    """Note that these outputs hold no classes."""
    model.meta[CLASS_FREE] = frozenset(names)


def class_free(model: ir.Model) -> frozenset[str]:
    """Return the names of the outputs that hold no classes, the states that are inputs of a next step among them."""
    noted: frozenset[str] = model.meta.get(CLASS_FREE, frozenset())
    return noted | frozenset(states_of(model).values())
