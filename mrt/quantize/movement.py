"""Operators that move elements and leave their values: the integers move the same way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.quantize.builder import Handle
from mrt.quantize.lowering import Lowering, constant_of, identity, integers_of, name_of, quantized_point, shape_of
from mrt.quantize.rules import rule
from mrt.quantize.tensor import Format, Tensor


def _movable(net: Lowering, value: ir.Value | None) -> Tensor:
    """The narrow form, except that a head moves as the wide accumulator it still is, to be rounded once at the end."""
    tensor = net.source(value)
    if name_of(value) in net.heads and tensor.per_tensor:
        return tensor
    return net.settled(value)


@rule("Reshape")
def reshape(net: Lowering, node: ir.Node) -> None:
    """Row-major order is that of the float model's axes."""
    x = net.logical(_movable(net, node.inputs[0]))
    shape = shape_of(node.outputs[0])
    net.define(node.outputs[0], replace(x, value=net.reshaped(x.value, shape), layout=identity(len(shape))))


@rule("Transpose")
def transpose(net: Lowering, node: ir.Node) -> None:
    """Nothing moves: only the note of which physical axis is which changes."""
    x = _movable(net, node.inputs[0])
    perm = tuple(node.attributes["perm"].as_ints())
    net.define(node.outputs[0], replace(x, layout=tuple(perm.index(axis) for axis in x.layout)))


@rule("Concat")
def concat(net: Lowering, node: ir.Node) -> None:
    """The parts are brought to one format, straight from their accumulators where nobody else reads them."""
    parts = [
        net.wide(value) if constant_of(value) is None else _constant_part(net, node, value) for value in node.inputs
    ]
    name = name_of(node.outputs[0])
    bits = 16 if name in net.heads else net.options.activation_bits_of(name)
    target = net.format_for(name, bits, non_negative=all(map(net.non_negative, parts)))
    layout = next((part.layout for part in parts if part.layout != identity(len(part.layout))), parts[0].layout)
    brought = [net.arrange(net.bring(part, target), layout).value for part in parts]
    axis = layout.index(node.attributes["axis"].as_int())
    value = net.builder.emit("concat", *brought, axis=axis)
    net.define(node.outputs[0], Tensor(value, np.array([target.scale]), target.zero_point, layout))


def _constant_part(net: Lowering, node: ir.Node, value: ir.Value | None) -> Tensor:
    array = constant_of(value)
    assert array is not None
    scale = max(float(np.abs(array).max()) / 32767, 2.0**-100)
    integers = np.floor(array / scale + 0.5).astype(np.int16)
    return Tensor(net.constant(integers), np.array([scale]), 0, identity(array.ndim))


@rule("Slice")
def slice_(net: Lowering, node: ir.Node) -> None:
    """A contiguous slice, then every n-th element where steps ask for it."""
    x = _movable(net, node.inputs[0])
    shape = net.shape(x)
    start, size, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts, ends, axes, step_list = (integers_of(node, index) for index in (1, 2, 3, 4))
    for first, last, axis, step in zip(starts, ends, axes, step_list, strict=True):
        place = x.layout.index(axis % len(shape))
        count = -(-(last - first) // step)
        start[place], size[place], steps[place] = first, (count - 1) * step + 1, step
    value = x.value
    if tuple(size) != shape:
        value = net.builder.emit("slice", value, start=tuple(start), size=tuple(size))
    net.define(node.outputs[0], replace(x, value=_every_nth(net, value, steps)))


def _every_nth(net: Lowering, value: Handle, steps: list[int]) -> Handle:
    """Elements 0, n, 2n, ... of each axis: pooling with a 1x1 window on an image's rows and columns, else split and cut."""
    type_ = net.builder.types[value]
    if type_.rank == 4 and type_.dtype in ("i8", "i16") and steps[0] == steps[3] == 1 and steps != [1, 1, 1, 1]:
        return net.builder.emit("max_pool2d", value, kernel=(1, 1), stride=(steps[1], steps[2]), pad=(0, 0, 0, 0))
    for axis, step in enumerate(steps):
        if step > 1:
            value = _every_nth_of_axis(net, value, axis, step)
    return value


def _every_nth_of_axis(net: Lowering, value: Handle, axis: int, step: int) -> Handle:
    """[.., n] padded to a multiple of step, seen as [.., n/step, step], the first of each kept."""
    shape = net.builder.types[value].shape
    count = -(-shape[axis] // step)
    pads = [0] * (2 * len(shape))
    pads[2 * axis + 1] = count * step - shape[axis]
    if any(pads):
        value = net.builder.emit("pad", value, pads=tuple(pads), value=0)
    split = (*shape[:axis], count, step, *shape[axis + 1 :])
    kept = (*shape[:axis], count, 1, *shape[axis + 1 :])
    value = net.builder.emit("slice", net.reshaped(value, split), start=(0,) * len(split), size=kept)
    return net.reshaped(value, (*shape[:axis], count, *shape[axis + 1 :]))


@rule("Pad")
def pad(net: Lowering, node: ir.Node) -> None:
    """Padding with the integer that stands for the constant; negative pads cut."""
    x = _movable(net, node.inputs[0])
    pads, fill = integers_of(node, 1), constant_of(node.inputs[2])
    real = 0.0 if fill is None else float(fill.ravel()[0])
    rank = len(x.layout)
    grow: list[int] = []
    start, size = [0] * rank, list(net.shape(x))
    for place, axis in enumerate(x.layout):
        before, after = pads[axis], pads[axis + rank]
        grow += [max(before, 0), max(after, 0)]
        start[place] = max(-before, 0)
        size[place] += min(before, 0) + min(after, 0)
    value = x.value
    if tuple(size) != net.shape(x):
        value = net.builder.emit("slice", value, start=tuple(start), size=tuple(size))
    if any(grow):
        low, high = (-128, 127) if net.dtype(x) == "i8" else (-32768, 32767)
        point = quantized_point(real, Format(net.dtype(x), float(x.scale[0]), x.zero_point, low, high))
        if net.dtype(x) != "i32":
            point = min(max(point, low), high)
        value = net.builder.emit("pad", value, pads=tuple(grow), value=point)
    net.define(node.outputs[0], replace(x, value=value))
