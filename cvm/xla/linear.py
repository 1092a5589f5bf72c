"""Sums of products. Bytes are multiplied as they are, and the zero point is taken off the sum."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from cvm.xla.arrays import RAW_TERMS, Operand, centred, is_bytes, product
from cvm.xla.windows import patches


def conv2d(
    x: Operand,
    w: Operand,
    b: Operand,
    *,
    pad: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    input_zp: int,
) -> Array:
    """The windows of x as rows, times the weights of each group. Padded places hold the zero point."""
    top, bottom, left, right = pad
    edges = ((0, 0, 0), (top, bottom, 0), (left, right, 0), (0, 0, 0))
    padded = lax.pad(jnp.asarray(x), _same(x, input_zp), edges)
    rows = patches(padded, w.shape[1:3], stride, dilation)
    return _by_groups(rows, w, groups, input_zp) + b


def conv2d_transpose(
    x: Operand,
    w: Operand,
    b: Operand,
    *,
    out_pad: tuple[int, ...],
    stride: tuple[int, ...],
    groups: int,
    input_zp: int,
) -> Array:
    """A convolution by the reversed kernel, of x with stride - 1 zero points between its places."""
    kh, kw = w.shape[1:3]
    down, right = stride
    edges = (
        (0, 0, 0),
        (kh - 1 + out_pad[0], kh - 1 + out_pad[1], down - 1),
        (kw - 1 + out_pad[2], kw - 1 + out_pad[3], right - 1),
        (0, 0, 0),
    )
    spread = lax.pad(jnp.asarray(x), _same(x, input_zp), edges)
    rows = patches(spread, (kh, kw), (1, 1), (1, 1))
    return _by_groups(rows, w[:, ::-1, ::-1], groups, input_zp) + b


def _same(x: Operand, value: int) -> Array:
    return jnp.asarray(value, x.dtype)


def _by_groups(rows: Array, w: Operand, groups: int, zero_point: int) -> Array:
    """`rows[N,OH,OW,KH*KW,C]` times `w[O,KH,KW,C/groups]`: sums [N,OH,OW,O]."""
    n, height, width, taps, channels = rows.shape
    outputs, share = w.shape[0], channels // groups
    if outputs == channels == groups:
        return _depthwise(rows, w, zero_point)
    places = n * height * width
    left = rows.reshape(places, taps, groups, share)
    left = left.transpose(2, 0, 1, 3).reshape(groups, places, taps * share)
    right = w.reshape(groups, outputs // groups, taps * share)
    sums = _sums(left, right, zero_point)
    return sums.transpose(1, 0, 2).reshape(n, height, width, outputs)


def _depthwise(rows: Array, w: Operand, zero_point: int) -> Array:
    """Each channel by itself: products element by element, in 32 bits."""
    channels, taps = w.shape[0], rows.shape[3]
    weights = w.reshape(channels, taps).T
    products = centred(rows, zero_point) * weights.astype(np.int32)
    return jnp.sum(products, axis=3, dtype=np.int32)


def _sums(left: Array, right: Operand, zero_point: int) -> Array:
    """`left[G,M,K] - zero_point` times `right[G,N,K]`, transposed: [G,M,N]."""
    if left.shape[0] == 1:
        return _plain(left[0], right[0], zero_point)[None]
    if not _fits_raw(left, right):
        right = right.astype(np.int32)
        return product(centred(left, zero_point), right, (2, 2), True)
    raw = product(left, right, (2, 2), True)
    return raw - _offsets(right, zero_point)[:, None]


def _plain(left: Operand, right: Operand, zero_point: int) -> Array:
    """`left[M,K] - zero_point` times `right[N,K]`, transposed: [M,N]."""
    if not _fits_raw(left, right):
        right = right.astype(np.int32)
        return product(centred(left, zero_point), right, (1, 1), False)
    raw = product(left, right, (1, 1), False)
    return raw - _offsets(right, zero_point)


def _fits_raw(left: Operand, right: Operand) -> bool:
    """Whether sums of bytes fit before the zero point is taken off."""
    return is_bytes(left, right) and left.shape[-1] <= RAW_TERMS


def _offsets(right: Operand, zero_point: int) -> Operand:
    """What a zero point adds to each sum."""
    return right.sum(axis=-1, dtype=np.int32) * np.int32(zero_point)


def dense(x: Operand, w: Operand, b: Operand, *, input_zp: int) -> Array:
    """`y[m,n] = b[n] + sum over k of (x[m,k] - input_zp) w[n,k]`."""
    return _plain(x, w, input_zp) + b


def matmul(a: Operand, b: Operand, *, a_zp: int, b_zp: int) -> Array:
    """Both sides may be computed."""
    if not a_zp and not b_zp and _fits_raw(a, b):
        return product(a, b, (2, 1), True)
    return product(centred(a, a_zp), centred(b, b_zp), (2, 1), True)
