"""If of a computed condition: both branches are computed, and one is kept."""

import numpy as np
import onnx
import pytest
from onnx import parser

import mrt
from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from tests.support.graphs import assert_same, run

MODEL = """<ir_version: 9, opset_import: ["" : OPSET]>
main (float[1, 4] x) => (float[k, l] y) <float[1] half = {0.5}, float[1] two = {2}, int64[1] axis = {0}> {
  score = ReduceMean <axes = [-1]> (x)
  sure = CONDITION (score, half)
  y = If (sure) <then_branch = verify () => (t) { t = Mul (x, two) },
                 else_branch = keep () => (t) { t = OTHER }>
}"""
SURE = np.array([[0.9, 0.8, 0.7, 0.6]], np.float32)
UNSURE = np.array([[0.1, 0.9, -0.3, 0.2]], np.float32)


def saved(folder, *, opset=17, condition="Greater", other="Neg (x)"):
    text = MODEL.replace("OPSET", str(opset)).replace("OTHER", other)
    proto = parser.parse_model(text.replace("CONDITION", condition))
    onnx.save(proto, folder / "m.onnx")
    return proto


@pytest.mark.parametrize("x", [SURE, UNSURE])
def test_the_branch_that_the_sample_chooses(x, tmp_path):
    proto = saved(tmp_path)
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert "If" not in [node.op_type for node in model.graph]
    # The condition has two axes, the results keep theirs.
    assert_same(run(proto, {"x": x}), run(model, {"x": x}))
    expected = 2 * x if x is SURE else -x
    np.testing.assert_array_equal(run(model, {"x": x})["y"], expected)


@pytest.mark.parametrize("x", [SURE, UNSURE])
def test_branches_may_be_single_numbers(x, tmp_path):
    """A shape without dimensions is a known one."""
    text = MODEL.replace("OPSET", "17").replace("CONDITION", "Greater")
    text = text.replace("t = Mul (x, two)", "t = ReduceSum <keepdims = 0> (x)")
    text = text.replace("t = OTHER", "t = ReduceMax <keepdims = 0> (x)")
    text = text.replace("y = If", "z = If").rstrip("}") + " y = Mul (x, z) }"
    proto = parser.parse_model(text)
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": x}), run(model, {"x": x}))


def test_the_program_chooses_for_each_sample(tmp_path):
    saved(tmp_path)
    rng = np.random.default_rng(0)
    samples = rng.uniform(-1, 1, (64, 1, 4)).astype(np.float32)
    samples[:8] = SURE
    converted = mrt.convert(tmp_path / "m.onnx", {"x": samples})
    both = np.stack([SURE, UNSURE])
    program = converted.program
    found = program.dequantize(program.run(program.quantize({"x": both})))["y"]
    np.testing.assert_allclose(found[0], 2 * SURE[0], atol=0.03)
    np.testing.assert_allclose(found[1], -UNSURE[0], atol=0.03)


@pytest.mark.parametrize(
    "other", ["Concat <axis = 0> (x, x)", "Squeeze (x, axis)"]
)
def test_branches_of_two_shapes_are_refused(other, tmp_path):
    saved(tmp_path, other=other)
    with pytest.raises(Unsupported, match="branches have no one shape"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("branches", [(0, 1), (1, 0)])
def test_a_list_that_grows_by_the_data_is_named(branches, tmp_path):
    """As torch exports nn.EmbeddingBag with padding_idx, for each place of a bag."""
    made = ["t = Concat <axis = 0> (x, x)", "t = Identity (x)"]
    chosen, other = (made[place] for place in branches)
    text = MODEL.replace("OPSET", "17").replace("CONDITION", "Greater")
    text = text.replace("t = Mul (x, two)", chosen).replace("t = OTHER", other)
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(
        Unsupported,
        match=r"\(If\): it appends to a list .* multiply them by 0 or 1 .* --outputs; that depends on input 'x' alone",
    ):
        load_onnx(tmp_path / "m.onnx")


def test_an_opset_without_a_choice_is_refused(tmp_path):
    saved(tmp_path, opset=8)
    with pytest.raises(Unsupported, match=r"\(If\)"):
        load_onnx(tmp_path / "m.onnx")
