"""Which channels are duplicated: those that make most noise for their products."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from cvm.proof.validate import validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples, synthetic_samples
from mrt.calibrate.session import FloatSession
from mrt.duplicate import Choice, choose_duplicates
from mrt.duplicate.add_duplicates import MOST_COPIES, add_duplicates
from mrt.duplicate.derivatives import RULES
from mrt.duplicate.noise import noise_of_channels
from mrt.evaluate import evaluate
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from mrt.refine import RefineOptions
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel
from tests.support.noisy_channels import CHANNELS, NOISY, noisy_network
from tests.support.refining import refine

PLAIN = QuantizeOptions()


def chosen(
    model: FloatModel,
    options: QuantizeOptions = PLAIN,
    *,
    by_channel: bool = True,
) -> dict[str, list[int]]:
    graph = ir.from_proto(model.proto("out"))
    return choose_duplicates(
        graph,
        synthetic_samples(model.inputs, 20, 0),
        options,
        by_channel=by_channel,
    ).channels


def test_the_noise_is_what_a_linear_network_makes_of_rounding():
    """Where nothing is clipped, weights tell what comes of an error, and steps how large errors are."""
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(4, 6, 1, 1))
    model = FloatModel(x=(1, 3, 8, 8))
    y = model.add(
        "Relu",
        model.conv("x", rng.normal(size=(6, 3, 1, 1)), np.full(6, 50.0)),
        name="first",
    )
    model.conv(y, weights, rng.normal(size=4), name="out")
    graph = ir.from_proto(model.proto("out"))
    samples = synthetic_samples(model.inputs, 200, 0)
    session = FloatSession(graph, ["first", "out"])
    found = [session.run(sample) for sample in samples]
    ends = np.max([item["first"].max(axis=(0, 2, 3)) for item in found], axis=0)
    power = sum(
        1 / float((item["out"].astype(np.float64) ** 2).sum()) for item in found
    )
    for scaled, size in (
        (frozenset({"first"}), ends),
        (frozenset(), ends.max()),
    ):
        expected = (
            64
            * (weights[:, :, 0, 0] ** 2).sum(axis=0)
            * (size / 255) ** 2
            / 12
            * power
        )
        noise = noise_of_channels(graph, samples, PLAIN, scaled)
        assert list(noise) == ["first"]
        assert noise["first"] == pytest.approx(expected, rel=0.1)
    assert not noise_of_channels(
        graph, samples, QuantizeOptions(activation_bits=16), frozenset()
    )


def test_the_noisiest_channels_are_chosen():
    assert chosen(noisy_network()) == {"first": NOISY}


def test_what_the_choice_gives_and_costs():
    """Two duplicates take off 3/4 of their channels' noise, for products of `mixed` alone: 9 of 27 * 1 + 9 for each channel."""
    model = noisy_network()
    graph = ir.from_proto(model.proto("out"))
    samples = synthetic_samples(model.inputs, 4, 0)
    scaled = frozenset({"first"})
    noise = noise_of_channels(graph, samples, PLAIN, scaled)
    everywhere = sum(of_value.sum() for of_value in noise.values())
    choice = choose_duplicates(graph, samples, PLAIN, by_channel=True)
    removed = 0.75 * noise["first"][NOISY].sum() / everywhere
    assert choice.noise_removed == pytest.approx(removed, rel=1e-6)
    assert choice.products_added == pytest.approx(2 * 9 / (46 * (27 + 9)))


def test_no_channel_is_chosen_that_gains_too_little_for_its_cost(monkeypatch):
    """The budget has room for all channels, so the gain per cost alone stops the choice."""
    monkeypatch.setattr("mrt.duplicate.choose.MOST_COST", 2.0)
    assert chosen(noisy_network()) == {"first": NOISY}
    monkeypatch.setattr("mrt.duplicate.choose.LEAST_GAIN_PER_COST", 0.0)
    assert chosen(noisy_network()) == {"first": list(range(CHANNELS))}


