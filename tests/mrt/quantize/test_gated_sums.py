"""The states of LSTMs, and the sums of which their gates are functions, have 16 bits."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import mrt
from mrt.calibrate.samples import synthetic_samples
from mrt.evaluate import evaluate
from mrt.graph.canonical_values import name_of
from mrt.quantize import QuantizeOptions
from mrt.quantize.gated_sums import gated_sums
from mrt.quantize.options import LayerBits
from mrt.quantize.residual_streams import with_stream_bits
from mrt.rewrite import rewrite
from tests.support.calibrated import calibrated_program
from tests.support.float_models import FloatModel
from tests.support.graphs import graph_of, node

RNG = np.random.default_rng(3)
STEPS, WIDTH = 24, 6
INPUTS = {"x": (STEPS, 1, 4)}


def weights(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def recurrence(operator: str, gates: int) -> ir.Model:
    one = node(operator, "x w r b", "y", hidden_size=WIDTH)
    arrays = {
        "w": weights(1, gates * WIDTH, 4),
        "r": weights(1, gates * WIDTH, WIDTH) / 4,
        "b": np.zeros((1, 2 * gates * WIDTH), np.float32),
    }
    if operator == "LSTM":  # gates in the order i, o, f, c: little is forgotten
        arrays["b"][:, 2 * WIDTH : 3 * WIDTH] = 4
    model = graph_of([one], INPUTS, arrays)
    rewrite(model)
    return model


def sums_of(model: ir.Model, options: QuantizeOptions | None = None):
    return gated_sums(list(model.graph), options or QuantizeOptions())


def readers_of(model: ir.Model, names) -> set[str]:
    return {
        use.node.op_type
        for one in model.graph
        for value in one.outputs
        if name_of(value) in names
        for use in value.uses()
    }


def test_states_and_what_gates_are_functions_of():
    model = recurrence("LSTM", 4)
    found = sums_of(model)
    # Each step has a state and a sum before its gates; the first state is a product alone.
    assert len(found) == 2 * STEPS - 1
    assert {"Tanh", "Mul", "Slice"} <= readers_of(model, found)
    assert sums_of(recurrence("GRU", 3)) == frozenset()
    assert sums_of(recurrence("RNN", 1)) == frozenset()


@pytest.mark.parametrize("bits", [2, 4])
def test_few_bits_stay_few(bits):
    options = QuantizeOptions(8, bits)
    assert sums_of(recurrence("LSTM", 4), options) == frozenset()


def test_bits_that_are_chosen_stay():
    model = recurrence("LSTM", 4)
    options = with_stream_bits(model, QuantizeOptions(stream_bits=8))
    assert sums_of(model, options) == frozenset()
    everything = sums_of(model)
    one = next(name for name in everything if "gemm" in name)
    chosen = QuantizeOptions(layers={one: LayerBits(activation_bits=8)})
    assert sums_of(model, chosen) == everything - {one}


def gated_sum(kind: str) -> ir.Model:
    """The sum of two products, each with a gate."""
    model = FloatModel(a=(1, 5), b=(1, 5), c=(1, 5), d=(1, 5))
    first = model.add("Sigmoid", "a", name="first")
    second = model.add("Sigmoid", "b", name="second")
    if kind == "one gate":
        second = model.add("Sub", np.float32(1), first)
    left = model.add("Mul", first, "c")
    right = model.add("Mul", second, "b" if kind == "SiLU" else "d")
    if kind == "no gate":
        right = model.add("Mul", model.add("Tanh", "b"), "d")
    model.add("Add", left, right, name="state")
    return ir.from_proto(model.proto("state"))


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("two gates", {"state"}),
        ("one gate", set()),  # a GRU's: z and 1 - z
        ("SiLU", set()),
        ("no gate", set()),
    ],
)
def test_which_sums_are_states(kind, found):
    assert sums_of(gated_sum(kind)) == found


def decibels(model: ir.Model, options: QuantizeOptions) -> float:
    form = calibrated_program(model, INPUTS, options)
    others = synthetic_samples(INPUTS, 20, 1)
    return float(evaluate(model, form, others).to_json()["snr_db"])


def test_a_long_recurrence_gains_six_decibels():
    model = recurrence("LSTM", 4)
    narrow = with_stream_bits(model, QuantizeOptions(stream_bits=8))
    assert decibels(model, QuantizeOptions()) > decibels(model, narrow) + 6


def test_a_state_between_runs_has_16_bits(tmp_path):
    """The cell of one step: its state comes from outside, and goes on."""
    one = node("LSTM", "x w r b - h c", "y h_next c_next", hidden_size=WIDTH)
    arrays = {
        "w": weights(1, 4 * WIDTH, 4),
        "r": weights(1, 4 * WIDTH, WIDTH),
        "b": weights(1, 8 * WIDTH),
    }
    shapes = {"x": (1, 1, 4), "h": (1, 1, WIDTH), "c": (1, 1, WIDTH)}
    model = graph_of([one], shapes, arrays, outputs="y h_next c_next")
    onnx.save(ir.to_proto(model), tmp_path / "m.onnx")
    found = mrt.convert(tmp_path / "m.onnx", states={"c": "c_next"})
    types = {
        item.name: item.type.dtype for item in found.program.program.inputs
    }
    assert types["c"] == "i16"
