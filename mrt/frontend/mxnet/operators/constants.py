"""Tensors that depend on attributes and shapes alone: numbers in a row, zeros, ones, shapes."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet import integers
from mrt.frontend.mxnet.call import Call
from mrt.frontend.mxnet.literals import parse_real
from mrt.frontend.mxnet.operators.casts import FLOATS, dtype_attribute, result_dtype
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Handler,
    flag,
    ignored,
    integer,
    operator,
    optional_integer,
    optional_integers,
    optional_real,
    positive,
    real,
)
from mrt.frontend.mxnet.operators.registry import (
    integers as integers_attribute,
)
from mrt.frontend.mxnet.params import Array
from mrt.frontend.mxnet.writer import MAX_ELEMENTS

CREATED: dict[str, Attribute] = {**ignored("ctx"), "dtype": dtype_attribute("float32")}


def _node(call: Call, numbers: Array, dtype: str = "float32") -> ir.Value:
    """Emit a tensor that is there from the start."""
    return integers.mark(
        call.emit("Identity", [call.array(numbers.astype(np.float32, copy=False))]),
        dtype,
    )


def _require_size(call: Call, elements: float) -> None:
    call.require(
        1 <= elements <= MAX_ELEMENTS,
        f"a result of {elements:.0f} numbers; expected 1 to 2^28",
    )
    call.writer.require_room(elements)


def _filled(call: Call, shape: tuple[int, ...], number: float) -> ir.Value:
    known = bool(shape) and min(shape) >= 1
    call.require(
        known,
        f"shape={shape}: MXNet infers it from what follows; expected positive numbers",
    )
    _require_size(call, math.prod(shape))
    dtype = result_dtype(call)
    return _node(call, np.full(shape, _as_held(call, number, dtype), np.float32), dtype)


def _as_held(call: Call, number: float, dtype: str) -> float:
    """The number without its fraction, if the dtype is an integer."""
    if dtype in FLOATS:
        return number
    if dtype == "bool":
        return float(number != 0)
    low, high = {"uint8": (0, 255), "int8": (-128, 127)}.get(dtype, (-(2**24), 2**24))
    call.require(
        low <= number <= high,
        f"value={number} with dtype={dtype}: expected {low} to {high}",
    )
    return math.trunc(number)


def _fill(number: float) -> Handler:
    """An unknown dimension of zeros (0: the batch of a first state) is 1, which zeros of any size come from."""

    def handler(call: Call) -> ir.Value:
        shape = call.integers("shape")
        return _filled(
            call, tuple(size or 1 for size in shape) if number == 0 else shape, number
        )

    return handler


for _name, _number in {
    "_zeros": 0.0,
    "_ones": 1.0,
    "_zeros_without_dtype": 0.0,
}.items():
    operator(_name, attributes={"shape": integers_attribute(), **CREATED}, slots=())(
        _fill(_number)
    )


@operator(
    "_full",
    attributes={"shape": integers_attribute(), "value": real(), **CREATED},
    slots=(),
)
def full(call: Call) -> ir.Value:
    """One number everywhere."""
    return _filled(call, call.integers("shape"), call.real("value"))


def _fill_like(number: float) -> Handler:
    def handler(call: Call) -> ir.Value:
        _require_size(call, math.prod(call.shape()))
        return _node(call, np.full(call.shape(), number, np.float32))

    return handler


# MXNet takes a dtype here and does not look at it: the result has that of the input.
operator("zeros_like", attributes=ignored("dtype"))(_fill_like(0.0))
operator("ones_like", attributes=ignored("dtype"))(_fill_like(1.0))


@operator(
    "_eye",
    attributes={"N": positive(), "M": integer(0), "k": integer(0), **CREATED},
    slots=(),
)
def eye(call: Call) -> ir.Value:
    """Ones on a diagonal, k to the right of the main one; M columns, as many as rows if that is 0."""
    rows, columns = call.integer("N"), call.integer("M") or call.integer("N")
    _require_size(call, rows * columns)
    return _node(
        call,
        np.eye(rows, columns, max(-rows, min(columns, call.integer("k")))),
        result_dtype(call),
    )


def _range(start: float, step: float, repeat: int, size: int) -> Array:
    """Computed in float64, every number `repeat` times."""
    return start + step * (np.arange(size, dtype=np.float64) // repeat)


@operator(
    "_arange",
    attributes={
        "start": real(),
        "stop": optional_real(),
        "step": real(1.0),
        "repeat": positive(1),
        "infer_range": flag(False, only=(False,)),
        **CREATED,
    },
    slots=(),
)
def arange(call: Call) -> ir.Value:
    """From start up to stop, which is not in it; one number alone is the stop, and 0 the start."""
    start, stop, step = (
        call.real("start"),
        call.optional_real("stop"),
        call.real("step"),
    )
    if stop is None:
        start, stop = 0.0, start
    call.require(
        step != 0 and (stop - start) / step > 0,
        f"no numbers from {start} to {stop} in steps of {step}",
    )
    repeat = call.integer("repeat")
    size = (stop - start) / step
    _require_size(call, max(size, 1) * repeat)
    return _node(
        call, _range(start, step, repeat, math.ceil(size) * repeat), result_dtype(call)
    )


@operator(
    "_linspace",
    attributes={
        "start": real(),
        "stop": real(),
        "num": positive(),
        "endpoint": flag(True),
        **CREATED,
    },
    slots=(),
)
def linspace(call: Call) -> ir.Value:
    """So many numbers from start to stop, which is the last one unless endpoint is off."""
    number = call.integer("num")
    _require_size(call, number)
    numbers = np.linspace(
        call.real("start"), call.real("stop"), number, endpoint=call.flag("endpoint")
    )
    return _node(call, numbers, result_dtype(call))


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
def arange_like(call: Call) -> ir.Value:
    """As many numbers as an axis has, or in the input's shape."""
    axis, shape = call.optional_integer("axis"), call.shape()
    wanted = shape if axis is None else (shape[call.axis(axis)],)
    _require_size(call, math.prod(wanted))
    numbers = _range(
        call.real("start"), call.real("step"), call.integer("repeat"), math.prod(wanted)
    )
    return _node(call, numbers.reshape(wanted))


@operator("shape_array")
def shape_array(call: Call) -> ir.Value:
    """The sizes of the axes."""
    return _node(call, np.array(call.shape()), "int64")


@operator("size_array")
def size_array(call: Call) -> ir.Value:
    """How many numbers there are."""
    return _node(call, np.array([math.prod(call.shape())]), "int64")


@operator("_contrib_index_array", attributes={"axes": optional_integers()})
def index_array(call: Call) -> ir.Value:
    """At every place, where it lies along each of the axes, all if none are given."""
    shape = call.shape()
    axes = [call.axis(axis) for axis in call.integers("axes")] or [*range(len(shape))]
    _require_size(call, math.prod(shape) * len(axes))
    places = np.empty((*shape, len(axes)), np.float32)
    for number, axis in enumerate(axes):
        places[..., number] = np.arange(shape[axis]).reshape(
            [-1 if other == axis else 1 for other in range(len(shape))]
        )
    return _node(call, places, "int64")
