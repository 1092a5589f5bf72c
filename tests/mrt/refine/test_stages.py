import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import onnx_ir as ir
import pytest

from cvm.errors import Unproven
from cvm.program import Program
from cvm.proof.validate import validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples, synthetic_samples
from mrt.calibrate.session import FloatSession
from mrt.errors import BadData, BadOption
from mrt.evaluate import evaluate
from mrt.evaluate.layers import compare_layers
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from mrt.quantize.channel_scales import candidates
from mrt.quantize.graph import GraphLowering
from mrt.quantize.rounding import nearest
from mrt.refine import STAGES, FloatStatistics, RefineOptions
from mrt.refine.moments import Moments
from mrt.refine.simulation import Simulation
from mrt.refine.stages import CHANNEL_STAGES, ChannelState, fit
from mrt.refine.stages import STAGES as ALL_STAGES
from mrt.table.decisions import Decisions, LayerDecision
from mrt.table.table import CalibrationOptions, CalibrationTable
from tests.support.float_models import FloatModel, run_real
from tests.support.refining import refine


def network(unequal: float = 1.0) -> FloatModel:
    """Convolutions of all kinds and a sum; the channels of the first differ by powers of `unequal`."""
    rng = np.random.default_rng(5)
    sizes = unequal ** np.arange(6)[:, None, None, None]
    model = FloatModel(x=(1, 3, 12, 12))
    y = model.conv(
        "x",
        rng.normal(size=(6, 3, 3, 3)) * sizes,
        rng.normal(size=6) * sizes.ravel(),
        pads=(1, 1, 1, 1),
    )
    y = model.add("Relu", y, name="first")
    y = model.conv(
        y,
        rng.normal(size=(6, 1, 3, 3)) / sizes,
        rng.normal(size=6),
        pads=(1, 1, 1, 1),
        group=6,
    )
    y = model.add("Relu", y, name="second")
    y = model.conv(
        y, rng.normal(size=(6, 6, 1, 1)), rng.normal(size=6), name="third"
    )
    z = model.conv(
        y,
        rng.normal(size=(6, 6, 3, 3)),
        rng.normal(size=6),
        pads=(1, 1, 1, 1),
        name="fourth",
    )
    model.conv(
        model.add("Add", y, z, name="sum"),
        rng.normal(size=(5, 6, 2, 2)),
        rng.normal(size=5),
        name="out",
    )
    return model


def prepared(model: FloatModel) -> tuple[ir.Model, CalibrationTable, Samples]:
    graph = ir.from_proto(model.proto("out"))
    samples = synthetic_samples(model.inputs, 40, 0)
    return (
        graph,
        calibrate(graph, samples, CalibrationOptions(), model_sha256="0" * 64),
        samples,
    )


def snr(graph: ir.Model, program: Program, samples: Samples) -> float:
    return evaluate(graph, validate(program), samples).to_json()["snr_db"]


def same_constants(
    graph: ir.Model,
    one: CalibrationTable,
    two: CalibrationTable,
    options: QuantizeOptions,
) -> bool:
    pairs = zip(
        *(quantize(graph, table, options).constants for table in (one, two)),
        strict=True,
    )
    return all(np.array_equal(a, b) for a, b in pairs)


def refined(
    model: FloatModel, *stages: str, options: QuantizeOptions | None = None
) -> float:
    graph, table, samples = prepared(model)
    options = options or QuantizeOptions()
    table = refine(graph, table, options, RefineOptions.of(stages), samples)
    return snr(
        graph,
        quantize(graph, table, options),
        synthetic_samples(model.inputs, 40, 1),
    )


def test_channels_that_differ_in_size_gain_scales_of_their_own():
    graph, table, samples = prepared(network(unequal=0.4))
    found = refine(
        graph, table, QuantizeOptions(), RefineOptions.of(["scales"]), samples
    )
    scales = found.decisions.channel_scales["first"]
    assert 0.5 < scales[0] < 1.5
    assert all(small < great for great, small in pairwise(scales))
    assert (
        refined(network(unequal=0.4), "scales")
        > refined(network(unequal=0.4)) + 6
    )


