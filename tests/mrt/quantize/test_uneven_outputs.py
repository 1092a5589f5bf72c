"""Outputs that join boxes in pixels and scores up to 1 leave the scores their bits."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.samples import synthetic_samples
from mrt.calibrate.session import FloatSession
from mrt.quantize import QuantizeOptions
from tests.support.calibrated import calibrated_program
from tests.support.float_models import FloatModel, f32, run_real

INPUTS = {"x": (1, 3, 8, 8)}


def detector(pixels: float, scales: int = 1) -> FloatModel:
    """Boxes of up to some pixels and scores up to 1, of grids that are joined."""
    rng, model = np.random.default_rng(4), FloatModel(**INPUTS)
    grids = []
    for _ in range(scales):
        weights = rng.normal(size=(4, 3, 1, 1)) / 4
        offsets = model.conv("x", weights, np.full(4, 0.5))
        boxes = model.add("Mul", offsets, f32(pixels))
        logits = model.conv("x", rng.normal(size=(5, 3, 1, 1)), np.zeros(5))
        scores = model.add("Sigmoid", logits)
        joined = model.add("Concat", boxes, scores, axis=1)
        grids.append(model.add("Reshape", joined, np.array([1, 9, 64])))
    if scales > 1:
        grids = [model.add("Concat", *grids, axis=2)]
    model.add("Transpose", grids[0], perm=[0, 2, 1], name="out")
    return model


def program_of(model: FloatModel, options: QuantizeOptions | None = None):
    graph = ir.from_proto(model.proto("out"))
    return calibrated_program(graph, INPUTS, options)


def error_of_scores(model: FloatModel, form) -> float:
    """The greatest error of a score."""
    session = FloatSession(ir.from_proto(model.proto("out")), ["out"])
    errors = [
        run_real(form.program, sample)["out"] - session.run(sample)["out"]
        for sample in synthetic_samples(INPUTS, 10, 1)
    ]
    return float(np.abs(np.stack(errors)[..., 4:]).max())


def dtype_of(form) -> str:
    return form.types[form.program.outputs[0].value].dtype


@pytest.mark.parametrize("scales", [1, 3])
def test_scores_beside_pixels_keep_their_bits(scales):
    model = detector(640.0, scales)
    form = program_of(model)
    assert dtype_of(form) == "i32"
    assert error_of_scores(model, form) < 0.02  # the input has 8 bits


def test_parts_of_like_size_share_16_bits():
    assert dtype_of(program_of(detector(4.0))) == "i16"


@pytest.mark.parametrize("options", [{"activation_bits": 4}, {"sum_bits": 12}])
def test_few_bits_are_for_machines_that_have_no_more(options):
    form = program_of(detector(640.0), QuantizeOptions(**options))
    assert dtype_of(form) != "i32"


SIZES = np.array([2e5, 4.0])  # prices, and rooms


def regressor(*, trees: int = 1, sizes=SIZES) -> ir.Model:
    """Rows of two numbers of these sizes; of some parts, which are added up."""
    rng, model = np.random.default_rng(7), FloatModel(x=(1, 6))
    parts = []
    for _ in range(trees):
        weights = rng.normal(size=(2, 6)) * sizes[:, None] / 4
        parts.append(model.gemm("x", weights, sizes))
    total = parts[0]
    for part in parts[1:]:
        total = model.add("Add", total, part)
    return ir.from_proto(model.proto(total))


def decibels_of_columns(graph: ir.Model, form) -> list[float]:
    """The signal to noise of each column, counted from its mean."""
    name = str(graph.graph.outputs[0].name)
    session = FloatSession(graph, [name])
    samples = list(synthetic_samples({"x": (1, 6)}, 60, 1))
    real = np.concatenate([session.run(sample)[name] for sample in samples])
    errors = real - np.concatenate(
        [run_real(form.program, sample)[name] for sample in samples]
    )
    ratios = real.var(axis=0) / (errors**2).mean(axis=0)
    return (10 * np.log10(ratios)).tolist()


@pytest.mark.parametrize("parts", [1, 4])
def test_columns_of_different_sizes_keep_their_bits(parts):
    graph = regressor(trees=parts)
    form = calibrated_program(graph, {"x": (1, 6)})
    assert dtype_of(form) == "i32"
    assert min(decibels_of_columns(graph, form)) > 30


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        (np.array([200.0, 4.0]), None),
        (SIZES, QuantizeOptions(sum_bits=14, activation_bits=7)),
    ],
)
def test_columns_of_like_sizes_and_few_bits_have_16(sizes, options):
    graph = regressor(sizes=sizes)
    form = calibrated_program(graph, {"x": (1, 6)}, options)
    assert dtype_of(form) != "i32"
