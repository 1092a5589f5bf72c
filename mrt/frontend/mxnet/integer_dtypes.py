"""Marks of values that MXNet holds in an integer dtype; here they are float32, exact up to 2^24.

An operator may read a marked value only if its result on float32 is the same. These
operators move elements, read an index or cast. On int32 and int64 they may also add,
multiply, divide (MXNet truncates the quotient toward 0) or compare. Any other reader,
such as a mean, is refused, until a Cast to float32 in front makes its meaning plain.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from mrt.frontend.mxnet.graph_builder import NodeRefusedError

_KEY = "mxnet.dtype"
AT_LEAST_32_BITS = ("int32", "int64")

MOVES = frozenset({
    "Reshape", "reshape", "reshape_like", "Flatten", "flatten", "transpose", "SwapAxis", "swapaxes", "expand_dims",
    "squeeze", "Concat", "concat", "stack", "tile", "repeat", "flip", "reverse", "slice", "crop", "slice_axis",
    "slice_like", "SliceChannel", "split", "_split_v2", "broadcast_to", "broadcast_like", "broadcast_axis",
    "broadcast_axes", "identity", "_copy", "_copyto", "BlockGrad", "stop_gradient", "_identity_with_attr_like_rhs",
    "sort", "max", "max_axis", "min", "min_axis", "relu", "abs", "negative", "sign", "zeros_like", "ones_like",
    "depth_to_space", "space_to_depth", "diag",
})  # fmt: skip
READS = frozenset({
    "Cast", "cast", "argmax", "argmin", "argmax_channel", "topk", "argsort", "shape_array", "size_array",
    "_contrib_index_array", "_contrib_arange_like",
})  # fmt: skip
INDEXED = frozenset({
    "Embedding", "take", "batch_take", "pick", "choose_element_0index", "gather_nd", "where", "one_hot", "SequenceMask",
    "SequenceLast", "SequenceReverse", "softmax",
})  # fmt: skip
SUMS = frozenset({
    "elemwise_add", "_add", "_plus", "_Plus", "_grad_add", "elemwise_sub", "_sub", "_minus", "_Minus", "elemwise_mul",
    "_mul", "_Mul", "broadcast_add", "broadcast_plus", "broadcast_sub", "broadcast_minus", "broadcast_mul",
    "_maximum", "_Maximum", "_minimum", "_Minimum", "broadcast_maximum", "broadcast_minimum", "add_n",
    "ElementWiseSum", "_equal", "_not_equal", "_greater", "_greater_equal", "_lesser", "_lesser_equal",
    "broadcast_equal", "broadcast_not_equal", "broadcast_greater", "broadcast_greater_equal", "broadcast_lesser",
    "broadcast_lesser_equal", "logical_not", "square", "sum", "sum_axis", "_np_cumsum", "cumsum",
    "_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_mod_scalar", "_maximum_scalar",
    "_minimum_scalar", "_equal_scalar", "_not_equal_scalar", "_greater_scalar", "_greater_equal_scalar",
    "_lesser_scalar", "_lesser_equal_scalar", "_mod", "broadcast_mod", "elemwise_div", "_div", "_Div", "broadcast_div",
    "_div_scalar",
})  # fmt: skip


def mark(value: ir.Value, dtype: str) -> ir.Value:
    """Record that MXNet holds this value in an integer dtype; for a float dtype, record nothing."""
    if "int" in dtype or dtype == "bool":
        value.meta[_KEY] = dtype
    return value


def mark_all(result: ir.Value | list[ir.Value], dtype: str) -> None:
    """Mark all results of a handler."""
    for value in [result] if isinstance(result, ir.Value) else result:
        mark(value, dtype)


def dtype_of(value: ir.Value) -> str | None:
    """Return the integer dtype in which MXNet holds a value; None for floats."""
    return value.meta.get(_KEY)


def dtype_of_result(operator: str, operands: Sequence[ir.Value]) -> str | None:
    """Return the integer dtype of the results from those of the operands.

    Raise NodeRefusedError when an operator reads integers and its result on float32 would
    differ.
    """
    dtypes = [dtype_of(value) for value in operands]
    dtype = next((dtype for dtype in dtypes if dtype), None)
    if dtype is None or operator in READS:
        return None
    if operator in INDEXED:
        return _of_indexed(operator, dtypes)
    if operator in MOVES or (operator in SUMS and dtype in AT_LEAST_32_BITS):
        return dtype
    name = operands[dtypes.index(dtype)].name
    raise NodeRefusedError(
        f"input {name!r} is {dtype} in MXNet; supported: float32, so put a Cast in front"
    )


def _of_indexed(operator: str, dtypes: Sequence[str | None]) -> str | None:
    """Return the dtype of the operand from which an operator gathers: its result has the same."""
    if operator == "Embedding":
        return dtypes[1]
    if operator == "one_hot":
        return None
    return dtypes[1] if operator == "where" else dtypes[0]
