"""Infer shapes and types of the values that passes made."""

from __future__ import annotations

import logging

import onnx_ir as ir
from onnx_ir.passes.common import shape_inference


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
        shape_inference.infer_shapes(model)
    finally:
        logger.disabled = was


def _is_known(value: ir.Value) -> bool:
    return (
        value.dtype is not None
        and value.shape is not None
        and value.shape.is_static()
    )
