"""Infer shapes and types of the values that passes made."""

from __future__ import annotations

import logging

import onnx_ir as ir
from onnx_ir.passes.common import shape_inference

from mrt.graph.known_lists import are_bounded

LARGEST_CONSTANT = 1000  # bytes; the library takes a larger one for unknown


def infer_shapes(model: ir.Model) -> None:
    """Set the shape and type of every value by ONNX's own inference; no known shape is lost.

    If all are known, inference is skipped, because it copies the entire model. Values
    that stay unknown are refused by `canonical.check`; the library's own warning about
    them is suppressed.
    """
    if all(
        _is_known(value)
        for node in model.graph.all_nodes()
        for value in node.outputs
    ):
        return
    logger = logging.getLogger(shape_inference.__name__)
    was, logger.disabled = logger.disabled, True
    try:
        shape_inference.infer_shapes(model, data_prop=_lists_are_bounded(model))
    finally:
        logger.disabled = was


def _lists_are_bounded(model: ir.Model) -> bool:
    """Return whether the lists from which shapes may follow are small enough to be computed."""
    constants = {
        value.name or "": tensor.size
        for value in model.graph.initializers.values()
        if (tensor := value.const_value) is not None
        and len(tensor.shape) < 2
        and tensor.nbytes <= LARGEST_CONSTANT
    }
    steps = (
        (
            node.op_type,
            [value.name or "" for value in node.inputs if value is not None],
            [value.name or "" for value in node.outputs],
        )
        for node in model.graph.all_nodes()
    )
    return are_bounded(steps, constants)


def _is_known(value: ir.Value) -> bool:
    return (
        value.dtype is not None
        and value.shape is not None
        and value.shape.is_static()
    )
