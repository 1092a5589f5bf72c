"""Gates keep a scale for each channel; curves that are none, and values without such scales, stay tables."""

import math
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from cvm.proof.validate import validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.evaluate import evaluate
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.curves.gate import is_gate
from mrt.refine import RefineOptions
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel, f32
from tests.support.refining import refine

INPUTS = {"x": (1, 3, 12, 12)}
# Channels differ by a factor of 98: in one scale of 8 bits, the least of them has one step.
SIZES = 0.4 ** np.arange(6) * 8


def silu(model: FloatModel, x: str, name: str) -> str:
    return model.add("Mul", x, model.add("Sigmoid", x), name=name)


def hard_swish(model: FloatModel, x: str, name: str) -> str:
    return model.add("HardSwish", x, name=name)


def times_six(model: FloatModel, x: str, name: str) -> str:
    """HardSwish as older exporters write it, whose division by 6 is in the weights of the next layer."""
    shifted = model.add("Add", x, f32(3))
    clipped = model.add("Clip", shifted, f32(0), f32(6))
    return model.add("Mul", x, clipped, name=name)


def scaled_and_shifted(model: FloatModel, x: str, name: str) -> str:
    scaled = model.add("Mul", times_six(model, x, f"{name}.six"), f32(0.13))
    return model.add("Add", scaled, f32(-0.7), name=name)


def mish(model: FloatModel, x: str, name: str) -> str:
    return model.add("Mish", x, name=name)


def gelu(model: FloatModel, x: str, name: str) -> str:
    return model.add("Gelu", x, name=name, approximate="none")


def squared(model: FloatModel, x: str, name: str) -> str:
    """x times a function of x that does not end at 1."""
    return model.add("Mul", x, model.add("Tanh", x), name=name)


GATES = [silu, hard_swish, times_six, scaled_and_shifted, mish, gelu]


def first_layer(model: FloatModel, rng: np.random.Generator) -> str:
    weights = rng.normal(size=(6, 3, 1, 1)) * SIZES[:, None, None, None]
    return model.conv("x", weights, np.zeros(6))


def last_layer(model: FloatModel, x: str, rng: np.random.Generator) -> None:
    """All channels count alike."""
    weights = rng.normal(size=(4, 6, 1, 1)) / SIZES[:, None, None]
    model.conv(x, weights, rng.normal(size=4), name="out")


def network(gate) -> ir.Model:
    rng, model = np.random.default_rng(3), FloatModel(**INPUTS)
    last_layer(model, gate(model, first_layer(model, rng), "gated"), rng)
    return ir.from_proto(model.proto("out"))


def joined(gate) -> ir.Model:
    """Two gates behind a Concat."""
    rng, model = np.random.default_rng(3), FloatModel(**INPUTS)
    parts = []
    for some in (SIZES[:2], SIZES[2:]):
        weights = (
            rng.normal(size=(len(some), 3, 1, 1)) * some[:, None, None, None]
        )
        y = model.conv("x", weights, np.zeros(len(some)))
        parts.append(gate(model, y, f"gated{len(some)}"))
    last_layer(model, model.add("Concat", *parts, axis=1), rng)
    return ir.from_proto(model.proto("out"))


def added(gate) -> ir.Model:
    """A gate and a convolution's output, summed."""
    rng, model = np.random.default_rng(3), FloatModel(**INPUTS)
    y = gate(model, first_layer(model, rng), "gated")
    last_layer(model, model.add("Add", y, first_layer(model, rng)), rng)
    return ir.from_proto(model.proto("out"))


def program_of(graph: ir.Model, options=None, *stages: str):
    options = options or QuantizeOptions()
    samples = synthetic_samples(INPUTS, 40, 0)
    table = calibrate(
        graph, samples, CalibrationOptions(), model_sha256="0" * 64
    )
    table = refine(graph, table, options, RefineOptions.of(stages), samples)
    return validate(quantize(graph, table, options))


def instructions(form) -> list[str]:
    return [item.name for item in form.program.instructions]


def snr(graph: ir.Model, form) -> float:
    others = synthetic_samples(INPUTS, 40, 1)
    return float(evaluate(graph, form, others).to_json()["snr_db"])


