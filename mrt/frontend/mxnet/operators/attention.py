"""Attention as GluonNLP's transformers write it: queries, keys and values of every head side by side in one tensor."""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.linear_algebra import flipped, move_axes
from mrt.frontend.mxnet.operators.registry import operator, positive

HEADS = {"heads": positive()}


@operator("_contrib_div_sqrt_dim")
def div_sqrt_dim(call: OperatorCall) -> ir.Value:
    """Over the root of the size of the last axis."""
    call.require_rank(1)
    return call.add("Mul", call.data, call.constant(1 / math.sqrt(call.shape()[-1])))


def _heads(call: OperatorCall, value: ir.Value, parts: int, part: int) -> ir.Value:
    """One of `parts` of (time, batch, heads * parts * size), as (batch * heads, time, size)."""
    shape, heads = call.shape(value), call.int_attribute("heads")
    call.require(
        len(shape) == 3,
        f"an input of shape {shape}; expected (time, batch, heads * {parts} * size)",
    )
    time, batch, width = shape
    call.require(
        width % (heads * parts) == 0,
        f"heads={heads}, each of {parts} parts, do not divide {width}",
    )
    size = width // (heads * parts)
    split = call.reshape(value, [time, batch * heads, parts * size])
    if parts > 1:
        bounds = [
            call.constant([number]) for number in (part * size, (part + 1) * size, 2, 1)
        ]
        split = call.add("Slice", split, *bounds)
    return move_axes(call, split, [1, 0, 2])


def _scores(call: OperatorCall, queries: ir.Value, keys: ir.Value) -> ir.Value:
    """Every query, over the root of its size, with every key."""
    size, others = call.shape(queries), call.shape(keys)
    call.require(
        size[0] == others[0] and size[2] == others[2],
        f"queries {size} and keys {others} do not fit",
    )
    divided = call.add("Mul", queries, call.constant(1 / math.sqrt(size[-1])))
    return call.add("MatMul", divided, flipped(call, keys))


def _attended(call: OperatorCall, values: ir.Value, attention: ir.Value) -> ir.Value:
    """The values weighed by the attention, as (time, batch, heads * size)."""
    found, given = call.shape(values), call.shape(attention)
    fits = len(given) == 3 and (given[0], given[2]) == found[:2]
    call.require(
        fits, f"attention {given} does not fit the values {found} of all heads"
    )
    mixed = move_axes(call, call.add("MatMul", attention, values), [1, 0, 2])
    heads = call.int_attribute("heads")
    return call.reshape(mixed, [given[1], found[0] // heads, heads * found[2]])


@operator(
    "_contrib_interleaved_matmul_selfatt_qk",
    attributes=HEADS,
    slots=("queries_keys_values",),
)
def self_attention_scores(call: OperatorCall) -> ir.Value:
    """Queries with keys, from the first two of three parts."""
    return _scores(call, _heads(call, call.data, 3, 0), _heads(call, call.data, 3, 1))


@operator(
    "_contrib_interleaved_matmul_selfatt_valatt",
    attributes=HEADS,
    slots=("queries_keys_values", "attention"),
)
def self_attention(call: OperatorCall) -> ir.Value:
    """Values, the last of three parts, weighed by the attention."""
    return _attended(call, _heads(call, call.data, 3, 2), call.inputs[1])


@operator(
    "_contrib_interleaved_matmul_encdec_qk",
    attributes=HEADS,
    slots=("queries", "keys_values"),
)
def cross_attention_scores(call: OperatorCall) -> ir.Value:
    """Queries with keys, the first of two parts."""
    return _scores(
        call, _heads(call, call.data, 1, 0), _heads(call, call.inputs[1], 2, 0)
    )


@operator(
    "_contrib_interleaved_matmul_encdec_valatt",
    attributes=HEADS,
    slots=("keys_values", "attention"),
)
def cross_attention(call: OperatorCall) -> ir.Value:
    """Values, the last of two parts, weighed by the attention."""
    return _attended(call, _heads(call, call.data, 2, 1), call.inputs[1])
