"""Recurrent cells and three spatial axes, from the float operator to integers: close to onnxruntime on the float operator."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples, synthetic_samples
from mrt.frontend import load
from mrt.graph.notes import set_shared_range
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions
from tests.support.float_models import run_real
from tests.support.graphs import graph_of, node, run, shapes_of
from tests.support.shared_data import SHARED, needs_shared

RNG = np.random.default_rng(5)
SAMPLES = 10


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32) / 2


def cell(
    operator: str, gates: int, directions: int = 2, **attributes
) -> ir.Model:
    one = node(operator, "x w r b", "y", hidden_size=6, **attributes)
    arrays = {
        "w": normal(directions, gates * 6, 5),
        "r": normal(directions, gates * 6, 6),
        "b": normal(directions, 2 * gates * 6),
    }
    return graph_of([one], {"x": (3, 2, 5)}, arrays)


def volume(one, **weights) -> ir.Model:
    return graph_of([one], {"x": (1, 4, 5, 6, 7)}, weights)


def converted(model: ir.Model, bits: int):
    """The program, and the signal-to-noise ratio of `y` against the model as it was, in dB."""
    original = ir.to_proto(model)
    samples = synthetic_samples(shapes_of(model), SAMPLES, 0)
    rewrite(model)
    table = calibrate(
        model, samples, CalibrationOptions(), model_sha256="0" * 64
    )
    program = quantize(model, table, QuantizeOptions(8, bits))
    pairs = [
        (run(original, sample)["y"], run_real(program, sample)["y"])
        for sample in samples
    ]
    signal, noise = (
        sum(float((part**2).sum()) for part in parts)
        for parts in zip(*((a, a - b) for a, b in pairs), strict=True)
    )
    return program, 10 * np.log10(signal / noise)


CELLS = {
    "LSTM": (4, {}),
    "GRU": (3, {"linear_before_reset": 1}),
    "RNN": (1, {"activations": ["Relu", "Relu"]}),
}


@pytest.mark.parametrize("operator", CELLS)
def test_a_cell_of_eight_bits_stays_close(operator):
    gates, attributes = CELLS[operator]
    _, found = converted(
        cell(operator, gates, direction="bidirectional", **attributes), 8
    )
    assert found > 26


@pytest.mark.slow
def test_at_16_bits_only_the_weights_are_coarse():
    program, found = converted(cell("LSTM", 4, 1), 16)
    assert found > 38
    lines = {
        item.operands[1]
        for item in program.instructions
        if item.name == "interpolate"
    }
    # The sigmoid of gates, the tanh of proposals, that of cells: 1 kB each, for all steps.
    assert len(lines) == 3
    assert "table" not in {item.name for item in program.instructions}


def test_the_steps_of_a_cell_share_weights_and_tables():
    program, _ = converted(cell("LSTM", 4, direction="bidirectional"), 8)
    sizes = [array.nbytes for array in program.constants]
    assert (
        sizes.count(24 * 5) == sizes.count(24 * 6) == 2
    )  # one W and one R for each direction, whatever the steps
    curves = [
        item
        for item in program.instructions
        if item.name in ("table", "interpolate")
    ]
    assert len(curves) == 18 and len({item.operands[1] for item in curves}) < 18


@pytest.mark.slow
@needs_shared
def test_a_real_tagger_of_bytes_in_eight_bits_gives_each_byte_its_tag():
    path, steps = SHARED / "onnx" / "tract_byte_sb_bidi_lstm.onnx", 12
    text = b"The quick brown fox jumps over the lazy dog. It was a dark night! Was it? Yes; it rained. "
    rows = np.frombuffer(text[: len(text) // steps * steps], np.uint8).reshape(
        -1, 1, steps
    )
    samples = Samples(
        ("input",),
        len(rows),
        None,
        "a text",
        lambda: ({"input": row} for row in rows),
    )
    model = load(path, shapes={"input": (1, steps)}).model
    rewrite(model)
    table = calibrate(
        model, samples, CalibrationOptions(), model_sha256="0" * 64
    )
    program = quantize(model, table, QuantizeOptions())
    for row in rows:
        (expected,) = run(onnx.load(path), {"input": row}).values()
        (found,) = run_real(program, {"input": row}).values()
        assert np.array_equal(found.argmax(-1), expected.argmax(-1))
        assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()


def test_values_watched_as_one_have_one_range():
    model = graph_of(
        [node("Relu", "x", "a"), node("Neg", "x", "b")],
        {"x": (2, 3)},
        outputs="a b",
    )
    for entry in model.graph:
        set_shared_range(entry.outputs[0], "both")
    samples = synthetic_samples(shapes_of(model), 3, 0)
    ranges = calibrate(
        model, samples, CalibrationOptions(), model_sha256="0" * 64
    ).ranges
    numbers = np.concatenate([sample["x"].ravel() for sample in samples])
    assert ranges["a"] == ranges["b"] != ranges["x"]
    assert (ranges["a"].min, ranges["a"].max) == (
        -numbers.max(),
        np.abs(numbers).max(),
    )


VOLUMES = {
    "convolution": (node("Conv", "x w b", "y", pads=[1, 1, 0, 1, 1, 2], strides=[1, 2, 2]),
                    {"w": normal(8, 4, 3, 3, 3), "b": normal(8)}),
    "groups": (node("Conv", "x w b", "y", group=2, strides=[2, 1, 1]), {"w": normal(8, 2, 2, 3, 3), "b": normal(8)}),
    "transposed": (node("ConvTranspose", "x w b", "y", strides=[2, 2, 2], pads=[1] * 6),
                   {"w": normal(4, 6, 3, 3, 3), "b": normal(6)}),
    "maxima": (node("MaxPool", "x", "y", kernel_shape=[2, 3, 3], strides=[1, 2, 2], pads=[1, 1, 1, 0, 1, 1]), {}),
    "means": (node("AveragePool", "x", "y", kernel_shape=[2, 3, 3], pads=[1, 1, 1, 0, 1, 1]), {}),
    "mean of all": (node("GlobalAveragePool", "x", "y"), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", VOLUMES)
def test_integers_of_a_volume_are_close(name):
    one, weights = VOLUMES[name]
    program, found = converted(volume(one, **weights), 16)
    assert found > 38
    assert sum(item.name == "conv2d" for item in program.instructions) <= 1