def test_scales_of_channels_differ_less_where_the_weights_that_absorb_them_are_coarse():
    rng = np.random.default_rng(9)
    sizes = 0.5 ** np.arange(6)[:, None, None, None]
    model = FloatModel(x=(1, 3, 12, 12))
    y = model.conv("x", rng.normal(size=(6, 3, 3, 3)) * sizes, np.zeros(6))
    y = model.add("Relu", y, name="first")
    model.conv(y, rng.normal(size=(6, 6, 1, 1)), np.zeros(6), name="out")
    graph, table, samples = prepared(model)

    def ratio(bits: int) -> float:
        options = QuantizeOptions(layers={"out": LayerBits(weight_bits=bits)})
        stages = RefineOptions.of(["scales"])
        found = refine(graph, table, options, stages, samples)
        scales = found.decisions.channel_scales.get("first", (1.0,))
        return max(scales) / min(scales)

    assert ratio(8) > 4 * ratio(3)


def test_of_powers_of_two_each_channel_has_the_next_above_what_it_needs():
    graph, table, samples = prepared(network(unequal=0.4))
    options = QuantizeOptions(scales="shift")
    found = refine(graph, table, options, RefineOptions.of(["scales"]), samples)
    meanings = quantize(graph, found, options).metadata.values.values()
    meaning = next(item for item in meanings if item.source == "first")
    needed = (
        np.array(found.decisions.channel_scales["first"])
        * table.ranges["first"].hi
        / 255
    )
    scales = meaning.scale * np.array(meaning.channels)
    assert np.all(scales >= needed) and np.all(scales < 2 * needed)
    assert np.all(np.log2(scales) % 1 == 0)


def test_channels_that_lie_far_from_0_gain_centres_of_their_own():
    """Channels at 0, 30, -60 and so on, of one size.

    Beside them the same with a scheme that has one zero point for all.
    """
    rng = np.random.default_rng(11)
    model = FloatModel(x=(1, 3, 12, 12))
    y = model.conv(
        "x", rng.normal(size=(4, 3, 1, 1)), [0, 30, -60, 10], name="far"
    )
    model.conv(y, rng.normal(size=(5, 4, 1, 1)), rng.normal(size=5), name="out")
    graph, table, samples = prepared(model)
    both = RefineOptions.of(["scales", "centres"])
    affine = QuantizeOptions(scheme="affine")
    found = refine(graph, table, QuantizeOptions(), both, samples)
    assert np.allclose(found.decisions.centres["far"], [0, 30, -60, 10], atol=4)
    found = [
        refined(model, *stages)
        for stages in ((), ("scales",), ("scales", "centres"))
    ]
    assert found[2] > max(found[0] + 15, found[1] + 6)
    assert refine(graph, table, affine, both, samples).decisions.centres == {}
    for stages in (["scales"], ["centres"]):
        assert (
            refine(
                graph,
                table,
                QuantizeOptions(),
                RefineOptions.of(stages),
                samples,
            ).decisions.centres
            == {}
        )


def test_4_bit_weights_lose_less_when_they_are_rounded_to_second_order():
    """Sixteen channels made of three: what one weight's rounding does, others can undo."""
    rng = np.random.default_rng(6)
    model = FloatModel(x=(1, 3, 12, 12))
    y = model.conv("x", rng.normal(size=(16, 3, 1, 1)), np.zeros(16))
    model.conv(y, rng.normal(size=(8, 16, 1, 1)), np.zeros(8), name="out")
    options = QuantizeOptions(layers={"out": LayerBits(weight_bits=4)})
    assert (
        refined(model, "weights", options=options)
        > refined(model, options=options) + 3
    )


def test_weights_that_fit_the_inputs_pass_less_of_their_errors_on():
    """Eight channels of 3 bits hold what two would; the weights read one, with few steps."""
    rng = np.random.default_rng(7)
    model = FloatModel(x=(1, 2, 12, 12))
    model.conv("x", rng.normal(size=(8, 2, 1, 1)), np.zeros(8), name="many")
    model.conv(
        "many", np.eye(1, 8).reshape(1, 8, 1, 1), np.zeros(1), name="out"
    )
    options = QuantizeOptions(layers={"many": LayerBits(activation_bits=3)})
    assert (
        refined(model, "fit", options=options)
        > refined(model, options=options) + 1
    )


