"""If: the branch that is taken, where shapes say which; else a refusal."""

import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import parser

from mrt.errors import MrtError, Unsupported
from mrt.frontend.onnx import load_onnx
from tests.support.graphs import assert_same, run, seeded

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\nmain (float[n, c, 4] x) => (float[k, l, m] y) '
SQUEEZE = """<int64[1] axis = {1}, int64 place = {1}, int64 one = {1}> {
  shape = Shape (x)
  size = Gather (shape, place)
  is_one = Equal (size, one)
  h = If (is_one) <then_branch = then () => (t) { s = Squeeze (x, axis) t = Unsqueeze (s, axis) },
                   else_branch = other () => (t) { t = Neg (x) }>
  y = Relu (h)
}"""


def model_of(folder, text):
    proto = parser.parse_model(HEAD + text)
    onnx.save(proto, folder / "m.onnx")
    return proto


@pytest.mark.parametrize(("channels", "operator"), [(1, "Squeeze"), (3, "Neg")])
def test_the_branch_that_the_shape_says(channels, operator, tmp_path):
    proto, shape = model_of(tmp_path, SQUEEZE), (2, channels, 4)
    model, _ = load_onnx(tmp_path / "m.onnx", shapes={"x": shape})
    operators = [entry.op_type for entry in model.graph]
    assert operator in operators and "If" not in operators
    assert_same(
        run(proto, seeded({"x": shape})), run(model, seeded({"x": shape}))
    )


def test_a_branch_inside_a_branch_and_a_name_that_is_taken(tmp_path):
    inner = "t = If (is_one) <then_branch = a () => (u) { u = Abs (h0) }, else_branch = b () => (u) { u = Neg (h0) }>"
    text = (
        SQUEEZE.replace("t = Neg (x)", f"h0 = Neg (x) {inner}")
        .replace("y = Relu (h)", "h0 = Relu (h) y = Sqrt (h0)")
        .replace("h = If", "h.h0 = Identity (x) h = If")
    )
    proto = model_of(tmp_path, text.replace("h.h0", "h_h0"))
    model, _ = load_onnx(tmp_path / "m.onnx", shapes={"x": (2, 3, 4)})
    assert_same(
        run(proto, seeded({"x": (2, 3, 4)})),
        run(model, seeded({"x": (2, 3, 4)})),
    )


def test_a_shape_that_only_the_first_branch_tells(tmp_path):
    text = """<int64[1] axis = {1}, int64 zero = {0}, int64 two = {2}, bool yes = {1}> {
      h = If (yes) <then_branch = a () => (t) { t = Concat <axis = 0> (x, x) },
                    else_branch = b () => (t) { t = Neg (x) }>
      shape = Shape (h)
      rows = Gather (shape, zero)
      even = Equal (rows, two)
      y = If (even) <then_branch = c () => (t) { t = Abs (h) }, else_branch = d () => (t) { t = Neg (h) }>
    }"""
    model_of(tmp_path, text)
    model, _ = load_onnx(tmp_path / "m.onnx", shapes={"x": (1, 3, 4)})
    assert "Abs" in [entry.op_type for entry in model.graph]


def test_initializers_of_a_branch_come_along(tmp_path):
    proto = model_of(tmp_path, SQUEEZE)
    branch = proto.graph.node[3].attribute[1].g
    branch.initializer.append(
        onnx.numpy_helper.from_array(np.array(3, np.float32), "factor")
    )
    branch.node[0].CopyFrom(
        onnx.helper.make_node("Mul", ["x", "factor"], ["t"])
    )
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx", shapes={"x": (1, 2, 4)})
    (found,) = run(model, {"x": np.ones((1, 2, 4), np.float32)}).values()
    assert (found == 3).all()


