"""Moving elements without changing them: reshape, transpose, concatenate, pad, slice, repeat."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from mrt.frontend.mxnet.call import Call
from mrt.frontend.mxnet.literals import parse_integer
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Values,
    count,
    flag,
    ignored,
    indices,
    integer,
    integers,
    operator,
    optional_integer,
    optional_integers,
    positive,
    real,
    word,
)


@operator("Flatten", "flatten")
def flatten(call: Call) -> ir.Value:
    """(first axis, all others)."""
    return call.emit("Flatten", [call.data], {"axis": 1})


@operator(
    "Reshape",
    "reshape",
    attributes={
        "shape": integers(),
        "reverse": flag(False),
        "target_shape": integers(),
        "keep_highest": flag(False),
    },
)
def reshape(call: Call) -> ir.Value:
    """The special numbers 0, -1, -2, -3, -4 are worked out here: ONNX knows only the first two, and no reverse."""
    if call.integers("shape"):
        shape = _reshaped(call, call.shape(), call.integers("shape"), reverse=call.flag("reverse"))
    else:
        shape = _target_shape(call)
    found, wanted = math.prod(call.shape()), math.prod(shape)
    call.require(min(shape) > 0 and found == wanted, f"cannot reshape {call.shape()} to {tuple(shape)}")
    return call.reshape(call.data, shape)


def _reshaped(call: Call, shape: Sequence[int], codes: Sequence[int], *, reverse: bool) -> list[int]:
    if not reverse:
        return _forward(call, shape, codes)
    call.require(-4 not in codes, "shape with -4 and reverse=True, which MXNet refuses")
    return _forward(call, shape[::-1], codes[::-1])[::-1]


def _forward(call: Call, shape: Sequence[int], codes: Sequence[int]) -> list[int]:
    """0 copies a dimension, -1 is inferred, -2 copies the rest, -3 merges two, -4 splits one into the next two."""
    result: list[int] = []
    inferred = -1
    source, position = 0, 0
    while position < len(codes):
        code = codes[position]
        dimensions = shape[source : source + {-2: len(shape), -3: 2}.get(code, 1)]
        source += len(dimensions)
        enough = code > 0 or len(dimensions) >= {-1: 0, -2: 0, -3: 2}.get(code, 1)
        call.require(enough, f"shape={tuple(codes)} names more dimensions than {tuple(shape)} has")
        match code:
            case 0 | -2:
                result += dimensions
            case -1:
                # MXNet writes the inferred number where the code stands, which is elsewhere after -2 and -4.
                call.require(inferred < 0 and position == len(result), "-1 twice, or after -2 or -4, in shape")
                inferred = len(result)
                result.append(1)
            case -3:
                result.append(math.prod(dimensions))
            case -4:
                result += _split(call, dimensions[0], codes[position + 1 : position + 3])
                position += 2
            case _:
                call.require(code > 0, f"shape holds {code}")
                result.append(code)
        position += 1
    if inferred >= 0:
        result[inferred] = math.prod(shape) // max(math.prod(result), 1)
    return result


def _split(call: Call, dimension: int, parts: Sequence[int]) -> list[int]:
    call.require(len(parts) == 2 and tuple(parts) != (-1, -1), "-4 in shape needs two numbers after it, one known")
    left, right = parts
    if left == -1:
        left = dimension // max(right, 1)
    if right == -1:
        right = dimension // max(left, 1)
    call.require(left > 0 and right > 0 and left * right == dimension, f"cannot split {dimension} into {tuple(parts)}")
    return [left, right]


def _target_shape(call: Call) -> list[int]:
    """The oldest way to say it: 0 is inferred, once; keep_highest copies the first dimension."""
    shape = list(call.integers("target_shape"))
    call.require(bool(shape), "attribute 'shape' is missing")
    if call.flag("keep_highest"):
        shape[0] = call.shape()[0]
    if shape.count(0) == 1:
        index = shape.index(0)
        shape[index] = 1
        shape[index] = math.prod(call.shape()) // max(math.prod(shape), 1)
    return shape


@operator("transpose", attributes={"axes": integers()})
def transpose(call: Call) -> ir.Value:
    """No axes: reversed."""
    rank = len(call.shape())
    axes = call.integers("axes") or tuple(reversed(range(rank)))
    call.require(sorted(axes) == [*range(rank)], f"axes={axes} is no order of {rank} dimensions")
    return call.emit("Transpose", [call.data], {"perm": list(axes)})


@operator("SwapAxis", "swapaxes", attributes={"dim1": integer(0), "dim2": integer(0)})
def swap_axis(call: Call) -> ir.Value:
    """Exchange two axes."""
    first, second = call.axis(call.integer("dim1")), call.axis(call.integer("dim2"))
    axes = [*range(len(call.shape()))]
    axes[first], axes[second] = axes[second], axes[first]
    return call.emit("Transpose", [call.data], {"perm": axes})


@operator("expand_dims", attributes={"axis": Attribute(parse_integer, required=True)})
def expand_dims(call: Call) -> ir.Value:
    """A new axis of size 1."""
    shape = list(call.shape())
    shape.insert(call.axis(call.integer("axis"), len(shape) + 1), 1)
    return call.reshape(call.data, shape)


@operator("squeeze", attributes={"axis": optional_integers()})
def squeeze(call: Call) -> ir.Value:
    """Without axes of size 1, all or those given; never without any axis."""
    shape = call.shape()
    given = call.integers("axis")
    axes = {call.axis(axis) for axis in given} if given else {i for i, size in enumerate(shape) if size == 1}
    call.require(all(shape[axis] == 1 for axis in axes), f"axis={given} of shape {shape} is not of size 1")
    return call.reshape(call.data, [size for i, size in enumerate(shape) if i not in axes] or [1])


def _all_inputs(values: Values) -> tuple[str, ...]:
    number = values["num_args"]
    assert isinstance(number, int)
    return ("data",) * number


@operator("Concat", "concat", attributes={"num_args": count(), "dim": integer(1)}, slots=_all_inputs)
def concat(call: Call) -> ir.Value:
    """One after the other along an axis."""
    return call.emit("Concat", call.inputs, {"axis": call.axis(call.integer("dim"))})


@operator(
    "Pad",
    "pad",
    attributes={
        "mode": word("constant", "edge", "reflect", required=True),
        "pad_width": integers(None),
        "constant_value": real(0.0),
    },
)
def pad(call: Call) -> ir.Value:
    """pad_width is (before, after) per axis; ONNX wants all before, then all after."""
    width, shape = list(call.integers("pad_width")), call.shape()
    call.require(len(width) == 2 * len(shape), f"pad_width={tuple(width)} does not fit an input of shape {shape}")
    call.require(min(width) >= 0, f"pad_width={tuple(width)} is negative")
    mode = call.word("mode")
    if mode == "reflect":
        fits = all(amount < shape[index // 2] for index, amount in enumerate(width))
        call.require(fits, f"pad_width={tuple(width)} reflects more than an input of shape {shape} has")
    value = [call.constant(call.real("constant_value"))] if mode == "constant" else []
    return call.emit("Pad", [call.data, call.constant(width[0::2] + width[1::2]), *value], {"mode": mode})


@operator("slice", "crop", attributes={"begin": indices(), "end": indices(), "step": indices(required=False)})
def slice_(call: Call) -> ir.Value:
    """As numpy, on the first axes; None is the default of each."""
    begins, ends, shape = call.indices("begin"), call.indices("end"), call.shape()
    steps = call.indices("step") or (None,) * len(begins)
    fits = 0 < len(begins) == len(ends) == len(steps) <= len(shape)
    call.require(fits, f"begin, end and step of {len(begins)}, {len(ends)} and {len(steps)} items on shape {shape}")
    call.require(0 not in steps, "step holds 0")
    taken = [slice(begin, end, step) for begin, end, step in zip(begins, ends, steps, strict=True)]
    return _slice(call, dict(enumerate(taken)))


@operator(
    "slice_axis",
    attributes={
        "axis": Attribute(parse_integer, required=True),
        "begin": Attribute(parse_integer, required=True),
        "end": optional_integer(),
    },
)
def slice_axis(call: Call) -> ir.Value:
    """begin to end of one axis; what lies outside is refused, as MXNet does."""
    axis, begin, end = call.axis(call.integer("axis")), call.integer("begin"), call.optional_integer("end")
    size = call.shape()[axis]
    begin = begin + size if begin < 0 else begin
    end = size if end is None else end + size if end < 0 else end
    call.require(0 <= begin < end <= size, f"begin={begin}, end={end} on an axis of size {size}")
    return _slice(call, {axis: slice(begin, end)})


def _slice(call: Call, taken: dict[int, slice]) -> ir.Value:
    """Every number written out, inside the axis; only a slice down to the first element must end before it."""
    ranges = [slice_.indices(call.shape()[axis]) for axis, slice_ in taken.items()]
    ends = [end if end >= 0 else -call.shape()[axis] - 1 for axis, (_, end, _) in zip(taken, ranges, strict=True)]
    numbers = [[begin for begin, _, _ in ranges], ends, [*taken], [step for _, _, step in ranges]]
    return call.emit("Slice", [call.data, *(call.constant(number) for number in numbers)])


def _outputs(values: Values) -> int:
    number = values["num_outputs"]
    assert isinstance(number, int)
    return number


@operator(
    "SliceChannel",
    "split",
    attributes={"num_outputs": count(), "axis": integer(1), "squeeze_axis": flag(False)},
    outputs=_outputs,
)
def slice_channel(call: Call) -> list[ir.Value]:
    """Equal parts of an axis, each a Slice; squeeze_axis drops the axis, which must then have size 1."""
    axis, number = call.axis(call.integer("axis")), call.integer("num_outputs")
    shape = call.shape()
    call.require(shape[axis] % number == 0, f"num_outputs={number} does not divide axis {axis} of size {shape[axis]}")
    size = shape[axis] // number
    parts = [_slice(call, {axis: slice(index * size, (index + 1) * size)}) for index in range(number)]
    if not call.flag("squeeze_axis"):
        return parts
    call.require(size == 1, f"squeeze_axis=True on parts of size {size}")
    rest = [*shape[:axis], *shape[axis + 1 :]] or [1]
    return [call.reshape(part, rest) for part in parts]


@operator(
    "UpSampling",
    attributes={
        "scale": positive(),
        "sample_type": word("nearest", required=True),
        "num_args": count(),
        **ignored("num_filter", "multi_input_mode", "workspace"),
    },
    slots=_all_inputs,
)
def up_sampling(call: Call) -> ir.Value:
    """Every pixel becomes scale x scale of them."""
    call.require(len(call.inputs) == 1, f"num_args={len(call.inputs)}: only one input is supported")
    call.require_rank(4, 4)
    scale = float(call.integer("scale"))
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return call.emit("Resize", [call.data, None, call.constant([1.0, 1.0, scale, scale])], attributes)