def test_weights_that_fit_leave_the_means_of_outputs_alone():
    """Of inputs that are never negative, other weights would add to them."""
    rng = np.random.default_rng(8)
    model = FloatModel(x=(1, 2, 12, 12))
    y = model.add(
        "Relu",
        model.conv("x", rng.normal(size=(8, 2, 1, 1)), np.ones(8)),
        name="many",
    )
    model.conv(y, np.eye(1, 8).reshape(1, 8, 1, 1), np.zeros(1), name="out")
    graph, table, samples = prepared(model)
    options = QuantizeOptions(layers={"many": LayerBits(activation_bits=3)})
    found = refine(graph, table, options, RefineOptions.of(["fit"]), samples)
    assert not same_constants(graph, found, table, options)
    assert mean_errors(graph, found, samples, options) == pytest.approx(
        mean_errors(graph, table, samples, options), abs=0.02
    )


def test_means_and_gains_give_back_what_clipping_before_takes_away():
    graph, table, samples = prepared(network())
    range_ = table.ranges["second"]
    table = replace(
        table,
        ranges=dict(table.ranges)
        | {"second": replace(range_, hi=range_.hi * 0.2)},
    )
    plain = snr(graph, quantize(graph, table, QuantizeOptions()), samples)
    found = refine(
        graph, table, QuantizeOptions(), RefineOptions.of(["biases"]), samples
    )
    assert (
        snr(graph, quantize(graph, found, QuantizeOptions()), samples)
        > plain + 1
    )


def test_the_means_of_outputs_are_those_of_the_float_model():
    graph, table, samples = prepared(network())
    range_ = table.ranges["second"]
    table = replace(
        table,
        ranges=dict(table.ranges)
        | {"second": replace(range_, hi=range_.hi * 0.2)},
    )
    found = refine(
        graph, table, QuantizeOptions(), RefineOptions.of(["biases"]), samples
    )
    off = [
        np.abs(mean_errors(graph, item, samples)).max()
        for item in (table, found)
    ]
    assert off[1] < off[0] / 10


def test_a_mean_that_is_far_off_does_not_take_the_bias_out_of_i32():
    """The bias has 2^30 steps of 16 bits times 15, and clipping before asks for many times as much."""
    model = FloatModel(x=(1, 3, 8, 8))
    rng = np.random.default_rng(9)
    y = model.add(
        "Relu",
        model.conv("x", rng.normal(size=(4, 3, 1, 1)), np.ones(4)),
        name="first",
    )
    model.conv(y, np.full((2, 4, 1, 1), -0.02), np.full(2, 1.0), name="out")
    graph, table, samples = prepared(model)
    clipped = replace(table.ranges["first"], hi=0.01)
    table = replace(table, ranges=dict(table.ranges) | {"first": clipped})
    options = QuantizeOptions(activation_bits=16, weight_bits=15)
    found = refine(graph, table, options, RefineOptions.of(["biases"]), samples)
    program = quantize(graph, found, options)
    biases = [
        program.constants[item.operands[2] - len(program.inputs)]
        for item in program.instructions
        if item.name == "conv2d"
    ]
    assert max(np.abs(c.astype(np.int64)).max() for c in biases) <= 2**30


def test_weights_rounded_to_second_order_add_nothing_to_the_mean():
    graph, table, samples = prepared(network())
    options = QuantizeOptions(weight_bits=3)
    found = refine(
        graph, table, options, RefineOptions.of(["weights"]), samples
    )
    bare = replace(
        found,
        decisions=replace(found.decisions, layers=without_bias(graph, found)),
    )
    off = [
        np.abs(mean_errors(graph, item, samples, options)).max()
        for item in (bare, found)
    ]
    assert off[1] < off[0] / 2


def without_bias(
    graph: ir.Model, table: CalibrationTable
) -> dict[str, LayerDecision]:
    biases = {
        node.outputs[0].name: node.inputs[2].const_value.numpy()
        for node in graph.graph
        if len(node.inputs) == 3
    }
    return {
        name: replace(item, bias=biases[name].astype(float))
        for name, item in table.decisions.layers.items()
    }


def mean_errors(
    graph: ir.Model,
    table: CalibrationTable,
    samples: Samples,
    options: QuantizeOptions | None = None,
) -> np.ndarray:
    """[O]: what the program's outputs have more than the float model's, on average."""
    program = quantize(graph, table, options or QuantizeOptions())
    session = FloatSession(graph)
    pairs = [
        (run_real(program, sample)["out"], session.run(sample)["out"])
        for sample in samples
    ]
    return np.mean(
        [(integer - real).mean(axis=(0, 2, 3)) for integer, real in pairs],
        axis=0,
    )


