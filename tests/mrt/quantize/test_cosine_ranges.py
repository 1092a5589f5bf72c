"""The cosine of two inputs reaches 1, though those of the samples are little alike."""

import numpy as np
import pytest

import mrt
from tests.support.float_models import FloatModel, f32

SIZE = 256
RNG = np.random.default_rng(3)
A, B = (RNG.uniform(-1, 1, (40, SIZE)).astype(np.float32) for _ in range(2))
ALIKE = 0.9 * A[:8]


def unit(m: FloatModel, x: str) -> str:
    return m.add("LpNormalization", x, axis=-1, p=2)


def divided(m: FloatModel, x: str) -> str:
    length = m.add("ReduceL2", x, np.array([1]), keepdims=1)
    return m.add("Div", x, m.add("Clip", length, f32(1e-12)))


def summed(m: FloatModel, a: str, b: str) -> str:
    product = m.add("Mul", a, b)
    return m.add("ReduceSum", product, np.array([1]), keepdims=0)


def multiplied(m: FloatModel, a: str, b: str) -> str:
    return m.add("MatMul", a, m.add("Transpose", b, perm=[1, 0]))


def by_gemm(m: FloatModel, a: str, b: str) -> str:
    return m.add("Gemm", a, b, transB=1)


def similarities(m: FloatModel, output: str) -> np.ndarray:
    """What a program gives of inputs that are alike, calibrated on others."""
    data = {"a": A, "b": B}
    program = mrt.convert(m.proto(output), data, bits=8).program
    alike = dict.fromkeys("ab", ALIKE[:, np.newaxis])
    found = program.dequantize(program.run(program.quantize(alike)))
    return found[output].ravel()


@pytest.mark.parametrize("normalized", [unit, divided])
@pytest.mark.parametrize("product", [summed, multiplied, by_gemm])
def test_inputs_that_are_alike_have_a_cosine_of_1(normalized, product):
    m = FloatModel(a=(1, SIZE), b=(1, SIZE))
    output = product(m, normalized(m, "a"), normalized(m, "b"))
    assert np.abs(similarities(m, output) - 1).max() < 0.01


def test_of_computed_vectors_too_and_moved():
    m = FloatModel(a=(1, SIZE), b=(1, SIZE))
    weights = RNG.normal(size=(64, SIZE)) / 16
    vectors = [divided(m, m.gemm(x, weights, np.zeros(64))) for x in "ab"]
    output = m.add("Reshape", multiplied(m, *vectors), np.array([1]))
    assert np.abs(similarities(m, output) - 1).max() < 0.02


def _one_is_no_unit(m):
    return multiplied(m, unit(m, "a"), "b")


def _along_another_axis(m):
    turned = m.add("Transpose", unit(m, "a"), perm=[1, 0])
    return m.add("MatMul", turned, unit(m, "b"))


def _length_of_another(m):
    length = m.add("ReduceL2", "b", np.array([1]), keepdims=1)
    return multiplied(m, m.add("Div", "a", length), unit(m, "b"))


def _shorter_than_the_length(m):
    length = m.add("ReduceL2", "a", np.array([1]), keepdims=1)
    less = m.add("Add", length, f32(-0.05))
    return multiplied(m, m.add("Div", "a", less), unit(m, "b"))


def _half_is_summed(m):
    product = m.add("Mul", unit(m, "a"), unit(m, "b"))
    return m.add("ReduceSum", product, np.array([0]), keepdims=0)


def _more_than_a_length_at_most(m):
    length = m.add("ReduceL2", "a", np.array([1]), keepdims=1)
    most = m.add("Clip", length, f32(0.01), f32(0.05))
    return multiplied(m, m.add("Div", "a", most), unit(m, "b"))


@pytest.mark.parametrize(
    "made",
    [
        _one_is_no_unit,
        _along_another_axis,
        _length_of_another,
        _shorter_than_the_length,
        _half_is_summed,
        _more_than_a_length_at_most,
    ],
)
def test_other_products_keep_their_range(made, monkeypatch):
    m = FloatModel(a=(1, SIZE), b=(1, SIZE))
    output = made(m)
    data = {"a": A / 50, "b": B / 50}  # so that no result is near 1
    program = mrt.convert(m.proto(output), data, bits=8).conversion.data
    monkeypatch.setattr(
        "mrt.quantize.lowering_ranges.ranges_of_cosines", lambda *_: {}
    )
    assert program == mrt.convert(m.proto(output), data, bits=8).conversion.data


def test_a_cosine_that_something_else_reads_keeps_its_range(monkeypatch):
    m = FloatModel(a=(1, SIZE), b=(1, SIZE))
    cosine = multiplied(m, unit(m, "a"), unit(m, "b"))
    output = m.add("Mul", cosine, f32(20.0))
    data = {"a": A, "b": B}
    both = m.proto(cosine, output)
    program = mrt.convert(both, data, bits=8).conversion.data
    monkeypatch.setattr(
        "mrt.quantize.lowering_ranges.ranges_of_cosines", lambda *_: {}
    )
    assert program == mrt.convert(both, data, bits=8).conversion.data
