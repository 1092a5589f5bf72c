"""What models end in."""

from __future__ import annotations

from typing import Any

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.registry import Drawn, maker
from tests.mxnet_judge.sketch import Label


@maker("softmax", "log_softmax", "softmin", cases=24)
def softmax(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 5)
    attributes = {
        "axis": draw.maybe(-1, draw.axis(len(shape)), draw.axis(len(shape))),
        "temperature": draw.one(OMIT, OMIT, None, 1.0, draw.real(0.1, 4)),
        "dtype": draw.maybe("float32", None) if draw.chance(0.2) else OMIT,
        "use_length": draw.maybe(False) if draw.chance(0.2) else OMIT,
    }
    return Drawn([draw.data(shape)], attributes)


@maker("SoftmaxActivation", cases=16)
def softmax_activation(draw: Draw, name: str) -> Drawn:
    return Drawn(
        [draw.data(draw.shape(2, 4))],
        {"mode": draw.maybe("instance", "channel")},
    )


@maker("SoftmaxOutput", "Softmax", cases=16)
def softmax_output(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(2, 4)
    several, preserved = draw.maybe(True, False), draw.maybe(True, False)
    label = shape[:-1]
    if several is True:
        label = (shape[0], *shape[2:])
    attributes = {
        "multi_output": several,
        "preserve_shape": preserved,
        **_training(draw),
    }
    return Drawn([draw.data(shape), Label(draw.whole(label, 0, 1))], attributes)


def _training(draw: Draw) -> dict[str, Any]:
    if draw.chance(0.6):
        return {}
    return {
        "grad_scale": draw.maybe(0.5),
        "ignore_label": draw.maybe(-1.0),
        "use_ignore": draw.maybe(True, False),
        "normalization": draw.maybe("null", "batch", "valid"),
        "out_grad": draw.maybe(True, False),
        "smooth_alpha": draw.maybe(0.1),
    }


@maker(
    "LinearRegressionOutput",
    "MAERegressionOutput",
    "LogisticRegressionOutput",
    cases=5,
)
def regression_output(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(2, 4)
    return Drawn(
        [draw.data(shape), Label(draw.data(shape))],
        {"grad_scale": draw.maybe(0.5)},
    )


@maker("SVMOutput", cases=8)
def svm_output(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(2, 2)
    attributes = {
        "margin": draw.maybe(0.5),
        "regularization_coefficient": draw.maybe(0.5),
        "use_linear": draw.maybe(True, False),
    }
    return Drawn(
        [draw.data(shape), Label(draw.whole(shape[:1], 0, 1))], attributes
    )


@maker("MakeLoss", cases=6)
def make_loss(draw: Draw, name: str) -> Drawn:
    attributes = {
        "grad_scale": draw.maybe(0.5),
        "valid_thresh": draw.maybe(0.1),
        "normalization": draw.maybe("null", "batch", "valid"),
    }
    return Drawn([draw.data(draw.shape(1, 4))], attributes)
