"""Infer shapes and types of the values that passes made."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import onnx_ir as ir
from onnx_ir.convenience import create_value_mapping
from onnx_ir.passes.common import shape_inference

from mrt.graph.known_lists import are_bounded

LARGEST_CONSTANT = 1000  # bytes; the library takes a larger one for unknown


def infer_shapes(model: ir.Model) -> None:
    """Set the shape and type of every value by ONNX's own inference; no known shape is lost.

    The inference copies what it is given, which is the unknown part of the graph. Values
    that stay unknown are refused by `canonical.check`; the library's own warning about
    them is suppressed.
    """
    unknown = [
        node
        for node in model.graph.all_nodes()
        if not all(map(_is_known, node.outputs))
    ]
    if not unknown:
        return
    if _has_bodies(model):
        _infer(model)
        return
    part = _part_of(model.graph, unknown)
    _infer(ir.Model(part, ir_version=model.ir_version))
    inferred = create_value_mapping(part)
    for node in unknown:
        for value in node.outputs:
            _take(value, inferred.get(value.name or ""))


def _has_bodies(model: ir.Model) -> bool:
    """Return whether nodes have graphs of their own, which may read any value around them."""
    return bool(model.functions) or any(
        attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
        for node in model.graph
        for attribute in node.attributes.values()
    )


def _part_of(graph: ir.Graph, unknown: Iterable[ir.Node]) -> ir.Graph:
    """Return a copy of the unknown nodes, and of those that make lists, such as shapes, for them."""
    chosen: set[ir.Node] = set()
    waiting = list(unknown)
    while waiting:
        node = waiting.pop()
        if node in chosen:
            continue
        chosen.add(node)
        waiting += [
            producer
            for value in node.inputs
            if value is not None
            and (producer := value.producer()) is not None
            and (value.shape is None or len(value.shape) < 2)
        ]
    nodes = [node for node in graph if node in chosen]
    made = [value for node in nodes for value in node.outputs if value.name]
    read = {
        value: None
        for node in nodes
        for value in node.inputs
        if value is not None and value.producer() not in chosen
    }
    constants = [it for it in read if it.is_initializer()]
    return ir.GraphView(
        [it for it in read if not it.is_initializer()],
        made,
        nodes=nodes,
        initializers=constants,
        opset_imports=graph.opset_imports,
        name=graph.name,
    ).clone()


def _take(value: ir.Value, inferred: ir.Value | None) -> None:
    if inferred is None:
        return
    if inferred.shape is not None:
        value.shape = inferred.shape
    if inferred.dtype is not None:
        value.dtype = inferred.dtype


def _infer(model: ir.Model) -> None:
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
    """Whether nothing is to be inferred; an output that is left out has no name."""
    return not value.name or (
        value.dtype is not None
        and value.shape is not None
        and value.shape.is_static()
    )
