"""Convert a symbol and the shapes of its inputs to an ONNX graph, still without parameter values.

Building also finds the shapes that parameters must have. No number of a parameter is
needed here; the numbers are filled in once all shapes are known to fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import onnx_ir as ir

from mrt.errors import BadModel, BadOption, Unsupported
from mrt.frontend.mxnet import integer_dtypes
from mrt.frontend.mxnet.graph_builder import GraphBuilder, NodeRefusedError
from mrt.frontend.mxnet.literals import parse_integers
from mrt.frontend.mxnet.machine_graphs import refuse_machine_graphs
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators import OPERATORS
from mrt.frontend.mxnet.operators.aliases import known_name
from mrt.frontend.mxnet.operators.refused import why_refused
from mrt.frontend.mxnet.operators.registry import (
    LABEL_SLOT,
    PARAMETER_SLOTS,
    MXNetOperator,
    Values,
    read_attributes,
)
from mrt.frontend.mxnet.symbol import Edge, Symbol, SymbolNode
from mrt.graph.open_shapes import OR_DATA, Shape, Sizes

HINT = "supported: mrt operators --frontend mxnet"
MAX_PROBLEMS = 200
# MXNet's numbers for none, float32, float64 and float16, all of which become float32.
FLOAT_DTYPES = ("-1", "0", "1", "2", "None")
INTEGER_DTYPES = {
    "3": "uint8",
    "4": "int32",
    "5": "int8",
    "6": "int64",
    "7": "bool",
}
# hidden keys that only a variable which is a parameter in Gluon has
GLUON_MARKS = ("lr_mult", "wd_mult", "init")


@dataclass(frozen=True)
class OperatorUse:
    """A node that the outputs need, with its operator and the values of its attributes."""

    node: SymbolNode
    operator: MXNetOperator
    values: Values
    slots: tuple[str, ...]

    def operands(self) -> tuple[Edge, ...]:
        """Return the inputs without labels."""
        return tuple(
            edge
            for edge, slot in zip(self.node.inputs, self.slots, strict=True)
            if slot != LABEL_SLOT
        )


@dataclass(frozen=True)
class ConversionPlan:
    """The part of a symbol that its outputs need.

    `uses` are in order, `variables` by id; `parameters` names the variables that stand in
    the slot of a parameter.
    """

    symbol: Symbol
    uses: tuple[OperatorUse, ...]
    variables: tuple[SymbolNode, ...]
    parameters: frozenset[str]


@dataclass(frozen=True)
class Built:
    """The graph before its parameters have values."""

    builder: GraphBuilder
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]


def plan(symbol: Symbol) -> ConversionPlan:
    """Choose the nodes that the outputs need; leave out labels, and what only labels need.

    Raise Unsupported with all problems that can be found without shapes.
    """
    refuse_machine_graphs(_needed(symbol))
    needed_ids = {edge.node for edge in symbol.heads}
    uses: list[OperatorUse] = []
    reasons: list[list[str]] = []  # of each node, the last node first
    for index in reversed(symbol.order):
        node = symbol.nodes[index]
        if index in needed_ids and node.operator is not None:
            reasons.append([])
            use = _use(node, reasons[-1])
            operands = node.inputs
            if use is not None:
                uses.append(use)
                operands = use.operands()
            needed_ids |= {edge.node for edge in operands}
    uses.reverse()
    problems = list(chain.from_iterable(reversed(reasons)))
    outputs = {use.node.id: use.operator.outputs(use.values) for use in uses}
    for use in uses:
        problems += _wrong_outputs(
            symbol, use.operands(), outputs, _label(use.node)
        )
    problems += _wrong_heads(symbol, outputs)
    needed = [symbol.nodes[index] for index in sorted(needed_ids)]
    variables = tuple(node for node in needed if node.operator is None)
    problems += [
        f"{node.name} (input): dtype {node.hidden['dtype']} is unknown"
        for node in variables
        if _dtype(node) is None
    ]
    refuse_all(problems)
    parameters = frozenset(_parameter_names(symbol, uses))
    return ConversionPlan(symbol, tuple(uses), variables, parameters)


def _needed(symbol: Symbol) -> list[SymbolNode]:
    """Return the nodes that the outputs need, the last one first."""
    needed_ids = {edge.node for edge in symbol.heads}
    needed = []
    for index in reversed(symbol.order):
        if index in needed_ids:
            needed.append(symbol.nodes[index])
            needed_ids |= {edge.node for edge in symbol.nodes[index].inputs}
    return needed


def refuse_all(problems: Sequence[str]) -> None:
    """Raise Unsupported if there is any problem."""
    if not problems:
        return
    lines = list(problems[:MAX_PROBLEMS])
    if len(problems) > MAX_PROBLEMS:
        lines.append(f"and {len(problems) - MAX_PROBLEMS} more")
    raise Unsupported(lines, HINT)


def _label(node: SymbolNode) -> str:
    return f"{node.name} ({node.operator})"


def _use(node: SymbolNode, problems: list[str]) -> OperatorUse | None:
    operator = OPERATORS.get(known_name(node.operator or ""))
    if operator is None:
        problems.append(
            f"{_label(node)}: {why_refused(node.operator or '', node.attributes)}"
        )
        return None
    values, reasons = read_attributes(operator.attributes, node.attributes)
    if reasons:
        problems += [f"{_label(node)}: {reason}" for reason in reasons]
        return None
    slots = operator.slots(values)
    if len(slots) != len(node.inputs):
        expected = f"{len(slots)} ({', '.join(slots[:5])})"
        problems.append(
            f"{_label(node)}: {len(node.inputs)} inputs; expected {expected}"
        )
        return None
    return OperatorUse(node, operator, values, slots)


def _wrong_outputs(
    symbol: Symbol, edges: Iterable[Edge], outputs: Mapping[int, int], user: str
) -> list[str]:
    """Return a problem for each use of a hidden output.

    Examples are the statistics of BatchNorm and the mask of Dropout.
    """
    return [
        f"{user}: uses output {edge.output} of {symbol.nodes[edge.node].name}, which has {outputs.get(edge.node, 1)}"
        for edge in edges
        if edge.output >= outputs.get(edge.node, 1)
    ]


def _wrong_heads(symbol: Symbol, outputs: Mapping[int, int]) -> list[str]:
    """Return the problems of the outputs: each must be computed, and listed once."""
    problems = _wrong_outputs(symbol, symbol.heads, outputs, "heads")
    for edge, times in Counter(symbol.heads).items():
        node = symbol.nodes[edge.node]
        if node.operator is None:
            problems.append(
                f"heads: {node.name} is a variable; expected the output of an operator"
            )
        if times > 1:
            problems.append(
                f"heads: output {edge.output} of {node.name} is listed twice"
            )
    return problems


def _dtype(node: SymbolNode) -> str | None:
    """Return the dtype stored with a variable; float32 for any float and where none is stored."""
    number = node.hidden.get("dtype", "0")
    return "float32" if number in FLOAT_DTYPES else INTEGER_DTYPES.get(number)


def _parameter_names(
    symbol: Symbol, uses: Iterable[OperatorUse]
) -> Iterable[str]:
    for use in uses:
        for edge, slot in zip(use.node.inputs, use.slots, strict=True):
            if (
                slot in PARAMETER_SLOTS
                and symbol.nodes[edge.node].operator is None
            ):
                yield symbol.nodes[edge.node].name


def build(
    conversion: ConversionPlan,
    shapes: Mapping[str, Shape],
    parameter_shapes: Mapping[str, Shape],
) -> Built:
    """Convert all nodes.

    `parameter_shapes` holds those of the parameter file; `shapes` holds those that the
    user gives for inputs.
    """
    builder = GraphBuilder()
    inputs = _inputs(conversion, parameter_shapes)
    _refuse_unknown_inputs(shapes, [node.name for node in inputs])
    sized = _input_shapes(inputs, shapes)
    values: dict[Edge, ir.Value] = {}
    for node in conversion.variables:
        name = builder.claim(node.name)
        if node.name in sized:
            value = builder.variable(name, sized[node.name])
        else:
            value = builder.parameter(name, parameter_shapes.get(node.name))
        dtype = _dtype(node) or "float32"
        values[Edge(node.id, 0)] = integer_dtypes.mark(value, dtype)
    names = _node_names(conversion, builder)
    problems: list[str] = []
    for use in conversion.uses:
        operands = [values.get(edge) for edge in use.operands()]
        present = [value for value in operands if value is not None]
        if len(present) == len(operands):
            values |= _convert(
                builder, use, names[use.node.id], present, problems
            )
    refuse_all(problems)
    outputs = tuple(values[edge] for edge in conversion.symbol.heads)
    return Built(
        builder, tuple(values[Edge(node.id, 0)] for node in inputs), outputs
    )


def _inputs(
    conversion: ConversionPlan, parameter_shapes: Mapping[str, Shape]
) -> list[SymbolNode]:
    return [
        node
        for node in conversion.variables
        if node.name not in parameter_shapes
        and node.name not in conversion.parameters
    ]


def stated_sizes(
    conversion: ConversionPlan, parameter_shapes: Mapping[str, Shape]
) -> dict[str, Sizes]:
    """Return the shape of every input, as far as the symbol file states it."""
    stated: dict[str, Sizes] = {}
    for node in _inputs(conversion, parameter_shapes):
        sizes = [size if size > 0 else None for size in _written_shape(node)]
        stated[node.name] = tuple(sizes) or None
    return stated


def marked_parameters(
    conversion: ConversionPlan, given: set[str]
) -> dict[str, Shape]:
    """Return the shapes of variables that only one of Gluon's marks shows to be parameters.

    These variables are in no slot of a parameter, and the symbol file states their
    shapes. A parameter file would name them; this function serves a symbol without one.
    """
    shapes = {}
    for node in conversion.variables:
        is_open = (
            node.name not in conversion.parameters and node.name not in given
        )
        if is_open and _is_marked(node):
            shapes[node.name] = _written_shape(node)
    return shapes


def _is_marked(node: SymbolNode) -> bool:
    shape = _written_shape(node)
    return min(shape, default=0) > 0 and any(
        mark in node.hidden for mark in GLUON_MARKS
    )


def _node_names(
    conversion: ConversionPlan, builder: GraphBuilder
) -> dict[int, str]:
    """Return a name for each node; outputs of the model claim theirs first, then the others."""
    heads = {edge.node for edge in conversion.symbol.heads}
    first = [use.node for use in conversion.uses if use.node.id in heads]
    rest = [use.node for use in conversion.uses if use.node.id not in heads]
    return {node.id: builder.claim(node.name) for node in (*first, *rest)}


def _convert(
    builder: GraphBuilder,
    use: OperatorUse,
    name: str,
    operands: Sequence[ir.Value],
    problems: list[str],
) -> dict[Edge, ir.Value]:
    """Convert one node; no outputs if it is refused, so its users are skipped."""
    try:
        dtype = integer_dtypes.dtype_of_result(use.operator.name, operands)
        result = use.operator.handler(
            OperatorCall(builder, name, use.values, operands)
        )
    except NodeRefusedError as refusal:
        problems.append(f"{_label(use.node)}: {refusal}")
        return {}
    if dtype is not None:
        integer_dtypes.mark_all(result, dtype)
    if isinstance(result, ir.Value):
        builder.publish(result, name)
        return {Edge(use.node.id, 0): result}
    for index, value in enumerate(result):
        builder.publish(value, builder.claim(f"{name}_output{index}"))
    return {
        Edge(use.node.id, index): value for index, value in enumerate(result)
    }


def _refuse_unknown_inputs(
    shapes: Mapping[str, Shape], inputs: Sequence[str]
) -> None:
    for name in shapes:
        if name not in inputs:
            raise BadOption(
                f"--shape {name}: the model has no such input; its inputs: {', '.join(inputs) or 'none'}"
            )


def _input_shapes(
    inputs: Iterable[SymbolNode], shapes: Mapping[str, Shape]
) -> dict[str, Shape]:
    """Return the shapes from the user, else from the file.

    An unknown first dimension is a batch of 1.
    """
    sized, reasons = {}, []
    for node in inputs:
        shape = shapes.get(node.name, _written_shape(node))
        if shape and shape[0] in (0, -1):
            shape = (1, *shape[1:])
        if shape and min(shape) > 0:
            sized[node.name] = shape
        else:
            written = f" (the file says {shape})" if shape else ""
            reasons.append(
                f"the shape of input {node.name!r} is not known{written}; "
                f"add --shape {node.name}=1,3,224,224 with its own numbers, {OR_DATA}"
            )
    if reasons:
        raise BadModel(
            "; ".join(reasons)
            + ". If it is a parameter, it is missing in the parameter file"
        )
    return sized


def _written_shape(node: SymbolNode) -> Shape:
    """Return the shape that the symbol file states, or (); 0 is an unknown dimension."""
    try:
        return parse_integers(node.hidden.get("shape", "()"))
    except ValueError:
        return ()
