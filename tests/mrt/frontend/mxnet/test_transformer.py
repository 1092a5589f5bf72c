"""A layer of a transformer as GluonNLP writes it: token numbers in, integers all the way, close to the float model."""

import numpy as np
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples
from mrt.frontend.mxnet import ModelSource, read_mxnet
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions
from tests.support.float_models import run_real
from tests.support.mxnet_files import node, variable, write_symbol
from tests.support.mxnet_rows import compute

TOKENS, STEPS, BATCH = 50, 6, 2
NODES = [
    variable("ids"), variable("embedding_weight"),
    node("Embedding", "embedding", [0, 1], input_dim=str(TOKENS), output_dim="16"),
    node("transpose", "steps", [2], axes="(1, 0, 2)"),
    variable("heads_weight"), variable("heads_bias"),
    node("FullyConnected", "heads", [3, 4, 5], num_hidden="48", flatten="False"),
    node("_contrib_interleaved_matmul_selfatt_qk", "scores", [6], heads="4"),
    node("softmax", "attention", [7], axis="-1"),
    node("_contrib_interleaved_matmul_selfatt_valatt", "mixed", [6, 8], heads="4"),
    node("elemwise_add", "sum", [3, 9]),
    variable("norm_gamma"), variable("norm_beta"),
    node("LayerNorm", "norm", [10, 11, 12]),
    node("SequenceLast", "last", [13]),
    variable("class_weight"), variable("class_bias"),
    node("FullyConnected", "class", [14, 15, 16], num_hidden="7"),
]  # fmt: skip
LEAST_DB = 38  # 41 was seen


@pytest.mark.slow
def test_a_transformer_layer_runs_as_integers(tmp_path):
    write_symbol(tmp_path / "m.json", NODES)
    model = read_mxnet(
        ModelSource(
            tmp_path / "m.json",
            random_weights=0,
            shapes={"ids": (BATCH, STEPS)},
        )
    ).model
    generator = np.random.default_rng(0)
    samples = [
        {
            "ids": generator.integers(0, TOKENS, (BATCH, STEPS)).astype(
                np.float32
            )
        }
        for _ in range(8)
    ]
    floats = [compute(model, [sample["ids"]]) for sample in samples]
    rewrite(model)
    source = Samples(
        ("ids",), len(samples), None, "token numbers", lambda: iter(samples)
    )
    table = calibrate(
        model, source, CalibrationOptions(), model_sha256="0" * 64
    )
    program = quantize(model, table, QuantizeOptions(8, 16))
    (tokens,) = program.inputs
    assert (tokens.lo, tokens.hi) == (0, TOKENS - 1)
    reals = [
        next(iter(run_real(program, sample).values())) for sample in samples
    ]
    noise = sum(
        ((real - exact) ** 2).sum()
        for real, exact in zip(reals, floats, strict=True)
    )
    signal = sum((exact**2).sum() for exact in floats)
    assert 10 * np.log10(signal / noise) > LEAST_DB
