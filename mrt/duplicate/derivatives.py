"""The derivatives of the operators between which images have channels: what each makes of the derivative by its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.values import (
    Attribute,
    constant,
    constant_integers,
    first,
    int_attribute,
    ints_attribute,
    operand,
    scalar,
    shape_of,
    string_attribute,
)


class Writer(Protocol):
    """Where rules write."""

    def give(self, value: ir.Value, part: ir.Value) -> None:
        """One more part of the derivative by a value."""

    def add(
        self, operator: str, *inputs: ir.Value | None, **attributes: Attribute
    ) -> ir.Value:
        """A new node; its output."""

    def add_all(
        self,
        operator: str,
        count: int,
        *inputs: ir.Value | None,
        **attributes: Attribute,
    ) -> Iterator[ir.Value]:
        """As `add`, of a node with so many outputs."""

    def constant(self, array: npt.NDArray[Any]) -> ir.Value:
        """A constant."""


Rule = Callable[[Writer, ir.Node, ir.Value], bool]
"""Gives the operands of a node their parts of the derivative by its output; False if it cannot."""


def _conv(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    weights, source, result = (
        constant(operand(node, 1)),
        shape_of(node.inputs[0]),
        shape_of(node.outputs[0]),
    )
    if weights is None or source is None or result is None or weights.ndim != 4:
        return False
    strides, pads, dilations = (
        ints_attribute(node, name) for name in ("strides", "pads", "dilations")
    )
    assert strides is not None and pads is not None and dilations is not None
    groups, kernel = int_attribute(node, "group", 1), weights.shape[2:]
    reach = [(kernel[axis] - 1) * dilations[axis] for axis in (0, 1)]
    if strides == (1, 1):
        if any(pads[axis] > reach[axis % 2] for axis in range(4)):
            return False
        turned = weights.reshape(groups, -1, *weights.shape[1:]).swapaxes(1, 2)[
            ..., ::-1, ::-1
        ]
        turned = np.ascontiguousarray(turned).reshape(
            -1, len(weights) // groups, *kernel
        )
        around = tuple(reach[axis % 2] - pads[axis] for axis in range(4))
        found = write.add(
            "Conv",
            derivative,
            write.constant(turned),
            group=groups,
            pads=around,
            dilations=dilations,
            strides=strides,
        )
    else:
        met = [
            (result[2 + axis] - 1) * strides[axis]
            - pads[axis]
            - pads[axis + 2]
            + reach[axis]
            + 1
            for axis in (0, 1)
        ]
        missing = tuple(source[2 + axis] - met[axis] for axis in (0, 1))
        found = write.add(
            "ConvTranspose",
            derivative,
            node.inputs[1],
            group=groups,
            pads=pads,
            dilations=dilations,
            strides=strides,
            output_padding=missing,
        )
    write.give(first(node), found)
    return True


def _gemm(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    weights = constant(operand(node, 1))
    if weights is None or int_attribute(node, "transA", 0):
        return False
    across = weights if int_attribute(node, "transB", 0) else weights.T
    write.give(
        first(node),
        write.add("MatMul", derivative, write.constant(np.ascontiguousarray(across))),
    )
    return True


def _clip(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    """Nothing goes through at the ends."""
    ends = (
        (0.0, None)
        if node.op_type == "Relu"
        else (scalar(operand(node, 1)), scalar(operand(node, 2)))
    )
    for operator, end in zip(("Greater", "Less"), ends, strict=True):
        if end is not None:
            within = write.add(
                operator, node.outputs[0], write.constant(np.array(end, np.float32))
            )
            derivative = write.add(
                "Mul", derivative, write.add("Cast", within, to=int(ir.DataType.FLOAT))
            )
    write.give(first(node), derivative)
    return True


def _sum(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    return all(
        _give_computed(write, node, index, lambda: derivative) for index in (0, 1)
    )


def _difference(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    signed = (lambda: derivative, lambda: write.add("Neg", derivative))
    return all(_give_computed(write, node, index, signed[index]) for index in (0, 1))


def _product(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    factors = (
        lambda: write.add("Mul", derivative, node.inputs[1]),
        lambda: write.add("Mul", derivative, node.inputs[0]),
    )
    return all(_give_computed(write, node, index, factors[index]) for index in (0, 1))


def _give_computed(
    write: Writer, node: ir.Node, index: int, part: Callable[[], ir.Value]
) -> bool:
    """Nothing to a constant; to an operand that was repeated, the sum over where it went."""
    value = node.inputs[index]
    assert value is not None
    if value.const_value is not None:
        return True
    source, result = shape_of(value), shape_of(node.outputs[0])
    if source is None or result is None:
        return False
    found = part()
    if source != result:
        long = (1,) * (len(result) - len(source)) + source
        repeated = [
            axis
            for axis, (one, many) in enumerate(zip(long, result, strict=True))
            if one != many
        ]
        found = write.add(
            "ReduceSum", found, write.constant(np.array(repeated, np.int64)), keepdims=1
        )
        found = _reshaped(write, found, source)
    write.give(value, found)
    return True


def _concat(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    axis = int_attribute(node, "axis", 0)
    shapes = [shape_of(value) for value in node.inputs]
    if any(shape is None for shape in shapes):
        return False
    sizes = np.array([shape[axis] for shape in shapes if shape is not None])
    parts = write.add_all(
        "Split", len(shapes), derivative, write.constant(sizes), axis=axis
    )
    for value, part in zip(node.inputs, parts, strict=True):
        if value is not None and value.const_value is None:
            write.give(value, part)
    return True


def _max_pool(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    """To the greatest of each window; of windows that share it only one counts."""
    source = shape_of(node.inputs[0])
    if source is None or int_attribute(node, "storage_order", 0):
        return False
    attributes: dict[str, Attribute] = {
        "ceil_mode": int_attribute(node, "ceil_mode", 0)
    }
    for name in ("kernel_shape", "strides", "pads", "dilations"):
        found = ints_attribute(node, name)
        if found is not None:
            attributes[name] = found
    _, places = write.add_all("MaxPool", 2, node.inputs[0], **attributes)
    ones = (1,) * (len(source) - 2)
    shape = write.constant(np.array(source, np.int64))
    write.give(
        first(node),
        write.add(
            "MaxUnpool", derivative, places, shape, kernel_shape=ones, strides=ones
        ),
    )
    return True


def _reduce_sum(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    source, axes = shape_of(node.inputs[0]), constant_integers(operand(node, 1))
    if source is None or axes is None:
        return False
    axes = tuple(axis % len(source) for axis in axes)
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(source))
    derivative = _reshaped(write, derivative, kept)
    write.give(
        first(node),
        write.add("Expand", derivative, write.constant(np.array(source, np.int64))),
    )
    return True


def _reshape(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    source = shape_of(node.inputs[0])
    if source is None:
        return False
    write.give(first(node), _reshaped(write, derivative, source))
    return True


def _transpose(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    perm = ints_attribute(node, "perm")
    if perm is None:
        return False
    back = tuple(int(axis) for axis in np.argsort(perm))
    write.give(first(node), write.add("Transpose", derivative, perm=back))
    return True


def _slice(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    """Back to the places that were taken, with zeros at the others."""
    source, result = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    starts, axes, steps = (
        constant_integers(operand(node, index)) for index in (1, 3, 4)
    )
    if (
        source is None
        or result is None
        or starts is None
        or axes is None
        or steps is None
        or min(steps) < 1
    ):
        return False
    shape = list(result)
    for axis, start, step in zip(
        (axis % len(source) for axis in axes), starts, steps, strict=True
    ):
        size, taken = source[axis], shape[axis] * step
        begin = max(start + size, 0) if start < 0 else min(start, size)
        derivative = _reshaped(
            write, derivative, [*shape[: axis + 1], 1, *shape[axis + 1 :]]
        )
        derivative = _padded(
            write, derivative, len(source) + 1, axis + 1, (0, step - 1)
        )
        derivative = _reshaped(
            write, derivative, [*shape[:axis], taken, *shape[axis + 1 :]]
        )
        derivative = _padded(
            write, derivative, len(source), axis, (begin, size - begin - taken)
        )
        shape[axis] = size
    write.give(first(node), derivative)
    return True


def _padded(
    write: Writer, value: ir.Value, rank: int, axis: int, ends: tuple[int, int]
) -> ir.Value:
    """With so many zeros on either side of one axis; fewer than none are taken away."""
    pads = np.zeros((2, rank), np.int64)
    pads[:, axis] = ends
    return write.add("Pad", value, write.constant(pads.reshape(-1)))


def _pad(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    pads = constant_integers(operand(node, 1))
    if (
        pads is None
        or string_attribute(node, "mode", "constant") != "constant"
        or operand(node, 3) is not None
    ):
        return False
    write.give(
        first(node),
        write.add("Pad", derivative, write.constant(-np.array(pads, np.int64))),
    )
    return True


def _reshaped(write: Writer, value: ir.Value, shape: Sequence[int]) -> ir.Value:
    return write.add("Reshape", value, write.constant(np.array(shape, np.int64)))


def _sigmoid(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    result = node.outputs[0]
    slope = write.add(
        "Mul", result, write.add("Sub", write.constant(np.array(1, np.float32)), result)
    )
    write.give(first(node), write.add("Mul", derivative, slope))
    return True


def _softmax(write: Writer, node: ir.Node, derivative: ir.Value) -> bool:
    """As if it were not there: a class is ahead or not before it as behind it, where differences near 0 and 1 vanish."""
    write.give(first(node), derivative)
    return True


RULES: dict[str, Rule] = {
    "Add": _sum,
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _conv,
    "Gemm": _gemm,
    "MaxPool": _max_pool,
    "Mul": _product,
    "Pad": _pad,
    "ReduceSum": _reduce_sum,
    "Relu": _clip,
    "Reshape": _reshape,
    "Sigmoid": _sigmoid,
    "Slice": _slice,
    "Softmax": _softmax,
    "Sub": _difference,
    "Transpose": _transpose,
}
