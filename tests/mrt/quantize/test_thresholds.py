"""A number is held against a constant as exactly as it was measured: to an equal one it is equal, whatever the scale."""

import numpy as np
import pytest
from onnx import TensorProto

from mrt.quantize import QuantizeOptions
from tests.support.float_models import FloatModel, convert, f32, run_real

TENTHS = f32(np.arange(-20, 21).reshape(1, -1)) / f32(
    10
)  # as tables of measurements hold them


@pytest.mark.parametrize(
    "operator", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"]
)
@pytest.mark.parametrize("bits", [8, 16])
def test_thresholds_that_the_numbers_themselves_have(operator, bits):
    m = FloatModel(x=TENTHS.shape)
    wanted, names = {}, []
    for limit in (-1.3, -0.7, 0.0, 0.3, 1.1, 1.9):
        booleans = m.add(operator, "x", f32(limit))
        names.append(m.add("Cast", booleans, to=TensorProto.FLOAT))
        compared = {"Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less,
                    "LessOrEqual": np.less_equal, "Equal": np.equal}[operator]  # fmt: skip
        wanted[names[-1]] = compared(TENTHS, f32(limit)).astype(float).tolist()
    found = run_real(
        convert(m, *names, options=QuantizeOptions(8, bits)), {"x": TENTHS}
    )
    assert {name: np.rint(found[name]).tolist() for name in names} == wanted


@pytest.mark.parametrize(
    "operator", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"]
)
def test_a_computed_scalar_is_compared_with_a_constant_one(operator):
    """A branch of torch.jit.script: its condition has no axes, and neither has what is compared."""
    m = FloatModel(x=(4,))
    most = m.add("ReduceMax", "x", np.array([0]), keepdims=1)
    scalar = m.add("Reshape", most, np.array([], np.int64))
    booleans = m.add(operator, scalar, f32(1.0))
    name = m.add("Cast", booleans, to=TensorProto.FLOAT)
    program = convert(m, name)
    found = [
        float(run_real(program, {"x": f32([x, 0, -1, 0])})[name])
        for x in (0.5, 1.5)
    ]
    assert found == [
        float(operator.startswith("Less")),
        float(operator.startswith("Greater")),
    ]
