"""Thumbnails, the operators whose weights make a layer, and what is worth mending."""

import base64
import io
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from mrt.calibrate.preprocessing import Preprocessing
from mrt.evaluate.layers import Layer
from mrt.evaluate.scores import Noise
from mrt.page.mending import worst
from mrt.page.network import Node
from mrt.page.thumbnails import SIDE, is_picture, thumbnail
from mrt.page.weights import weights_of
from tests.support.graphs import graph_of, node

IMAGENET = Preprocessing(
    scale=1 / 255, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)
)


def opened(uri: str) -> np.ndarray:
    head, _, data = uri.partition(",")
    assert head in ("data:image/png;base64", "data:image/jpeg;base64")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def picture(side: int) -> np.ndarray:
    """Black above, white below, red in a corner."""
    pixels = np.zeros((side, side, 3), np.uint8)
    pixels[side // 2 :] = 255
    pixels[: side // 4, : side // 4] = (200, 40, 20)
    return pixels


@pytest.mark.parametrize("color", ["RGB", "BGR"])
def test_the_preparation_of_a_picture_is_undone(color):
    step = Preprocessing(
        "NHWC", color, IMAGENET.scale, IMAGENET.mean, IMAGENET.std
    )
    sample = step.apply(picture(16), (1, 3, 16, 16), "here")
    np.testing.assert_array_equal(opened(thumbnail(sample, step)), picture(16))


def test_large_pictures_become_small_and_grey_ones_stay_grey():
    big = picture(600).astype(np.float32)[np.newaxis]
    assert opened(thumbnail(big, Preprocessing())).shape == (SIDE, SIDE, 3)
    grey = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
    found = opened(thumbnail(grey, Preprocessing()))
    assert found.shape == (8, 8) and (found[0, 0], found[-1, -1]) == (0, 255)
    flat = np.full((1, 1, 8, 8), 3.0, np.float32)
    assert opened(thumbnail(flat, Preprocessing())).max() == 0


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 3, 224, 224), True),
        ((1, 8, 8, 1), True),
        ((1, 2, 8, 8), False),
        ((4, 3, 8, 8), False),
        ((1, 3, 1, 400), False),
        ((1, 3, 10**5, 10**5), False),
        ((1, 100), False),
        ((), False),
    ],
)
def test_what_people_can_look_at_is_a_picture(shape, expected):
    assert is_picture(shape) is expected


def test_weights_are_named_by_their_operator():
    weight = np.ones((4, 4), np.float32)
    model = graph_of(
        [
            node("MatMul", "x w", "a"),
            node("Relu", "a", "b"),
            node("MatMul", "b w", "c"),
            node("MatMul", "x w", "d"),
            node("Add", "c d", "e"),
            node("Relu", "e", "y"),
        ],
        {"x": (1, 4)},
        {"w": weight},
    )
    assert weights_of(model, {"b", "e", "y"}) == {
        "b": ("a",),
        "e": ("c", "d"),
        "y": (),
    }


def test_all_operators_between_two_layers_are_named_but_no_more_than_four():
    names = "abcdefg"
    nodes = [
        node("MatMul", f"{source} w", result)
        for source, result in pairwise(f"x{names}")
    ]
    model = graph_of(nodes, {"x": (1, 4)}, {"w": np.ones((4, 4), np.float32)})
    found = weights_of(model, {"b", "c", "g"})
    assert found == {"b": ("b", "a"), "c": ("c",), "g": ("g", "f", "e", "d")}
    assert weights_of(model, {"g"}) == {"g": ("g", "f", "e", "d")}


def mended(
    local: float, weights: dict, *, bits: str = "{}", total: float = 8.0
):
    """Of one layer of 100 numbers with a step of 0.6, so that rounding has 3 of the noise."""
    layer = Layer(
        7, "rescale", "v", "i8", 0.6, -9.0, 9.0, Noise(1000.0, total), count=100
    )
    program = SimpleNamespace(provenance_of=lambda key: bits)
    noise = {7: Noise(1000.0, local)}
    found = worst([Node("v", layer=layer)], noise, program, weights, most=5)
    return [(item.cause, item.names, round(item.share, 2)) for item in found]


def test_more_bits_go_to_what_makes_more_noise():
    weights = {"v": ("conv",)}
    assert mended(4.0, {}) == [("activation_bits", ("v",), 0.5)]
    assert mended(4.0, weights) == [("activation_bits", ("v",), 0.5)]
    assert mended(8.0, weights) == [("weight_bits", ("conv",), 1.0)]
    assert mended(0.5, weights) == []  # what it is given is not its own
    assert mended(8.0, weights, bits='{"conv": {"weight_bits": 15}}') == [
        ("activation_bits", ("v",), 1.0)
    ]
    for broken in ("[", "3", '{"conv": 4}', "[" * 10**5):
        assert mended(8.0, weights, bits=broken)[0][0] == "weight_bits"
