"""A model's own functions mean what their bodies mean; bodies made to grow without end are refused."""

import onnx
import pytest
from onnx import parser

from mrt.errors import BadModel, Unsupported
from mrt.frontend.onnx import load_onnx
from tests.support.graphs import assert_same, run, seeded

HEAD = '<ir_version: 9, opset_import: ["" : 18, "own" : 1]>\nmain (float[2, 3] x) => (float[2, 3] y)\n'
IMPORTS = '<domain: "own", opset_import: ["" : 18, "own" : 1]>\n'


def model_of(folder, calls, *functions):
    text = (
        HEAD
        + "{ "
        + calls
        + " }\n"
        + "\n".join(IMPORTS + function for function in functions)
    )
    proto = parser.parse_model(text)
    onnx.save(proto, folder / "m.onnx")
    return proto


SCALED = "scaled <factor> (a) => (b) { f = Constant <value_float: float = @factor> ()\n b = Mul (a, f) }"
TWICE = "twice (a) => (b) { c = own.scaled <factor = 2.0> (a)\n b = Relu (c) }"


def test_calls_with_attributes_and_calls_of_calls(tmp_path):
    proto = model_of(
        tmp_path,
        "h = own.twice (x)\n y = own.scaled <factor = 0.5> (h)",
        SCALED,
        TWICE,
    )
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert not model.functions
    assert_same(
        run(proto, seeded({"x": (2, 3)})), run(model, seeded({"x": (2, 3)}))
    )


LEAKY = """leaky <alpha: float = 0.25> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }"""
OUTER = (
    "outer (a) => (b) { c = own.leaky (a)\n b = own.leaky <alpha = 0.5> (c) }"
)


@pytest.mark.parametrize("calls", ["y = own.leaky (x)", "y = own.outer (x)"])
def test_attributes_that_a_call_leaves_out_have_the_function_s_default(
    tmp_path, calls
):
    proto = model_of(tmp_path, calls, LEAKY, OUTER)
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(
        run(proto, seeded({"x": (2, 3)})), run(model, seeded({"x": (2, 3)}))
    )


def test_a_function_that_nobody_calls_is_no_trouble(tmp_path):
    model_of(tmp_path, "y = Relu (x)", "odd (a) => (b) { b = Unique (a) }")
    assert len(load_onnx(tmp_path / "m.onnx")[0].graph) == 1


def test_what_a_function_does_is_refused_by_its_operator(tmp_path):
    model_of(
        tmp_path, "y = own.odd (x)", "odd (a) => (b) { b = Bernoulli (a) }"
    )
    with pytest.raises(
        Unsupported, match=r"\(Bernoulli\): unsupported operator"
    ):
        load_onnx(tmp_path / "m.onnx")


def test_a_function_that_calls_itself(tmp_path):
    model_of(
        tmp_path,
        "y = own.f (x)",
        "f (a) => (b) { b = own.g (a) }",
        "g (a) => (b) { b = own.f (a) }",
    )
    with pytest.raises(BadModel, match="function 'own:f' calls itself"):
        load_onnx(tmp_path / "m.onnx")


def test_calls_that_multiply(tmp_path):
    # thirty functions, each of which calls the next one twice: 2^30 nodes
    last = "f30 (a) => (b) { b = Relu (a) }"
    doubling = [
        f"f{i} (a) => (b) {{ c = own.f{i + 1} (a)\n b = own.f{i + 1} (c) }}"
        for i in range(30)
    ]
    model_of(tmp_path, "y = own.f0 (x)", *doubling, last)
    with pytest.raises(
        BadModel,
        match=r"1073741824 nodes once its functions are inlined \(.*\); at most 65536",
    ):
        load_onnx(tmp_path / "m.onnx")


def test_functions_nested_deeper_than_the_library_follows(tmp_path):
    chain = [f"f{i} (a) => (b) {{ b = own.f{i + 1} (a) }}" for i in range(2000)]
    model_of(
        tmp_path, "y = own.f0 (x)", *chain, "f2000 (a) => (b) { b = Relu (a) }"
    )
    with pytest.raises(
        BadModel,
        match=r"its functions cannot be inlined: .*depth exceeds limit",
    ):
        load_onnx(tmp_path / "m.onnx")


PAST = ", ".join(f"float[1, 4, 4, 8] {name}" for name in ("a", "b"))
NEW = ", ".join(f"float[1, 4, 2, 8] {name}" for name in "qkv")


@pytest.mark.parametrize("attributes", ["", "<is_causal = 1>"])
def test_attention_over_a_cache_may_leave_out_its_mask(attributes, tmp_path):
    proto = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 23]>
        cached ({NEW}, {PAST}) => (float[1, 4, 2, 8] y, float[1, 4, 6, 8] c, float[1, 4, 6, 8] d)
        {{ y, c, d = Attention {attributes} (q, k, v, , a, b) }}"""
    )
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = seeded({**dict.fromkeys("qkv", (1, 4, 2, 8)), **dict.fromkeys("ab", (1, 4, 4, 8))})  # fmt: skip
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, feeds), run(model, feeds), 1e-5)
