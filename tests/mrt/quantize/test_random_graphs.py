"""Random models at random options: always a proven program of the right shapes; at 16 bits, one that means the same."""

import numpy as np
import onnxruntime
import pytest

from cvm.program import Program
from cvm.proof.validate import validate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from mrt.rewrite import canonical
from tests.support.float_models import calibrated, run_real
from tests.support.random_graphs import RandomGraph

SAMPLES = 6
FLOOR = 25.0  # dB; 8-bit weights alone leave some 40 dB a layer, a wrong rule less than 10
FAST, SLOW = range(22), range(22, 140)


def random_options(seed: int, graph: RandomGraph) -> QuantizeOptions:
    rng = np.random.default_rng(seed)

    def bits() -> int:
        return int(rng.integers(2, 9))

    layers = {
        name: LayerBits(bits(), int(rng.choice([2, 4, 8, 16])))
        for name in graph.values
        if rng.random() < 0.15
    }
    return QuantizeOptions(
        bits(),
        bits(),
        scales=str(rng.choice(["real", "shift"])),
        scheme=str(rng.choice(["symmetric", "affine"])),
        bias_correction=bool(rng.random() < 0.5),
        per_channel=bool(rng.random() < 0.8),
        unsigned=bool(rng.random() < 0.8),
        layers=layers,
    )


def converted(graph: RandomGraph, options: QuantizeOptions) -> Program:
    model, table = calibrated(
        graph.model.proto(*graph.outputs), graph.model.inputs, SAMPLES
    )
    canonical.check(model)
    return quantize(model, table, options)


def signal_to_noise(graph: RandomGraph, program: Program) -> dict[str, float]:
    """dB of every output, whose shapes have to be the float model's."""
    session = onnxruntime.InferenceSession(
        graph.model.proto(*graph.outputs).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    signal = dict.fromkeys(graph.outputs, 1e-9)
    noise = dict.fromkeys(graph.outputs, 1e-30)
    for sample in synthetic_samples(graph.model.inputs, SAMPLES, 0):
        floats = dict(
            zip(
                graph.outputs,
                session.run(graph.outputs, dict(sample)),
                strict=True,
            )
        )
        reals = run_real(program, sample)
        for name in graph.outputs:
            assert reals[name].shape == floats[name].shape == graph.values[name]
            signal[name] += float((floats[name].astype(np.float64) ** 2).sum())
            noise[name] += float(((floats[name] - reals[name]) ** 2).sum())
    return {
        name: 10 * float(np.log10(signal[name] / noise[name]))
        for name in graph.outputs
    }


def multipliers(program: Program) -> list[int]:
    """Of every rescale."""
    operands = [
        item.operands[1]
        for item in program.instructions
        if item.name == "rescale"
    ]
    return [
        int(value)
        for number in operands
        for value in program.constants[number - program.first_constant]
    ]


def check_any_options(seed: int) -> None:
    graph = RandomGraph(seed)
    options = random_options(seed, graph)
    program = converted(graph, options)
    validate(program)
    assert set(signal_to_noise(graph, program)) == {
        item.name for item in program.outputs
    }
    if options.scales == "shift":
        assert all(
            multiplier & (multiplier - 1) == 0
            for multiplier in multipliers(program)
        )


def check_16_bits(seed: int) -> None:
    graph = RandomGraph(seed, curves=False)
    program = converted(graph, QuantizeOptions(8, 16))
    validate(program)
    found = signal_to_noise(graph, program)
    assert min(found.values()) > FLOOR, found


@pytest.mark.parametrize("seed", FAST)
def test_any_options_give_a_proven_program_of_the_same_shapes(seed):
    check_any_options(seed)


@pytest.mark.parametrize("seed", FAST)
def test_16_bit_activations_keep_the_meaning(seed):
    check_16_bits(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW)
def test_any_options_give_a_proven_program_of_the_same_shapes_at_length(seed):
    check_any_options(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW)
def test_16_bit_activations_keep_the_meaning_at_length(seed):
    check_16_bits(seed)
