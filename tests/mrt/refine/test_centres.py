"""The centres of a sum follow from those of its operands where these have other readers, too."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.quantize import QuantizeOptions
from mrt.refine.channel_statistics import ChannelStatistics
from mrt.refine.stages.centres import _is_free, decide
from mrt.refine.stages.stage import ChannelState
from mrt.table.decisions import Decisions
from mrt.table.table import (
    CalibrationOptions,
    CalibrationTable,
    MeasuredRange,
)
from tests.support.float_models import FloatModel

LEFT, RIGHT = 40.0, 15.0  # where the numbers of the operands lie
SUM = 7.0  # where those of the sum would be said to lie, if it were asked


def network(operator: str, *, shared: bool) -> ir.Model:
    """Two convolutions and their sum; with `shared`, other convolutions read the operands, too."""
    model = FloatModel(x=(1, 1, 2, 2))
    weights, bias = np.ones((1, 1, 1, 1)), np.zeros(1)
    for name in ("left", "right"):
        model.conv("x", weights, bias, name=name)
    model.add(operator, "left", "right", name="sum")
    outputs = [model.conv("sum", weights, bias)]
    if shared:
        outputs += [
            model.conv(name, weights, bias) for name in ("left", "right")
        ]
    graph = ir.from_proto(model.proto(*outputs))
    return graph


def around(middle: float) -> ChannelStatistics:
    statistics = ChannelStatistics.empty(1)
    numbers = np.linspace(middle - 1, middle + 1, 64, dtype=np.float32)
    image = numbers.reshape(1, 1, 8, 8)
    statistics.add(ObservedTensor(image, image))
    return statistics


def centres(operator: str, *, shared: bool) -> dict[str, float]:
    middles = {"left": LEFT, "right": RIGHT, "sum": SUM}
    range_ = MeasuredRange(-1.0, 50.0, -1.0, 50.0)
    table = CalibrationTable(
        "", CalibrationOptions(), 1, "", dict.fromkeys(middles, range_)
    )
    state = ChannelState(
        network(operator, shared=shared),
        table,
        QuantizeOptions(),
        halves={},
        statistics={name: around(middle) for name, middle in middles.items()},
        residual_share=1.0,
        decisions=Decisions(),
    )
    found = decide(state).decisions.centres
    return {name: centre for name, (centre,) in found.items()}


@pytest.mark.parametrize(
    ("operator", "expected"), [("Add", LEFT + RIGHT), ("Sub", LEFT - RIGHT)]
)
def test_operands_that_others_read_leave_a_sum_no_choice(operator, expected):
    found = centres(operator, shared=True)
    assert found["left"] == pytest.approx(LEFT, abs=0.2)
    assert found["right"] == pytest.approx(RIGHT, abs=0.2)
    assert found["sum"] == pytest.approx(expected, abs=0.3)


@pytest.mark.parametrize("operator", ["Add", "Sub"])
def test_a_convolution_for_the_sum_alone_takes_any_difference(operator):
    found = centres(operator, shared=False)
    assert found["sum"] == pytest.approx(SUM, abs=0.2)


def test_only_a_convolution_for_one_reader_is_free():
    model = FloatModel(x=(1, 1, 2, 2))
    one = model.conv("x", np.ones((1, 1, 1, 1)), np.zeros(1), name="one")
    two = model.conv("x", np.ones((1, 1, 1, 1)), np.zeros(1), name="two")
    clipped = model.add("Relu", two, name="clipped")
    total = model.add("Add", one, clipped, name="total")
    model.add("Add", total, two, name="out")
    graph = ir.from_proto(model.proto("out")).graph
    values = {node.outputs[0].name: node.outputs[0] for node in graph}
    free = [name for name, value in values.items() if _is_free(value)]
    assert free == ["one"]
    assert not _is_free(graph.inputs[0])