@pytest.mark.parametrize("scales", ["real", "shift"])
@pytest.mark.parametrize("gate", GATES)
def test_unequal_channels_keep_their_bits(gate, scales):
    graph, options = network(gate), QuantizeOptions(scales=scales)
    plain = program_of(graph, options)
    gated = program_of(graph, options, "scales")
    assert "mul" not in instructions(plain)
    assert instructions(gated).count("mul") == 1
    assert snr(graph, gated) > snr(graph, plain) + 12


@pytest.mark.parametrize("shape", [joined, added])
def test_through_concat_and_sums(shape):
    graph = shape(silu)
    plain, gated = program_of(graph), program_of(graph, None, "scales")
    assert "mul" in instructions(gated)
    assert snr(graph, gated) > snr(graph, plain) + 12


def test_sixteen_bits_gain_too():
    graph, options = network(silu), QuantizeOptions(activation_bits=16)
    plain = program_of(graph, options)
    gated = program_of(graph, options, "scales")
    assert snr(graph, gated) > snr(graph, plain) + 3


def upside_down(model: FloatModel, x: str, name: str) -> str:
    return model.add("Mul", silu(model, x, f"{name}.silu"), f32(-2), name=name)


@pytest.mark.parametrize("curve", [squared, upside_down])
def test_a_curve_that_is_no_gate_is_a_table(curve):
    graph = network(curve)
    form = program_of(graph, None, "scales")
    assert "mul" not in instructions(form)
    assert "table" in instructions(form)


@pytest.mark.parametrize("gate", GATES)
def test_gates_are_recognised_in_the_graph(gate):
    model = FloatModel(**INPUTS)
    gate(model, first_layer(model, np.random.default_rng(3)), "gated")
    graph = ir.from_proto(model.proto("gated"))
    assert is_gate(graph.graph.outputs[0])


def test_a_product_of_two_values_is_no_gate():
    model, rng = FloatModel(**INPUTS), np.random.default_rng(3)
    left, right = first_layer(model, rng), first_layer(model, rng)
    model.add("Mul", left, model.add("Sigmoid", right), name="y")
    graph = ir.from_proto(model.proto("y"))
    assert not is_gate(graph.graph.outputs[0])


def gate_points(gate) -> np.ndarray:
    """The points of a gate in a program: 513 from -16 to 16."""
    graph = network(gate)
    table = calibrate(
        graph,
        synthetic_samples(INPUTS, 4, 0),
        CalibrationOptions(),
        model_sha256="0" * 64,
    )
    scales = Decisions(channel_scales={"gated": (1.0, 0.5) * 3})
    program = quantize(
        graph, replace(table, decisions=scales), QuantizeOptions()
    )
    (found,) = [item for item in program.constants if item.shape == (513,)]
    return np.asarray(found, np.int64)


@pytest.mark.parametrize(
    ("gate", "exact"),
    [
        (silu, lambda x: 1 / (1 + math.exp(-x))),
        (hard_swish, lambda x: min(max(x / 6 + 0.5, 0), 1)),
        (gelu, lambda x: (1 + math.erf(x / math.sqrt(2))) / 2),
        (mish, lambda x: math.tanh(math.log1p(math.exp(x)))),
    ],
)
def test_the_lines_of_a_gate_stay_within_a_step_beside_rounding(gate, exact):
    """One step is 2^-14; y is rounded before it is divided, and the point after that."""
    points = gate_points(gate)
    for place in (*range(0, 65536, 97), 32767, 32768, 32769, 65535):
        index, rest = divmod(place, 128)
        between = (
            points[index] + (points[index + 1] - points[index]) * rest / 128
        )
        x = (place - 32768) / 2048
        assert abs(between - exact(x) * 2**14) <= 1.5, x


def test_a_gate_that_lines_miss_keeps_its_table():
    """Sigmoid(40 x) * x: from 0 to 1 within two lines."""

    def steep(model, x, name):
        scaled = model.add("Mul", x, np.float32(40))
        return model.add("Mul", x, model.add("Sigmoid", scaled), name=name)

    form = program_of(network(steep), None, "scales")
    shapes = {item.shape for item in form.program.constants}
    assert (65536,) in shapes and (513,) not in shapes
    assert "interpolate" not in instructions(form)
