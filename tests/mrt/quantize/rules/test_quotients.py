"""Quotients by powers, and logarithms of averaged ones: loud and quiet sounds beside float."""

import math

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.spectra import find_spectra
from mrt.table.table import CalibrationOptions, MeasuredRange
from tests.support.float_models import FloatModel, f32, run_real
from tests.support.spectra import (
    BINS,
    FRAMES,
    SAMPLES,
    SIXTEEN,
    Spectrogram,
    bands,
)

LOUDNESS = np.geomspace(1, 1e-2, 9)
BIN_AXIS = np.array([1])


def recordings(shape):
    """Return noise of 16 bits at nine loudnesses over 40 dB."""
    generator = np.random.default_rng(5)
    sound = generator.uniform(-1, 1, shape)
    return [
        f32(np.rint(sound * loudness * 2**15) / 2**15) for loudness in LOUDNESS
    ]


def decibels(expected, found):
    noise = np.square(found - expected.astype(np.float64)).sum()
    return float(10 * np.log10(np.square(expected).sum() / noise))


def program_of(model, output, options, samples):
    read = Samples(
        tuple(model.inputs), len(samples), None, "sound", lambda: iter(samples)
    )
    graph = ir.from_proto(model.proto(output))
    table = calibrate(graph, read, CalibrationOptions(), model_sha256="0" * 64)
    return quantize(graph, table, options)


def ratios(model, output, options, sounds):
    """Return the signal to noise of each recording alone, which are calibrated on, too, and the program."""
    samples = [dict.fromkeys(model.inputs, sound) for sound in sounds]
    proto = model.proto(output)
    program = program_of(model, output, options, samples)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return program, [
        decibels(
            session.run([output], sample)[0], run_real(program, sample)[output]
        )
        for sample in samples
    ]


def total(model, value, axes=BIN_AXIS):
    summed = model.add("ReduceSum", value, axes, keepdims=1)
    return model.add("Add", summed, f32(1e-9))


def shares(model):
    power = model.power()
    return model.add("Div", power, total(model, power))


def shares_of_bands(model):
    moved = model.add("Transpose", model.power(), perm=[0, 2, 3, 1])
    rows = model.add("Reshape", moved, np.array([FRAMES, BINS]))
    energy = model.gemm(rows, bands(), np.zeros(len(bands())))
    return model.add("Div", energy, total(model, energy))


def centroid(model):
    power = model.power()
    places = np.arange(BINS).reshape(1, BINS, 1, 1)
    weighted = model.add("Mul", power, f32(places))
    moment = model.add("ReduceSum", weighted, BIN_AXIS, keepdims=1)
    return model.add("Div", moment, total(model, power))


def flatness(model):
    power = model.add("Add", model.power(), f32(1e-9))
    logarithms = total(model, model.add("Log", power))
    mean = model.add("Mul", logarithms, f32(1 / BINS))
    return model.add("Div", model.add("Exp", mean), total(model, power))


def phases(model):
    power = model.add("Add", model.power(), f32(1e-9))
    return model.add("Div", model.real, model.add("Sqrt", power))


def evened_by_a_running_mean(model):
    """Each frame over a mean of all before, as of PCEN that is written step by step."""
    frames = [
        model.add("Slice", model.name_of_power, *slice_of_frame(frame))
        for frame in range(FRAMES)
    ]
    means = [frames[0]]
    for frame in frames[1:]:
        old = model.add("Mul", means[-1], f32(0.7))
        new = model.add("Mul", frame, f32(0.3))
        means.append(model.add("Add", old, new))
    joined = model.add("Concat", *means, axis=2)
    divisor = model.add("Pow", model.add("Add", joined, f32(1e-9)), f32(0.98))
    return model.add("Div", model.name_of_power, divisor)


def slice_of_frame(frame):
    starts = [np.array([number]) for number in (frame, frame + 1, 2, 1)]
    return starts


def evened_by_neighbours(model):
    power = model.power()
    pooled = average(model, power, (3, 1), (1, 0, 1, 0))
    return model.add("Div", power, model.add("Add", pooled, f32(1e-9)))


