"""Elements taken by constant indices or at equal steps are those of the float model."""

import numpy as np
import pytest

from mrt.quantize import QuantizeOptions
from tests.support.float_models import FloatModel, convert, f32, run_real

SHAPE = (4, 3, 2, 5)
X = f32(np.arange(120).reshape(SHAPE) / 64)


def answer(m: FloatModel, y: str) -> np.ndarray:
    program = convert(m, y, options=QuantizeOptions(8, 16))
    return run_real(program, {"x": X})[y]


@pytest.mark.parametrize("axis", [0, 2, 3])
def test_rows_by_constant_indices(axis):
    indices = np.array([1, 0, -1])
    m = FloatModel(x=SHAPE)
    found = answer(m, m.add("Gather", "x", indices, axis=axis))
    expected = np.take(X, indices, axis=axis, mode="wrap")
    assert np.allclose(found, expected, atol=0.01)


def test_elements_by_constant_indices():
    indices = np.random.default_rng(3).integers(-3, 3, (4, 2, 2, 5))
    m = FloatModel(x=SHAPE)
    found = answer(m, m.add("GatherElements", "x", indices, axis=1))
    assert np.allclose(found, np.take_along_axis(X, indices, 1), atol=0.01)


@pytest.mark.parametrize(
    "steps",
    [(2, 1, 1, 1), (1, 1, 2, 3), (2, 1, 2, 2), (3, 1, 1, 2), (1, 2, 1, 1)],
)
def test_elements_at_equal_steps(steps):
    m = FloatModel(x=SHAPE)
    bounds = [np.zeros(4, np.int64), np.array(SHAPE), np.arange(4)]
    found = answer(m, m.add("Slice", "x", *bounds, np.array(steps)))
    expected = X[tuple(slice(None, None, step) for step in steps)]
    assert np.allclose(found, expected, atol=0.01)
