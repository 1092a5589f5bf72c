"""lower_dft: before and after on the smallest graphs, against onnxruntime and numpy, and where it must not apply."""

import numpy as np
import onnx
import pytest

from mrt.exact.unit_circle import cosines, sines
from mrt.rewrite.not_lowered import reason_not_lowered
from mrt.rewrite.signal import dft
from mrt.rewrite.signal.dft import lower_dft
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
    run,
)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("axis", "length"), [(1, 6), (2, 3), (-2, 5), (1, 9)])
@pytest.mark.parametrize("inverse", [0, 1])
def test_a_transform_is_a_product(parts, axis, length, inverse):
    operands = {"n": np.array(length), "a": np.array(axis)}
    model = graph_of(
        [node("DFT", "x n a", "y", inverse=inverse)],
        {"x": (2, 6, 5, parts)},
        operands,
    )
    assert apply_pass(lower_dft, model, 1e-5) == 1
    assert operators_of(model) == [
        "Transpose",
        "Reshape",
        "MatMul",
        "Reshape",
        "Transpose",
    ]


@pytest.mark.parametrize("length", [8, 7])
def test_half_a_spectrum_and_back_is_the_signal(length):
    there = node("DFT", "x - a", "s", onesided=1)
    back = node("DFT", "s n a", "y", onesided=1, inverse=1)
    model = graph_of(
        [there, back],
        {"x": (1, length, 1)},
        {"a": np.array(1), "n": np.array(length)},
    )
    assert lower_dft(model) == 2
    signal = np.arange(length, dtype=np.float32).reshape(1, length, 1) ** 2
    assert run(model, {"x": signal})["y"] == pytest.approx(signal, abs=1e-4)


@pytest.mark.parametrize("onesided", [0, 1])
def test_short_transforms_along_a_signal_are_a_convolution(onesided):
    window = np.float32([0.5, 1, 1, 0.25])
    model = graph_of(
        [node("STFT", "x s w", "y", onesided=onesided)],
        {"x": (2, 11, 1)},
        {"s": np.array(3), "w": window},
    )
    assert apply_pass(lower_dft, model, 1e-5) == 1
    assert operators_of(model) == ["Reshape", "Conv", "Transpose", "Reshape"]
    assert constant_named(model, "y.weights")[0, 0].tolist() == [
        0.5,
        1,
        1,
        0.25,
    ]  # frequency 0, the real part


def test_a_computed_length_stays():
    nodes = [
        node("Shape", "x", "z", start=1, end=2),
        node("Squeeze", "z", "n"),
        node("DFT", "x n a", "y"),
    ]
    assert lower_dft(graph_of(nodes, {"x": (1, 4, 1)}, {"a": np.array(1)})) == 0


def test_a_window_shorter_than_its_frame_stays():
    operands = {"s": np.array(2), "w": np.ones(3, np.float32), "n": np.array(4)}
    assert (
        lower_dft(
            graph_of([node("STFT", "x s w n", "y")], {"x": (1, 8, 1)}, operands)
        )
        == 0
    )


def test_a_turn_is_exact_where_it_can_be():
    assert cosines(8)[[0, 2, 4, 6]].tolist() == [1, 0, -1, 0]
    assert sines(4).tolist() == [0, 1, 0, -1]
    assert cosines(6)[1] == 0.5
    assert (
        np.abs(cosines(1000) - np.cos(2 * np.pi * np.arange(1000) / 1000)).max()
        < 1e-15
    )


def test_short_transforms_need_no_window():
    stft = node("STFT", "x s - n", "y")
    operands = {"s": np.array(3), "n": np.array(4)}
    model = graph_of([stft], {"x": (2, 11, 1)}, operands)
    assert apply_pass(lower_dft, model, 1e-5) == 1
    assert operators_of(model) == ["Reshape", "Conv", "Transpose", "Reshape"]


def test_a_computed_window_stays():
    stft = node("STFT", "x s w n", "y")
    operands = {"s": np.array(3), "n": np.array(4)}
    model = graph_of([stft], {"x": (2, 11, 1), "w": (4,)}, operands)
    assert lower_dft(model) == 0


def test_a_transform_in_float64_stays():
    model = graph_of(
        [node("DFT", "x", "y")],
        {"x": (1, 8, 1)},
        kind=onnx.TensorProto.DOUBLE,
    )
    assert lower_dft(model) == 0


def test_frames_of_one_sample():
    stft = node("STFT", "x s - n", "y")
    operands = {"s": np.array(3), "n": np.array(1)}
    model = graph_of([stft], {"x": (2, 11, 1)}, operands)
    assert apply_pass(lower_dft, model, 1e-5) == 1


@pytest.mark.parametrize(("length", "count"), [(4096, 1), (8192, 0)])
def test_the_matrix_of_a_long_transform_has_a_limit(length, count):
    transform = node("DFT", "x", "y", axis=1, onesided=1)
    model = graph_of([transform], {"x": (1, length, 1)}, opset=17)
    assert lower_dft(model) == count
    if not count:
        remaining = next(iter(model.graph))
        assert "at most 8,192 numbers" in reason_not_lowered(remaining)


@pytest.mark.parametrize("operator", ["DFT", "STFT"])
def test_a_matrix_beyond_the_limit_is_not_computed(operator, monkeypatch):
    """Of complex numbers it would take gigabytes."""
    monkeypatch.setattr(dft, "cosines", None)
    operands = {"s": np.array(1), "n": np.array(8192)}
    transforms = {
        "DFT": node("DFT", "x", "y", axis=1),
        "STFT": node("STFT", "x s - n", "y"),
    }
    model = graph_of(
        [transforms[operator]], {"x": (1, 8192, 1)}, operands, opset=17
    )
    assert lower_dft(model) == 0


@pytest.mark.parametrize("shape", [(1, 400, 2), (1, 40, 1)])
def test_what_a_signal_must_be_is_said(shape):
    stft = node("STFT", "x s - n", "y", onesided=0)
    operands = {"s": np.array(32), "n": np.array(64)}
    model = graph_of([stft], {"x": shape}, operands)
    assert lower_dft(model) == 0
    reason = reason_not_lowered(next(iter(model.graph)))
    assert "real and no shorter than a frame" in reason
