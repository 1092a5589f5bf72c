"""Bodies move into the graph around them: values from outside, names, and loops that cannot be unrolled."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.frontend.onnx.resolve.bodies import (
    link_outer_outputs,
    remove_with_bodies,
)
from mrt.frontend.onnx.resolve.control_flow import resolve_control_flow
from tests.support.graphs import run, seeded

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\nmain (float[2, 3] x) => (float[2, 3] y) '
SHAPE = {"x": (2, 3)}


def parsed(text: str) -> onnx.ModelProto:
    return parser.parse_model(HEAD + text)


def without_body(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """A branch of no nodes, whose output is a value from outside the branch."""
    node = next(entry for entry in proto.graph.node if entry.op_type == "If")
    branch = next(entry.g for entry in node.attribute if entry.name == name)
    del branch.node[:]
    branch.output[0].name = "x"
    return proto


def test_a_branch_that_returns_a_value_from_outside(tmp_path):
    proto = parsed("""<bool no = {0}> {
      h = If (no) <then_branch = a () => (t) { t = Abs (x) }, else_branch = b () => (u) { u = Neg (x) }>
      y = Relu (h)
    }""")
    onnx.save(without_body(proto, "else_branch"), tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    feeds = seeded(SHAPE)
    assert (run(model, feeds)["y"] == feeds["x"].clip(0)).all()


def test_the_identity_of_a_value_from_outside_is_in_the_branch():
    model = ir.from_proto(without_body(parsed("""<bool yes = {1}> {
      y = If (yes) <then_branch = a () => (t) { t = Abs (x) }, else_branch = b () => (u) { u = Neg (x) }>
    }"""), "then_branch"))  # fmt: skip
    link_outer_outputs(model)
    (made,) = model.graph[0].attributes["then_branch"].as_graph()
    assert made.op_type == "Identity"
    assert made.inputs[0] is model.graph.inputs[0]


def test_a_branch_not_taken_reads_nothing_any_more():
    model = ir.from_proto(parsed("""<bool yes = {1}> {
      y = If (yes) <then_branch = a () => (t) { t = Abs (x) }, else_branch = b () => (u) { u = Neg (x) }>
    }"""))  # fmt: skip
    resolve_control_flow(model, SHAPE)
    (use,) = model.graph.inputs[0].uses()
    assert use.node.op_type == "Abs"


def test_a_removed_node_takes_the_uses_of_its_bodies_along():
    model = ir.from_proto(parsed("""<bool yes = {1}> {
      h = If (yes) <then_branch = a () => (t) { t = Abs (x) }, else_branch = b () => (u) { u = Neg (x) }>
      y = Neg (x)
    }"""))  # fmt: skip
    remove_with_bodies(model.graph[0])
    assert [use.node.op_type for use in model.graph.inputs[0].uses()] == ["Neg"]


def test_names_of_a_branch_begin_with_the_name_of_the_output():
    model = ir.from_proto(parsed("""<bool yes = {1}> {
      y = If (yes) <then_branch = a () => (t) { s = Abs (x) t = Neg (s) }, else_branch = b () => (u) { u = Neg (x) }>
    }"""))  # fmt: skip
    resolve_control_flow(model, SHAPE)
    names = [output.name for node in model.graph for output in node.outputs]
    assert names == ["y.s", "y.t", "y"]


def loop_that_stops_depending_on_x() -> onnx.ModelProto:
    """Whether another step follows depends on x, and so does the shape of what it gives."""
    body = helper.make_graph(
        [
            helper.make_node("ReduceMax", ["s"], ["m"], keepdims=0),
            helper.make_node("Greater", ["m", "zero"], ["go"]),
            helper.make_node("Concat", ["s", "s"], ["t"], axis=0),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, None),
        ],
    )
    proto = parsed(
        "<int64 many = {9}, bool yes = {1}, float zero = {0}> { y = Neg (x) }"
    )
    loop = helper.make_node(
        "Loop", ["many", "yes", "x"], ["y"], name="l", body=body
    )
    proto.graph.node[0].CopyFrom(loop)
    return proto


def test_a_loop_of_unknown_length_asks_for_the_shape_by_its_option(tmp_path):
    proto = loop_that_stops_depending_on_x()
    sizes = proto.graph.input[0].type.tensor_type.shape.dim
    sizes[0].dim_param, sizes[1].dim_param = "batch", "steps"
    many = numpy_helper.from_array(np.array(99), "many")
    proto.graph.initializer[0].CopyFrom(many)
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(
        Unsupported, match=r"; fix shapes with --shape x=1,\?, "
    ):
        load_onnx(tmp_path / "m.onnx")


def test_a_loop_that_cannot_be_decided_stays_as_it_was(tmp_path):
    proto = loop_that_stops_depending_on_x()
    model = ir.from_proto(proto)
    resolve_control_flow(model, SHAPE)
    assert [node.op_type for node in model.graph] == ["Loop"]
    assert list(model.graph.initializers) == ["many", "yes", "zero"]
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(
        Unsupported, match=r"l \(Loop\): how often it runs is not known"
    ):
        load_onnx(tmp_path / "m.onnx")