def test_the_values_between_layers_that_only_convolutions_and_sums_read_are_candidates():
    graph, _, _ = prepared(network())
    assert [value.name for value in candidates(graph)] == [
        "first",
        "second",
        "third",
        "sum",
    ]
    model = FloatModel(x=(1, 3, 4, 4))
    pooled = model.add(
        "MaxPool",
        model.add("Relu", "x"),
        kernel_shape=[2, 2],
        strides=[1, 1],
        pads=[0, 0, 0, 0],
    )
    model.add("Sigmoid", pooled, name="out")
    assert candidates(ir.from_proto(model.proto("out"))) == []


def test_nothing_is_decided_about_values_of_16_bits():
    graph, table, samples = prepared(network(unequal=0.4))
    found = refine(
        graph,
        table,
        QuantizeOptions(activation_bits=16),
        RefineOptions.of(["scales"]),
        samples,
    )
    assert found.decisions.channel_scales == found.decisions.centres == {}
    state = ChannelState(
        graph,
        table,
        QuantizeOptions(activation_bits=16),
        halves={},
        statistics={},
        residual_share=1.0,
        decisions=Decisions(),
    )
    for stage in CHANNEL_STAGES:
        assert stage.decide(state).decisions == Decisions()


def test_what_was_decided_holds_for_its_options_only():
    graph, table, samples = prepared(network())
    found = refine(
        graph, table, QuantizeOptions(), RefineOptions.of(["weights"]), samples
    )
    assert not same_constants(graph, found, table, QuantizeOptions())
    assert same_constants(graph, found, table, QuantizeOptions(weight_bits=6))


def test_a_table_with_decisions_reads_back_to_the_same_program(tmp_path):
    graph, table, samples = prepared(network(unequal=0.4))
    found = refine(graph, table, QuantizeOptions(), RefineOptions(), samples)
    assert (
        found.decisions.channel_scales
        and found.decisions.centres
        and found.decisions.layers
    )
    found.save(tmp_path / "t.json")
    again = CalibrationTable.load(tmp_path / "t.json")
    assert again.text() == found.text()
    one, two = (
        validate(quantize(graph, item, QuantizeOptions())).program
        for item in (found, again)
    )
    assert all(
        np.array_equal(a, b)
        for a, b in zip(one.constants, two.constants, strict=True)
    )
    assert one.instructions == two.instructions and one.metadata == two.metadata


def test_layers_that_are_damaged_lacking_or_of_another_model_are_refused(
    tmp_path,
):
    graph, table, samples = prepared(network())
    found = refine(
        graph, table, QuantizeOptions(), RefineOptions.of(["weights"]), samples
    )
    found.save(tmp_path / "t.json")
    (layers,) = tmp_path.glob("t.*.npz")
    content = layers.read_bytes()
    layers.write_bytes(content[:-9] + b"damaged!!")
    with pytest.raises(
        BadData,
        match="is not the file that the calibration table was written with",
    ):
        CalibrationTable.load(tmp_path / "t.json")
    layers.unlink()
    with pytest.raises(BadData, match=re.escape(f"{layers}: cannot be read")):
        CalibrationTable.load(tmp_path / "t.json")
    decision = found.decisions.layers["third"]
    wrong = replace(decision, weights=decision.weights[:, :, :, :2])
    lie = replace(
        found, decisions=replace(found.decisions, layers={"third": wrong})
    )
    with pytest.raises(BadData, match="'third', which needs"):
        quantize(graph, lie, QuantizeOptions())


def test_values_with_scales_by_channel_are_compared_with_their_float_duplicates():
    graph, table, samples = prepared(network(unequal=0.4))
    found = refine(
        graph, table, QuantizeOptions(), RefineOptions.of(["scales"]), samples
    )
    program = validate(quantize(graph, found, QuantizeOptions()))
    layers = {
        layer.source: layer for layer in compare_layers(graph, program, samples)
    }
    assert {"first", "second"} <= layers.keys()
    assert min(layer.snr_db for layer in layers.values()) > 25


