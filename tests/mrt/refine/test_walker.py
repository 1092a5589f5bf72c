"""The walk through the layers: its order, what each layer takes, and what is used up."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from cvm.file.format import encode
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.graph import GraphLowering
from mrt.quantize.rounding import RoundedLayer, as_decided
from mrt.refine import FloatStatistics, RefineOptions
from mrt.refine.stages import LayerState, Needs, RefineStage
from mrt.refine.walker import decide_layers
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationOptions, CalibrationTable
from tests.support.float_models import FloatModel

OPTIONS = QuantizeOptions()


@pytest.fixture
def prepared() -> tuple[ir.Model, CalibrationTable, FloatStatistics]:
    """Three convolutions of one channel with one weight, one behind the other; equal ones would share it."""
    model = FloatModel(x=(1, 1, 4, 4))
    value = "x"
    for name, weight in (("first", 1.0), ("second", 0.5), ("third", 0.25)):
        weights = np.full((1, 1, 1, 1), weight)
        value = model.conv(value, weights, np.zeros(1), name=name)
    graph = ir.from_proto(model.proto("third"))
    samples = synthetic_samples(model.inputs, 5)
    statistics = FloatStatistics(graph, RefineOptions.of(["weights"]), 5)
    table = calibrate(
        graph,
        samples,
        CalibrationOptions(),
        model_sha256="",
        callbacks=[statistics],
    )
    return graph, table, statistics


def test_layers_come_in_order_and_take_what_those_before_were_decided_to_give(
    prepared,
):
    """Each layer's weights are set to 0, so all behind the first take integers of 0."""
    graph, table, statistics = prepared
    taken: dict[str, bool] = {}

    def decide(state: LayerState) -> LayerState:
        taken[state.layer.name] = bool(state.inputs.rows(0).numbers.any())
        zeros = np.zeros(state.layer.weights.shape, np.int8)
        rounded = RoundedLayer(zeros, state.layer.scales, state.layer.bias)
        return replace(state, rounded=rounded)

    steps: list[tuple[str, int, int]] = []
    decisions = decide_layers(
        GraphLowering(graph, table, OPTIONS),
        statistics,
        [RefineStage("zero", Needs.LAYERS, decide)],
        lambda *step: steps.append(step),
    )
    assert taken == {"first": True, "second": False, "third": False}
    assert list(taken) == list(decisions) == ["first", "second", "third"]
    assert steps == [("refining layers", done, 3) for done in (1, 2, 3)]
    assert statistics.layers == {}


def test_a_layer_without_statistics_is_not_decided(prepared):
    graph, table, statistics = prepared
    del statistics.layers["second"]
    lowering = GraphLowering(graph, table, OPTIONS)
    decisions = decide_layers(lowering, statistics, [], lambda *_: None)
    assert list(decisions) == ["first", "third"]


def test_with_no_stage_the_program_is_that_of_the_nearest_weights(prepared):
    graph, table, statistics = prepared
    lowering = GraphLowering(graph, table, OPTIONS)
    layers = decide_layers(lowering, statistics, [], lambda *_: None)
    decided = replace(table, decisions=Decisions(OPTIONS.key(), layers=layers))
    program = quantize(graph, decided, OPTIONS)
    assert encode(program) == encode(quantize(graph, table, OPTIONS))


def test_the_lowering_stops_at_each_layer_and_ends_with_the_program(prepared):
    graph, table, _ = prepared
    lowering = GraphLowering(graph, table, OPTIONS)
    names = []
    layer = lowering.next_layer()
    while layer is not None:
        names.append(layer.name)
        rounded = as_decided(layer, lowering.table, lowering.options)
        layer = lowering.next_layer(rounded)
    assert names == ["first", "second", "third"]
    assert lowering.next_layer() is None
    program = lowering.finish({}, [])
    assert encode(program) == encode(quantize(graph, table, OPTIONS))


def test_a_stage_without_a_solution_is_left_out_of_its_layer_and_noted(
    prepared,
):
    graph, table, statistics = prepared

    def fail(state: LayerState) -> LayerState:
        if state.layer.name == "second":
            raise np.linalg.LinAlgError("not positive definite")
        return state

    notes: list[str] = []
    decisions = decide_layers(
        GraphLowering(graph, table, OPTIONS),
        statistics,
        [RefineStage("weights", Needs.LAYERS, fail)],
        lambda *_: None,
        notes,
    )
    assert list(decisions) == ["first", "second", "third"]
    assert np.all(decisions["second"].weights == decisions["first"].weights)
    assert notes == [
        "layer 'second' goes without the refining stage 'weights': not positive definite"
    ]
