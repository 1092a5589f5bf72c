"""Reductions of integers, which ONNX allows as of floats: programs answer what onnxruntime does, cut off toward 0."""

import numpy as np
import onnx
import pytest
from onnx import parser

import mrt
from mrt.errors import Unsupported
from tests.support.answers import answers, expected

TYPES = {"int32": np.int32, "int64": np.int64}


def model_of(operator, kind, folder):
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    g ({kind}[1, 6, 3] x) => ({kind}[1, 6] y) {{
        a = Constant <value_ints = [2]> ()
        y = {operator} <keepdims = 0> (x, a)
    }}"""
    proto = parser.parse_model(text)
    onnx.save(proto, folder / "m.onnx")
    return proto


def samples(operator, kind, seed):
    low = 1 if "Log" in operator else -50
    random = np.random.default_rng(seed)
    return {"x": random.integers(low, 50, (64, 6, 3)).astype(TYPES[kind])}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "operator",
    [
        "ReduceMean",
        "ReduceSum",
        "ReduceMax",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "ReduceLogSum",
        "ReduceProd",
    ],
)
def test_programs_have_the_integers_of_float(operator, kind, tmp_path):
    proto = model_of(operator, kind, tmp_path)
    converted = mrt.convert(tmp_path / "m.onnx", samples(operator, kind, 0))
    others = samples(operator, kind, 1)
    wanted = expected(proto, others)
    assert np.array_equal(answers(converted, others), wanted)


def test_a_mean_below_0_is_cut_off_toward_0(tmp_path):
    proto = model_of("ReduceMean", "int32", tmp_path)
    converted = mrt.convert(
        tmp_path / "m.onnx", samples("ReduceMean", "int32", 0)
    )
    feeds = {"x": np.full((1, 6, 3), [-1, -1, -3], np.int32)}
    assert set(expected(proto, feeds).ravel()) == {-1}
    assert set(answers(converted, feeds).ravel()) == {-1}


def test_the_logarithm_of_a_sum_of_exponentials_has_no_form_in_integers(
    tmp_path,
):
    """Where one term is far greater than the others, it is that term and a little: cut off, any rounding shows."""
    model_of("ReduceLogSumExp", "int32", tmp_path)
    with pytest.raises(Unsupported, match=r"ReduceLogSumExp.*no integer form"):
        mrt.convert(tmp_path / "m.onnx", samples("ReduceLogSumExp", "int32", 0))