def average(model, value, kernel, pads):
    return model.add(
        "AveragePool",
        value,
        kernel_shape=list(kernel),
        strides=[1, 1],
        pads=list(pads),
    )


def logarithm_of_an_average(model):
    pooled = average(model, model.power(), (3, 1), (1, 0, 1, 0))
    return model.add("Log", model.add("Add", pooled, f32(1e-9)))


def evened_by_a_smoother(model):
    """A short mean of squares over a long one; both are convolutions, the long one with a least sound in its bias."""
    square = model.add("Mul", "x", "x")
    short, long = (
        model.conv(
            square,
            np.full((1, 1, length, 1), 1 / length),
            np.full(1, bias),
            pads=(length // 2, 0, length // 2, 0),
        )
        for length, bias in ((5, 0), (41, 1e-9))
    )
    return model.add("Div", short, long)


def evened_by_running_sums(model):
    """The same of running sums that were subtracted: Gemms by windows of ones, one with the least sound as its bias."""
    sound = model.add("Reshape", "x", np.array([1, SAMPLES]))
    square = model.add("Mul", sound, sound)
    count = SAMPLES - 40
    places = np.arange(SAMPLES) - np.arange(count)[:, None]
    short, long = (
        model.gemm(
            square, (places >= 0) & (places < length), np.full(count, bias)
        )
        for length, bias in ((5, 0), (41, 1e-9))
    )
    return model.add("Div", short, long)


def activity(model):
    """The energy of differences over that of the sound: long sums of single squares."""
    after, before = (
        model.add("Slice", "x", *(np.array([it]) for it in (*ends, 2, 1)))
        for ends in ((1, SAMPLES), (0, SAMPLES - 1))
    )
    change = model.add("Sub", after, before)
    energies = [
        total(model, model.add("Mul", it, it), np.array([2]))
        for it in (change, "x")
    ]
    return model.add("Sqrt", model.add("Div", *energies))


def constants_over_power(model):
    """Shares, and numbers that are divided by the same power, which is a code for the shares' sake."""
    power = model.power()
    divisor = total(model, power)
    numbers = f32(np.linspace(1, 2, BINS).reshape(1, BINS, 1, 1))
    divided = model.add("Div", numbers, divisor)
    return model.add(
        "Concat",
        model.add("Div", power, divisor),
        model.add("Mul", divided, f32(1e-3)),
        axis=1,
    )


def over_the_greatest_of_a_frame(model):
    power = model.name_of_power
    greatest = model.add("ReduceMax", power, BIN_AXIS, keepdims=1)
    return model.add("Div", power, model.add("Add", greatest, f32(1e-9)))


def over_the_greatest_neighbour(model):
    pooled = model.add(
        "MaxPool",
        model.name_of_power,
        kernel_shape=[3, 1],
        strides=[1, 1],
        pads=[1, 0, 1, 0],
    )
    divisor = model.add("Add", pooled, f32(1e-9))
    return model.add("Div", model.name_of_power, divisor)


def over_the_greater_of_two_means(model):
    """One mean of a few neighbours, and one of a frame; the least power of the frame is left out of both."""
    power = model.name_of_power
    pooled = average(model, power, (3, 1), (1, 0, 1, 0))
    whole = model.add("Mul", total(model, power), f32(1 / BINS))
    least = model.add("ReduceMin", power, BIN_AXIS, keepdims=1)
    greater = model.add("Max", pooled, model.add("Min", whole, pooled))
    divisor = model.add("Add", greater, least)
    return model.add("Div", power, model.add("Add", divisor, f32(1e-9)))


def levels_below_the_greatest(model):
    power = model.name_of_power
    greatest = model.add("ReduceMax", power, np.array([1, 2, 3]), keepdims=1)
    level, most = (
        model.add("Log", model.add("Add", it, f32(1e-9)))
        for it in (power, greatest)
    )
    return model.add("Sub", level, most)


class Sound(Spectrogram):
    """A spectrogram whose power has one name, for builders that read it often."""

    @property
    def name_of_power(self):
        if not hasattr(self, "_power"):
            self._power = self.power()
        return self._power


@pytest.mark.parametrize(
    ("build", "least"),
    [
        (shares, 60),
        (shares_of_bands, 60),
        (centroid, 60),
        (flatness, 58),
        (phases, 65),
        (evened_by_a_running_mean, 60),
        (evened_by_neighbours, 60),
        (logarithm_of_an_average, 75),
        (evened_by_a_smoother, 60),
        (evened_by_running_sums, 55),
        (activity, 60),
        (constants_over_power, 45),
        (over_the_greatest_of_a_frame, 60),
        (over_the_greatest_neighbour, 60),
        (over_the_greater_of_two_means, 60),
        (levels_below_the_greatest, 60),
    ],
    ids=lambda it: getattr(it, "__name__", None),
)
@pytest.mark.parametrize("scales", ["real", "shift"])
def test_quiet_sound_is_as_exact_as_loud_sound(build, least, scales):
    model = Sound()
    output = build(model)
    options = QuantizeOptions(15, 16, scales=scales)
    sounds = recordings(model.inputs["x"])
    program, found = ratios(model, output, options, sounds)
    assert min(found) > least
    if scales == "shift":
        meanings = program.metadata
        of_values = [*meanings.values.values(), *meanings.outputs.values()]
        assert all(math.frexp(it.scale)[0] == 0.5 for it in of_values)


@pytest.mark.parametrize(("loudness", "is_coded"), [(2.0, True), (0.5, False)])
def test_a_divisor_of_few_octaves_keeps_15_linear_bits(loudness, is_coded):
    """Only the quotient by a code chooses between a number and what is beyond its range."""
    model = FloatModel(x=(1, 4), z=(1, 4))
    power = model.add("Add", *(model.add("Mul", it, it) for it in ("x", "z")))
    total = model.add("ReduceSum", power, BIN_AXIS, keepdims=1)
    output = model.add("Div", power, total)
    sounds = [
        np.full((1, 4), 10.0**-step) for step in np.linspace(0, loudness, 5)
    ]
    program = program_of(
        model, output, SIXTEEN, [{"x": f32(it), "z": f32(it)} for it in sounds]
    )
    tops = [it.name for it in program.instructions].count("select")
    assert (tops > 0) == is_coded


def test_what_is_padded_around_codes_is_zero():
    model = Sound()
    power = model.power()
    pads = np.array([0, 0, 1, 0, 0, 0, 1, 0])
    padded = model.add("Pad", power, pads, f32(0))
    loud = model.add("Log", model.add("Add", power, f32(1e-6)))
    outputs = [padded, loud]
    samples = [{"x": it} for it in recordings(model.inputs["x"])]
    graph = ir.from_proto(model.proto(*outputs))
    read = Samples(("x",), len(samples), None, "sound", lambda: iter(samples))
    table = calibrate(graph, read, CalibrationOptions(), model_sha256="0" * 64)
    program = quantize(graph, table, SIXTEEN)
    found = run_real(program, samples[0])[padded]
    assert (found[:, :, [0, -1]] == 0).all() and found[:, :, 1:-1].any()


@pytest.mark.parametrize("options", [SIXTEEN, QuantizeOptions(8, 8)])
def test_silence_has_no_phases(options):
    """What corrects the weights of a filter is no sound."""
    model = Sound()
    output = phases(model)
    samples = [{"x": it} for it in recordings(model.inputs["x"])]
    program = program_of(model, output, options, samples)
    found = run_real(program, {"x": 0 * samples[0]["x"]})
    assert not found[output].any()


def test_a_divisor_of_few_steps_is_exact_too():
    """The quietest sound, of a step or two, has squares of fewer bits than a code."""
    model = FloatModel(x=(1, 4))
    square = model.add("Mul", "x", "x")
    total = model.add("ReduceSum", square, BIN_AXIS, keepdims=1)
    output = model.add("Div", square, total)
    shape = np.array([[1, -2, 1, 3]]) / 2**15
    sounds = [f32(shape * 4**power) for power in range(6)]
    sounds.append(
        f32(np.full((1, 4), 0.9))
    )  # so that inputs have steps of 2^-15
    _, found = ratios(model, output, SIXTEEN, sounds)
    assert min(found) > 60


@pytest.mark.parametrize("offset", [-1e-6, 1e-6])
def test_a_divisor_that_might_be_negative_is_no_code_and_as_exact(offset):
    model = FloatModel(x=(1, 4))
    square = model.add("Mul", "x", "x")
    summed = model.add("ReduceSum", square, BIN_AXIS, keepdims=1)
    divisor = model.add("Add", summed, f32(offset))
    output = model.add("Div", "x", divisor)
    sounds = recordings((1, 4))[:6]
    _, found = ratios(model, output, SIXTEEN, sounds)
    assert min(found) > 60


def test_a_numerator_that_is_read_elsewhere_keeps_its_own_form():
    model = Sound()
    power = model.add("Add", model.power(), f32(1e-9))
    other = model.add("Exp", model.real)
    quotient = model.add("Div", other, total(model, power))
    read = model.add("Add", other, model.add("Mul", quotient, f32(0.0)))
    _, found = ratios(model, read, SIXTEEN, recordings(model.inputs["x"]))
    assert min(found) > 80


def floored_mean(steps):
    """Return a model of the last square over a running mean that is written step by step, and its output."""
    model = FloatModel(x=(1, steps))
    square = model.add("Mul", "x", "x")
    frames = [
        model.add("Slice", square, *(np.array([it]) for it in (n, n + 1, 1, 1)))
        for n in range(steps)
    ]
    mean = frames[0]
    for frame in frames[1:]:
        slower = model.add("Mul", mean, f32(0.9))
        raised = model.add("Add", slower, model.add("Mul", frame, f32(0.1)))
        mean = model.add("Max", raised, f32(1e-7))
    return model, model.add("Div", frames[-1], mean)


def test_long_recurrences_do_not_become_codes():
    """Each step would have a table of 128 kB and more than a hundred instructions."""
    steps = 20
    model, output = floored_mean(steps)
    samples = [{"x": it} for it in recordings((1, steps))]
    program = program_of(model, output, SIXTEEN, samples)
    assert sum(it.nbytes for it in program.constants) < 2**20


def test_what_is_joined_in_all_its_bits_may_be_read_elsewhere():
    model = Sound()
    small = model.add("Mul", model.real, f32(0.01))
    joined = model.add("Concat", model.real, small, axis=1)
    total_power = total(model, model.power())
    output = model.add("Div", joined, model.add("Sqrt", total_power))
    other = model.add("Add", small, model.real)
    read = model.add(
        "Concat", output, model.add("Mul", other, f32(1e-3)), axis=1
    )
    _, found = ratios(model, read, SIXTEEN, recordings(model.inputs["x"]))
    assert min(found) > 65


@pytest.mark.parametrize("length", [400, 4000])
def test_long_sounds_are_evened_by_their_size(length):
    """Sums of many squares of 30 bits have more than 63, which a code cannot have."""
    model = FloatModel(x=(1, 1, length, 1))
    filtered = model.conv("x", f32(np.ones((1, 1, 5, 1))), np.zeros(1))
    square = model.add("Mul", filtered, filtered)
    summed = model.add("ReduceSum", square, np.array([2]), keepdims=1)
    mean = model.add("Mul", summed, f32(1 / length))
    root = model.add("Sqrt", model.add("Add", mean, f32(1e-9)))
    output = model.add("Div", filtered, root)
    _, found = ratios(model, output, SIXTEEN, recordings((1, 1, length, 1)))
    assert min(found) > 60


def test_recurrences_of_hundreds_of_steps_are_followed_to_their_beginning():
    model, output = floored_mean(700)
    nodes = list(ir.from_proto(model.proto(output)).graph)
    names = [str(node.outputs[0].name) for node in nodes]
    ranges = dict.fromkeys(names, MeasuredRange(0.0, 1.0, 0.0, 1.0))
    found = find_spectra(nodes, SIXTEEN, ranges, coded=True)
    assert not found.quotients.coded and not found.sums
