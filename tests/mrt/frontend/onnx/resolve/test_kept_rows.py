"""Rows of a list that grows by the data, as nn.EmbeddingBag with padding_idx has them; onnxruntime is the judge."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import mrt
from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from tests.support.graphs import assert_same, run

RNG = np.random.default_rng(4)
PLACES = 3
APPEND = "{ p = Reshape (PLACE, list) t = Concat <axis = 0> (BEFORE, p) }"
KEEP = "{ t = Identity (BEFORE) }"
STEP = """
  iPLACE = Gather (ids, PLACE)
  cPLACE = CONDITION (iPLACE, zero)
  lPLACE = If (cPLACE) <then_branch = a () => (t) THEN, else_branch = b () => (t) ELSE>"""
MODEL = """<ir_version: 9, opset_import: ["" : OPSET]>
main (int64[3] ids) => (float[1, 4] y)
<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 far = {9}, int64[1] axis = {0}, int64[1] list = {-1}> {
  rows = Gather (table, ids) STEPS
  last = Identity (ltwo)
  n = Size (last)
  e = Equal (n, zero)
  y = If (e) <then_branch = f () => (t) { t = Identity (zeros) },
              else_branch = g () => (t) { r = Gather (rows, last) t = REDUCE (r, axis) }>
}"""
ALL_IDS = list(itertools.product((0, 1, 5), repeat=PLACES))


def saved(folder, *, opset=18, reduce="ReduceMean", when=True, change=()):
    condition = "Greater" if when else "Equal"
    branches = (APPEND, KEEP) if when else (KEEP, APPEND)
    steps, before = "", "none"
    for place in ("zero", "one", "two"):
        step = STEP.replace("THEN", branches[0]).replace("ELSE", branches[1])
        step = step.replace("PLACE", place).replace("BEFORE", before)
        steps, before = steps + step, f"l{place}"
    text = MODEL.replace("OPSET", str(opset)).replace("REDUCE", reduce)
    text = text.replace("STEPS", steps.replace("CONDITION", condition))
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    proto = parser.parse_model(text)
    arrays = {
        "table": RNG.normal(size=(7, 4)).astype(np.float32),
        "none": np.zeros(0, np.int64),
        "zeros": np.zeros((1, 4), np.float32),
    }
    held = [numpy_helper.from_array(it, name) for name, it in arrays.items()]
    proto.graph.initializer.extend(held)
    onnx.save(proto, folder / "m.onnx")
    return proto


@pytest.mark.parametrize("when", [True, False])
@pytest.mark.parametrize("reduce", ["ReduceMean", "ReduceSum"])
def test_kept_rows_are_added_or_averaged(reduce, when, tmp_path):
    proto = saved(tmp_path, reduce=reduce, when=when)
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert "If" not in [entry.op_type for entry in model.graph]
    for ids in ALL_IDS:
        feeds = {"ids": np.array(ids)}
        assert_same(run(proto, feeds), run(model, feeds), 1e-6)


def test_the_program_leaves_out_what_the_sample_does(tmp_path):
    proto = saved(tmp_path)
    ids = np.array(ALL_IDS)
    converted = mrt.convert(tmp_path / "m.onnx", {"ids": ids})
    program = converted.program
    found = program.dequantize(program.run(program.quantize({"ids": ids})))
    expected = np.stack([run(proto, {"ids": row})["y"] for row in ids])
    np.testing.assert_allclose(
        found["y"].reshape(expected.shape), expected, atol=0.05
    )


@pytest.mark.parametrize(
    "change",
    [
        [("REDUCE (r, axis)".replace("REDUCE", "ReduceMean"), "ReduceMax (r, axis)")],
        [("ReduceMean (r", "ReduceMean <keepdims = 0> (r")],
        [("Reshape (two, list)", "Reshape (itwo, list)")],
        [("Reshape (two, list)", "Reshape (far, list)")],
        [("n = Size (last)", "h = Cast <to = 1> (last) m = ReduceSum (h) n = Cast <to = 7> (m)")],
    ],
)  # fmt: skip
def test_other_readers_and_places_are_refused(change, tmp_path):
    saved(tmp_path, change=change)
    with pytest.raises(Unsupported, match=r"\(If\): it appends to a list"):
        load_onnx(tmp_path / "m.onnx")
