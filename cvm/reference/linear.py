"""Sums of products: conv2d, conv2d_transpose, dense, matmul. Weights are constants: each channel has its bound."""

from __future__ import annotations

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray, TensorType
from cvm.program.bounds import Bounds
from cvm.reference.call import Call
from cvm.reference.convolution import conv2d as conv2d
from cvm.reference.convolution import conv2d_transpose as conv2d_transpose
from cvm.reference.products import INT32_LIMIT, accumulator_for, products
from cvm.reference.scale import check_zero_point
from cvm.reference.window import MAX_STEP, output_size


def check_conv2d(call: Call) -> TensorType:
    """x[N,H,W,C], w[O,KH,KW,C/groups], b[O]; the windows must cover the padded input exactly."""
    x, w, _ = call.types
    pad = call.integers("pad")
    stride = call.integers("stride")
    dilation = call.integers("dilation")
    _check_operands(call, rank=4)
    call.require(
        all(0 <= amount <= MAX_STEP for amount in pad)
        and all(1 <= step <= MAX_STEP for step in (*stride, *dilation)),
        "C5",
        f"pad {pad}, stride {stride}, dilation {dilation}: need 0..{MAX_STEP}, 1..{MAX_STEP}, 1..{MAX_STEP}",
    )
    _check_groups(call)
    size = [
        output_size(
            call,
            "C7",
            x.shape[1 + i],
            (w.shape[1 + i] - 1) * dilation[i] + 1,
            sum(pad[2 * i : 2 * i + 2]),
            step,
        )
        for i, step in enumerate(stride)
    ]
    return TensorType("i32", (x.shape[0], *size, w.shape[0]))


