"""A graph with a picture in front of it computes what the bare graph makes of the prepared picture."""

import numpy as np
import pytest

from mrt.graph.notes import picture_layout_of
from mrt.graph.values import ints_attribute, shape_of
from mrt.rewrite import rewrite
from mrt.rewrite.image.pad_pictures import pad_pictures
from mrt.rewrite.image.picture_inputs import Pixels, take_pictures
from mrt.rewrite.linear.fold_reversed_channels import fold_reversed_channels
from mrt.rewrite.movement.merge_transposes import merge_transposes
from mrt.rewrite.movement.pull_transposes import pull_transposes
from tests.support.graphs import (
    apply_pass,
    assert_same,
    constant_named,
    graph_of,
    node,
    operators_of,
    run,
)

IMAGENET = Pixels(
    (0.0171247, 0.0175070, 0.0174291),
    (-2.117904, -2.035714, -1.804444),
    False,
    False,
)
PICTURE = (
    np.random.default_rng(2).integers(0, 256, (1, 6, 7, 3)).astype(np.float32)
)
RNG = np.random.default_rng(3)
WEIGHTS = {
    "w": RNG.normal(size=(4, 3, 3, 3)).astype(np.float32),
    "b": RNG.normal(size=4).astype(np.float32),
}


def _prepared(pixels: Pixels) -> np.ndarray:
    """The same in numpy: turn the channels round, then scale and shift as the model counts them."""
    reversed_channels = PICTURE[..., ::-1] if pixels.is_bgr else PICTURE
    values = (
        reversed_channels * np.array(pixels.scale) + np.array(pixels.shift)
    ).astype(np.float32)
    return values if pixels.channels_last else values.transpose(0, 3, 1, 2)


def _convolution(shape=(1, 3, 6, 7), pads=(1, 0, 2, 1)):
    return graph_of(
        [node("Conv", "x w b", "y", pads=list(pads), strides=[2, 1])],
        {"x": shape},
        WEIGHTS,
    )


def _of_nhwc():
    nodes = [
        node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
        node("Conv", "t w b", "y", pads=[1, 1, 1, 1]),
    ]
    return graph_of(nodes, {"x": (1, 6, 7, 3)}, WEIGHTS)


