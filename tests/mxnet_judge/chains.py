"""Several operators in a row, as models have them: each link knows the shape that it makes of the one before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.mxnet_judge.case import Case
from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.sketch import Edge, Parameter, Sketch

Shape = tuple[int, ...]
End = tuple[Edge, Shape]
Link = Callable[[Sketch, Edge, Shape], End]

LONGEST = 8
MOST_ELEMENTS = 4000


def chain(draw: Draw, name: str) -> Case:
    """3 to 8 links; those that do not suit the rank are passed over."""
    sketch = Sketch(draw)
    shape = (
        draw.image(least=4, most=8) if draw.chance(0.7) else draw.shape(2, 4)
    )
    edge = sketch.add(draw.data(shape))
    wanted = draw.integer(3, LONGEST)
    while wanted:
        ranks, link = draw.one(*LINKS)
        if len(shape) in ranks and np.prod(shape) <= MOST_ELEMENTS:
            edge, shape = link(sketch, edge, shape)
        wanted -= 1
    if edge == (0, 0):
        edge = sketch.node("relu", [edge])
    return sketch.case(name, [edge])


def _image_size(size: int, kernel: int, stride: int, pad: int) -> int:
    return (size + 2 * pad - kernel) // stride + 1


def convolution(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    draw = sketch.draw
    kernel = draw.one(1, 3)
    stride = draw.integer(1, 2)
    filters = draw.integer(1, 5)
    pad = kernel // 2
    weight = sketch.add(
        Parameter(
            draw.data((filters, shape[1], kernel, kernel)) * np.float32(0.5)
        )
    )
    attributes = {
        "kernel": (kernel,) * 2,
        "stride": (stride,) * 2,
        "pad": (pad,) * 2,
        "num_filter": filters,
        "no_bias": True,
    }
    sizes = [_image_size(size, kernel, stride, pad) for size in shape[2:]]
    return sketch.node("Convolution", [edge, weight], attributes), (
        shape[0],
        filters,
        *sizes,
    )


def batch_norm(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    draw = sketch.draw
    parameters = [
        sketch.add(Parameter(draw.data((shape[1],), kind)))
        for kind in ("any", "any", "any", "positive")
    ]
    attributes = {"fix_gamma": draw.maybe(True, False), "eps": draw.maybe(1e-5)}
    return sketch.node("BatchNorm", [edge, *parameters], attributes), shape


def pooling(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    draw = sketch.draw
    stride = draw.integer(1, 2)
    attributes = {
        "kernel": (3, 3),
        "stride": (stride,) * 2,
        "pad": (1, 1),
        "pool_type": draw.one("max", "avg"),
        "count_include_pad": draw.maybe(True, False),
    }
    return sketch.node("Pooling", [edge], attributes), (
        *shape[:2],
        *(_image_size(n, 3, stride, 1) for n in shape[2:]),
    )


def global_pooling(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    kind = sketch.draw.one("max", "avg")
    return sketch.node(
        "Pooling", [edge], {"global_pool": True, "pool_type": kind}
    ), (
        *shape[:2],
        1,
        1,
    )


def activation(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    kind = sketch.draw.one("relu", "sigmoid", "tanh", "softrelu", "softsign")
    return sketch.node("Activation", [edge], {"act_type": kind}), shape


def leaky(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    return sketch.node(
        "LeakyReLU",
        [edge],
        {"act_type": sketch.draw.one("leaky", "elu", "gelu", "selu")},
    ), shape


def unary(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    return sketch.node(
        sketch.draw.one(
            "abs", "negative", "sigmoid", "square", "softsign", "erf"
        ),
        [edge],
    ), shape


def scalar(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    name = sketch.draw.one(
        "_plus_scalar",
        "_mul_scalar",
        "_rminus_scalar",
        "_maximum_scalar",
        "_div_scalar",
    )
    return sketch.node(
        name, [edge], {"scalar": sketch.draw.one(0.5, 2.0, -1.5)}
    ), shape


def clip(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    return sketch.node(
        "clip", [edge], {"a_min": -0.5, "a_max": sketch.draw.one(1.0, 6.0)}
    ), shape


def dense(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    draw = sketch.draw
    flat, hidden = draw.maybe(True, False), draw.integer(2, 6)
    width = shape[-1] if flat is False else int(np.prod(shape[1:]))
    weight = sketch.add(
        Parameter(draw.data((hidden, width)) * np.float32(0.25))
    )
    bias = sketch.add(Parameter(draw.data((hidden,))))
    result = (*shape[:-1], hidden) if flat is False else (shape[0], hidden)
    return sketch.node(
        "FullyConnected",
        [edge, weight, bias],
        {"num_hidden": hidden, "flatten": flat},
    ), result


def residual(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    """Two ways from one value, joined again."""
    left, _ = activation(sketch, edge, shape)
    right, _ = scalar(sketch, edge, shape)
    return sketch.node(
        sketch.draw.one("elemwise_add", "elemwise_mul", "_maximum"),
        [left, right],
    ), shape


def operand(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    """With a tensor of the parameter file that is spread over the axes."""
    other = tuple(1 if sketch.draw.chance(0.5) else size for size in shape)
    name = sketch.draw.one(
        "broadcast_add", "broadcast_mul", "broadcast_sub", "broadcast_maximum"
    )
    return sketch.node(
        name, [edge, sketch.add(Parameter(sketch.draw.data(other)))]
    ), shape


def squeeze_excite(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    """Channels scaled by what their means say."""
    mean = sketch.node("mean", [edge], {"axis": (2, 3), "keepdims": True})
    gate = sketch.node("sigmoid", [mean])
    return sketch.node("broadcast_mul", [edge, gate]), shape


def concat(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    other, _ = unary(sketch, edge, shape)
    name = sketch.draw.one("Concat", "concat")
    return sketch.node(name, [edge, other], {"num_args": 2}), (
        shape[0],
        shape[1] * 2,
        *shape[2:],
    )


def split(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    """The second part is what goes on; the first is used by nothing."""
    axis = next(
        (axis for axis, size in enumerate(shape) if axis and size % 2 == 0),
        None,
    )
    if axis is None:
        return edge, shape
    node, _ = sketch.node(
        "SliceChannel", [edge], {"num_outputs": 2, "axis": axis}
    )
    return (node, 1), tuple(
        size // 2 if each == axis else size for each, size in enumerate(shape)
    )


def transpose(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    axes = sketch.draw.order(len(shape))
    return sketch.node("transpose", [edge], {"axes": axes}), tuple(
        shape[axis] for axis in axes
    )


def reshape(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    code, result = sketch.draw.one(
        ((0, -1), (shape[0], int(np.prod(shape[1:])))),
        ((-3, -2), (shape[0] * shape[1], *shape[2:])),
        ((0, 0, -1), (*shape[:2], int(np.prod(shape[2:])))),
    )
    return sketch.node("Reshape", [edge], {"shape": code}), result


def shuffle(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    """Channels dealt out anew, as ShuffleNet does."""
    if shape[1] % 2:
        return edge, shape
    halves = sketch.node("reshape", [edge], {"shape": (0, -4, 2, -1, -2)})
    dealt = sketch.node("SwapAxis", [halves], {"dim1": 1, "dim2": 2})
    return sketch.node("reshape", [dealt], {"shape": (0, -3, -2)}), shape


def reduction(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    axis = sketch.draw.integer(1, len(shape) - 1)
    name = sketch.draw.one("mean", "sum", "max", "min")
    return sketch.node(name, [edge], {"axis": axis}), tuple(
        n for each, n in enumerate(shape) if each != axis
    )


def slice_axis(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    axis = sketch.draw.integer(0, len(shape) - 1)
    end = sketch.draw.integer(1, shape[axis])
    result = tuple(
        end if each == axis else size for each, size in enumerate(shape)
    )
    return sketch.node(
        "slice_axis", [edge], {"axis": axis, "begin": 0, "end": end}
    ), result


def pad(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    mode = sketch.draw.one("constant", "edge")
    return (
        sketch.node(
            "Pad", [edge], {"mode": mode, "pad_width": (0, 0, 0, 0, 1, 0, 0, 2)}
        ),
        (*shape[:2], shape[2] + 1, shape[3] + 2),
    )


def up_sampling(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    attributes = {"scale": 2, "sample_type": "nearest", "num_args": 1}
    return sketch.node("UpSampling", [edge], attributes), (
        *shape[:2],
        shape[2] * 2,
        shape[3] * 2,
    )


def deconvolution(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    filters = sketch.draw.integer(1, 4)
    weight = sketch.add(
        Parameter(sketch.draw.data((shape[1], filters, 4, 4)) * np.float32(0.5))
    )
    attributes = {
        "kernel": (4, 4),
        "stride": (2, 2),
        "pad": (1, 1),
        "num_filter": filters,
        "no_bias": OMIT,
    }
    return sketch.node("Deconvolution", [edge, weight], attributes), (
        shape[0],
        filters,
        shape[2] * 2,
        shape[3] * 2,
    )


def softmax(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    return sketch.node(
        "softmax", [edge], {"axis": sketch.draw.maybe(1, -1)}
    ), shape


def dropout(sketch: Sketch, edge: Edge, shape: Shape) -> End:
    return sketch.node("Dropout", [edge], {"p": 0.5}), shape


IMAGE, ANY = (4,), (2, 3, 4, 5)
LINKS: tuple[tuple[tuple[int, ...], Link], ...] = (
    *(
        (IMAGE, link)
        for link in (
            convolution,
            convolution,
            batch_norm,
            pooling,
            global_pooling,
            squeeze_excite,
        )
    ),
    *((IMAGE, link) for link in (pad, up_sampling, deconvolution, shuffle)),
    *(
        (ANY, link)
        for link in (
            batch_norm,
            activation,
            leaky,
            unary,
            scalar,
            clip,
            dense,
            residual,
            operand,
            concat,
        )
    ),
    *((ANY, link) for link in (split, transpose, slice_axis, softmax, dropout)),
    *(((3, 4, 5), link) for link in (reshape, reduction)),
)
