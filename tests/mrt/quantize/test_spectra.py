"""Spectra from waveform to bands: which values are wide, and what miniature networks gain."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from mrt.quantize import QuantizeOptions
from mrt.quantize.graph import GraphLowering
from mrt.quantize.options import LayerBits
from mrt.quantize.rounding import nearest_keeping_bias
from mrt.quantize.spectra import find_spectra
from mrt.quantize.tensor import Format
from mrt.quantize.waveforms import sound_format, with_waveform_bits
from mrt.table.table import MeasuredRange
from tests.support.float_models import FloatModel, calibrated, f32, snr_db
from tests.support.spectra import (
    BANDS,
    BINS,
    FRAMES,
    SAMPLES,
    SIXTEEN,
    Spectrogram,
    bands,
)

EIGHT = QuantizeOptions(8, 8)


def spectra_of(model, *outputs, options=EIGHT):
    graph = ir.from_proto(model.proto(*outputs)).graph
    return find_spectra(list(graph), options, {}, coded=True)


def logarithm_of_bands(model, spectrum):
    """Return log(bands + epsilon) of [1,BINS,FRAMES,1], the features of most networks for speech."""
    moved = model.add("Transpose", spectrum, perm=[0, 2, 3, 1])
    rows = model.add("Reshape", moved, np.array([FRAMES, BINS]))
    sums = model.gemm(rows, bands(), np.zeros(BANDS))
    frames = model.add("Reshape", sums, np.array([1, FRAMES, BANDS]))
    return sums, model.add("Log", model.add("Add", frames, f32(1e-9)))


@pytest.mark.parametrize("is_magnitude", [False, True])
@pytest.mark.parametrize(("options", "least"), [(SIXTEEN, 60), (EIGHT, 35)])
def test_bands_keep_quiet_bins_beside_loud_ones(is_magnitude, options, least):
    model = Spectrogram()
    spectrum = model.power()
    if is_magnitude:
        spectrum = model.add("Sqrt", spectrum)
    sums, output = logarithm_of_bands(model, spectrum)
    found = snr_db(model, output, options=options)[output]
    assert found > least
    assert spectra_of(model, output).wide_products == {sums}


def test_no_stage_refines_the_weights_of_bands():
    # Refined weights make up for each other's errors: zeros would let strong bins leak.
    model = Spectrogram()
    _, output = logarithm_of_bands(model, model.power())
    graph, table = calibrated(model.proto(output), model.inputs)
    lowering, layers = GraphLowering(graph, table, EIGHT), []
    layer = lowering.next_layer()
    while layer is not None:
        layers.append(layer.name)
        layer = lowering.next_layer(nearest_keeping_bias(layer))
    assert sorted(layers) == sorted([model.real, model.imaginary])
    constants = lowering.finish({}, ()).constants
    (weights,) = (array for array in constants if array.shape == (BANDS, BINS))
    assert ((weights == 0) == (bands() == 0)).all()


def test_a_product_that_no_steep_curve_reads_is_not_wide():
    model = FloatModel(x=(1, 4))
    product = model.gemm(model.add("Relu", "x"), np.eye(4), np.zeros(4))
    assert not spectra_of(model, model.add("Log", product)).wide_products
    model = Spectrogram()
    rows = model.add("Reshape", model.power(), np.array([FRAMES, BINS]))
    product = model.gemm(model.add("Sqrt", rows), bands(), np.zeros(BANDS))
    assert not spectra_of(model, model.add("Tanh", product)).wide_products


def test_waveforms_reach_from_the_input_to_the_squares():
    model = Spectrogram()
    output = model.add("Sqrt", model.power())
    assert spectra_of(model, output).waveforms == {
        "x",
        model.real,
        model.imaginary,
    }


def test_squares_behind_other_functions_have_no_waveform():
    model = FloatModel(x=(1, 6), z=(1, 6))
    squares = [
        model.add("Mul", part, part) for part in ("z", model.add("Tanh", "x"))
    ]
    output = model.add("Sqrt", model.add("Add", *squares))
    assert spectra_of(model, output).waveforms == {"z"}


def test_a_waveform_has_16_bits_unless_its_layer_has_others():
    given = {"x": LayerBits(activation_bits=7), "re": LayerBits(weight_bits=4)}
    options = with_waveform_bits(
        QuantizeOptions(8, 8, layers=given), ["x", "re", "im"]
    )
    bits = {
        name: options.activation_bits_of(name)
        for name in ("x", "re", "im", "y")
    }
    assert bits == {"x": 7, "re": 16, "im": 16, "y": 8}
    assert options.weight_bits_of("re") == 4
    assert options.weight_bits_of("im") == 8


def test_beside_values_of_16_bits_the_weights_of_waveforms_have_15():
    given = {"re": LayerBits(weight_bits=4)}
    options = with_waveform_bits(
        QuantizeOptions(8, 16, layers=given), ["re", "im"]
    )
    bits = [options.weight_bits_of(name) for name in ("re", "im", "y")]
    assert bits == [4, 15, 8]


class FilteredSpectrogram(FloatModel):
    """Waveforms under a window, through a filter that stops most of them, before their transform."""

    def __init__(self):
        super().__init__(x=(1, 1, SAMPLES, 1))
        window = f32(np.hanning(SAMPLES + 2)[1:-1].reshape(1, 1, SAMPLES, 1))
        self.windowed = self.add("Mul", "x", window)
        taps = np.hanning(9)[1:-1].reshape(1, 1, 7, 1)
        self.filtered = self.conv(
            self.windowed, taps, np.zeros(1), pads=(3, 0, 3, 0)
        )
        self.rows = self.add("Reshape", self.filtered, np.array([7, 16]))
        angles = np.outer(np.arange(1, 8), np.arange(16)) * np.pi / 8
        self.parts = [
            self.gemm(self.rows, wave(angles), np.zeros(7))
            for wave in (np.cos, np.sin)
        ]
        squares = [self.add("Mul", part, part) for part in self.parts]
        shifted = self.add("Add", self.add("Add", *squares), f32(1e-9))
        self.output = self.add("Log", shifted)


def test_filters_in_front_of_a_transform_keep_what_they_nearly_stop():
    model = FilteredSpectrogram()
    assert snr_db(model, model.output, options=SIXTEEN)[model.output] > 62
    spectra = spectra_of(model, model.output, options=SIXTEEN)
    wide = {model.windowed, model.filtered, model.rows}
    assert wide < spectra.wide
    assert spectra.wide_products == {model.filtered, *model.parts}
    assert not wide & spectra_of(model, model.output, options=EIGHT).wide


def test_a_filter_has_the_bits_that_the_options_give_it():
    model = FilteredSpectrogram()
    given = {model.windowed: LayerBits(activation_bits=8)}
    options = replace(SIXTEEN, layers=given)
    spectra = spectra_of(model, model.output, options=options)
    assert model.windowed not in spectra.wide
    assert model.filtered not in spectra.wide_products
    assert snr_db(model, model.output, options=options)[model.output] < 50


@pytest.mark.parametrize(
    ("greatest", "step"),
    [(0.9, 2**-15), (1.0, 2**-15), (0.3, 0.6 / 32767), (1.5, 3 / 32767)],
)
def test_sound_up_to_full_scale_has_the_steps_of_16_bit_sound(greatest, step):
    measured = MeasuredRange(-0.2, greatest, -0.2, greatest)
    given = Format("i16", 2 * greatest / 32767, 0, -32768, 32767)
    assert sound_format(given, measured).scale == pytest.approx(step, rel=1e-12)
