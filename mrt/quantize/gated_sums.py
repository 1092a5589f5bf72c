"""Gated sums, the states of LSTMs, and the sums of which their gates are functions: they have 16 bits.

A state is rounded at every step, and all later steps read it: what 8 bits lose of it adds
up, and so does the noise of its gates. Layers with weights read such sums in as many bits
as any other value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import filterfalse

import onnx_ir as ir

from mrt.graph.canonical_values import (
    is_constant,
    is_product_of_computed,
    name_of,
)
from mrt.graph.operators import MOVES_OF_ONE, SUMS_OF_PRODUCTS
from mrt.graph.values import source_of_moves
from mrt.quantize.channel_centres import is_sum
from mrt.quantize.options import QuantizeOptions

_GATES = frozenset({"Sigmoid", "HardSigmoid", "Clip"})
_FUNCTIONS = _GATES | {"Tanh", "Relu", "Neg", "Softsign", "Elu"}
_WITH_A_CONSTANT = frozenset({"Add", "Sub", "Mul", "Div"})
_PRODUCTS = SUMS_OF_PRODUCTS | {"MatMul"}


def note_of_states(model: ir.Model, options: QuantizeOptions) -> str:
    """Return a note for the user; an empty text where no value has 16 bits for this reason alone."""
    bits = options.activation_bits
    if bits > 8 or not gated_sums(list(model.graph), options):
        return ""
    return (
        "the model has states that gates multiply, as an LSTM has: they and what their gates are functions of have 16 bits "
        f"(--stream-bits {bits} leaves them at {bits})"
    )


def gated_sums(
    nodes: Sequence[ir.Node], options: QuantizeOptions
) -> frozenset[str]:
    """Return the names of these sums; none where values have few bits, and none whose bits the options choose."""
    if options.has_few_bits:
        return frozenset()

    sums = [node for node in nodes if is_gated_sum(node)]
    is_chosen = options.chooses_activation_bits
    states = [node for node in sums if not is_chosen(name_of(node.outputs[0]))]
    names = [name_of(node.outputs[0]) for node in states]
    behind = _sums_behind(_gated(states))
    return frozenset(names).union(filterfalse(is_chosen, behind))


def is_gated_sum(node: ir.Node) -> bool:
    """Whether a node adds two products of computed values, each of which has a gate of its own.

    A GRU adds by a gate and 1 less the same gate: its state stays among the numbers that it
    adds, and does well in 8 bits.
    """
    if not is_sum(node):
        return False
    gates = [_gate_of(_behind_moves(value)) for value in node.inputs]
    return None not in gates and gates[0] is not gates[1]


def _gate_of(product: ir.Node | None) -> ir.Value | None:
    """Return the gate, a factor like a sigmoid, of a product of computed values.

    None: the product has none, or its only one is computed from the other factor, as in SiLU.
    """
    if product is None or not is_product_of_computed(product):
        return None
    left, right = _operands(product)
    return _gate_behind(left, right) or _gate_behind(right, left)


def _gate_behind(value: ir.Value, multiplied: ir.Value) -> ir.Value | None:
    """Return the gate that a value is, or that it is a function of. None: it is none, or is computed from what it multiplies."""
    gate: ir.Value | None = None
    inner: ir.Value | None = value
    while inner is not None:
        if inner is multiplied:
            return None
        node = _behind_moves(inner)
        if node is None:
            break
        gate = inner if node.op_type in _GATES else gate
        inner = _function_of(node)
    return gate


def _gated(states: Iterable[ir.Node]) -> Iterator[ir.Value]:
    """Yield the operands of products in states, and of products that read a function of a state."""
    for state in states:
        for value in state.inputs:
            product = _behind_moves(value)
            assert product is not None
            yield from _operands(product)
        yield from _operands_of_readers(state.outputs[0])


def _operands_of_readers(state: ir.Value) -> Iterator[ir.Value]:
    waiting = [state]
    while waiting:
        for use in waiting.pop().uses():
            node = use.node
            if is_product_of_computed(node):
                yield from _operands(node)
            elif node.op_type in MOVES_OF_ONE or _function_of(node) is not None:
                waiting.append(node.outputs[0])


def _sums_behind(values: Iterable[ir.Value]) -> Iterator[str]:
    """Yield the names of the sums, and of the results of layers, of which these values are functions."""
    waiting = list(values)
    seen = set(waiting)
    while waiting:
        node = _behind_moves(waiting.pop())
        if node is None:
            continue
        inner = _function_of(node)
        follow: list[ir.Value] = [] if inner is None else [inner]
        if is_product_of_computed(node):
            follow = _operands(node)
        elif node.op_type in _PRODUCTS or is_sum(node):
            yield name_of(node.outputs[0])
            follow = [value for value in _operands(node) if _is_gated(value)]
        waiting += [value for value in follow if value not in seen]
        seen.update(follow)


def _is_gated(value: ir.Value) -> bool:
    node = _behind_moves(value)
    return node is not None and is_product_of_computed(node)


def _function_of(node: ir.Node) -> ir.Value | None:
    """Return the only computed value of which a node is a function, number by number."""
    computed = _operands(node)
    if len(computed) != 1:
        return None
    if node.op_type in _FUNCTIONS or node.op_type in _WITH_A_CONSTANT:
        return computed[0]
    return None


def _operands(node: ir.Node) -> list[ir.Value]:
    return [
        value
        for value in node.inputs
        if value is not None and not is_constant(value)
    ]


def _behind_moves(value: ir.Value | None) -> ir.Node | None:
    """Return the node that computes a value, behind those that only move it."""
    return None if value is None else source_of_moves(value).producer()
