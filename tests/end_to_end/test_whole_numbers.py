"""Binary networks on floats that are declared to be integers: every answer is onnxruntime's, on samples never seen."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

import mrt
from mrt import pipeline
from mrt.errors import BadData, Unsupported
from mrt.progress import no_progress
from mrt.table.table import MeasuredRange
from tests.support.float_models import FloatModel
from tests.support.graphs import build, node

SHAPE = (1, 3, 10, 10)
LAYERS = ((8, 1, 200.5), (12, 2, 0.5), (12, 1, 3))
"""Channels, stride, and what is added to whole thresholds."""


def binarised(normalized: bool) -> bytes:
    """Signs of sums by -1, 0 and 1, beyond thresholds or behind a BatchNormalization; then a dense layer."""
    random = np.random.default_rng(5)
    model, value, read = FloatModel(x=SHAPE), "x", 3
    for channels, stride, added in LAYERS:
        weights = random.integers(-1, 2, (channels, read, 3, 3))
        value = model.conv(
            value, weights, np.zeros(channels), strides=[stride] * 2
        )
        thresholds = random.integers(-9, 9, channels) + np.float32(added)
        value = beyond(model, value, thresholds, random, normalized)
        value, read = model.add("Sign", value), channels
    flat = model.add("Flatten", value)
    last = random.choice([-1, 1], (5, read))
    return model.proto(model.gemm(flat, last, np.zeros(5)))


def beyond(model, value, thresholds, random, normalized) -> str:
    if not normalized:
        return model.add("Sub", value, thresholds.reshape(1, -1, 1, 1))
    gains, shifts, spreads = random.uniform(1, 3, (3, len(thresholds)))
    signs = random.choice([-1, 1], len(thresholds))
    parts = (gains * signs, shifts, thresholds, spreads)
    return model.add(
        "BatchNormalization", value, *(np.float32(part) for part in parts)
    )


def pixels(count: int, most: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    images = random.integers(0, most + 1, (count, *SHAPE[1:]))
    return images.astype(np.float32)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_every_answer_of_a_binarised_network_is_floats(normalized, bits):
    # no sample has 255, so that measured scales would not be 1 by chance
    found = mrt.convert(
        binarised(normalized),
        pixels(40, 251, 1),
        input_dtype="whole",
        bits=bits,
    )
    judged = found.evaluate(pixels(300, 255, 2))
    assert judged.worst_snr_db is None and judged.agreement == 1
    (taken,) = found.conversion.proven.program.inputs
    assert (taken.type.dtype, taken.lo, taken.hi) == ("u8", 0, 255)


def test_without_the_declaration_it_is_not_and_a_note_says_what_helps():
    found = mrt.convert(binarised(False), pixels(40, 251, 1), bits=8)
    assert found.evaluate(pixels(300, 255, 2)).worst_snr_db < 30
    note = "input 'x' was measured from 0 to 251, and weights of -1, 0 and 1 read it"
    assert any(it.startswith(note) for it in found.conversion.remarks.notes)


@pytest.mark.parametrize(
    ("numbers", "dtype", "least", "most"),
    [
        ((-1, 1), "i8", -128, 127),
        ((0, 200), "u8", 0, 255),
        ((-3, 700), "i16", -(2**15), 2**15 - 1),
    ],
)
def test_the_first_interval_that_holds_the_samples_is_taken(
    numbers, dtype, least, most
):
    model = FloatModel(x=(1, 6))
    weights = np.array([[1, -1, 0, 1, 1, -1], [0, 1, 1, -1, 0, 1]])
    output = model.gemm("x", weights, np.array([7, -4]))
    samples = np.random.default_rng(3).choice(numbers, (20, 6))
    found = mrt.convert(
        model.proto(output), samples.astype(np.float32), input_dtype="whole"
    )
    (taken,) = found.conversion.proven.program.inputs
    assert (taken.type.dtype, taken.lo, taken.hi) == (dtype, least, most)
    extremes = np.array([[least, most] * 3, [most, most, least] * 2])
    assert found.evaluate(extremes.astype(np.float32)).worst_snr_db is None


def test_inputs_of_integers_may_be_beyond_16_bits():
    """The declaration is of the floats: a row of 70,000 is chosen beside them."""
    random = np.random.default_rng(9)
    nodes = [
        node("Gather", "rows i", "row"),
        node("MatMul", "x w", "m"),
        node("Add", "row m", "y"),
    ]
    weights = {
        "rows": random.normal(size=(70_000, 4)).astype(np.float32),
        "w": random.choice([-1.0, 0, 1], (6, 4)).astype(np.float32),
    }
    model = build(nodes, {"i": (1,), "x": (1, 6)}, weights)
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    samples = {
        "i": random.integers(60_000, 70_000, (32, 1)),
        "x": random.integers(0, 100, (32, 1, 6)).astype(np.float32),
    }
    found = mrt.convert(model, samples, input_dtype="whole")
    taken = {it.name: it for it in found.conversion.proven.program.inputs}
    assert (taken["x"].type.dtype, taken["x"].hi) == ("i8", 127)
    assert taken["i"].hi == 69_999


def test_what_is_not_whole_is_refused_where_it_is_found():
    samples = pixels(8, 200, 4)
    samples[3, 1, 2, 2] = 7.25
    with pytest.raises(
        BadData,
        match=r"holds 7.25; input_dtype = 'whole' means integers of at most 16 bits",
    ):
        mrt.convert(binarised(False), samples, input_dtype="whole")


def test_a_table_of_other_samples_is_no_proof():
    given = mrt.convert(binarised(False), pixels(8, 200, 4), refine="none")
    config, table = given.conversion.config, given.table
    ranges = {**table.ranges, "x": MeasuredRange(0.0, 200.5, 0.0, 200.5)}
    step = replace(config.preprocessing, input_dtype="whole")
    with pytest.raises(
        Unsupported, match=r"declared whole, but was measured from 0 to 200.5"
    ):
        pipeline.convert(
            replace(config, preprocessing=step),
            table=replace(table, ranges=ranges),
            progress=no_progress,
        )
