"""Finds the nodes that the outputs need, and the values that lie on an output path.

An output is made from the values on its path by moving elements, by sums and averages, by
softmax and by curves alone; these values keep 16 bits.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import onnx_ir as ir

from mrt.graph.canonical_values import is_constant, name_of
from mrt.quantize.curves.curve import Curve
from mrt.quantize.quotients import Quotients
from mrt.quantize.sums_of_squares import Sums

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
    "Mod",
    "ReduceMax",
}
"""The same in a model that chooses among boxes.

Boxes are computed from offsets, and this computation needs more than 8 bits. So does the best
score of each box, by which boxes are put in order.
"""


def needed_nodes(
    graph: ir.Graph,
    nodes: Sequence[ir.Node],
    curves: Mapping[str, Curve],
    sums: Sums,
    quotients: Quotients,
) -> list[ir.Node]:
    """Return the nodes that outputs need, in order, without those inside a lookup table.

    A sum of squares reads its terms, which may lie inside the table of their squares, and what
    may become a code reads the root of its function.
    """
    functions = quotients.curves | quotients.numerators
    names = {name_of(value) for value in graph.outputs}
    needed: list[ir.Node] = []
    for node in reversed(nodes):
        if names & _output_names(node):
            needed.append(node)
            names.update(_operand_names(node, curves))
            total = sums.get(name_of(node.outputs[0]))
            terms = () if total is None else total.terms
            names.update(map(name_of, terms))
            curve = functions.get(name_of(node.outputs[0]))
            names.update([] if curve is None else [name_of(curve.root)])
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

    def passes_on(node: ir.Node) -> bool:
        return (averages and _averages(node)) or bool(
            _output_names(node) & curves.keys()
        )

    def path(operators: Container[str]) -> frozenset[str]:
        passing = [
            node.op_type in operators or passes_on(node) for node in nodes
        ]
        return _path(graph, nodes, curves, passing)

    names = path(PATH_OPERATORS)
    return path(DETECTOR_OPERATORS) if _is_detector(nodes, names) else names


def _path(
    graph: ir.Graph,
    nodes: Sequence[ir.Node],
    curves: Mapping[str, Curve],
    passing: Sequence[bool],
) -> frozenset[str]:
    """Return the values on a path that goes on to the operands of the nodes that are `passing`."""
    outputs = {name_of(value) for value in graph.outputs}
    on_path = set(outputs)
    read_elsewhere: set[str] = set()
    for node, passes_on in zip(reversed(nodes), reversed(passing), strict=True):
        output_names = _output_names(node)
        is_on_path = (
            bool(output_names & on_path) and not output_names & read_elsewhere
        )
        if is_on_path and passes_on:
            on_path.update(_operand_names(node, curves))
        else:
            read_elsewhere.update(_operand_names(node, curves))
    return frozenset(on_path - (read_elsewhere - outputs))


def _is_detector(nodes: Sequence[ir.Node], path: Container[str]) -> bool:
    """Whether a model chooses among boxes: by a NonMaxSuppression, or its outputs are rows at the places that a TopK gives.

    `path` are the values that moves alone make the outputs of: experts that a TopK chooses do not lie there.
    """
    operators = {node.op_type for node in nodes}
    if "NonMaxSuppression" in operators:
        return True
    return "TopK" in operators and any(
        name_of(node.outputs[0]) in path and not is_constant(node.inputs[1])
        for node in nodes
        if node.op_type in ("Gather", "GatherElements")
    )


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
