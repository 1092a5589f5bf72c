"""Bands of a power spectrum over 45 bits: logarithms of loud and quiet sounds beside float."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples
from mrt.quantize import QuantizeOptions, quantize
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel, convert, f32, run_real
from tests.support.spectra import (
    BINS,
    FRAMES,
    SIXTEEN,
    Spectrogram,
    bands,
)


def worst_logarithm(model, output, options, recordings):
    """Return the greatest error of a logarithm over recordings of 16 bits, which are calibrated on, too."""
    steps = [f32(np.rint(x * 2.0**15) * 2.0**-15) for x in recordings]
    samples = [dict.fromkeys(model.inputs, x) for x in steps]
    proto = model.proto(output)
    graph = ir.from_proto(proto)
    read = Samples(
        tuple(model.inputs), len(samples), None, "sound", lambda: iter(samples)
    )
    table = calibrate(graph, read, CalibrationOptions(), model_sha256="0" * 64)
    program = quantize(graph, table, options)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    differences = [
        run_real(program, sample)[output] - session.run([output], sample)[0]
        for sample in samples
    ]
    return float(np.abs(differences).max())


def logarithm_of_bands(model, weights):
    moved = model.add("Transpose", model.power(), perm=[0, 2, 3, 1])
    rows = model.add("Reshape", moved, np.array([FRAMES, BINS]))
    sums = model.gemm(rows, weights, np.zeros(len(weights)))
    return model.add("Log", model.add("Add", sums, f32(1e-12)))


@pytest.mark.parametrize(
    ("options", "most"), [(SIXTEEN, 0.05), (QuantizeOptions(8, 16), 0.06)]
)
def test_bands_of_quiet_sound_are_as_exact_as_those_of_loud_sound(
    options, most
):
    model = Spectrogram()
    output = logarithm_of_bands(model, bands())
    generator = np.random.default_rng(5)
    sound = generator.uniform(-1, 1, model.inputs["x"])
    recordings = [sound * loudness for loudness in np.geomspace(1, 1e-3, 12)]
    assert worst_logarithm(model, output, options, recordings) < most


def squares_model(weights, names=("x", "z")):
    """Return a model of log(weights @ (x^2 + z^2)), or x^2 alone, and its output."""
    model = FloatModel(**dict.fromkeys(names, (1, 4)))
    power, *others = [model.add("Mul", part, part) for part in names]
    for other in others:
        power = model.add("Add", power, other)
    sums = model.gemm(power, weights, np.zeros(len(weights)))
    return model, model.add("Log", model.add("Max", sums, f32(1e-12)))


@pytest.mark.parametrize(
    ("share", "most"), [(1, 0.01), (0.1, 0.01), (2**-7, 0.02), (2**-10, 0.2)]
)
def test_a_loud_bin_counts_by_its_small_share_of_a_band(share, most):
    """A bin beyond the fine range counts in coarse steps, of which a small share is few."""
    weights = np.array([[1.0, 1.0, 0.0, 0.0], [share, 0.0, 1.0, 0.0]])
    model, output = squares_model(weights)
    loud_first = np.array([[1.0, 2e-3, 1e-3, 1e-3]])
    recordings = [loud_first * size for size in np.geomspace(2e-3, 1, 25)]
    assert worst_logarithm(model, output, SIXTEEN, recordings) < most


@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1e3]])
def test_a_band_is_as_exact_beside_one_of_no_bins_or_of_great_weights(row):
    """A band has its own part that is taken off; an empty one, as of many mel filter banks, has any scale."""
    weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0], row])
    model, output = squares_model(weights)
    recordings = [
        np.array([[size, 2e-3 * size, 1e-3 * size, 0.0]])
        for size in np.geomspace(2e-3, 1, 25)
    ]
    assert worst_logarithm(model, output, SIXTEEN, recordings) < 0.01


def test_weights_may_be_too_great_for_what_a_band_was_measured_at():
    weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1e12, 0.0]])
    model, output = squares_model(weights)
    loud = np.array([[1.0, 0.5, 0.0, 0.0]])
    assert worst_logarithm(model, output, SIXTEEN, [loud, 0.1 * loud]) < 0.01


def test_the_squares_of_magnitudes_are_a_power_spectrum_too():
    weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.5, 1.0, 0.0]])
    model, output = squares_model(weights, ["x"])
    sound = np.array([[0.7, -0.5, 0.3, 1.0]])
    recordings = [sound * size for size in np.geomspace(1e-3, 1, 12)]
    assert worst_logarithm(model, output, SIXTEEN, recordings) < 0.01


def test_bins_in_steps_of_one_are_no_counts():
    """Sound in steps of 1 has powers of such a scale, where scales are powers of two."""
    weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.5, 1.0, 0.0]])
    model, output = squares_model(weights, ["x"])
    sound = np.array([[15360.0, 10240.0, 5120.0, 20480.0]])
    recordings = [sound / 2**octave for octave in range(10)]
    options = replace(SIXTEEN, scales="shift")
    assert worst_logarithm(model, output, options, recordings) < 0.01


def test_the_difference_of_bands_has_the_bits_of_linear_ones():
    model = FloatModel(x=(1, 4), z=(1, 4))
    squares = [model.add("Mul", part, part) for part in ("x", "z")]
    power = model.add("Add", *squares)
    wide, narrow = (
        model.gemm(power, [weights], [0.0])
        for weights in ([1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0])
    )
    rest = model.add("Max", model.add("Sub", wide, narrow), f32(1e-4))
    output = model.add("Log", rest)
    recordings = [np.array([[1.0, 0.01, 0.01, 0.01]]), np.full((1, 4), 0.5)]
    assert worst_logarithm(model, output, SIXTEEN, recordings) < 0.01


@pytest.mark.parametrize(("weight", "ranges"), [(-0.5, 1), (0.5, 2)])
def test_only_sums_that_are_never_negative_have_a_finer_range(weight, ranges):
    """What is cut off a fine sum would make a difference too great."""
    weights = np.array([[1.0, weight, 0.0, 0.0]])
    model, output = squares_model(weights)
    instructions = convert(model, output, options=SIXTEEN).instructions
    names = [instruction.name for instruction in instructions]
    assert names.count("select") == ranges - 1
