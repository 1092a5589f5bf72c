"""Layers with parameters and the activations between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.registry import Drawn, maker
from tests.mxnet_judge.sketch import Parameter

CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def window(
    draw: Draw, rank: int, least: int, most: int, default: bool = True
) -> Any:
    """One number per spatial axis, or left out."""
    numbers = tuple(draw.integer(least, most) for _ in range(rank))
    return draw.maybe(numbers, numbers) if default else numbers


def some_rank(draw: Draw) -> int:
    return draw.one(1, 2, 2, 2, 2, 3)


def tuning(draw: Draw) -> dict[str, Any]:
    """Attributes that only concern speed."""
    if draw.chance(0.6):
        return {}
    return {
        "workspace": draw.maybe(512),
        "cudnn_tune": draw.maybe("off", "limited_workspace", None),
        "cudnn_off": draw.maybe(True, False),
    }


@maker("Convolution", cases=60)
@maker("Convolution_v1", cases=16)
def convolution(draw: Draw, name: str) -> Drawn:
    rank = 2 if name.endswith("v1") else some_rank(draw)
    groups = draw.one(1, 1, 2, 3)
    channels, filters = groups * draw.integer(1, 3), groups * draw.integer(1, 3)
    if draw.chance(0.15):  # depthwise
        groups = filters = channels
    data = draw.data(draw.image(rank, channels=channels, least=5))
    kernel = window(draw, rank, 1, 3, default=False)
    bare = draw.maybe(True, False)
    attributes = {
        "kernel": kernel,
        "stride": window(draw, rank, 1, 3),
        "dilate": window(draw, rank, 1, 2) if draw.chance(0.4) else OMIT,
        "pad": window(draw, rank, 0, 2),
        "num_filter": filters,
        "num_group": groups if groups > 1 else draw.maybe(1),
        "no_bias": bare,
        "layout": draw.maybe(LAYOUTS[rank], None),
        **tuning(draw),
    }
    weight = Parameter(draw.data((filters, channels // groups, *kernel)))
    bias = [] if bare is True else [Parameter(draw.data((filters,)))]
    return Drawn([data, weight, *bias], attributes)


@maker("Deconvolution", cases=60)
def deconvolution(draw: Draw, name: str) -> Drawn:
    rank = draw.one(1, 2, 2, 2, 2, 2, 3)
    groups = draw.one(1, 1, 2)
    channels, filters = groups * draw.integer(1, 3), groups * draw.integer(1, 3)
    data = draw.data(draw.image(rank, channels=channels, most=6))
    kernel = window(draw, rank, 1, 4, default=False)
    strides = window(draw, rank, 1, 3)
    dilation = window(draw, rank, 1, 2) if draw.chance(0.2) else OMIT
    bare = draw.maybe(True, False)
    attributes = {
        "kernel": kernel,
        "stride": strides,
        "dilate": dilation,
        "pad": window(draw, rank, 0, min(1, min(kernel) - 1)),
        "num_filter": filters,
        "num_group": groups if groups > 1 else draw.maybe(1),
        "no_bias": bare,
        "layout": draw.maybe(LAYOUTS[rank], None),
        **_result_size(draw, data.shape, kernel, strides),
        **tuning(draw),
    }
    weight = Parameter(draw.data((channels, filters // groups, *kernel)))
    bias = [Parameter(draw.data((filters,)))] if bare is False else []
    return Drawn([data, weight, *bias], attributes)


def _result_size(
    draw: Draw, shape: tuple[int, ...], kernel: tuple[int, ...], strides: Any
) -> dict[str, Any]:
    """adj, below the stride; or target_shape, near what stride times input gives."""
    steps = (1,) * len(kernel) if strides is OMIT else strides
    if draw.chance(0.3):
        return {"adj": tuple(draw.integer(0, step - 1) for step in steps)}
    if draw.chance(0.4):
        whole = [
            (n - 1) * step + k
            for n, step, k in zip(shape[2:], steps, kernel, strict=True)
        ]
        return {
            "target_shape": tuple(
                max(1, size - draw.integer(0, 2)) for size in whole
            )
        }
    return {}


@maker("_sparse_FullyConnected", cases=8)
@maker("FullyConnected", cases=40)
def fully_connected(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(2, 4)
    flat = draw.maybe(True, False)
    width = shape[-1] if flat is False else int(np.prod(shape[1:]))
    hidden, bare = draw.integer(1, 5), draw.maybe(True, False)
    weight = Parameter(draw.data((hidden, width)))
    bias = [] if bare is True else [Parameter(draw.data((hidden,)))]
    return Drawn(
        [draw.data(shape), weight, *bias],
        {"num_hidden": hidden, "no_bias": bare, "flatten": flat},
    )


@maker("_contrib_BatchNormWithReLU", cases=16)
@maker("CuDNNBatchNorm", cases=4)
@maker("BatchNorm", cases=40)
@maker("BatchNorm_v1", cases=12)
def batch_norm(draw: Draw, name: str) -> Drawn:
    older = name.endswith("v1")
    shape = draw.image() if older else draw.shape(2, 5)
    axis = (
        OMIT
        if older
        else draw.maybe(1, draw.axis(len(shape)), draw.axis(len(shape)))
    )
    size = shape[1 if axis is OMIT else axis]
    attributes = {
        "eps": draw.one(OMIT, 1e-5, 2e-5, 0.01),
        "fix_gamma": draw.maybe(True, False),
        "use_global_stats": draw.maybe(True, False),
        "momentum": draw.maybe(0.9),
        "output_mean_var": OMIT if draw.chance(0.8) else False,
        "axis": axis,
    }
    if not older:
        attributes["cudnn_off"] = draw.maybe(True, False)
        if draw.chance(0.1):
            attributes |= {"min_calib_range": -2.5, "max_calib_range": 3.0}
    kinds = ("any", "any", "any", "positive")
    return Drawn(
        [
            draw.data(shape),
            *(Parameter(draw.data((size,), kind)) for kind in kinds),
        ],
        attributes,
    )


@maker("_contrib_SyncBatchNorm", cases=12)
def sync_batch_norm(draw: Draw, name: str) -> Drawn:
    """As BatchNorm on axis 1; `key` names what several devices share."""
    shape = draw.shape(2, 4)
    attributes = {
        "eps": draw.maybe(1e-5),
        "momentum": draw.maybe(0.5),
        "fix_gamma": draw.maybe(True, False),
        "use_global_stats": draw.maybe(True, False),
        "output_mean_var": draw.maybe(False),
        "ndev": draw.maybe(1),
        "key": draw.one("bn", "net0_bn", "bn", OMIT),
    }
    kinds = ("any", "any", "any", "positive")
    return Drawn(
        [
            draw.data(shape),
            *(Parameter(draw.data((shape[1],), kind)) for kind in kinds),
        ],
        attributes,
    )


@maker("Activation", cases=30)
def activation(draw: Draw, name: str) -> Drawn:
    kind = draw.one("relu", "sigmoid", "tanh", "softrelu", "softsign")
    return Drawn([draw.data(draw.shape(1, 5))], {"act_type": kind})


@maker("LeakyReLU", cases=50)
def leaky_relu(draw: Draw, name: str) -> Drawn:
    kind = draw.maybe("leaky", "elu", "prelu", "selu", "gelu", "rrelu")
    shape = draw.shape(2 if kind == "prelu" else 1, 5)
    attributes = {
        "act_type": kind,
        "slope": draw.maybe(draw.real(0, 1)),
        "lower_bound": draw.maybe(0.1),
        "upper_bound": draw.maybe(0.5),
    }
    slopes = (
        [Parameter(draw.data((draw.one(1, shape[1]),)))]
        if kind == "prelu"
        else []
    )
    return Drawn([draw.data(shape), *slopes], attributes)


@maker("Dropout", cases=10)
def dropout(draw: Draw, name: str) -> Drawn:
    attributes = {
        "p": draw.maybe(0.5, 0.0, 0.9),
        "mode": draw.maybe("training"),
        "axes": draw.maybe((), (0,)),
        "cudnn_off": draw.maybe(True, False, None),
    }
    return Drawn([draw.data(draw.shape(1, 5))], attributes)