def test_a_condition_that_only_running_tells_is_refused(tmp_path):
    model_of(tmp_path, SQUEEZE.replace("shape = Shape (x)", "f = ReduceSum (x) shape = Cast <to = 7> (f)")
             .replace("size = Gather (shape, place)", "size = Identity (shape)"))  # fmt: skip
    with pytest.raises(
        Unsupported,
        match=r"\(If\): its condition is only known .* depends on input 'x' alone",
    ):
        load_onnx(tmp_path / "m.onnx", shapes={"x": (1, 2, 4)})


def test_conditions_made_to_fill_memory_stay_unknown(tmp_path):
    text = SQUEEZE.replace("size = Gather (shape, place)", """
      huge = Constant <value = int64[3] {100000, 100000, 100000}> ()
      many = ConstantOfShape (huge)
      size = ReduceMax <keepdims = 0> (many)""")  # fmt: skip
    model_of(tmp_path, text)
    with pytest.raises(Unsupported, match=r"\(If\)"):
        load_onnx(tmp_path / "m.onnx", shapes={"x": (1, 2, 4)})


@pytest.mark.parametrize("times", [1, 2])
def test_a_shape_that_hangs_on_computed_pads(times, tmp_path):
    """As torch writes a reflecting pad, or two: the list of pads is reversed on the way."""
    again = """
      sum = Shape (g)
      wide = Gather (sum, place)
      rest = Sub (wide, four)
      more = Unsqueeze (rest, zero)
      n = Concat <axis = 0> (a, none, more)
      o = Reshape (n, pairs)
      p = Transpose <perm = [1, 0]> (o)
      q = Reshape (p, flat)
      h = Pad <mode = "reflect"> (g, q)"""
    text = """<int64[1] two = {2}, int64[4] pads = {0, 0, 0, 2}, int64[2] pairs = {-1, 2},
               int64[1] flat = {-1}, int64[1] zero = {0}, int64 place = {2},
               int64 last = {LAST}, int64 four = {4}, int64[3] none = {0, 0, 0}> {
      a = ConstantOfShape <value = int64[1] {0}> (two)
      b = Concat <axis = 0> (a, pads)
      c = Reshape (b, pairs)
      t = Transpose <perm = [1, 0]> (c)
      d = Reshape (t, flat)
      g = Pad <mode = "reflect"> (x, d)
      MORE
      shape = Shape (h)
      size = Gather (shape, place)
      same = Equal (size, last)
      y = If (same) <then_branch = e () => (u) { u = Abs (h) }, else_branch = f () => (u) { u = Neg (h) }>
    }"""
    text = text.replace(
        "MORE", again if times == 2 else "h = Identity (g)"
    ).replace("LAST", "8" if times == 2 else "6")
    proto = model_of(tmp_path, text)
    model, _ = load_onnx(tmp_path / "m.onnx", shapes={"x": (2, 3, 4)})
    assert "Abs" in [entry.op_type for entry in model.graph]
    assert_same(
        run(proto, seeded({"x": (2, 3, 4)})),
        run(model, seeded({"x": (2, 3, 4)})),
    )


def test_shapes_made_to_fill_memory_stay_unknown(tmp_path):
    """Three lists of 1000 numbers, compared with each other along three axes, would be 8 GB."""
    shapes = ("1000, 1, 1, 1", "1, 1000, 1, 1", "1, 1, 1000, 1")
    lists = ""
    for i, shape in enumerate(shapes):
        lists += f"""
      a{i} = Constant <value = int64[4] {{{shape}}}> ()
      b{i} = Range (none, many, one)
      l{i} = Reshape (b{i}, a{i})"""
    text = SQUEEZE.replace(
        "int64 one = {1}>",
        "int64 one = {1}, int64 none = {0}, int64 many = {1000}>",
    )
    text = text.replace("y = Relu (h)", lists + """
      huge = Max (l0, l1, l2)
      wide = Reshape (x, huge)
      r = ReduceSum <keepdims = 0> (wide)
      y = Add (r, h)""")  # fmt: skip
    model_of(tmp_path, text)
    tracemalloc.start()
    with pytest.raises(MrtError):
        load_onnx(tmp_path / "m.onnx", shapes={"x": (2, 3, 4)})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50e6
