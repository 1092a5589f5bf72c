"""The interval of an input of integers is that of its type, as numpy has it."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.quantize import QuantizeOptions
from mrt.quantize.context import LoweringContext
from mrt.quantize.inputs import input_interval
from mrt.table.table import CalibrationOptions, CalibrationTable


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "uint16"])
def test_an_input_has_the_interval_of_its_type(name):
    table = CalibrationTable("", CalibrationOptions(), 1, "", {})
    net = LoweringContext(table, QuantizeOptions())
    dtype = ir.DataType.from_numpy(np.dtype(name))
    value = ir.Value(name="x", type=ir.TensorType(dtype), shape=ir.Shape([2]))
    found = input_interval(net, value)
    limits = np.iinfo(name)
    assert found.lowest == limits.min and found.highest == limits.max
