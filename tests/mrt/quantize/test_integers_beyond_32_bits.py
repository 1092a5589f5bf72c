"""Integers beyond 32 bits in samples, as milliseconds since 1970, are named, and what may be given for them."""

import warnings

import numpy as np
import onnx
import pytest
from onnx import parser

import mrt
from mrt.errors import BadData, DoubtfulResult, Unsupported
from tests.support.answers import answers, expected

TODAY = 1_700_000_000_000  # in milliseconds
NAMED = r"input 'x' holds integers from .*e\+12 to .*; those of a program have 32 bits \(-2147483648..2147483647\)"


def model_of(folder, kind, nodes, result="float"):
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    g ({kind}[1, 2] x) => ({result}[1, 2] y)
    <int64 an_hour = {{3600000}}, int64 a_day = {{24}}, int64 today = {{{TODAY}}}, int64 zero = {{0}}> {{ {nodes} }}"""
    proto = parser.parse_model(text)
    onnx.save(proto, folder / "m.onnx")
    return proto


def samples(kind, least, most):
    random = np.random.default_rng(3)
    return {"x": random.integers(least, most, (64, 2)).astype(kind)}


HOUR = "h = Div (x, an_hour)\n m = Mod (h, a_day)\n y = Cast <to = 1> (m)"
AGE = "a = Sub (x, today)\n y = Cast <to = 1> (a)"
REAL = "y = Cast <to = 1> (x)"


@pytest.mark.parametrize(
    ("kind", "nodes"),
    [("int64", HOUR), ("int64", AGE), ("int64", REAL), ("uint64", REAL)],
    ids=["hour", "age", "signed", "unsigned"],
)
def test_where_all_of_an_input_lie_beyond_it_is_refused(kind, nodes, tmp_path):
    model_of(tmp_path, kind, nodes)
    with pytest.raises(BadData, match=NAMED):
        mrt.convert(tmp_path / "m.onnx", samples(kind, TODAY, 2 * TODAY))


@pytest.mark.parametrize(
    "nodes", [REAL, "c = Clip (x, zero)\n y = Cast <to = 1> (c)"]
)
def test_where_some_lie_beyond_they_are_clipped_with_a_warning(nodes, tmp_path):
    model_of(tmp_path, "int64", nodes)
    with pytest.warns(DoubtfulResult, match=NAMED):
        mrt.convert(tmp_path / "m.onnx", samples("int64", -TODAY, TODAY))


@pytest.mark.filterwarnings("ignore::cvm.errors.ClippedInput")
def test_what_is_only_compared_or_clipped_may_lie_beyond(tmp_path):
    proto = model_of(
        tmp_path, "int64", "b = Greater (x, zero)\n y = Cast <to = 1> (b)"
    )
    feeds = samples("int64", -TODAY, TODAY)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulResult)
        converted = mrt.convert(tmp_path / "m.onnx", feeds)
    assert np.array_equal(answers(converted, feeds), expected(proto, feeds))


def test_a_constant_beyond_is_named_by_the_value_that_is_computed(tmp_path):
    model_of(tmp_path, "int64", AGE)
    with pytest.raises(
        Unsupported, match=r"a \(Add\): a constant of -1700000000000"
    ):
        mrt.convert(tmp_path / "m.onnx", samples("int64", 0, 2**30))
