"""Finds the nodes that the outputs need, and the values that lie on an output path.

An output is made from the values on its path by moving elements, by sums and averages, by
softmax and by curves alone; these values keep 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from mrt.graph.canonical_values import is_constant, name_of
from mrt.quantize.curves.curve import Curve

PATH_OPERATORS = frozenset(
    {
        "Reshape",
        "Transpose",
        "Slice",
        "Concat",
        "Softmax",
        "Relu",
        "Clip",
        "Neg",
        "Pad",
        "ArgMax",
        "TopK",
        "Gather",
        "GatherElements",
        "Cast",
    }
)
"""Operators whose inputs are on an output path if their output is."""

DETECTOR_OPERATORS = PATH_OPERATORS | {
    "NonMaxSuppression",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Min",
    "Max",
    "Where",
}
"""The same in a model that chooses among boxes.

Boxes are computed from offsets, and this computation needs more than 8 bits.
"""


def needed_nodes(
    graph: ir.Graph, nodes: Sequence[ir.Node], curves: Mapping[str, Curve]
) -> list[ir.Node]:
    """Return the nodes that outputs need, in order, without those inside a lookup table."""
    names = {name_of(value) for value in graph.outputs}
    needed: list[ir.Node] = []
    for node in reversed(nodes):
        if names & _output_names(node):
            needed.append(node)
            names.update(_operand_names(node, curves))
    return needed[::-1]


def output_path_values(
    graph: ir.Graph,
    nodes: Sequence[ir.Node],
    curves: Mapping[str, Curve],
    *,
    averages: bool = True,
) -> frozenset[str]:
    """Return the names of the values that lie on an output path and have no other reader.

    Unless `averages`, sums and averages end a path: scales that are powers of two cannot
    take up a factor, and a product of 16 bits is too wide for machines of few bits.
    """
    outputs = {name_of(value) for value in graph.outputs}
    is_detector = any(node.op_type == "NonMaxSuppression" for node in nodes)
    operators = DETECTOR_OPERATORS if is_detector else PATH_OPERATORS
    on_path = set(outputs)
    read_elsewhere: set[str] = set()
    for node in reversed(nodes):
        made = _output_names(node)
        is_on_path = bool(made & on_path) and not made & read_elsewhere
        passes_on = node.op_type in operators
        passes_on |= averages and _averages(node)
        passes_on |= bool(made & curves.keys())
        if is_on_path and passes_on:
            on_path.update(_operand_names(node, curves))
        else:
            read_elsewhere.update(_operand_names(node, curves))
    return frozenset(on_path - (read_elsewhere - outputs))


def _averages(node: ir.Node) -> bool:
    """Whether a node is a sum over axes, or multiplies by a constant, which changes a scale at most."""
    constants = [is_constant(value) for value in node.inputs]
    if node.op_type == "Mul":
        return any(constants)
    return node.op_type == "ReduceSum"


def _output_names(node: ir.Node) -> set[str]:
    return {name_of(value) for value in node.outputs}


def _operand_names(node: ir.Node, curves: Mapping[str, Curve]) -> list[str]:
    """Return the names of the values that the program reads for a node.

    A lookup table reads the root of its curve.
    """
    curve = curves.get(name_of(node.outputs[0]))
    if curve is not None:
        return [name_of(curve.root)]
    return [name_of(value) for value in node.inputs if value is not None]
