"""Shapes and types of the values that passes made."""

from __future__ import annotations

import logging

import onnx_ir as ir
from onnx_ir.passes.common import shape_inference


def infer_shapes(model: ir.Model) -> None:
    """Give every value the shape and type that ONNX's own inference finds; a known shape is never lost.

    Where all are known, inference, which copies the whole model, has nothing to say. What stays unknown is for
    `canonical.check` to refuse; the library's own warning about it is kept quiet.
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
        shape_inference.infer_shapes(model)
    finally:
        logger.disabled = was


def _is_known(value: ir.Value) -> bool:
    return (
        value.dtype is not None
        and value.shape is not None
        and value.shape.is_static()
    )
