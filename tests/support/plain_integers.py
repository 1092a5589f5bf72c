"""A second implementation of every instruction, in Python's integers, one element at a time.

It follows `cvm/SPEC.md` word for word. It shares nothing with the machine and is slow.
Arrays hold Python integers (dtype object); booleans are 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray, Program

Shape = tuple[int, ...]
Pair = tuple[int, int]


def values_of(
    program: Program, inputs: dict[str, IntArray], dtypes: list[str]
) -> Iterator[IntArray]:
    """Yield the value of each instruction, in order; `dtypes` are those of all values."""
    known = [_exact(inputs[item.name]) for item in program.inputs] + [
        _exact(array) for array in program.constants
    ]
    for item in program.instructions:
        operands = [known[value] for value in item.operands]
        attributes = dict(item.attributes)
        if item.name in ("negate", "avg_pool2d", "table"):
            attributes["x_dtype"] = dtypes[item.operands[0]]
        known.append(_exact(MEANINGS[item.name](*operands, **attributes)))
        yield known[-1]


def _exact(array: IntArray) -> IntArray:
    exact = np.empty(array.shape, object)
    for place in np.ndindex(*array.shape):
        exact[place] = int(array[place])
    return exact


def _build(shape: Shape, element: Callable[..., int]) -> IntArray:
    built = np.empty(shape, object)
    for place in np.ndindex(*shape):
        built[place] = element(*place)
    return built


def _each(rule: Callable[..., int]) -> Callable[..., IntArray]:
    """Apply `rule` element by element; a dimension of 1 is repeated."""

    def apply(*operands: IntArray, **attributes: object) -> IntArray:
        shape = tuple(
            max(sizes)
            for sizes in zip(*(x.shape for x in operands), strict=True)
        )

        def element(*place: int) -> int:
            own = (
                x[
                    tuple(
                        0 if n == 1 else i
                        for i, n in zip(place, x.shape, strict=True)
                    )
                ]
                for x in operands
            )
            return rule(*own, **attributes)

        return _build(shape, element)

    return apply


def _saturate(value: int, dtype: str) -> int:
    low, high = DTYPE_RANGES[dtype]
    return min(max(value, low), high)


def _half_up(value: int, shift: int) -> int:
    return (2 * value + 2**shift) // 2 ** (shift + 1)


def _toward_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def conv2d(
    x: IntArray,
    w: IntArray,
    b: IntArray,
    *,
    pad: Shape,
    stride: Pair,
    dilation: Pair,
    groups: int,
    input_zp: int,
) -> IntArray:
    (images, rows, columns, _), (outputs, kh, kw, channels) = x.shape, w.shape
    height = (rows + pad[0] + pad[1] - (kh - 1) * dilation[0] - 1) // stride[
        0
    ] + 1
    width = (columns + pad[2] + pad[3] - (kw - 1) * dilation[1] - 1) // stride[
        1
    ] + 1

    def element(n: int, i: int, j: int, o: int) -> int:
        total = b[o]
        for p, q, c in np.ndindex(kh, kw, channels):
            u = i * stride[0] - pad[0] + p * dilation[0]
            v = j * stride[1] - pad[2] + q * dilation[1]
            if 0 <= u < rows and 0 <= v < columns:
                total += (
                    x[n, u, v, o // (outputs // groups) * channels + c]
                    - input_zp
                ) * w[o, p, q, c]
        return int(total)

    return _build((images, height, width, outputs), element)


def conv2d_transpose(
    x: IntArray,
    w: IntArray,
    b: IntArray,
    *,
    out_pad: Shape,
    stride: Pair,
    groups: int,
    input_zp: int,
) -> IntArray:
    (images, rows, columns, _), (outputs, kh, kw, channels) = x.shape, w.shape
    height = (rows - 1) * stride[0] + out_pad[0] + out_pad[1] + kh
    width = (columns - 1) * stride[1] + out_pad[2] + out_pad[3] + kw
    y = _build((images, height, width, outputs), lambda n, i, j, o: int(b[o]))
    for n, i, j, o, p, q, c in np.ndindex(
        images, rows, columns, outputs, kh, kw, channels
    ):
        u, v = i * stride[0] + out_pad[0] + p, j * stride[1] + out_pad[2] + q
        if 0 <= u < height and 0 <= v < width:
            y[n, u, v, o] += (
                x[n, i, j, o // (outputs // groups) * channels + c] - input_zp
            ) * w[o, p, q, c]
    return y


def dense(x: IntArray, w: IntArray, b: IntArray, *, input_zp: int) -> IntArray:
    return _build(
        (len(x), len(w)),
        lambda m, n: (
            b[n]
            + sum((x[m, k] - input_zp) * w[n, k] for k in range(x.shape[1]))
        ),
    )


def matmul(a: IntArray, b: IntArray, *, a_zp: int, b_zp: int) -> IntArray:
    def element(i: int, m: int, n: int) -> int:
        return sum(
            (a[i, m, k] - a_zp) * (b[i, k, n] - b_zp) for k in range(a.shape[2])
        )

    return _build((*a.shape[:2], b.shape[2]), element)


def rescale(
    x: IntArray,
    multiplier: IntArray,
    shift: IntArray,
    *,
    input_zp: int,
    output_zp: int,
    dtype: str,
) -> IntArray:
    def element(*place: int) -> int:
        c = place[-1] if len(multiplier) > 1 else 0
        return _saturate(
            _half_up((x[place] - input_zp) * multiplier[c], shift[c])
            + output_zp,
            dtype,
        )

    return _build(x.shape, element)


def table(x: IntArray, values: IntArray, *, x_dtype: str) -> IntArray:
    return _build(
        x.shape, lambda *place: values[x[place] - DTYPE_RANGES[x_dtype][0]]
    )


def interpolate(x: IntArray, values: IntArray) -> IntArray:
    def element(*place: int) -> int:
        knot = x[place] // 128
        left = values[knot + 256] * (128 * (knot + 1) - x[place])
        return left + values[knot + 257] * (x[place] - 128 * knot)

    return _build(x.shape, element)


def negate(
    x: IntArray, *, input_zp: int, output_zp: int, x_dtype: str
) -> IntArray:
    exact = _each(lambda a: input_zp - a + output_zp)(x)
    return (
        _each(lambda a: _saturate(a, "i8"))(exact) if x_dtype == "i8" else exact
    )


def gather(values: IntArray, indices: IntArray) -> IntArray:
    return _build(
        (*indices.shape, values.shape[2]),
        lambda n, w, c: values[n, indices[n, w], c],
    )


def _along(rule: Callable[[list[int]], int]) -> Callable[..., IntArray]:
    """Apply `rule` to every row along an axis, which stays with size 1."""

    def apply(x: IntArray, *, axis: int) -> IntArray:
        shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
        return _build(
            shape,
            lambda *place: rule(
                [*x[(*place[:axis], slice(None), *place[axis + 1 :])]]
            ),
        )

    return apply


def argmax(x: IntArray, *, axis: int) -> IntArray:
    return _along(lambda row: row.index(max(row)))(x, axis=axis).squeeze(axis)


def argsort(x: IntArray, *, descending: bool) -> IntArray:
    def element(*place: int) -> int:
        row = x[place[:-1]]
        order = sorted(
            range(len(row)),
            key=lambda i: (-row[i] if descending else row[i], i),
        )
        return order[place[-1]]

    return _build(x.shape, element)


def _windows(
    x: IntArray,
    kernel: Pair,
    stride: Pair,
    pad: Shape,
    rule: Callable[[list[int]], int],
) -> IntArray:
    """Apply `rule` to the positions of every window that lie inside x."""
    images, rows, columns, channels = x.shape
    height = (rows + pad[0] + pad[1] - kernel[0]) // stride[0] + 1
    width = (columns + pad[2] + pad[3] - kernel[1]) // stride[1] + 1

    def element(n: int, i: int, j: int, c: int) -> int:
        top, left = i * stride[0] - pad[0], j * stride[1] - pad[2]
        down = range(top, top + kernel[0])
        across = range(left, left + kernel[1])
        return rule(
            [
                x[n, u, v, c]
                for u in down
                for v in across
                if 0 <= u < rows and 0 <= v < columns
            ]
        )

    return _build((images, height, width, channels), element)


def max_pool2d(
    x: IntArray, *, kernel: Pair, stride: Pair, pad: Shape
) -> IntArray:
    return _windows(x, kernel, stride, pad, max)


def avg_pool2d(
    x: IntArray,
    *,
    kernel: Pair,
    stride: Pair,
    pad: Shape,
    input_zp: int,
    output_zp: int,
    x_dtype: str,
) -> IntArray:
    def mean(places: list[int]) -> int:
        total, count = sum(value - input_zp for value in places), len(places)
        k = next(k for k in range(32) if 2**k >= count)
        return _saturate(
            _half_up(total * ((2**30 + 1) * 2**k // count), 30 + k) + output_zp,
            x_dtype,
        )

    return _windows(x, kernel, stride, pad, mean)


def transpose(x: IntArray, *, perm: Shape) -> IntArray:
    shape = tuple(x.shape[axis] for axis in perm)
    return _build(
        shape,
        lambda *place: x[
            tuple(place[perm.index(axis)] for axis in range(x.ndim))
        ],
    )


def concat(*operands: IntArray, axis: int) -> IntArray:
    first = operands[0]

    def element(*place: int) -> int:
        i = place[axis]
        for x in operands:
            if i < x.shape[axis]:
                return int(x[(*place[:axis], i, *place[axis + 1 :])])
            i -= x.shape[axis]
        raise AssertionError

    total = sum(x.shape[axis] for x in operands)
    return _build(
        (*first.shape[:axis], total, *first.shape[axis + 1 :]), element
    )


def pad(x: IntArray, *, pads: Shape, value: int) -> IntArray:
    def element(*place: int) -> int:
        inner = tuple(
            i - before for i, before in zip(place, pads[::2], strict=True)
        )
        return (
            int(x[inner])
            if all(0 <= i < n for i, n in zip(inner, x.shape, strict=True))
            else value
        )

    return _build(
        tuple(n + sum(pads[2 * i : 2 * i + 2]) for i, n in enumerate(x.shape)),
        element,
    )


def tile(x: IntArray, *, multiples: Shape) -> IntArray:
    shape = tuple(
        n * times for n, times in zip(x.shape, multiples, strict=True)
    )
    return _build(
        shape,
        lambda *place: x[
            tuple(i % n for i, n in zip(place, x.shape, strict=True))
        ],
    )


def resize(
    x: IntArray, *, scale: Shape, offset: Pair, border: Pair, mode: str
) -> IntArray:
    images, *sizes, channels = x.shape
    axes = []  # for each output position of an axis: its neighbours, each with its weight
    for n, d, size, start, more in zip(
        scale[::2], scale[1::2], sizes, offset, border, strict=True
    ):
        places = []
        for i in range(((size - 1) * n - start + more) // d + 1):
            a = math.floor((i * d + start) / n)
            r = i * d + start - a * n
            before, after = max(a, 0), min(a + 1, size - 1)
            nearest = [(after if 2 * r >= n else before, 1)]
            places.append(
                nearest if mode == "nearest" else [(before, n - r), (after, r)]
            )
        axes.append(places)

    def element(n: int, i: int, j: int, c: int) -> int:
        return sum(
            x[n, u, v, c] * down * across
            for u, down in axes[0][i]
            for v, across in axes[1][j]
        )

    return _build((images, len(axes[0]), len(axes[1]), channels), element)


def nms(
    boxes: IntArray, scores: IntArray, classes: IntArray,
    *, keep: int, candidates: int, least_score: int, overlap: Pair, inclusive: bool, gaps: bool,
) -> IntArray:  # fmt: skip
    def side(a: list[int], b: list[int], axis: int) -> int:
        return max(min(a[axis + 2], b[axis + 2]) - max(a[axis], b[axis]), 0)

    def too_much(a: list[int], b: list[int]) -> bool:
        both = side(a, b, 0) * side(a, b, 1)
        union = (
            side(a, a, 0) * side(a, a, 1) + side(b, b, 0) * side(b, b, 1) - both
        )
        share, limit = both * overlap[1], overlap[0] * union
        return union > 0 and (share > limit or (inclusive and share == limit))

    def row(
        box: list[list[int]], score: list[int], label: list[int]
    ) -> list[int]:
        count = len(score)
        label = label * count if len(label) == 1 else label
        order = sorted(
            (i for i in range(count) if score[i] >= least_score),
            key=lambda i: (-score[i], i),
        )[:candidates]
        kept: list[int] = []
        for i in order:
            if not any(
                label[i] == label[j] and too_much(box[i], box[j]) for j in kept
            ):
                kept.append(i)
        shown = [i if i in kept else count for i in order] if gaps else kept
        return (shown + [count] * keep)[:keep]

    return np.array(
        [
            row(*each)
            for each in zip(
                boxes.tolist(), scores.tolist(), classes.tolist(), strict=True
            )
        ],
        object,
    )


MEANINGS: dict[str, Callable[..., IntArray]] = {
    "conv2d": conv2d,
    "conv2d_transpose": conv2d_transpose,
    "dense": dense,
    "matmul": matmul,
    "rescale": rescale,
    "clamp": _each(lambda x, min, max: sorted((min, x, max))[1]),
    "cast": _each(lambda x, dtype: int(x != 0) if dtype == "bool" else x),
    "add": _each(lambda x, y: x + y),
    "sub": _each(lambda x, y: x - y),
    "mul": _each(lambda x, y, shift: _half_up(x * y, shift)),
    "intdiv": _each(_toward_zero),
    "maximum": _each(max),
    "minimum": _each(min),
    "abs": _each(abs),
    "negate": negate,
    "shift_left": _each(lambda x, s: x * 2**s),
    "shift_right": _each(
        lambda x, s, round: _half_up(x, s) if round else x // 2**s
    ),
    "clz": _each(lambda x: f"{x % 2**32:032b}".find("1") if x else 32),
    "isqrt": _each(math.isqrt),
    "equal": _each(lambda x, y: int(x == y)),
    "greater": _each(lambda x, y: int(x > y)),
    "greater_equal": _each(lambda x, y: int(x >= y)),
    "logical_and": _each(lambda x, y: x * y),
    "logical_or": _each(lambda x, y: max(x, y)),
    "logical_not": _each(lambda x: 1 - x),
    "select": _each(lambda condition, x, y: x if condition else y),
    "table": table,
    "gather": gather,
    "interpolate": interpolate,
    "reduce_sum": _along(sum),
    "reduce_max": _along(max),
    "reduce_min": _along(min),
    "argmax": argmax,
    "argsort": argsort,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "reshape": lambda x, shape: x.reshape(shape),
    "transpose": transpose,
    "concat": concat,
    "slice": lambda x, start, size: _build(
        size, lambda *place: x[tuple(np.add(start, place))]
    ),
    "pad": pad,
    "tile": tile,
    "reverse": lambda x, axis: np.flip(x, axis),
    "resize": resize,
    "nms": nms,
}
