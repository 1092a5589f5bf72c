"""The canonical graph: what `rewrite` promises and `quantize` relies on.

The graph has opset 20, operators of the default domain (and those of OWN_OPERATORS) in
the forms that CANONICAL_OPERATORS describes, and no subgraphs. Every shape is static,
known and of at most 6 dimensions. Constants are initializers, value names are unique,
and attributes are always written out. Values are float32, except that inputs, and
results of the operators in GIVE_OTHERS, may be integers of any integer type (indices,
counts) or booleans (bool).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.graph.values import MOST_ELEMENTS, OWN_DOMAIN, constant, shape_of
from mrt.rewrite.canonical_forms import (
    TAKE_CONSTANT_FIRST,
    has_canonical_form,
)
from mrt.rewrite.canonical_operators import (
    CANONICAL_OPERATORS,
    GIVE_OTHERS,
    INTEGER_NUMBERS,
    MOST_DIMENSIONS,
    OWN_OPERATORS,
)
from mrt.rewrite.linear.affine import negative_variance
from mrt.rewrite.not_lowered import reason_not_lowered, reason_of_unknown_shape


def check(model: ir.Model) -> None:
    """Raise Unsupported with every node and value that is not in canonical form.

    The message has its name, its operator and the reason. Nodes that wait for the shape
    of one that is named are counted.
    """
    graph = model.graph
    problems = (
        []
        if graph.opset_imports.get("") == 20
        else [f"opset {graph.opset_imports.get('')}; expected 20"]
    )
    names = Counter(value.name for node in graph for value in node.outputs)
    names.update(
        value.name for value in (*graph.inputs, *graph.initializers.values())
    )
    problems += [
        f"value '{name}': {count} values have this name"
        for name, count in names.items()
        if count > 1
    ]
    problems += [
        f"input '{value.name}': {problem}"
        for value in graph.inputs
        if (problem := _value_problem(value, others=True))
    ]
    problems += [
        f"output '{value.name}': it is constant or an input"
        for value in graph.outputs
        if not value.producer()
    ]
    of_nodes, behind = _node_problems(graph)
    if problems or of_nodes:
        raise Unsupported(problems + of_nodes, behind)


def _node_problems(graph: ir.Graph) -> tuple[list[str], str]:
    """Return what is wrong with nodes, and a sentence on those of which only the shape of an operand is."""
    problems: list[str] = []
    wrong, behind = set[ir.Node](), 0
    for node in graph:
        problem = _node_problem(node)
        if problem is None:
            continue
        wrong.add(node)
        if _waits_for(node, wrong) and not _problem_of_numbers(node):
            behind += 1
        else:
            name = node.name or node.outputs[0].name
            problems.append(f"{name} ({node.op_type}): {problem}")
    if not behind:
        return problems, ""
    operators = "1 operator" if behind == 1 else f"{behind:,} operators"
    return (
        problems,
        f"and {operators} behind these, whose shapes follow from them",
    )


def _waits_for(node: ir.Node, wrong: Collection[ir.Node]) -> bool:
    """Return whether an operand's shape is unknown because of a node that is listed, or behind one."""
    return any(
        value is not None
        and shape_of(value) is None
        and value.producer() in wrong
        for value in node.inputs
    )


def _node_problem(node: ir.Node) -> str | None:
    if node.domain == OWN_DOMAIN and node.op_type in OWN_OPERATORS:
        return (
            None
            if shape_of(node.outputs[0]) is not None
            else "the shape of its result is not known"
        )
    if problem := _problem_of_numbers(node):
        return problem
    if node.domain != "" or node.op_type not in CANONICAL_OPERATORS:
        return reason_not_lowered(node)
    if any(
        attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
        for attribute in node.attributes.values()
    ):
        return "it has a graph of its own"
    if len(node.outputs) != 1 and node.op_type != "TopK":
        return f"{len(node.outputs)} outputs; expected one"
    for output in node.outputs:
        if problem := _value_problem(
            output, others=node.op_type in GIVE_OTHERS
        ):
            return problem
    if not node.inputs or node.inputs[0] is None:
        return "it has no first operand"
    if constant(node.inputs[0]) is not None:
        return (
            "its first operand is constant"
            if node.op_type not in TAKE_CONSTANT_FIRST
            else _form_problem(node)
        )
    return _form_problem(node)


def _problem_of_numbers(node: ir.Node) -> str | None:
    """Return what is wrong with the constants of a node, whatever its shapes are."""
    if node.domain == "" and node.op_type == "BatchNormalization":
        return negative_variance(node)
    if node.op_type == "Div":
        return _quotient_of_constants(node)
    return _nan_to_choose(node) if node.op_type == "Where" else None


def _quotient_of_constants(node: ir.Node) -> str | None:
    """Return what is wrong with a quotient of constants, which folding leaves where it is NaN."""
    if any(constant(value) is None for value in node.inputs):
        return None
    return (
        "it divides 0 by 0 in a constant, which gives NaN, and no integer stands for it; "
        "end in front of it with --outputs"
    )


def _nan_to_choose(node: ir.Node) -> str | None:
    """Return what is wrong with a Where that may choose NaN out of a constant."""
    for value in node.inputs[1:]:
        array = constant(value)
        if (
            array is not None
            and array.dtype.kind == "f"
            and np.isnan(array).any()
        ):
            name = "" if value is None else value.name
            return (
                f"it may choose NaN of '{name}', which no integer stands for; "
                "end in front of it with --outputs"
            )
    return None


def _form_problem(node: ir.Node) -> str | None:
    return (
        None
        if has_canonical_form(node)
        else f"expected {CANONICAL_OPERATORS[node.op_type]}"
    )


def _value_problem(value: ir.Value, *, others: bool) -> str | None:
    shape = shape_of(value)
    if shape is None:
        producer = value.producer()
        if producer is None:
            return "its shape is not known"
        return reason_of_unknown_shape(producer)
    if min(shape, default=1) < 1:
        return f"shape {list(shape)} has no elements"
    if len(shape) > MOST_DIMENSIONS:
        return f"shape {list(shape)} has more than 6 dimensions"
    if math.prod(shape) > MOST_ELEMENTS:
        return f"shape {list(shape)} has more than {MOST_ELEMENTS} elements"
    allowed = {
        ir.DataType.FLOAT,
        *((ir.DataType.BOOL, *INTEGER_NUMBERS) if others else ()),
    }
    if value.dtype not in allowed:
        return f"its result is {'unknown' if value.dtype is None else value.dtype.name.lower()}; expected float"
    return None
