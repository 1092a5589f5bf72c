"""fold_space_to_depth: convolutions of blocks of pixels, and where these are not whole or have other readers."""

from collections.abc import Sequence

import numpy as np
import pytest

from mrt.graph.values import ints_attribute
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from mrt.rewrite.linear.fold_space_to_depth import fold_space_to_depth
from mrt.rewrite.movement.transpose_concat_slice import (
    canonicalize_transpose_concat_slice,
)
from tests.support.graphs import apply_pass, graph_of, node, operators_of

RNG = np.random.default_rng(4)
FOCUS = ((0, 0), (1, 0), (0, 1), (1, 1))
FAR = 2**63 - 1


def _slices(
    places: Sequence[tuple[int, int]], size: tuple[int, int], *, at_once: bool
) -> tuple[list, dict]:
    """Slices of x, each with a row and a column of every block of this size."""
    nodes, weights = [], {}
    for number, place in enumerate(places):
        axes = [[2, 3]] if at_once else [[2], [3]]
        value = "x"
        for axis in axes:
            base = f"{number}_{axis[0]}"
            starts = [place[a - 2] for a in axis]
            steps = [size[a - 2] for a in axis]
            weights |= {
                f"s{base}": np.array(starts),
                f"e{base}": np.array([FAR] * len(axis)),
                f"a{base}": np.array(axis),
                f"t{base}": np.array(steps),
            }
            names = f"{value} s{base} e{base} a{base} t{base}"
            value = f"v{base}"
            nodes.append(node("Slice", names, value))
    return nodes, weights


def _focus(
    places=FOCUS,
    size=(2, 2),
    shape=(2, 3, 8, 12),
    kernel=(3, 3),
    outputs="y",
    at_once=False,
    **attributes,
):
    nodes, weights = _slices(places, size, at_once=at_once)
    last = 2 if at_once else 3
    parts = " ".join(f"v{number}_{last}" for number in range(len(places)))
    nodes += [
        node("Concat", parts, "c", axis=1),
        node("Conv", "c w b", "y", kernel_shape=kernel, **attributes),
    ]
    group = attributes.get("group", 1)
    channels = shape[1] * len(places) // group
    weights |= {
        "w": RNG.normal(size=(6, channels, *kernel)).astype(np.float32),
        "b": RNG.normal(size=6).astype(np.float32),
    }
    return _canonical(graph_of(nodes, {"x": shape}, weights, outputs=outputs))


def _canonical(model):
    canonicalize_transpose_concat_slice(model)
    canonicalize_conv_pool_attributes(model)
    return model


@pytest.mark.parametrize(
    ("places", "at_once"),
    [(FOCUS, False), (FOCUS, True), (tuple(sorted(FOCUS)), False)],
)
@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [1, 1, 1, 1]},
        {"pads": [0, 2, 1, 0], "strides": [1, 2]},
        {"kernel": (1, 4)},
    ],
)
def test_the_pixels_of_a_block_are_taps_of_a_larger_kernel(
    places, at_once, attributes
):
    model = _focus(places, at_once=at_once, **attributes)
    assert apply_pass(fold_space_to_depth, model) == 1
    assert operators_of(model) == ["Conv"]


def test_sizes_strides_and_pads_are_those_of_pixels():
    places = [(r, c) for c in range(3) for r in range(2)]
    model = _focus(
        places, (2, 3), pads=[1, 0, 2, 1], strides=[1, 2], kernel=(3, 2)
    )
    assert apply_pass(fold_space_to_depth, model) == 1
    (conv,) = model.graph
    assert ints_attribute(conv, "kernel_shape") == (6, 6)
    assert ints_attribute(conv, "strides") == (2, 6)
    assert ints_attribute(conv, "pads") == (2, 0, 4, 3)