def test_what_has_16_bits_or_no_derivative_needs_no_duplicates():
    assert (
        chosen(
            noisy_network(),
            QuantizeOptions(layers={"first": LayerBits(activation_bits=16)}),
        )
        == {}
    )
    assert chosen(noisy_network("Erf")) == {}
    assert chosen(without_layers()) == {}


def without_layers() -> FloatModel:
    model = FloatModel(x=(1, 3, 10, 10))
    model.add("Relu", "x", name="out")
    return model


def test_channels_that_have_a_duplicate_get_no_other(monkeypatch):
    model = noisy_network()
    graph = ir.from_proto(model.proto("out"))
    samples = synthetic_samples(model.inputs, 20, 0)
    add_duplicates(graph, {"first": [NOISY[0]]})
    again = choose_duplicates(graph, samples, PLAIN, by_channel=True)
    assert again.channels == {"first": [NOISY[1]]}
    monkeypatch.setattr("mrt.duplicate.choose.MOST_COST", 2.0)
    monkeypatch.setattr("mrt.duplicate.choose.LEAST_GAIN_PER_COST", 0.0)
    every = choose_duplicates(graph, samples, PLAIN, by_channel=True)
    assert every.channels["first"] == [
        channel for channel in range(CHANNELS) if channel != NOISY[0]
    ]


def test_the_budget_is_kept_and_vectors_are_filled(monkeypatch):
    """Of 46 channels two more fill the third vector of 16 and cost their readers alone: 2 * 576 of 46 * 2304 products.

    Sixteen more open a vector, which costs 16 * 1728 however many of its places are
    taken: so a budget for half of them buys none.
    """
    monkeypatch.setattr("mrt.duplicate.choose.LEAST_GAIN_PER_COST", 0.0)
    for most, count in (
        (0.010, 0),
        (0.012, 2),
        (0.34, 2),
        (0.36, 18),
        (0.70, 18),
        (0.71, 34),
    ):
        monkeypatch.setattr("mrt.duplicate.choose.MOST_COST", most)
        assert len(chosen(noisy_network()).get("first", [])) == count


def test_duplicates_take_off_noise():
    model = noisy_network()
    fine = LayerBits(weight_bits=15)
    options = QuantizeOptions(
        layers={
            "x": LayerBits(activation_bits=16),
            "mixed": fine,
            "spread": fine,
        }
    )
    ratios = []
    for duplicates in ({}, {"first": NOISY}):
        graph = ir.from_proto(model.proto("out"))
        samples = synthetic_samples(model.inputs, 30, 1)
        add_duplicates(graph, duplicates)
        table = calibrate(
            graph, samples, CalibrationOptions("minmax"), model_sha256="0" * 64
        )
        table = refine(
            graph, table, options, RefineOptions.of(["scales"]), samples
        )
        program = validate(quantize(graph, table, options))
        ratios.append(
            evaluate(
                ir.from_proto(model.proto("out")), program, samples
            ).to_json()["snr_db"]
        )
    assert ratios[1] > ratios[0] + 3


def test_of_samples_that_are_not_finite_nothing_is_made():
    model = noisy_network()
    samples = [{"x": np.full((1, 3, 10, 10), 3e38, np.float32)}]
    given = Samples(("x",), 1, None, "one", lambda: iter(samples))
    assert (
        choose_duplicates(
            ir.from_proto(model.proto("out")), given, PLAIN, by_channel=True
        )
        == Choice()
    )


def test_a_channel_and_its_duplicate_have_a_quarter_of_the_noise_together():
    model = noisy_network()
    graphs = [ir.from_proto(model.proto("out")) for _ in range(2)]
    add_duplicates(graphs[1], {"first": [3]})
    samples = synthetic_samples(model.inputs, 5, 0)
    alone, both = (
        noise_of_channels(graph, samples, PLAIN, frozenset({"first"}))["first"]
        for graph in graphs
    )
    assert both[3] + both[CHANNELS] == pytest.approx(alone[3] / 4, rel=1e-3)
    assert both[:3] == pytest.approx(alone[:3], rel=1e-3)


