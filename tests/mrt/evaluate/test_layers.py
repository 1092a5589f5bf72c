"""Layers of a program beside their float values: noise and clipping by hand, axes in another order."""

import json
import math

import numpy as np
import pytest

from cvm.program import (
    Metadata,
    Program,
)
from cvm.proof.validate import validate
from mrt.calibrate.samples import Samples
from mrt.errors import BadData
from mrt.evaluate import layers_report
from mrt.evaluate.layers import Layer, compare_layers
from mrt.evaluate.local_noise import local_noise
from mrt.evaluate.reals import in_order_of
from mrt.quantize import QuantizeOptions, quantize
from tests.support.doubling import (
    IMAGE,
    doubling_model,
    doubling_program,
    numbers,
    samples,
)
from tests.support.float_models import FloatModel, calibrated, f32


def test_noise_and_clipping_are_those_of_the_numbers() -> None:
    # doubled: 1..11 exact, and 24, which the clamp holds at 20: noise 4^2, signal 1 + 4 + .. + 121 + 576 = 1082
    image = numbers(0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 12)
    (layer,) = compare_layers(
        doubling_model(), doubling_program(), samples(image)
    )
    assert (layer.number, layer.instruction, layer.source, layer.dtype) == (
        3,
        "clamp",
        "y",
        "i32",
    )
    assert (layer.low, layer.high) == (-20, 20)
    assert layer.snr_db == pytest.approx(10 * math.log10(1082 / 16))
    assert layer.clipped == 1 / 12


@pytest.mark.parametrize(
    "axes", [(0, 1, 2, 3), (0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2)]
)
def test_axes_that_lie_in_another_order_are_found_where_all_are_as_long(
    axes: tuple[int, ...],
) -> None:
    heads = np.random.default_rng(0).normal(size=(1, 4, 4, 4))
    rounded = np.round(heads.transpose(axes), 3)
    assert np.array_equal(in_order_of(heads, rounded), np.round(heads, 3))


def test_other_axes_hold_the_same_elements() -> None:
    real = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(in_order_of(real, real.reshape(6, 4)), real)


def test_a_value_within_a_step_of_the_end_is_not_clipped() -> None:
    (layer,) = compare_layers(
        doubling_model(), doubling_program(), samples(np.full(IMAGE, 10.4))
    )
    assert layer.clipped == 0


def test_samples_add_up_and_nothing_differs_where_nothing_differs() -> None:
    (layer,) = compare_layers(
        doubling_model(),
        doubling_program(),
        samples(np.ones(IMAGE), np.full(IMAGE, 2.0)),
    )
    assert layer.snr_db is None
    assert layer.count == 24


def test_progress_counts_samples() -> None:
    steps: list[tuple[str, int, int]] = []
    compare_layers(
        doubling_model(),
        doubling_program(),
        samples(np.ones(IMAGE), np.ones(IMAGE)),
        lambda *step: steps.append(step),
    )
    assert steps == [("comparing layers", 1, 2), ("comparing layers", 2, 2)]


def test_a_program_without_meanings_is_refused() -> None:
    program = doubling_program().program
    metadata = Metadata(
        inputs=program.metadata.inputs, outputs=program.metadata.outputs
    )
    bare = validate(
        Program(
            program.inputs,
            program.constants,
            program.instructions,
            program.outputs,
            metadata,
        )
    )
    with pytest.raises(BadData, match="does not say which float value"):
        compare_layers(doubling_model(), bare, samples(np.ones(IMAGE)))


def layer(number: int, decibels: float | None) -> Layer:
    found = Layer(number, "rescale", f"v{number}", "i8", 0.5, -64.0, 63.5)
    exact = np.array([1.0, -1.0])
    noise = 0.0 if decibels is None else 10 ** (-decibels / 20)
    found.add(exact, exact * (1 + noise))
    return found


def test_the_table_and_json_say_the_same_in_their_own_order() -> None:
    layers = [layer(4, 30), layer(5, None), layer(6, 10), layer(7, 20)]
    lines = layers_report.table(layers, 3)
    assert [line.split()[1] for line in lines[1:4]] == ["%6", "%7", "%4"]
    assert lines[1].split()[0] == "10.0"
    assert lines[4] == "and 1 more, all better"
    assert layers_report.table(layers)[4].split()[:2] == [
        "-",
        "%5",
    ]
    found = json.loads(json.dumps(layers_report.to_json(layers, 9)))
    assert found["samples"] == 9
    assert [item["value"] for item in found["layers"]] == [4, 5, 6, 7]
    assert found["layers"][1]["snr_db"] is None
    assert found["layers"][2]["snr_db"] == pytest.approx(10)


def test_channels_with_scales_of_their_own_end_where_their_integers_do() -> (
    None
):
    """The second row of the program's channels has steps twice as wide: 40 fits there, and 24 nowhere else."""
    (layer,) = compare_layers(
        doubling_model(),
        doubling_program(channels=(1.0, 2.0)),
        samples(numbers(*[12.0] * 6, *[20.0] * 6)),
    )
    assert (layer.low, layer.high) == (-40, 40)
    assert layer.clipped == 6 / 12
    assert layer.rounding_power == pytest.approx((1 + 4) / 2 / 12)


def test_masked_logits_that_became_the_least_number_are_not_compared() -> None:
    layer = Layer(9, "clamp", "masked", "i16", 0.5, -30.0, 30.0, is_masked=True)
    real = np.array([-1e4, -1e4, -40.0, 3.0])
    integer = np.array([-30.0, -2.0, -30.0, 3.0])
    assert layer.compared(real, integer).tolist() == [False, True, True, True]
    layer.is_masked = False
    assert layer.compared(real, integer) is None


@pytest.mark.parametrize("move", [False, True])
def test_a_mask_before_a_softmax_is_no_noise(move: bool) -> None:
    model = FloatModel(x=(1, 12, 16))
    shut = np.random.default_rng(2).random((1, 12, 16)) < 0.3
    logits = model.add("Mul", "x", f32(4.0))
    masked = model.add("Add", logits, f32(np.where(shut, -1e4, 0)))
    read = model.add("Transpose", masked, perm=[0, 2, 1]) if move else masked
    output = model.add("Softmax", read, axis=-1)
    graph, table = calibrated(model.proto(output), model.inputs)
    program = validate(quantize(graph, table, QuantizeOptions(8, 16)))
    x = np.random.default_rng(1).normal(size=(1, 12, 16)).astype(np.float32)
    given = Samples(("x",), 1, None, "one", lambda: iter([{"x": x}]))
    layers = compare_layers(graph, program, given)
    found = {it.source: it for it in layers if it.is_masked}
    assert read in found
    for layer in found.values():
        assert layer.clipped == 0
        assert layer.snr_db is not None and layer.snr_db > 50
        assert layer.count == (~shut).sum()
    noise = local_noise(graph, program, given, layers)
    for layer in found.values():
        decibels = noise[layer.number].decibels()
        assert decibels is None or decibels > 50
