"""Attention as GluonNLP writes it: queries, keys and values of all heads in one tensor."""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.linear_algebra import (
    move_axes,
    swap_last_axes,
)
from mrt.frontend.mxnet.operators.registry import operator, positive

HEADS = {"heads": positive()}


@operator("_contrib_div_sqrt_dim")
def div_sqrt_dim(call: OperatorCall) -> ir.Value:
    """Write x / sqrt(size of the last axis)."""
    call.require_rank(1)
    return _over_root_of_size(call, call.data)


def _over_root_of_size(call: OperatorCall, value: ir.Value) -> ir.Value:
    size = call.shape(value)[-1]
    return call.add("Mul", value, call.constant(1 / math.sqrt(size)))


def _extract_heads(
    call: OperatorCall, value: ir.Value, count: int, index: int
) -> ir.Value:
    """Return one of `count` interleaved tensors, as (batch * heads, time, size).

    The interleaved value has shape (time, batch, heads * count * size).
    """
    shape = call.shape(value)
    heads = call.int_attribute("heads")
    call.require(
        len(shape) == 3,
        f"an input of shape {shape}; expected (time, batch, heads * {count} * size)",
    )
    time, batch, width = shape
    call.require(
        width % (heads * count) == 0,
        f"heads={heads}, each of {count} parts, do not divide {width}",
    )
    size = width // (heads * count)
    result = call.reshape(value, [time, batch * heads, count * size])
    if count > 1:
        start = call.constant([index * size])
        end = call.constant([(index + 1) * size])
        axis = call.constant([2])
        step = call.constant([1])
        result = call.add("Slice", result, start, end, axis, step)
    return move_axes(call, result, [1, 0, 2])


def _attention_scores(
    call: OperatorCall, queries: ir.Value, keys: ir.Value
) -> ir.Value:
    """Write products of all queries with all keys, divided by the root of the size of a query."""
    query_shape = call.shape(queries)
    key_shape = call.shape(keys)
    fits = query_shape[0] == key_shape[0] and query_shape[2] == key_shape[2]
    call.require(fits, f"queries {query_shape} and keys {key_shape} do not fit")
    divided = _over_root_of_size(call, queries)
    return call.add("MatMul", divided, swap_last_axes(call, keys))


def _attended_values(
    call: OperatorCall, values: ir.Value, attention: ir.Value
) -> ir.Value:
    """Write sums of values weighted by the attention, as (time, batch, heads * size)."""
    value_shape = call.shape(values)
    shape = call.shape(attention)
    fits = len(shape) == 3 and (shape[0], shape[2]) == value_shape[:2]
    call.require(
        fits,
        f"attention {shape} does not fit the values {value_shape} of all heads",
    )
    product = call.add("MatMul", attention, values)
    time_first = move_axes(call, product, [1, 0, 2])
    heads = call.int_attribute("heads")
    batch = value_shape[0] // heads
    return call.reshape(time_first, [shape[1], batch, heads * value_shape[2]])


@operator(
    "_contrib_interleaved_matmul_selfatt_qk",
    attributes=HEADS,
    slots=("queries_keys_values",),
)
def self_attention_scores(call: OperatorCall) -> ir.Value:
    """Write products of queries and keys, the first two of three interleaved tensors."""
    queries = _extract_heads(call, call.data, 3, 0)
    keys = _extract_heads(call, call.data, 3, 1)
    return _attention_scores(call, queries, keys)


@operator(
    "_contrib_interleaved_matmul_selfatt_valatt",
    attributes=HEADS,
    slots=("queries_keys_values", "attention"),
)
def self_attention(call: OperatorCall) -> ir.Value:
    """Write sums of values, the last of three interleaved tensors, weighted by the attention."""
    values = _extract_heads(call, call.data, 3, 2)
    return _attended_values(call, values, call.inputs[1])


@operator(
    "_contrib_interleaved_matmul_encdec_qk",
    attributes=HEADS,
    slots=("queries", "keys_values"),
)
def cross_attention_scores(call: OperatorCall) -> ir.Value:
    """Write products of queries and keys; the keys are the first of two interleaved tensors."""
    queries = _extract_heads(call, call.data, 1, 0)
    keys = _extract_heads(call, call.inputs[1], 2, 0)
    return _attention_scores(call, queries, keys)


@operator(
    "_contrib_interleaved_matmul_encdec_valatt",
    attributes=HEADS,
    slots=("keys_values", "attention"),
)
def cross_attention(call: OperatorCall) -> ir.Value:
    """Write sums of the values, the last of two interleaved tensors, weighted by the attention."""
    values = _extract_heads(call, call.data, 2, 1)
    return _attended_values(call, values, call.inputs[1])
