"""Casts between dtypes, where every float is float32.

A cast to a float returns its input, and a cast to an integer drops the fraction.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from mrt.frontend.mxnet import integer_dtypes
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Values,
    boolean,
    choice,
    count,
    operator,
)

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = {
    "int32": onnx.TensorProto.INT32,
    "int64": onnx.TensorProto.INT64,
    "int8": onnx.TensorProto.INT8,
    "uint8": onnx.TensorProto.UINT8,
    "bool": onnx.TensorProto.BOOL,
}


def dtype_attribute(default: str | None = None) -> Attribute:
    """Declare the dtype of a result, required unless it has a default.

    All floats are float32 here.
    """
    return Attribute(
        str.strip,
        default,
        required=default is None,
        only=(*FLOATS, *INTEGERS),
        none_allowed=True,
    )


def floats_only() -> Attribute:
    """Declare the dtype of a result that is a float."""
    return choice(*FLOATS, default="float32")


def result_dtype(call: OperatorCall, name: str = "dtype") -> str:
    """Return the dtype of the result; float32 by default."""
    value = call.values[name]
    return value if isinstance(value, str) else "float32"


@operator("Cast", "cast", attributes={"dtype": dtype_attribute()})
def cast(call: OperatorCall) -> ir.Value:
    """Round toward 0, then wrap to 8 bits; a bool is true where the number is not 0.

    The result is float32 again.
    """
    dtype = result_dtype(call)
    input_dtype = integer_dtypes.dtype_of(call.data)
    if (
        dtype in FLOATS
        or input_dtype == dtype
        or (input_dtype and dtype in integer_dtypes.AT_LEAST_32_BITS)
    ):
        return integer_dtypes.mark(call.add("Identity", call.data), dtype)
    integers = call.add("Cast", call.data, to=INTEGERS[dtype])
    return integer_dtypes.mark(
        call.add("Cast", integers, to=onnx.TensorProto.FLOAT), dtype
    )


@operator("amp_cast", attributes={"dtype": choice(*FLOATS, required=True)})
def amp_cast(call: OperatorCall) -> ir.Value:
    """Return the input, because mixed precision changes only the width of floats.

    MXNet's amp_cast to an integer rounds, where Cast truncates; it is not supported.
    """
    return call.add("Identity", call.data)


def _number_of_outputs(values: Values) -> int:
    number = values["num_outputs"]
    assert isinstance(number, int)
    return number


@operator(
    "amp_multicast",
    attributes={"num_outputs": count(), "cast_narrow": boolean(False)},
    slots=lambda values: ("data",) * _number_of_outputs(values),
    outputs=_number_of_outputs,
)
def multicast(call: OperatorCall) -> list[ir.Value]:
    """Return the inputs: the one float dtype that all get is float32 here."""
    return [call.add("Identity", value) for value in call.inputs]