@pytest.mark.parametrize("is_bgr", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
def test_bytes_in_front_are_the_prepared_picture_behind(is_bgr, channels_last):
    pixels = Pixels(IMAGENET.scale, IMAGENET.shift, is_bgr, channels_last)
    bare, taken = (
        (_of_nhwc if channels_last else _convolution)() for _ in range(2)
    )
    take_pictures(taken, "x", pixels)
    assert [(value.name, shape_of(value)) for value in taken.graph.inputs] == [
        ("x", (1, 6, 7, 3))
    ]
    expected = run(bare, {"x": _prepared(pixels)})
    assert_same(expected, run(taken, {"x": PICTURE}), 1e-5)
    rewrite(taken)
    assert_same(expected, run(taken, {"x": PICTURE}), 1e-5)


@pytest.mark.parametrize("is_bgr", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
def test_everything_done_to_a_byte_goes_into_the_first_convolution(
    is_bgr, channels_last
):
    model = (_of_nhwc if channels_last else _convolution)()
    take_pictures(
        model,
        "x",
        Pixels(IMAGENET.scale, IMAGENET.shift, is_bgr, channels_last),
    )
    rewrite(model)
    assert operators_of(model) == ["Transpose", "Concat", "Concat", "Conv"]
    assert picture_layout_of(model.graph.inputs[0]) == (
        "NHWC" if channels_last else "NCHW"
    )


def test_a_batch_normalization_in_front_of_the_convolution_goes_with_them():
    norm = {
        name: RNG.uniform(0.5, 2, 3).astype(np.float32)
        for name in ("g", "v", "s", "m")
    } | {"s": np.zeros(3, np.float32)}
    nodes = [
        node("BatchNormalization", "x g s m v", "n"),
        node("Conv", "n w b", "y", pads=[1, 1, 1, 1]),
    ]
    bare, taken = (
        graph_of(nodes, {"x": (1, 3, 6, 7)}, WEIGHTS | norm) for _ in range(2)
    )
    pixels = Pixels(IMAGENET.scale, (-1.0, -0.5, -0.75), False, False)
    take_pictures(taken, "x", pixels)
    rewrite(taken)
    assert operators_of(taken) == ["Transpose", "Concat", "Concat", "Conv"]
    assert_same(
        run(bare, {"x": _prepared(pixels)}), run(taken, {"x": PICTURE}), 1e-5
    )


def test_a_model_that_scales_its_own_nhwc_picture_is_folded_too():
    nodes = [
        node("Mul", "x k", "m"),
        node("Sub", "m c", "d"),
        node("Transpose", "d", "t", perm=[0, 3, 1, 2]),
        node("Conv", "t w b", "y", pads=[1, 1, 1, 1]),
    ]
    own = {
        "k": np.array(1 / 64, np.float32),
        "c": np.array([2.0, 1.5, 0.5], np.float32),
    }
    bare, taken = (
        graph_of(nodes, {"x": (1, 6, 7, 3)}, WEIGHTS | own) for _ in range(2)
    )
    take_pictures(taken, "x", Pixels((1.0,) * 3, (0.0,) * 3, False, True))
    rewrite(taken)
    assert operators_of(taken) == ["Transpose", "Concat", "Concat", "Conv"]
    assert_same(run(bare, {"x": PICTURE}), run(taken, {"x": PICTURE}), 1e-5)


def test_transposes_of_what_is_no_picture_stay_where_they_are():
    nodes = [
        node("Mul", "x k", "m"),
        node("Transpose", "m", "y", perm=[0, 3, 1, 2]),
    ]
    model = graph_of(
        nodes, {"x": (1, 6, 7, 3)}, {"k": np.array(0.5, np.float32)}
    )
    assert apply_pass(pull_transposes, model) == 0


def test_the_border_holds_the_bytes_that_stand_for_zero():
    model = _convolution()
    take_pictures(
        model,
        "x",
        Pixels((0.5, 1.0, 2.0), (-50.0, -20.0, -300.0), False, False),
    )
    assert apply_pass(pad_pictures, model, 1e-5) == 1
    assert constant_named(model, "y.before2")[0, :, 0, 0].tolist() == [
        100.0,
        20.0,
        150.0,
    ]
    assert constant_named(model, "y.before2").shape == (1, 3, 1, 7)
    assert constant_named(model, "y.after2").shape == (1, 3, 2, 7)
    assert constant_named(model, "y.after3").shape == (1, 3, 9, 1)
    assert "y.before3" not in model.graph.initializers
    assert ints_attribute(model.graph[-1], "pads") == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("scale", "shift", "pads"),
    [
        (0.5, 0.0, (1, 1, 1, 1)),  # 0 is the byte 0, as conv2d pads
        (0.5, 1.0, (1, 1, 1, 1)),  # the byte -2
        (0.5, -128.0, (1, 1, 1, 1)),  # the byte 256
        (0.5, -50.0, (0, 0, 0, 0)),
    ],
)
def test_other_convolutions_keep_their_own_padding(scale, shift, pads):
    model = _convolution(pads=pads)
    take_pictures(model, "x", Pixels((scale,) * 3, (shift,) * 3, False, False))
    assert apply_pass(pad_pictures, model) == 0


def test_a_shift_on_what_is_no_picture_stays():
    nodes = [
        node("Add", "x s", "a"),
        node("Conv", "a w b", "y", pads=[1, 1, 1, 1]),
    ]
    model = graph_of(
        nodes,
        {"x": (1, 3, 6, 7)},
        WEIGHTS | {"s": np.full((1, 3, 1, 1), -9, np.float32)},
    )
    assert apply_pass(pad_pictures, model) == 0


def test_turned_channels_go_into_the_weights_of_one_group_only():
    turn = {
        name: np.array([number])
        for name, number in (("s", -1), ("e", -(2**63)), ("a", 1), ("d", -1))
    }
    for group, changes in ((1, 1), (3, 0)):
        weights = {
            "w": RNG.normal(size=(3, 3 // group, 2, 2)).astype(np.float32),
            "b": np.zeros(3, np.float32),
        }
        nodes = [
            node("Slice", "x s e a d", "t"),
            node("Conv", "t w b", "y", group=group),
        ]
        model = graph_of(nodes, {"x": (1, 3, 6, 7)}, weights | turn)
        assert apply_pass(fold_reversed_channels, model) == changes
        assert operators_of(model) == ["Conv"] if changes else ["Slice", "Conv"]


def test_two_transposes_are_one():
    nodes = [
        node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
        node("Transpose", "t", "y", perm=[1, 0, 3, 2]),
    ]
    model = graph_of(nodes, {"x": (1, 5, 6, 7)})
    assert apply_pass(merge_transposes, model) == 1
    assert operators_of(model) == ["Transpose"]
    assert ints_attribute(model.graph[0], "perm") == (3, 0, 2, 1)