def test_space_to_depth_goes_too():
    nodes = [
        node("SpaceToDepth", "x", "d", blocksize=2),
        node("Conv", "d w", "y", kernel_shape=[3, 3], pads=[1, 1, 0, 0]),
    ]
    weights = {"w": RNG.normal(size=(5, 8, 3, 3)).astype(np.float32)}
    model = _canonical(graph_of(nodes, {"x": (1, 2, 6, 8)}, weights))
    assert apply_pass(fold_space_to_depth, model) == 1
    assert operators_of(model) == ["Conv"]


@pytest.mark.parametrize(
    "options",
    [
        {"places": FOCUS[:3]},  # a pixel is missing
        {"places": (*FOCUS[:3], (0, 0))},  # one is there twice
        {"places": FOCUS[:1], "size": (2, 2)},
        {"places": ((0, 0),), "size": (1, 1)},
        {"outputs": "y c"},  # another reader
        {"group": 2},
        {"dilations": [2, 2], "pads": [1, 1, 1, 1]},
    ],
)
def test_others_stay(options):
    assert apply_pass(fold_space_to_depth, _focus(**options)) == 0


def test_blocks_that_are_cut_off_at_the_end_stay():
    """Of 7 columns the even ones are 4 and the odd ones 3, so that the last one is left out."""
    nodes = [
        node("Slice", "x s0 e a t", "even"),
        node("Slice", "x s1 e a t", "odd"),
        node("Concat", "even odd", "c", axis=1),
        node("Conv", "c w", "y", kernel_shape=[1, 1]),
    ]
    weights = {
        "s0": np.array([0]),
        "s1": np.array([1]),
        "e": np.array([6]),
        "a": np.array([3]),
        "t": np.array([2]),
        "w": np.ones((2, 2, 1, 1), np.float32),
    }
    model = _canonical(graph_of(nodes, {"x": (1, 1, 4, 7)}, weights))
    assert apply_pass(fold_space_to_depth, model) == 0


def test_slices_of_different_images_stay():
    nodes, weights = _slices(FOCUS[:2], (2, 1), at_once=True)
    nodes[1].input[0] = "z"
    nodes += [
        node("Concat", "v0_2 v1_2", "c", axis=1),
        node("Conv", "c w", "y", kernel_shape=[1, 1]),
    ]
    weights["w"] = np.ones((2, 2, 1, 1), np.float32)
    shape = (1, 1, 4, 4)
    model = _canonical(graph_of(nodes, {"x": shape, "z": shape}, weights))
    assert apply_pass(fold_space_to_depth, model) == 0


def _joined(*parts: Sequence[tuple[int, int, int]], channels=2):
    """A Conv of a Concat of x, sliced along an axis from a start by a step, and again."""
    nodes, weights = [], {"e": np.array([FAR])}
    for number, slices in enumerate(parts):
        value = "x"
        for place, (axis, start, step) in enumerate(slices):
            base = f"{number}_{place}"
            numbers = {"s": start, "a": axis, "t": step}
            weights |= {f"{k}{base}": np.array([n]) for k, n in numbers.items()}
            names = f"{value} s{base} e a{base} t{base}"
            value = f"v{base}"
            nodes.append(node("Slice", names, value))
    ends = " ".join(f"v{n}_{len(part) - 1}" for n, part in enumerate(parts))
    nodes += [
        node("Concat", ends, "c", axis=1),
        node("Conv", "c w", "y", kernel_shape=[1, 1]),
    ]
    own = {
        "w": RNG.normal(size=(2, channels * len(parts), 1, 1)).astype(
            np.float32
        )
    }
    return _canonical(graph_of(nodes, {"x": (1, 2, 8, 8)}, weights | own))


def test_slices_of_slices_take_steps_of_steps():
    parts = [
        [(2, first, 2), (2, second, 2)] for first in (0, 1) for second in (1, 0)
    ]
    model = _joined(*parts)
    assert apply_pass(fold_space_to_depth, model) == 1
    (conv,) = model.graph
    assert ints_attribute(conv, "strides") == (4, 1)


def test_slices_of_channels_stay():
    model = _joined([(1, 0, 2), (2, 0, 2)], [(1, 0, 2), (2, 1, 2)], channels=1)
    assert apply_pass(fold_space_to_depth, model) == 0
