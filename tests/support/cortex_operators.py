"""Cortex's operators in numpy, from the document of its formats alone: shape, precision and integers of each.

Integers are kept in 64 bits; the reader asserts that each fits the precision that the rules give it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.int64]]
Attributes = Mapping[str, str]
Answer = tuple[Array, int]
Operator = Callable[[Sequence[Array], Sequence[int], dict[str, Any]], Answer]
MOST = 2**31 - 1


def number_precision(n: int) -> int:
    """GetNumberPrecision."""
    return (n + 1).bit_length() + 1


def limit(precision: int) -> int:
    """The greatest integer of a precision."""
    return 2 ** (precision - 1) - 1


def pair(value: Any) -> tuple[int, int]:
    """One integer for both, or two."""
    if isinstance(value, int):
        return value, value
    return (value[0], value[0]) if len(value) == 1 else (value[0], value[1])


def conv2d(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    x, w = arrays[:2]
    assert x.ndim == w.ndim == 4 and max(precisions[:2]) <= 8
    assert len(arrays) == (3 if a["use_bias"] else 2)
    groups, channels = a["groups"], a["channels"]
    assert w.shape == (channels, x.shape[1] // groups, *a["kernel_size"])
    assert x.shape[1] % groups == 0 == channels % groups
    (sh, sw), (ph, pw), (dh, dw) = (
        pair(a[name]) for name in ("strides", "padding", "dilation")
    )
    assert all(1 <= v <= 4096 for v in (sh, sw, dh, dw))
    assert 0 <= ph <= 4096 and 0 <= pw <= 4096
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    kh, kw = w.shape[2:]
    oh = (x.shape[2] - ((kh - 1) * dh + 1)) // sh + 1
    ow = (x.shape[3] - ((kw - 1) * dw + 1)) // sw + 1
    y = np.zeros((x.shape[0], channels, oh, ow), np.int64)
    per_group = channels // groups
    for o in range(channels):
        first = o // per_group * w.shape[1]
        for c in range(w.shape[1]):
            for p in range(kh):
                for q in range(kw):
                    part = x[:, first + c, p * dh :, q * dw :]
                    part = part[:, ::sh, ::sw][:, :oh, :ow]
                    y[:, o] += part * w[o, c, p, q]
    precision = sum(precisions[:2]) + (w.size // w.shape[0]).bit_length()
    return _biased(y, (1, -1, 1, 1), precision, arrays, precisions)


def dense(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    x, w = arrays[:2]
    assert x.ndim == w.ndim == 2 and max(precisions[:2]) <= 8
    assert w.shape == (a["units"], x.shape[1])
    assert len(arrays) == (3 if a["use_bias"] else 2)
    precision = sum(precisions[:2]) + x.shape[1].bit_length()
    return _biased(x @ w.T, (1, -1), precision, arrays, precisions)


def _biased(
    y: Array,
    shape: tuple[int, ...],
    precision: int,
    arrays: Sequence[Array],
    precisions: Sequence[int],
) -> Answer:
    if len(arrays) == 2:
        return y, precision
    assert arrays[2].shape == (arrays[1].shape[0],)
    return y + arrays[2].reshape(shape), max(precision, precisions[2]) + 1


def max_pool2d(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    (x,) = arrays
    assert not a["ceil_mode"]
    pool, strides, pads = (
        pair(a[name]) for name in ("pool_size", "strides", "padding")
    )
    for size, window, pad in zip(x.shape[2:], pool, pads, strict=True):
        assert 0 <= pad < window <= size + 2 * pad and window <= 4096
    assert min(strides) >= 1
    around = ((0, 0), (0, 0), (pads[0], pads[0]), (pads[1], pads[1]))
    x = np.pad(x, around, constant_values=-(2**40))
    windows = np.lib.stride_tricks.sliding_window_view(x, pool, (2, 3))
    found = windows[:, :, :: strides[0], :: strides[1]].max((4, 5))
    return found, precisions[0]


def broadcast(
    function: Callable[[Array, Array], Array],
    precision: Callable[[int, int], int],
) -> Operator:
    def run(
        arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
    ) -> Answer:
        x, y = arrays
        return function(x, y), precision(precisions[0], precisions[1])

    return run


def _truncated(x: Array, y: Array) -> Array:
    quotient = np.abs(x) // np.where(y == 0, 1, np.abs(y))
    return np.where(y == 0, 0, np.where((x < 0) ^ (y < 0), -quotient, quotient))


def same(function: Callable[[Array], Array]) -> Operator:
    """One operand, the same precision, no attributes."""

    def run(
        arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
    ) -> Answer:
        (x,) = arrays
        return function(x), precisions[0]

    return run


def clip(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    low, high = a["a_min"], a["a_max"]
    assert -MOST <= low < high <= MOST
    precision = number_precision(max(abs(low), abs(high)))
    return np.clip(arrays[0], low, high), precision


def cvm_clip(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    most = limit(a["precision"])
    assert 1 <= a["precision"] <= 32
    return np.clip(arrays[0], -most, most), a["precision"]


def cvm_right_shift(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    (x,), shift, most = arrays, a["shift_bit"], limit(a["precision"])
    assert 1 <= shift <= 30 and 1 <= a["precision"] <= 32
    half = (x >> (shift - 1)) + 1
    assert half.max() <= MOST  # or the processor's addition overflows
    return np.clip(half >> 1, -most, most), a["precision"]


def cvm_precision(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    lengths = [max(1, abs(int(v)).bit_length()) for v in arrays[0].flat]
    return np.array(lengths, np.int64).reshape(arrays[0].shape), 6


def cvm_lut(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    x, entries = arrays
    assert a["in_dim"] == entries.size
    return entries.ravel()[np.clip(x, 0, entries.size - 1)], precisions[1]


def take(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    x, indices = arrays
    axis = a["axis"]
    size = x.size if axis is None else x.shape[axis]
    assert indices.min() >= 0 and indices.max() < size
    return np.take(x, indices, axis), precisions[0]


def sum_(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    (x,) = arrays
    # Both are known to be wrong on the processor with sizes of 1.
    assert 1 not in x.shape and not a["keepdims"] and not a["exclude"]
    y = np.atleast_1d(x.sum(axis=a["axis"] or None))
    return y, precisions[0] + (x.size // y.size).bit_length()


def concatenate(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    return np.concatenate(arrays, a["axis"]), max(precisions)


def reshape(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    assert min(a["shape"]) >= 1
    return arrays[0].reshape(a["shape"]), precisions[0]


def transpose(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    return arrays[0].transpose(a["axes"] or None), precisions[0]


def strided_slice(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    parts = zip(a["begin"], a["end"], a["stride"], strict=True)
    box = tuple(slice(*part) for part in parts)
    assert len(box) <= arrays[0].ndim
    return arrays[0][box], precisions[0]


def tile(
    arrays: Sequence[Array], precisions: Sequence[int], a: dict[str, Any]
) -> Answer:
    assert all(1 <= count <= 4096 for count in a["reps"])
    return np.tile(arrays[0], a["reps"]), precisions[0]


REQUIRED: Any = object()
Row = tuple[Operator, dict[str, Any]]
WINDOW: dict[str, Any] = {"strides": (1, 1), "padding": (0, 0)}
OPERATORS: dict[str, Row] = {
    "conv2d": (
        conv2d,
        {
            "channels": REQUIRED,
            "kernel_size": REQUIRED,
            **WINDOW,
            "dilation": (1, 1),
            "groups": 1,
            "use_bias": True,
        },
    ),
    "dense": (dense, {"units": REQUIRED, "use_bias": True}),
    "max_pool2d": (
        max_pool2d,
        {"pool_size": REQUIRED, **WINDOW, "ceil_mode": False},
    ),
    "relu": (same(lambda x: np.maximum(x, 0)), {}),
    "abs": (same(np.abs), {}),
    "negative": (same(np.negative), {}),
    "broadcast_add": (broadcast(np.add, lambda p, q: max(p, q) + 1), {}),
    "broadcast_sub": (broadcast(np.subtract, lambda p, q: max(p, q) + 1), {}),
    "broadcast_mul": (broadcast(np.multiply, lambda p, q: p + q), {}),
    "broadcast_max": (broadcast(np.maximum, max), {}),
    "broadcast_div": (broadcast(_truncated, lambda p, q: p), {}),
    "broadcast_greater": (
        broadcast(lambda x, y: (x > y).astype(np.int64), lambda p, q: p),
        {},
    ),
    "clip": (clip, {"a_min": REQUIRED, "a_max": REQUIRED}),
    "cvm_clip": (cvm_clip, {"precision": REQUIRED, "is_sign": True}),
    "cvm_right_shift": (
        cvm_right_shift,
        {"precision": REQUIRED, "is_sign": True, "shift_bit": REQUIRED},
    ),
    "cvm_precision": (cvm_precision, {}),
    "cvm_lut": (cvm_lut, {"in_dim": REQUIRED}),
    "take": (take, {"axis": None}),
    "sum": (sum_, {"axis": (), "keepdims": False, "exclude": False}),
    "concatenate": (concatenate, {"axis": 1}),
    "reshape": (reshape, {"shape": REQUIRED}),
    "transpose": (transpose, {"axes": ()}),
    "strided_slice": (
        strided_slice,
        {"begin": (0,), "end": (1,), "stride": ()},
    ),
    "tile": (tile, {"reps": REQUIRED}),
}


def attributes_of(operator: str, given: Attributes) -> dict[str, Any]:
    """The values of an operator's attributes, from their texts and from the defaults."""
    known = OPERATORS[operator][1]
    assert given.keys() <= known.keys(), (operator, given)
    found = {key: ast.literal_eval(text) for key, text in given.items()}
    missing = [
        key
        for key, default in known.items()
        if default is REQUIRED and key not in found
    ]
    assert not missing, (operator, missing)
    return known | found