def test_a_derivative_that_onnxruntime_cannot_run_costs_no_more_than_the_duplicates(
    monkeypatch,
):
    def impossible(write, node, derivative):
        write.give(node.inputs[0], write.add("NoSuchOperator", derivative))
        return True

    monkeypatch.setitem(RULES, "Conv", impossible)
    assert chosen(noisy_network()) == {}


def test_models_too_large_to_run_backwards_have_none(monkeypatch):
    monkeypatch.setattr(
        "mrt.duplicate.choose.MOST_BYTES", 28_000
    )  # its values take 28,160
    assert chosen(noisy_network()) == {}


BETWEEN = ("linear", "relu")


def linear_network() -> FloatModel:
    """Two values between convolutions, of which the first has no clip and one channel far noisier than the others."""
    rng = np.random.default_rng(6)
    model = FloatModel(x=(1, 3, 10, 10))
    y = model.conv(
        "x",
        rng.normal(size=(20, 3, 3, 3)),
        rng.normal(size=20),
        name="linear",
    )
    weights = rng.normal(size=(40, 20, 1, 1))
    weights[:, 5] *= 40
    y = model.conv(y, weights, rng.normal(size=40))
    y = model.add("Relu", y, name="relu")
    weights = rng.normal(size=(3, 40, 1, 1))
    model.conv(y, weights, rng.normal(size=3), name="out")
    return model


def bought(model: FloatModel, extra_products: float | None) -> Choice:
    return choose_duplicates(
        ir.from_proto(model.proto("out")),
        synthetic_samples(model.inputs, 20, 0),
        PLAIN,
        by_channel=True,
        extra_products=extra_products,
    )


def test_extra_products_buy_several_copies_of_the_noisiest_of_any_values():
    model = linear_network()
    assert "linear" not in bought(model, None).channels
    choice = bought(model, 1.0)
    assert choice.channels["linear"].count(5) == MOST_COPIES - 1
    assert len(choice.channels) == 2
    assert bought(model, 0.0) == Choice()


def test_noise_is_that_of_the_scales_of_a_table():
    """A channel that reaches 30 times as far as it was seen to has 900 times the noise, and the first copies."""
    model = linear_network()
    graph = ir.from_proto(model.proto("out"))
    samples = synthetic_samples(model.inputs, 20, 0)
    table = calibrate(
        graph, samples, CalibrationOptions("minmax"), model_sha256="0" * 64
    )
    noise, copies = [], []
    for factor in (1, 30):
        scales = np.ones(20)
        scales[11] = factor
        decisions = Decisions(channel_scales={"linear": tuple(scales)})
        scaled = replace(table, decisions=decisions)
        of_values = noise_of_channels(
            graph, samples, PLAIN, frozenset(), scaled
        )
        noise.append(of_values["linear"])
        choice = choose_duplicates(
            graph,
            samples,
            PLAIN,
            by_channel=True,
            extra_products=0.7,
            table=scaled,
        )
        copies.append(choice.channels["linear"].count(11))
    assert noise[1][11] == pytest.approx(900 * noise[0][11])
    assert np.delete(noise[1], 11) == pytest.approx(np.delete(noise[0], 11))
    assert copies == [0, 2]


@pytest.mark.parametrize("budget", [0.05, 0.2, 0.5, 1.0, 2.0])
def test_extra_products_are_counted_where_copies_are_made_of_copies_too(budget):
    """The convolution between the two values has products of both; what opens a vector of 16 pays for all of it."""
    model = linear_network()
    choice = bought(model, budget)
    copies = {name: len(choice.channels.get(name, ())) for name in BETWEEN}
    linear, relu = copies.values()

    def computed(channels: int, more: int) -> int:
        before, after = (
            -(-count // 16) * 16 for count in (channels, channels + more)
        )
        return channels + after - before

    plain = 27 * 20 + 20 * 40 + 3 * 40
    with_copies = (
        27 * computed(20, linear)
        + (20 + linear) * computed(40, relu)
        + 3 * (40 + relu)
    )
    added = with_copies / plain - 1
    assert choice.products_added == pytest.approx(added)
    assert added <= budget
    if budget >= 0.5:
        assert linear and relu and added > 0.4 * budget
