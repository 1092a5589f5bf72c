"""A symbol and the shapes of its inputs -> the ONNX graph, with the shapes that its parameters must have.

Nothing here needs the numbers of a parameter; they are filled in when all shapes are known to fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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

HINT = "supported: mrt operators --frontend mxnet"
MAX_PROBLEMS = 200
FLOAT_DTYPES = (
    "-1",
    "0",
    "1",
    "2",
    "None",
)  # as MXNet numbers them: none, float32, float64, float16
INTEGER_DTYPES = {"3": "uint8", "4": "int32", "5": "int8", "6": "int64", "7": "bool"}
GLUON_MARKS = (
    "lr_mult",
    "wd_mult",
    "init",
)  # hidden keys of a variable that is a parameter in Gluon

Shape = tuple[int, ...]


@dataclass(frozen=True)
class OperatorUse:
    """A node that the outputs need, with its operator and the values of its attributes."""

    node: SymbolNode
    operator: MXNetOperator
    values: Values
    slots: tuple[str, ...]

    def operands(self) -> tuple[Edge, ...]:
        """The inputs without labels."""
        return tuple(
            edge
            for edge, slot in zip(self.node.inputs, self.slots, strict=True)
            if slot != LABEL_SLOT
        )


@dataclass(frozen=True)
class ConversionPlan:
    """What the outputs need: uses in order, variables by id, and the names of those in the place of a parameter."""

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
    """Raise Unsupported with all that can be said without shapes. Labels, and what only they need, are dropped."""
    refuse_machine_graphs(_needed(symbol))
    wanted = {edge.node for edge in symbol.heads}
    uses: list[OperatorUse] = []
    troubles: list[list[str]] = []  # by node, from the outputs back
    for index in reversed(symbol.order):
        node = symbol.nodes[index]
        if index in wanted and node.operator is not None:
            troubles.append([])
            use = _use(node, troubles[-1])
            wanted |= {edge.node for edge in (use.operands() if use else node.inputs)}
            uses += [use] if use else []
    uses.reverse()
    problems = [problem for found in reversed(troubles) for problem in found]
    outputs = {use.node.id: use.operator.outputs(use.values) for use in uses}
    for use in uses:
        problems += _wrong_outputs(symbol, use.operands(), outputs, _label(use.node))
    problems += _wrong_heads(symbol, outputs)
    variables = tuple(
        symbol.nodes[index]
        for index in sorted(wanted)
        if symbol.nodes[index].operator is None
    )
    problems += [
        f"{node.name} (input): dtype {node.hidden['dtype']} is unknown"
        for node in variables
        if _dtype(node) is None
    ]
    refuse_all(problems)
    return ConversionPlan(
        symbol, tuple(uses), variables, frozenset(_parameter_names(symbol, uses))
    )


def _needed(symbol: Symbol) -> list[SymbolNode]:
    """The nodes that the outputs need, the last one first."""
    wanted = {edge.node for edge in symbol.heads}
    found = []
    for index in reversed(symbol.order):
        if index in wanted:
            found.append(symbol.nodes[index])
            wanted |= {edge.node for edge in symbol.nodes[index].inputs}
    return found


def refuse_all(problems: Sequence[str]) -> None:
    """Raise Unsupported if there is any problem."""
    if problems:
        rest = (
            [f"and {len(problems) - MAX_PROBLEMS} more"]
            if len(problems) > MAX_PROBLEMS
            else []
        )
        raise Unsupported([*problems[:MAX_PROBLEMS], *rest], HINT)


def _label(node: SymbolNode) -> str:
    return f"{node.name} ({node.operator})"


def _use(node: SymbolNode, problems: list[str]) -> OperatorUse | None:
    operator = OPERATORS.get(known_name(node.operator or ""))
    if operator is None:
        problems.append(
            f"{_label(node)}: {why_refused(node.operator or '', node.attributes)}"
        )
        return None
    values, troubles = read_attributes(operator.attributes, node.attributes)
    if troubles:
        problems += [f"{_label(node)}: {trouble}" for trouble in troubles]
        return None
    slots = operator.slots(values)
    if len(slots) != len(node.inputs):
        problems.append(
            f"{_label(node)}: {len(node.inputs)} inputs; expected {len(slots)} ({', '.join(slots[:5])})"
        )
        return None
    return OperatorUse(node, operator, values, slots)


def _wrong_outputs(
    symbol: Symbol, edges: Iterable[Edge], outputs: Mapping[int, int], user: str
) -> list[str]:
    """Hidden outputs (the statistics of BatchNorm, the mask of Dropout) do not exist here."""
    return [
        f"{user}: uses output {edge.output} of {symbol.nodes[edge.node].name}, which has {outputs.get(edge.node, 1)}"
        for edge in edges
        if edge.output >= outputs.get(edge.node, 1)
    ]


def _wrong_heads(symbol: Symbol, outputs: Mapping[int, int]) -> list[str]:
    """Each output of the model is computed, and listed once."""
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
    """The dtype that a variable says it has; float32 for any float and where it says nothing."""
    number = node.hidden.get("dtype", "0")
    return "float32" if number in FLOAT_DTYPES else INTEGER_DTYPES.get(number)


def _parameter_names(symbol: Symbol, uses: Iterable[OperatorUse]) -> Iterable[str]:
    for use in uses:
        for edge, slot in zip(use.node.inputs, use.slots, strict=True):
            if slot in PARAMETER_SLOTS and symbol.nodes[edge.node].operator is None:
                yield symbol.nodes[edge.node].name


def build(
    made: ConversionPlan, shapes: Mapping[str, Shape], known: Mapping[str, Shape]
) -> Built:
    """`known` are the shapes in the parameter file; `shapes` those the user gives for inputs."""
    builder = GraphBuilder()
    inputs = [
        node
        for node in made.variables
        if node.name not in known and node.name not in made.parameters
    ]
    _refuse_unknown_inputs(shapes, [node.name for node in inputs])
    sized = _input_shapes(inputs, shapes)
    values: dict[Edge, ir.Value] = {}
    for node in made.variables:
        name = builder.claim(node.name)
        is_input = node.name in sized
        values[Edge(node.id, 0)] = integer_dtypes.mark(
            builder.variable(name, sized[node.name])
            if is_input
            else builder.parameter(name, known.get(node.name)),
            _dtype(node) or "float32",
        )
    names = _node_names(made, builder)
    problems: list[str] = []
    for use in made.uses:
        operands = [values.get(edge) for edge in use.operands()]
        present = [value for value in operands if value is not None]
        if len(present) == len(operands):
            values |= _convert(builder, use, names[use.node.id], present, problems)
    refuse_all(problems)
    outputs = tuple(values[edge] for edge in made.symbol.heads)
    return Built(builder, tuple(values[Edge(node.id, 0)] for node in inputs), outputs)


def marked_parameters(made: ConversionPlan, given: set[str]) -> dict[str, Shape]:
    """The shapes of variables in no parameter's place that Gluon still marked as parameters, where the file says them.

    Which they are is known from the parameter file, if there is one; this is for when there is none.
    """
    return {
        node.name: _written_shape(node)
        for node in made.variables
        if node.name not in made.parameters
        and node.name not in given
        and _is_marked(node)
    }


def _is_marked(node: SymbolNode) -> bool:
    shape = _written_shape(node)
    return min(shape, default=0) > 0 and any(
        mark in node.hidden for mark in GLUON_MARKS
    )


def _node_names(made: ConversionPlan, builder: GraphBuilder) -> dict[int, str]:
    """Outputs of the model choose first, then the others in order."""
    heads = {edge.node for edge in made.symbol.heads}
    first = [use.node for use in made.uses if use.node.id in heads]
    rest = [use.node for use in made.uses if use.node.id not in heads]
    return {node.id: builder.claim(node.name) for node in (*first, *rest)}


def _convert(
    builder: GraphBuilder,
    use: OperatorUse,
    name: str,
    operands: Sequence[ir.Value],
    problems: list[str],
) -> dict[Edge, ir.Value]:
    """Nothing where the node is refused: what follows it cannot be judged."""
    try:
        dtype = integer_dtypes.dtype_of_result(use.operator.name, operands)
        result = use.operator.handler(OperatorCall(builder, name, use.values, operands))
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
    return {Edge(use.node.id, index): value for index, value in enumerate(result)}


def _refuse_unknown_inputs(shapes: Mapping[str, Shape], inputs: Sequence[str]) -> None:
    for name in shapes:
        if name not in inputs:
            raise BadOption(
                f"--shape {name}: the model has no such input; its inputs: {', '.join(inputs) or 'none'}"
            )


def _input_shapes(
    inputs: Iterable[SymbolNode], shapes: Mapping[str, Shape]
) -> dict[str, Shape]:
    """From the user, else from the file; an unknown first dimension is a batch of 1."""
    sized, troubles = {}, []
    for node in inputs:
        shape = shapes.get(node.name, _written_shape(node))
        if shape and shape[0] in (0, -1):
            shape = (1, *shape[1:])
        if shape and min(shape) > 0:
            sized[node.name] = shape
        else:
            written = f" (the file says {shape})" if shape else ""
            troubles.append(
                f"the shape of input {node.name!r} is not known{written}; "
                f"add --shape {node.name}=1,3,224,224 with its own numbers"
            )
    if troubles:
        raise BadModel(
            "; ".join(troubles)
            + ". If it is a parameter, it is missing in the parameter file"
        )
    return sized


def _written_shape(node: SymbolNode) -> Shape:
    """The shape of a variable that the file states, where it does; 0 is an unknown dimension."""
    try:
        return parse_integers(node.hidden.get("shape", "()"))
    except ValueError:
        return ()
