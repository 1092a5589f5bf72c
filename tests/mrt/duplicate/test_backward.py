"""The derivative of a float model, against differences of its outputs."""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.session import FloatSession
from mrt.duplicate.backward import Backward, sums_of_channels
from mrt.rewrite import rewrite
from tests.support.float_models import FloatModel, f32

STEP = 2.0**-8


def rng() -> np.random.Generator:
    """The same for everybody, in whatever order tests run."""
    return np.random.default_rng(8)


def conv(
    model: FloatModel,
    x: str,
    outputs: int = 4,
    inputs: int = 4,
    kernel: int = 3,
    **attributes: object,
) -> str:
    weights = rng().normal(
        size=(outputs, inputs // attributes.get("group", 1), kernel, kernel)
    )
    return model.conv(x, weights, rng().normal(size=outputs), **attributes)


def two_strides(model: FloatModel, x: str) -> str:
    return conv(model, x, strides=[2, 3], pads=(1, 0, 2, 1))


def two_ways(model: FloatModel, x: str) -> str:
    both = model.add(
        "Add", model.add("Relu", conv(model, x, pads=(1, 1, 1, 1))), x
    )
    return model.add(
        "Sub",
        model.add("Concat", both, x, axis=1),
        model.add("Concat", x, x, axis=1),
    )


def scaled(model: FloatModel, x: str) -> str:
    """A factor for each channel, as attention has."""
    channel = model.add(
        "Sigmoid", model.add("ReduceSum", x, np.array([2, 3]), keepdims=1)
    )
    return model.add(
        "Mul",
        channel,
        model.add("Mul", x, f32(rng().normal(size=(1, 4, 1, 1)))),
    )


def classes(model: FloatModel, x: str) -> str:
    y = model.add(
        "Reshape",
        model.add("ReduceSum", x, np.array([2, 3]), keepdims=1),
        np.array([1, 4]),
    )
    return model.gemm(y, rng().normal(size=(7, 4)), rng().normal(size=7))


def shortcut(model: FloatModel, x: str) -> str:
    """As of residual networks that halve an image and double its channels without a convolution."""
    taken = model.add(
        "Slice",
        x,
        np.array([0, -8]),
        np.array([9, 9]),
        np.array([2, 3]),
        np.array([2, 3]),
    )
    return model.add("Pad", taken, np.array([0, 2, 0, 0, 0, 2, 1, 0]), f32(0.0))


BUILDERS: dict[str, Callable[[FloatModel, str], str]] = {
    "convolution": lambda model, x: conv(model, x, pads=(1, 0, 2, 1)),
    "strides": two_strides,
    "groups": lambda model, x: conv(
        model, x, outputs=8, group=2, dilations=[2, 1]
    ),
    "groups with strides": lambda model, x: conv(
        model, x, outputs=8, group=4, strides=[2, 2], dilations=[2, 1]
    ),
    "clip": lambda model, x: model.add(
        "Clip", x, f32(-19.5 / 64), f32(25.5 / 64)
    ),
    "relu": lambda model, x: model.add("Relu", x),
    "two ways": two_ways,
    "scaled": scaled,
    "max pool": lambda model, x: model.add(
        "MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], pads=[1, 0, 0, 1]
    ),
    "max pool with ceil": lambda model, x: model.add(
        "MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1
    ),
    "classes": classes,
    "transpose": lambda model, x: model.add("Transpose", x, perm=[0, 2, 3, 1]),
    "shortcut": shortcut,
}


def built(build: Callable[[FloatModel, str], str]) -> ir.Model:
    model = FloatModel(x=(1, 4, 9, 9))
    y = build(model, "x")
    graph = ir.from_proto(
        model.proto(model.add("Mul", y, f32(0.7), name="out"))
    )
    rewrite(graph)
    return graph


@pytest.mark.parametrize("kind", BUILDERS)
def test_the_derivative_is_what_small_differences_say(kind):
    graph = built(BUILDERS[kind])
    backward = Backward(graph)
    derivative = backward.derivative("x")
    backward.graph.outputs.append(derivative)
    ((name, shape),) = backward.signs.items()
    signs = rng().choice([-1.0, 1.0], shape)
    x = (rng().permutation(324) / 64 - 2.5).reshape(
        1, 4, 9, 9
    )  # no two numbers nearer than twice a step
    session = FloatSession(backward.model, [derivative.name])
    plain = FloatSession(graph)
    found = session.run({"x": x, name: signs})[derivative.name]
    power = np.sqrt((plain.run({"x": x})["out"].astype(np.float64) ** 2).sum())

    def outputs(moved: np.ndarray) -> float:
        return float(
            (signs * plain.run({"x": moved})["out"].astype(np.float64)).sum()
        )

    places = [
        tuple(place)
        for place in np.argwhere(np.ones(x.shape))[
            rng().choice(x.size, 40, replace=False)
        ]
    ]
    for place in places:
        step = np.zeros(x.shape)
        step[place] = STEP
        difference = (
            (outputs(x + step) - outputs(x - step)) / (2 * STEP) / power
        )
        assert found[place] == pytest.approx(difference, rel=1e-3, abs=1e-4), (
            place
        )


def test_a_derivative_that_is_not_known_is_not_guessed():
    """Beside a way that is known, another goes through an operator that has no rule."""
    model = FloatModel(x=(1, 4, 9, 9))
    first = model.add("Relu", conv(model, "x"), name="first")
    second = model.add("Relu", conv(model, first), name="second")
    model.add("Add", model.add("Erf", second), conv(model, first), name="out")
    backward = Backward(ir.from_proto(model.proto("out")))
    assert backward.derivative("second") is None
    assert backward.derivative("first") is None
    assert backward.derivative("out") is not None


def test_each_output_counts_by_its_own_power():
    model = FloatModel(x=(1, 4, 9, 9))
    middle = model.add("Relu", conv(model, "x"), name="middle")
    one, ten = (
        model.add("Mul", conv(model, middle), f32(factor), name=f"by_{factor}")
        for factor in (1, 10)
    )
    alone, tenfold, both = (
        squares(ir.from_proto(model.proto(*outputs)))
        for outputs in ([one], [ten], [one, ten])
    )
    assert tenfold == pytest.approx(alone, rel=1e-3)
    assert both == pytest.approx(2 * alone, rel=0.1)


def squares(graph: ir.Model) -> float:
    """The sum of the squared derivatives by the value named `middle`, on average over signs of chance."""
    backward, generator = Backward(graph), rng()
    added = sums_of_channels(backward, {"middle": "middle"})["middle"]
    session = FloatSession(backward.model, added)
    x = generator.normal(size=(1, 4, 9, 9))
    total = 0.0
    for _ in range(400):
        signs = {
            name: generator.choice([-1.0, 1.0], shape)
            for name, shape in backward.signs.items()
        }
        total += float(session.run({"x": x, **signs})[added[0]].sum())
    return total
