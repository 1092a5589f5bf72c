"""Quotients and rests of integers: by hand, for every sign, for divisors known at conversion and computed."""

import numpy as np
import pytest
from onnx import TensorProto

from mrt.quantize import QuantizeOptions
from tests.support.float_models import FloatModel, convert, f32, run_real

X = f32(np.eye(4, 8) * 5)  # the greatest of each row: 0, 1, 2, 3


def answer(build) -> list[float]:
    m = FloatModel(x=(4, 8))
    best = m.add("ArgMax", "x", axis=1, keepdims=0, select_last_index=0)
    count = m.add(
        "Add", best, np.array(1)
    )  # 1, 2, 3, 4 here and never 0: onnxruntime would not divide by that
    output = m.add("Cast", build(m, count), to=TensorProto.FLOAT)
    return run_real(
        convert(m, output, options=QuantizeOptions(8, 16)), {"x": X}
    )[output].tolist()


def sevens(m: FloatModel, count: str) -> str:
    """-7, 7, -7, 7."""
    return m.add(
        "Add", m.add("Mul", count, np.array(0)), np.array([-7, 7, -7, 7])
    )


def test_quotients_by_computed_divisors_are_cut_off_toward_zero():
    def build(m: FloatModel, count: str) -> str:
        return m.add(
            "Div",
            sevens(m, count),
            m.add("Mul", count, np.array([1, 1, -1, -1])),
        )

    assert answer(build) == [-7, 3, 2, -1]  # -7/1, 7/2, -7/-3, 7/-4


@pytest.mark.parametrize(
    ("fmod", "rests"), [(0, [1, -1, 1, -1]), (1, [-1, 1, -1, 1])]
)
def test_a_rest_has_the_sign_of_the_divisor_or_with_fmod_of_the_dividend(
    fmod, rests
):
    def build(m: FloatModel, count: str) -> str:
        return m.add(
            "Mod", sevens(m, count), np.array([2, -2, 2, -2]), fmod=fmod
        )

    assert answer(build) == rests


@pytest.mark.parametrize(
    ("fmod", "rests"), [(0, [0, 1, -1, -1]), (1, [0, 1, -1, 3])]
)
def test_rests_by_computed_divisors(fmod, rests):
    def build(m: FloatModel, count: str) -> str:
        return m.add(
            "Mod",
            sevens(m, count),
            m.add("Mul", count, np.array([1, 1, -1, -1])),
            fmod=fmod,
        )

    assert answer(build) == rests  # of -7, 7, -7, 7 by 1, 2, -3, -4


def test_two_divisors_known_at_conversion_divide_a_column_each():
    def build(m: FloatModel, count: str) -> str:
        column = m.add("Reshape", count, np.array([4, 1]))
        return m.add("Div", column, np.array([[2, -1]]))

    assert answer(build) == [[0, -1], [1, -2], [1, -3], [2, -4]]


@pytest.mark.parametrize("ends", [(-5, -1), (1, 5)])
def test_a_divisor_that_is_never_zero_needs_no_choice(ends):
    m = FloatModel(x=(4, 8))
    best = m.add("ArgMax", "x", axis=1, keepdims=0, select_last_index=0)
    divisor = m.add("Clip", best, *(np.array(end) for end in ends))
    output = m.add("Cast", m.add("Div", best, divisor), to=TensorProto.FLOAT)
    names = [item.name for item in convert(m, output).instructions]
    assert names.count("intdiv") == 1
    assert "select" not in names
