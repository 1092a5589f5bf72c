"""tabulate_positions: a rotary embedding's cosines by position, and what is no function of a position alone."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from mrt.graph.notes import set_indices
from mrt.rewrite.lookup.tabulate_positions import tabulate_positions
from tests.support.graphs import build, node, operators_of, run

LENGTH = 12
SPEEDS = np.array([[1.0, 0.1, 0.01, 0.001]], np.float32)
ANGLES = [
    node("Cast", "position", "p", to=TensorProto.FLOAT),
    node("Mul", "p speeds", "angles"),
]
TURN = [*ANGLES, node("Cos", "angles", "turn"), node("Mul", "x turn", "y")]


def model_of(nodes, interval=(0, LENGTH - 1), kind=TensorProto.INT64):
    """A model of x [1, 4] and a position."""
    proto = build(nodes, {"x": [1, 4]}, {"speeds": SPEEDS})
    place = helper.make_tensor_value_info("position", kind, [1, 1])
    proto.graph.input.append(place)
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto))
    if interval is not None:
        set_indices(model.graph.inputs[1], interval)
    return model


def test_cosines_are_looked_up_by_position():
    model = model_of(TURN)
    assert tabulate_positions(model) == 1
    assert tabulate_positions(model) == 0
    assert "Gather" in operators_of(model)
    x = np.array([[1, 2, -3, 0.5]], np.float32)
    for position in range(LENGTH):
        given = {"x": x, "position": np.array([[position]])}
        expected = x * np.cos(position * SPEEDS.astype(np.float64))
        assert np.allclose(run(model, given)["y"], expected, atol=1e-6)


def test_a_row_of_the_table_is_exactly_rounded():
    """The cosine of 11 to 10 digits is 0.0044256980."""
    model = model_of(TURN)
    tabulate_positions(model)
    (table,) = (
        value.const_value.numpy()
        for name, value in model.graph.initializers.items()
        if "table" in name
    )
    assert table.shape == (LENGTH, 4)
    assert table[11, 0] == np.float32(0.0044256980)
    assert table[0].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "model",
    [
        model_of(TURN, None),  # nothing says how many positions there are
        model_of(TURN, (-LENGTH, LENGTH - 1)),
        model_of(TURN, (0, 5000)),
        model_of([*ANGLES, node("Mul", "x angles", "y")]),  # no function
        model_of(
            [*ANGLES, node("Mul", "x angles", "both"), node("Cos", "both", "y")]
        ),
    ],
)
def test_what_is_no_table_stays(model):
    before = operators_of(model)
    assert tabulate_positions(model) == 0
    assert operators_of(model) == before