def check_conv2d_transpose(call: Call) -> TensorType:
    """x[N,H,W,C], w[O,KH,KW,C/groups], b[O]; out_pad adds to (or, negative, cuts from) the output's edges."""
    x, w, _ = call.types
    stride, out_pad = call.integers("stride"), call.integers("out_pad")
    kernel = w.shape[1:3]
    _check_operands(call, rank=4)
    call.require(
        all(1 <= step <= MAX_STEP for step in stride)
        and all(
            -kernel[i // 2] < amount <= MAX_STEP
            for i, amount in enumerate(out_pad)
        ),
        "C5",
        f"stride {stride}, out_pad {out_pad}: need 1..{MAX_STEP}, and above minus the kernel {kernel} to {MAX_STEP}",
    )
    _check_groups(call)
    size = [
        (x.shape[1 + i] - 1) * stride[i]
        + kernel[i]
        + sum(out_pad[2 * i : 2 * i + 2])
        for i in (0, 1)
    ]
    call.require(
        min(size) >= 1,
        "C7",
        f"the output size {size[0]}x{size[1]} is not positive",
    )
    return TensorType("i32", (x.shape[0], *size, w.shape[0]))


def check_dense(call: Call) -> TensorType:
    """x[M,K], w[N,K], b[N]."""
    x, w, _ = call.types
    _check_operands(call, rank=2)
    call.require(
        w.shape[1] == x.shape[1],
        "C5",
        f"w {w} has {w.shape[1]} columns; x {x} has {x.shape[1]}",
    )
    return TensorType("i32", (x.shape[0], w.shape[0]))


def check_matmul(call: Call) -> TensorType:
    """a[B,M,K] times b[B,K,N], both i8 or both i16."""
    a, b = call.types
    call.require(
        a.dtype == b.dtype and a.dtype in ("i8", "i16"),
        "C1",
        f"a {a}, b {b}; expected i8 twice or i16 twice",
    )
    call.require(
        a.rank == b.rank == 3
        and a.shape[0] == b.shape[0]
        and a.shape[2] == b.shape[1],
        "C2",
        f"a {a}, b {b}; expected [B,M,K] and [B,K,N]",
    )
    check_zero_point(call, "C3", a.dtype, call.integer("a_zp"))
    check_zero_point(call, "C4", b.dtype, call.integer("b_zp"))
    return TensorType("i32", (*a.shape[:2], b.shape[2]))


def _check_operands(call: Call, rank: int) -> None:
    """C1 to C4, the same for every instruction with weights and bias."""
    x, w, b = call.types
    call.require(
        x.dtype in ("i8", "i16") and x.rank == rank,
        "C1",
        f"x is {x}; expected i8 or i16 of rank {rank}",
    )
    call.require(
        w.dtype == "i8" and w.rank == rank,
        "C2",
        f"w is {w}; expected i8 of rank {rank}",
    )
    call.require(
        b == TensorType("i32", w.shape[:1]),
        "C3",
        f"b is {b}; expected i32[{w.shape[0]}]",
    )
    check_zero_point(call, "C4", x.dtype, call.integer("input_zp"))


def _check_groups(call: Call) -> None:
    x, w, _ = call.types
    groups, channels, outputs = call.integer("groups"), x.shape[3], w.shape[0]
    call.require(
        groups >= 1
        and outputs % groups == 0
        and w.shape[3] * groups == channels,
        "C6",
        f"groups {groups} with {channels} input channels, {outputs} output channels and w {w}",
    )


def bound_conv2d(call: Call) -> Bounds:
    """All taps at once, per output channel."""
    w = call.constant(1)
    return _biased(
        call, "C8", _sum_bounds(call, w.reshape(w.shape[0], 1, -1, w.shape[3]))
    )


def bound_conv2d_transpose(call: Call) -> Bounds:
    """One output place adds up only the taps of one residue modulo the stride: the hull over the residues."""
    return _biased(
        call,
        "C8",
        _sum_bounds(
            call, _by_residue(call.constant(1), call.integers("stride"))
        ),
    )


def _by_residue(w: IntArray, stride: tuple[int, ...]) -> IntArray:
    """w[O,KH,KW,C] as [O,R,T,C]: the T taps of each of R residues, filled up with zeros: at most four times w."""
    outputs, height, width, channels = w.shape
    down, right = min(stride[0], height), min(stride[1], width)
    padded = np.pad(
        w, ((0, 0), (0, -height % down), (0, -width % right), (0, 0))
    )
    taps = padded.reshape(
        outputs,
        padded.shape[1] // down,
        down,
        padded.shape[2] // right,
        right,
        channels,
    )
    return taps.transpose(0, 2, 4, 1, 3, 5).reshape(
        outputs, down * right, -1, channels
    )


def bound_dense(call: Call) -> Bounds:
    """Per row of w."""
    return _biased(
        call,
        "C6",
        _sum_bounds(call, call.constant(1)[:, np.newaxis, np.newaxis]),
    )


def _sum_bounds(call: Call, w: IntArray) -> Bounds:
    """Per output channel of w[O,R,T,C]: products hulled with 0, summed over T and the group's channels, hulled over R.

    With p = max(hi, 0) and q = max(-lo, 0) of x - input_zp, a product reaches w+ p + w- q above and w+ q + w- p below,
    where w = w+ - w-.
    """
    outputs, residues, taps, channels = w.shape
    groups = call.integer("groups") if "groups" in call.attributes else 1
    above, below = (
        reach.reshape(groups, channels)
        for reach in _reach(
            call.bounds[0], call.integer("input_zp"), groups * channels
        )
    )
    narrow = (
        np.int32 if taps < 2**24 else np.int64
    )  # weights may be many: sum them in the narrowest exact type
    positive, total = (
        (
            weights
            if taps == 1
            else np.einsum("ortc->orc", weights, dtype=narrow)
        ).reshape(groups, -1, channels)
        for weights in (np.maximum(w, 0), w)
    )
    both = np.einsum("goc,gc->go", positive, above + below)
    hi = both - np.einsum("goc,gc->go", total, below)
    lo = np.einsum("goc,gc->go", total, above) - both
    return Bounds(
        lo.reshape(outputs, residues).min(axis=1),
        hi.reshape(outputs, residues).max(axis=1),
    )


def _reach(
    bounds: Bounds, zero_point: int, channels: int
) -> tuple[IntArray, IntArray]:
    """How far x - zero_point reaches above and below 0, for each of `channels` indices."""
    above = np.maximum(bounds.hi - zero_point, 0)
    below = np.maximum(zero_point - bounds.lo, 0)
    if len(above) == channels:
        return above, below
    return np.broadcast_to(above.max(), channels), np.broadcast_to(
        below.max(), channels
    )


def _biased(call: Call, constraint: str, sums: Bounds) -> Bounds:
    """The sums plus the bias. Both with and without it they must fit i32, so that no order of adding can overflow."""
    bias = call.constant(2).astype(np.int64)
    result = Bounds(sums.lo + bias, sums.hi + bias)
    _prove_fits(call, constraint, sums, "the sum of products")
    _prove_fits(call, constraint, result, "the sum with the bias")
    return result


def _prove_fits(
    call: Call, constraint: str, interval: Bounds, what: str
) -> None:
    low, high = DTYPE_RANGES["i32"]
    call.prove(
        interval.fits("i32"),
        constraint,
        f"{what} lies in {interval.min}..{interval.max}, outside i32 ({low}..{high})",
    )


def bound_matmul(call: Call) -> Bounds:
    """Per index of b's last axis: each product's interval hulled with 0, summed over K."""
    count = call.types[0].shape[2]
    above, below = _reach(
        call.bounds[0], call.integer("a_zp"), len(call.bounds[0].lo)
    )
    b_above, b_below = _reach(
        call.bounds[1], call.integer("b_zp"), len(call.bounds[1].lo)
    )
    times = count // len(above)  # one interval may stand for all K places
    hi = _sum_of_larger(above, below, b_above, b_below) * times
    lo = -_sum_of_larger(above, below, b_below, b_above) * times
    _prove_fits(call, "C5", Bounds(lo, hi), "the sum of products")
    return Bounds(lo, hi)


def _sum_of_larger(
    a: IntArray, c: IntArray, b: IntArray, d: IntArray
) -> IntArray:
    """For every n, the sum over k of max(a[k] b[n], c[k] d[n]), all in 0..2^17, without the K x N products.

    a[k] b[n] is the larger one where a[k] / c[k] >= d[n] / b[n]: sort k by that ratio, and each n cuts the order.
    Different ratios differ by more than 2^-34, so 36 fraction bits order them exactly.
    """
    ratio, cut = _ratio(a, c), _ratio(d, b)
    order = np.argsort(ratio, kind="stable")
    split = np.searchsorted(ratio[order], cut)
    below = np.concatenate([[0], np.cumsum(c[order])])
    above = np.concatenate([np.cumsum(a[order][::-1])[::-1], [0]])
    sums: IntArray = above[split] * b + below[split] * d
    return sums


def _ratio(numerator: IntArray, denominator: IntArray) -> IntArray:
    quotient = (numerator << 36) // np.maximum(denominator, 1)
    return np.where(denominator == 0, 2**62, quotient)


def dense(x: IntArray, w: IntArray, b: IntArray, *, input_zp: int) -> IntArray:
    """y[m,n] = b[n] + sum over k of (x[m,k] - input_zp) w[n,k]."""
    shifted = x.astype(np.int32) - input_zp
    accumulator = accumulator_for(shifted, w, b)
    return (
        products(shifted.astype(accumulator, copy=False), w.astype(accumulator))
        + b
    )


def matmul(a: IntArray, b: IntArray, *, a_zp: int, b_zp: int) -> IntArray:
    """y[i,m,n] = sum over k of (a[i,m,k] - a_zp) (b[i,k,n] - b_zp)."""
    left, right = a.astype(np.int64) - a_zp, b.astype(np.int64) - b_zp
    reach = int(np.abs(left).sum(axis=2).max()) * int(np.abs(right).max())
    accumulator = np.int32 if reach <= INT32_LIMIT else np.int64
    left = left.astype(accumulator)
    right = np.ascontiguousarray(right.transpose(0, 2, 1).astype(accumulator))
    return np.stack(
        [
            products(rows, columns)
            for rows, columns in zip(left, right, strict=True)
        ]
    )
