"""Tensors that depend on attributes and shapes alone: ranges, zeros, ones, shapes."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet import integer_dtypes
from mrt.frontend.mxnet.graph_builder import MAX_ELEMENTS
from mrt.frontend.mxnet.literals import parse_real
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.casts import (
    FLOATS,
    dtype_attribute,
    result_dtype,
)
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Handler,
    boolean,
    ignored,
    integer,
    integers,
    operator,
    optional_integer,
    optional_integers,
    optional_real,
    positive,
    real,
)
from mrt.frontend.mxnet.params import Array

_BYTES = {"uint8": (0, 255), "int8": (-128, 127)}

CREATED: dict[str, Attribute] = {
    **ignored("ctx"),
    "dtype": dtype_attribute("float32"),
}


def _node(
    call: OperatorCall, numbers: Array, dtype: str = "float32"
) -> ir.Value:
    """Add a node that holds a constant, and return its output."""
    return integer_dtypes.mark(
        call.add(
            "Identity", call.array(numbers.astype(np.float32, copy=False))
        ),
        dtype,
    )


def _require_size(call: OperatorCall, elements: float) -> None:
    call.require(
        1 <= elements <= MAX_ELEMENTS,
        f"a result of {elements:.0f} numbers; expected 1 to 2^28",
    )
    call.builder.require_space(elements)


def _filled(
    call: OperatorCall, shape: tuple[int, ...], number: float
) -> ir.Value:
    is_known = bool(shape) and min(shape) >= 1
    call.require(
        is_known,
        f"shape={shape}: MXNet infers it from what follows; expected positive numbers",
    )
    _require_size(call, math.prod(shape))
    dtype = result_dtype(call)
    held = _as_held(call, np.array(number), dtype)
    return _node(call, np.full(shape, held, np.float32), dtype)


def _as_held(call: OperatorCall, numbers: Array, dtype: str) -> Array:
    """Return the numbers as the dtype holds them: without fractions if that is an integer."""
    if dtype in FLOATS:
        return numbers
    if dtype == "bool":
        return np.asarray(numbers != 0)
    low, high = _BYTES.get(dtype, (-(2**24), 2**24))
    for number in (numbers.min(), numbers.max()):
        call.require(
            low <= number <= high,
            f"value={number} with dtype={dtype}: expected {low} to {high}",
        )
    return np.asarray(np.trunc(numbers) + 0.0)  # and not -0


def _fill(number: float) -> Handler:
    """Return the handler of a tensor filled with one number.

    A shape of zeros may have an unknown dimension (0), which becomes 1. It is the batch
    of a first state, to which zeros are broadcast.
    """

    def handler(call: OperatorCall) -> ir.Value:
        shape = call.ints_attribute("shape")
        return _filled(
            call,
            tuple(size or 1 for size in shape) if number == 0 else shape,
            number,
        )

    return handler


for _name, _number in {
    "_zeros": 0.0,
    "_ones": 1.0,
    "_zeros_without_dtype": 0.0,
}.items():
    operator(_name, attributes={"shape": integers(), **CREATED}, slots=())(
        _fill(_number)
    )


@operator(
    "_full",
    attributes={"shape": integers(), "value": real(), **CREATED},
    slots=(),
)
def full(call: OperatorCall) -> ir.Value:
    """Fill a tensor with one number."""
    return _filled(
        call, call.ints_attribute("shape"), call.float_attribute("value")
    )


def _fill_like(number: float) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        _require_size(call, math.prod(call.shape()))
        return _node(call, np.full(call.shape(), number, np.float32))

    return handler


# MXNet accepts a dtype here and ignores it: the result has the dtype of the input.
operator("zeros_like", attributes=ignored("dtype"))(_fill_like(0.0))
operator("ones_like", attributes=ignored("dtype"))(_fill_like(1.0))


@operator(
    "_eye",
    attributes={"N": positive(), "M": integer(0), "k": integer(0), **CREATED},
    slots=(),
)
def eye(call: OperatorCall) -> ir.Value:
    """Write ones on the diagonal k to the right of the main one; M columns, or N if M is 0."""
    rows = call.int_attribute("N")
    columns = call.int_attribute("M") or call.int_attribute("N")
    _require_size(call, rows * columns)
    return _node(
        call,
        np.eye(
            rows, columns, max(-rows, min(columns, call.int_attribute("k")))
        ),
        result_dtype(call),
    )


def _range(start: float, step: float, repeat: int, size: int) -> Array:
    """Return start, start + step, ... in float64, with every number `repeat` times."""
    return start + step * (np.arange(size, dtype=np.float64) // repeat)


@operator(
    "_arange",
    attributes={
        "start": real(),
        "stop": optional_real(),
        "step": real(1.0),
        "repeat": positive(1),
        "infer_range": boolean(False, only=(False,)),
        **CREATED,
    },
    slots=(),
)
def arange(call: OperatorCall) -> ir.Value:
    """Write the numbers from start up to stop, exclusive.

    If only start is given, the range starts at 0 and stops there. Of integers, MXNet
    drops the fractions of start and step after it has counted the numbers.
    """
    start = call.float_attribute("start")
    stop = call.optional_float_attribute("stop")
    step = call.float_attribute("step")
    if stop is None:
        start, stop = 0.0, start
    call.require(
        step != 0 and (stop - start) / step > 0,
        f"no numbers from {start} to {stop} in steps of {step}",
    )
    repeat = call.int_attribute("repeat")
    size = (stop - start) / step
    _require_size(call, max(size, 1) * repeat)
    dtype = result_dtype(call)
    if dtype not in FLOATS:
        start, step = math.trunc(start), math.trunc(step)
    numbers = _range(start, step, repeat, math.ceil(size) * repeat)
    return _node(call, _as_held(call, numbers, dtype), dtype)


@operator(
    "_linspace",
    attributes={
        "start": real(),
        "stop": real(),
        "num": positive(),
        "endpoint": boolean(True),
        **CREATED,
    },
    slots=(),
)
def linspace(call: OperatorCall) -> ir.Value:
    """Write `num` numbers from start to stop; with endpoint off, stop itself is left out."""
    number = call.int_attribute("num")
    _require_size(call, number)
    dtype = result_dtype(call)
    start = call.float_attribute("start")
    numbers, step = np.linspace(
        start,
        call.float_attribute("stop"),
        number,
        endpoint=call.bool_attribute("endpoint"),
        retstep=True,
    )
    if dtype not in FLOATS and number > 1:
        # MXNet rounds the last number like the others, which may be 1 less than stop.
        numbers = _range(start, float(step), 1, number)
    return _node(call, _as_held(call, numbers, dtype), dtype)


@operator(
    "_contrib_arange_like",
    attributes={
        "start": Attribute(parse_real, 0.0),
        "step": real(1.0),
        "repeat": positive(1),
        "axis": optional_integer(),
        **ignored("ctx"),
    },
)
def arange_like(call: OperatorCall) -> ir.Value:
    """Write as many numbers as an axis has, or numbers in the input's shape if no axis is given."""
    axis, shape = call.optional_int_attribute("axis"), call.shape()
    result_shape = shape if axis is None else (shape[call.axis(axis)],)
    _require_size(call, math.prod(result_shape))
    numbers = _range(
        call.float_attribute("start"),
        call.float_attribute("step"),
        call.int_attribute("repeat"),
        math.prod(result_shape),
    )
    return _node(call, numbers.reshape(result_shape))


@operator("shape_array")
def shape_array(call: OperatorCall) -> ir.Value:
    """Return the sizes of the axes."""
    return _node(call, np.array(call.shape()), "int64")


@operator("size_array")
def size_array(call: OperatorCall) -> ir.Value:
    """Return the number of elements."""
    return _node(call, np.array([math.prod(call.shape())]), "int64")


@operator("_contrib_index_array", attributes={"axes": optional_integers()})
def index_array(call: OperatorCall) -> ir.Value:
    """Return the index of each element along the given axes, by default along all."""
    shape = call.shape()
    axes = [call.axis(axis) for axis in call.ints_attribute("axes")] or [
        *range(len(shape))
    ]
    _require_size(call, math.prod(shape) * len(axes))
    places = np.empty((*shape, len(axes)), np.float32)
    for number, axis in enumerate(axes):
        places[..., number] = np.arange(shape[axis]).reshape(
            [-1 if other == axis else 1 for other in range(len(shape))]
        )
    return _node(call, places, "int64")
