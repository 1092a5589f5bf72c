"""Patch: new values have the types that ONNX gives them, without a word from the pass."""

import onnx_ir as ir
import pytest

from mrt.graph.patch import Patch
from tests.support.graphs import graph_of, node

FLOAT, INT64, BOOL = ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.BOOL


@pytest.fixture
def patch():
    model = graph_of([node("Relu", "x", "y")], {"x": (2, 3)})
    return Patch(model.graph[0])


def test_a_result_has_the_type_of_the_first_operand(patch):
    """And not that of the old output, which is of floats here."""
    axes = patch.axes([0, 1])
    assert patch.add("Reshape", axes, patch.axes([2, 1])).dtype == INT64
    assert patch.add("Neg", patch.node.inputs[0]).dtype == FLOAT


def test_comparisons_choices_indices_and_casts_have_types_of_their_own(patch):
    x = patch.node.inputs[0]
    chosen = patch.add("Greater", x, patch.number(0.0, "zero"))
    assert chosen.dtype == BOOL
    assert patch.add("Not", chosen).dtype == BOOL
    assert patch.add("Where", chosen, patch.axes([1]), x).dtype == INT64
    assert patch.add("ArgMax", x, axis=0, keepdims=1).dtype == INT64
    assert patch.add("Cast", x, to=int(ir.DataType.INT8)).dtype == (
        ir.DataType.INT8
    )


def test_without_a_known_operand_it_has_the_type_of_the_old_output(patch):
    assert patch.add("Constant", value_float=1.0).dtype == FLOAT


def test_before_inference_a_result_has_no_type(patch):
    early = Patch(patch.node, typed=False)
    assert early.add("Neg", patch.node.inputs[0]).dtype is None


def test_a_slice_of_one_axis_names_its_bounds(patch):
    made = patch.slice(patch.node.inputs[0], 1, 0, 2)
    bounds = made.producer().inputs[1:]
    assert [value.const_value.numpy().tolist() for value in bounds] == (
        [[0], [2], [1], [1]]
    )
    roles = ("starts", "ends", "axes", "steps")
    assert [value.name for value in bounds] == [f"y.{role}" for role in roles]