@pytest.mark.parametrize(
    ("provable", "memory"), [(True, 2**29), (False, 2**29), (True, 0)]
)
def test_a_simulation_computes_what_the_program_computes(
    provable, memory, monkeypatch
):
    def prove_nothing(_):
        raise Unproven("add.fits", "too large")

    if not provable:
        monkeypatch.setattr("mrt.refine.simulation.prove", prove_nothing)
    monkeypatch.setattr("mrt.refine.simulation.MEMORY", memory)
    graph, table, _ = prepared(network())
    samples = list(synthetic_samples({"x": (1, 3, 12, 12)}, 3, 2))
    seen: dict[str, list[np.ndarray]] = {}

    lowering = GraphLowering(graph, table, QuantizeOptions())
    layer = lowering.next_layer()
    with ThreadPoolExecutor(2) as pool:
        simulation = Simulation(lowering.builder, samples, pool)
        while layer is not None:
            seen[layer.name] = simulation.values(layer.input.value)
            rounded = nearest(layer, lowering.table, lowering.options)
            layer = lowering.next_layer(rounded)
    program = validate(lowering.finish({}, []))
    from cvm.reference.interpreter import run
    from cvm.runtime import boundary

    for index, sample in enumerate(samples):
        values: dict[int, np.ndarray] = {}
        run(
            program,
            boundary.quantize(program.program, sample),
            observe=values.__setitem__,
        )
        reads = {
            number: item.operands[0]
            for number, item in enumerate(
                program.program.instructions, program.program.first_instruction
            )
            if item.name == "conv2d"
        }
        found = [values[operand] for operand in list(reads.values())[1:]]
        wanted = [seen[name][index] for name in list(seen)[1:]]
        assert len(found) == len(wanted) == 4
        assert all(
            np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)
        )


def test_what_is_decided_does_not_depend_on_how_many_threads_there_are(
    monkeypatch,
):
    graph, table, samples = prepared(network())
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(
            "mrt.refine.walker.os.cpu_count", lambda threads=threads: threads
        )
        found.append(
            refine(
                graph, table, QuantizeOptions(), RefineOptions(), samples
            ).decisions
        )
    assert found[0].layers
    assert found[0].encoded() == found[1].encoded()


def test_every_stage_is_an_option_and_every_option_a_stage():
    assert {stage.name for stage in ALL_STAGES} == set(STAGES)
    assert len(ALL_STAGES) == len(STAGES)
    assert [stage.name for stage in ALL_STAGES] == [
        "duplicates",
        "centres",
        "scales",
        "fit",
        "weights",
        "biases",
    ]


def test_centres_without_scales_need_nothing_and_run_not():
    options = RefineOptions.of(["centres"])
    assert not options.runs("centres")
    assert not options.any


def test_stages_have_names():
    assert RefineOptions.of(STAGES) == RefineOptions()
    assert not RefineOptions.of([]).any
    with pytest.raises(
        BadOption,
        match="'weight' is no stage; there are duplicates, scales, centres, fit, weights, biases, all and none",
    ):
        RefineOptions.of(["weight"])


def test_a_value_that_is_not_finite_is_said_without_a_warning_before():
    graph = ir.from_proto(network().proto("out"))
    samples = [{"x": np.full((1, 3, 12, 12), 3e38, np.float32)}]
    given = Samples(("x",), 1, None, "one", lambda: iter(samples))
    statistics = FloatStatistics(graph, RefineOptions(), 1)
    with pytest.raises(BadData, match="NaN or infinity"):
        calibrate(
            graph,
            given,
            CalibrationOptions(),
            model_sha256="",
            callbacks=[statistics],
        )


def test_a_fitted_layer_passes_on_the_moments_of_all_rows(monkeypatch):
    states = []

    def recorded(state, correction):
        states.append(state)
        return with_correction(state, correction)

    with_correction = fit._with_correction
    monkeypatch.setattr(fit, "_with_correction", recorded)
    graph, table, samples = prepared(network())
    refine(graph, table, QuantizeOptions(), RefineOptions.of(["fit"]), samples)
    assert states
    for state in states:
        expected = Moments()
        for block in state.inputs.blocks_for_moments():
            expected.add(state.inputs.rows(block))
        assert state.moments.count == expected.count
        assert np.allclose(state.moments.means, expected.means)
