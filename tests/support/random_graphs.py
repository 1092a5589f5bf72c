"""Makes random canonical float models of 5 to 15 nodes of every family.

Their inputs are an image, a stack of matrices or a vector.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.float_models import FloatModel, f32

Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = (
    (1, 4, 6, 5),
    (1, 3, 8, 8),
    (2, 3, 4),
    (1, 5, 6),
    (1, 12),
    (3, 8),
    (7,),
    (1, 2, 3, 2, 4),
)
SMOOTH = (
    "Sigmoid",
    "Tanh",
    "Erf",
    "Softsign",
    "Softplus",
    "HardSwish",
    "Mish",
    "Abs",
)
STEPS = ("Floor", "Ceil", "Sign")


class RandomGraph:
    """Grows a model node by node; `values` maps each value so far to its shape."""

    def __init__(self, seed: int, *, curves: bool = True) -> None:
        self.rng = np.random.default_rng(seed)
        inputs = {"x": self._pick(SHAPES)}
        if self.rng.random() < 0.2:
            inputs["z"] = self._pick(SHAPES)
        self.model = FloatModel(**inputs)
        self.values: dict[str, Shape] = dict(inputs)
        self._makers = [*MAKERS, _curve, _softmax] if curves else MAKERS
        self._read: set[str] = set()
        for _ in range(int(self.rng.integers(5, 16))):
            self._grow()
        computed = [name for name in self.values if name not in inputs]
        ends = [name for name in computed if name not in self._read]
        middle = [
            name
            for name in computed
            if name in self._read and self.rng.random() < 0.1
        ]
        self.outputs = [*ends, *middle]

    def _grow(self) -> None:
        while True:
            x = self._pick(list(self.values)[-4:])
            if self._pick(self._makers)(self, x, self.values[x]):
                return

    def _pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def normal(self, *shape: int) -> np.ndarray:
        return f32(self.rng.normal(size=shape))

    def add(self, operator: str, shape: Shape, *inputs, **attributes) -> bool:
        self._read |= {item for item in inputs if isinstance(item, str)}
        self.values[self.model.add(operator, *inputs, **attributes)] = shape
        return True


def _sum_of_products(g: RandomGraph, x: str, shape: Shape) -> bool:
    if len(shape) == 4:
        return _convolution(g, x, shape)
    if len(shape) == 2:
        n = int(g.rng.integers(1, 9))
        weights = g.normal(n, shape[1]) / np.sqrt(shape[1]).astype(np.float32)
        attributes = {"transA": 0, "transB": 1, "alpha": 1.0, "beta": 1.0}
        return g.add(
            "Gemm",
            (shape[0], n),
            x,
            weights,
            g.normal(n) * g._pick([0, 1, 30]),
            **attributes,
        )
    if len(shape) < 3:
        return False
    if g.rng.random() < 0.5:
        k = int(g.rng.integers(1, 5))
        weights = g.normal(*shape[:-2], shape[-1], k) / np.sqrt(
            shape[-1]
        ).astype(np.float32)
        return g.add("MatMul", (*shape[:-1], k), x, weights)
    turned = g.model.add(
        "Transpose",
        x,
        perm=[*range(len(shape) - 2), len(shape) - 1, len(shape) - 2],
    )
    product = g.add("MatMul", (*shape[:-1], shape[-2]), x, turned)
    return product


def _convolution(g: RandomGraph, x: str, shape: Shape) -> bool:
    n, c, h, w = shape
    kernel = [g._pick([1, 2, 3]) for _ in range(2)]
    stride = [g._pick([1, 1, 2, 3]) for _ in range(2)]
    group = g._pick([d for d in range(1, c + 1) if c % d == 0])
    out = group * int(g.rng.integers(1, 4))
    pads = [int(g.rng.integers(0, k)) for k in (*kernel, *kernel)]
    fan_in = np.float32(np.sqrt(c // group * kernel[0] * kernel[1]))
    common = {
        "kernel_shape": kernel,
        "strides": stride,
        "pads": pads,
        "group": group,
    }
    bias = g.normal(out) * g._pick([0, 1, 30])
    if g.rng.random() < 0.3:
        extra = [int(g.rng.integers(0, s)) for s in stride]
        size = [
            (d - 1) * s + k - pads[i] - pads[i + 2] + e
            for i, (d, s, k, e) in enumerate(
                zip((h, w), stride, kernel, extra, strict=True)
            )
        ]
        if min(size) < 1 or max(size) > 40:
            return False
        weights = g.normal(c, out // group, *kernel) / fan_in
        extras = {"dilations": [1, 1], "output_padding": extra}
        return g.add(
            "ConvTranspose",
            (n, out, *size),
            x,
            weights,
            bias,
            **common,
            **extras,
        )
    dilation = [g._pick([1, 1, 2]) for _ in range(2)]
    size = [
        (d + pads[i] + pads[i + 2] - (k - 1) * e - 1) // s + 1
        for i, (d, s, k, e) in enumerate(
            zip((h, w), stride, kernel, dilation, strict=True)
        )
    ]
    if min(size) < 1:
        return False
    weights = g.normal(out, c // group, *kernel) / fan_in
    return g.add(
        "Conv", (n, out, *size), x, weights, bias, dilations=dilation, **common
    )


def _merge(g: RandomGraph, x: str, shape: Shape) -> bool:
    others = [
        y
        for y, other in g.values.items()
        if _broadcast(shape, other) is not None
    ]
    y = g._pick(others)
    operator = g._pick(["Add", "Add", "Sub", "Max", "Min", "Mul"])
    if operator == "Sub" and x == y:
        return False
    result = _broadcast(shape, g.values[y])
    return result is not None and g.add(operator, result, x, y)


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def _by_constant(g: RandomGraph, x: str, shape: Shape) -> bool:
    own = tuple(g._pick([1, size]) for size in shape)[
        int(g.rng.integers(0, len(shape) + 1)) :
    ]
    if len(shape) < 5 and g.rng.random() < 0.1:
        own = (2, *[1] * len(shape)) if shape[:1] != (1,) else (2, *shape[1:])
    array = g.normal(*own)
    if g.rng.random() < 0.4:
        array = np.abs(array) * np.float32(g._pick([1, -1]))
    result = np.broadcast_shapes(shape, own)
    return g.add(
        g._pick(["Add", "Sub", "Mul", "Mul", "Max", "Min"]), result, x, array
    )


def _note(g: RandomGraph, x: str, shape: Shape) -> bool:
    operator = g._pick(["Relu", "Clip", "Neg"])
    low = float(g.rng.normal())
    limits = (
        (f32(low), f32(low + abs(g.rng.normal()) + 0.5))
        if operator == "Clip"
        else ()
    )
    return g.add(operator, shape, x, *limits)


def _curve(g: RandomGraph, x: str, shape: Shape) -> bool:
    if g.rng.random() < 0.15:
        return g.add(g._pick(STEPS), shape, x)
    if g.rng.random() < 0.3:
        held = g.model.add("Clip", x, f32(0.25), f32(3.0))
        g._read.add(x)
        return g.add(g._pick(["Log", "Sqrt", "Reciprocal", "Exp"]), shape, held)
    y = g.model.add(g._pick(SMOOTH), x)
    g._read.add(x)
    g.values[y] = shape
    return g.rng.random() < 0.7 or g.add("Mul", shape, x, y)


def _window(g: RandomGraph, x: str, shape: Shape) -> bool:
    if len(shape) != 4:
        return False
    kernel = [g._pick([1, 2, 3]) for _ in range(2)]
    stride = [g._pick([1, 2, 3]) for _ in range(2)]
    pads = [int(g.rng.integers(0, k)) for k in (*kernel, *kernel)]
    size = [
        (d + pads[i] + pads[i + 2] - kernel[i]) // stride[i] + 1
        for i, d in enumerate(shape[2:])
    ]
    if min(size) < 1:
        return False
    operator = (
        "AveragePool" if any(pads) and g.rng.random() < 0.5 else "MaxPool"
    )
    attributes = {
        "kernel_shape": kernel,
        "strides": stride,
        "pads": pads,
        "ceil_mode": 0,
        "dilations": [1, 1],
    }
    if operator == "AveragePool":
        attributes["count_include_pad"] = 0
    else:
        attributes["storage_order"] = 0
    return g.add(operator, (*shape[:2], *size), x, **attributes)


def _reduction(g: RandomGraph, x: str, shape: Shape) -> bool:
    axes = [axis for axis in range(len(shape)) if g.rng.random() < 0.4] or [
        len(shape) - 1
    ]
    result = tuple(
        1 if axis in axes else size for axis, size in enumerate(shape)
    )
    operator = g._pick(["ReduceSum", "ReduceSum", "ReduceMax", "ReduceMin"])
    return g.add(
        operator, result, x, np.array(axes), keepdims=1, noop_with_empty_axes=0
    )


def _softmax(g: RandomGraph, x: str, shape: Shape) -> bool:
    return g.rng.random() < 0.5 and g.add(
        "Softmax", shape, x, axis=len(shape) - 1
    )


def _movement(g: RandomGraph, x: str, shape: Shape) -> bool:
    makers: list[Callable[[RandomGraph, str, Shape], bool]] = [
        _reshape,
        _transpose,
        _concat,
        _slice,
        _pad,
    ]
    return g._pick(makers)(g, x, shape)


def _reshape(g: RandomGraph, x: str, shape: Shape) -> bool:
    count = int(np.prod(shape))
    targets = [(1, count), (count,), (*shape, 1), (1, *shape)] + [
        (1, d, count // d) for d in (2, 3, 4) if count % d == 0
    ]
    targets += [
        (1, a, b, count // a // b)
        for a in (2, 3)
        for b in (2, 3)
        if count % (a * b) == 0
    ]
    target = g._pick([item for item in targets if len(item) <= 5])
    return g.add("Reshape", target, x, np.array(target), allowzero=0)


def _transpose(g: RandomGraph, x: str, shape: Shape) -> bool:
    perm = [int(axis) for axis in g.rng.permutation(len(shape))]
    return g.add("Transpose", tuple(shape[axis] for axis in perm), x, perm=perm)


def _concat(g: RandomGraph, x: str, shape: Shape) -> bool:
    axis = int(g.rng.integers(len(shape)))
    fits = [
        y
        for y, s in g.values.items()
        if _without(s, axis) == _without(shape, axis) and len(s) == len(shape)
    ]
    others = [g._pick(fits) for _ in range(int(g.rng.integers(1, 3)))]
    parts: list = [x, *others]
    sizes = [g.values[y][axis] for y in parts]
    if g.rng.random() < 0.3:
        parts.append(g.normal(*shape[:axis], 2, *shape[axis + 1 :]))
        sizes.append(2)
    return g.add(
        "Concat",
        (*shape[:axis], sum(sizes), *shape[axis + 1 :]),
        *parts,
        axis=axis,
    )


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _slice(g: RandomGraph, x: str, shape: Shape) -> bool:
    axes = [axis for axis in range(len(shape)) if g.rng.random() < 0.5] or [0]
    starts = [int(g.rng.integers(shape[axis])) for axis in axes]
    ends = [
        int(g.rng.integers(start + 1, shape[axis] + 1))
        for start, axis in zip(starts, axes, strict=True)
    ]
    steps = [g._pick([1, 1, 2, 3]) for _ in axes]
    size = list(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size[axis] = -(-(end - start) // step)
    return g.add(
        "Slice", tuple(size), x, *map(np.array, (starts, ends, axes, steps))
    )


def _pad(g: RandomGraph, x: str, shape: Shape) -> bool:
    before, after = (
        [int(g.rng.integers(0, 3)) for _ in shape] for _ in range(2)
    )
    size = tuple(
        b + s + a for b, s, a in zip(before, shape, after, strict=True)
    )
    if np.prod(size) > 4000:
        return False
    fill = f32(g._pick([0.0, 0.0, -1.5, 40.0]))
    return g.add(
        "Pad", size, x, np.array(before + after), fill, mode="constant"
    )


MAKERS = [
    _sum_of_products,
    _merge,
    _by_constant,
    _note,
    _window,
    _reduction,
    _movement,
]
