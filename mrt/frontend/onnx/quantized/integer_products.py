"""Decompose MatMulInteger and ConvInteger of quantized values into float products.

    Cast(MatMulInteger(q, w, zero point of q, zero point of w))
    ->  MatMul(DequantizeLinear(q), w - zero point of w) / scale of q

The integers q are those of a QuantizeLinear; its scale makes the product one of reals, and
the division makes the same integers of it. Or they are looked up in a constant, as in the
table of an embedding, and then less their zero point. Either may be moved before it is
read. A constant in i32 may be added to these, and a
DequantizeLinear may take the place of the Cast, as the multiplication by its scale that it
is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.quantized.dynamic_biases import MOVEMENT
from mrt.frontend.onnx.quantized.stored_weights import stored_array
from mrt.frontend.onnx.resolve.known_values import KnownValues
from mrt.graph.patch import Patch, copy_attributes
from mrt.graph.values import (
    Array,
    first,
    int_attribute,
    operand,
    producer,
)

OPERATORS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
_DOMAINS = ("", "ai.onnx")
# What moves the numbers of its first operand.
_MOVING = (*MOVEMENT, "Expand", "Gather", "Slice")
_OTHER_INTEGERS = (
    "integers in a form that is not read; expected those of a QuantizeLinear with one constant scale, "
    "or of a constant from which a Gather takes them"
)


@dataclass
class _Readers:
    """The nodes that read a product's integers, and what they read beside them.

    `biases` are constants in i32, for each Add; `scales` are those of each
    DequantizeLinear. `rank` is that of the product, 0 if it is not known, and
    `axes_behind` is how many axes follow that of the output channels.
    """

    rank: int
    axes_behind: int
    casts: list[ir.Node] = field(default_factory=list)
    biases: dict[ir.Node, Array] = field(default_factory=dict)
    scales: dict[ir.Node, Array] = field(default_factory=dict)


def read_integer_products(model: ir.Model) -> None:
    """Decompose them in place; raise Unsupported with a line for each that has no such form."""
    problems: list[str] = []
    known = KnownValues(model, None)
    for node in list(model.graph):
        if node.op_type in OPERATORS and node.domain in _DOMAINS:
            problem = _decompose(node, known)
            if problem is not None:
                name = node.name or node.outputs[0].name
                problems.append(f"{name} ({node.op_type}): {problem}")
    if problems:
        raise Unsupported(problems)


def _decompose(node: ir.Node, known: KnownValues) -> str | None:
    """Decompose one node; return the reason if that is impossible."""
    grid = _grid(node)
    if isinstance(grid, str):
        return grid
    weights = _weights(node)
    if isinstance(weights, str):
        return weights
    readers = _Readers(weights.ndim, weights.ndim - 2)
    if node.op_type == "MatMulInteger":
        # The quantizer's output has the shape of its input, which a file states oftener.
        shape = first(node).shape
        quantizer = producer(first(node), "QuantizeLinear")
        if shape is None and quantizer is not None:
            shape = first(quantizer).shape
        is_known = shape is not None and weights.ndim == 2
        readers = _Readers(len(shape or ()) if is_known else 0, 0)
    if not all(_are_read(node.outputs[0], readers, known)):
        return (
            "its integers are read as such; expected a Cast to float, or a DequantizeLinear with one constant scale "
            "or one for each channel, possibly behind an Add of constants"
        )
    _write(node, grid, weights)
    _write_readers(readers)
    return None


@dataclass(frozen=True)
class _Grid:
    """How a product's integers become reals: by the operands of a DequantizeLinear, or, without a scale, less their zero point."""

    scale: ir.Value | None
    zero: ir.Value | None


def _grid(node: ir.Node) -> _Grid | str:
    """Return the grid of the integers that a product reads, or a string with the problem."""
    zero = _zero(node, 2)
    value = _source(node.inputs[0])
    is_moved = value is not node.inputs[0]
    if is_moved and stored_array(value) is not None:
        if zero is None:
            return "the zero point of its integers is computed; expected a constant"
        return _Grid(None, operand(node, 2))
    quantizer = producer(value, "QuantizeLinear")
    scale = None if quantizer is None else stored_array(quantizer.inputs[1])
    if quantizer is None or scale is None or scale.size != 1:
        return _OTHER_INTEGERS
    if _zero(quantizer, 2) != zero:
        return "a zero point that is not the one of its QuantizeLinear"
    return _Grid(quantizer.inputs[1], operand(quantizer, 2))


def _source(value: ir.Value | None) -> ir.Value | None:
    """Return the value whose numbers a value has in another place."""
    while (mover := producer(value, *_MOVING)) is not None:
        value = operand(mover, 0)
    return value


def _are_read(
    integers: ir.Value, readers: _Readers, known: KnownValues
) -> Iterator[bool]:
    """Collect the readers; yield whether each of them makes reals of the integers."""
    waiting = [integers]
    while waiting:
        value = waiting.pop()
        yield not value.is_graph_output()
        for use in value.uses():
            reader = use.node
            if reader.op_type == "Add" and reader.domain in _DOMAINS:
                bias = stored_array(reader.inputs[1 - use.idx])
                yield bias is not None and bias.dtype == np.int32
                if np.asarray(bias).ndim > readers.rank:  # so has the sum
                    readers.rank = 0
                readers.biases[reader] = np.asarray(bias)
                waiting.append(reader.outputs[0])
            elif (scale := _scale_of(reader, readers, known)) is not None:
                column = (-1, *[1] * readers.axes_behind)
                shape = () if scale.size == 1 else column
                readers.scales[reader] = scale.reshape(shape)
            else:
                yield _is_to_float(reader)
                readers.casts.append(reader)


def _scale_of(
    node: ir.Node, readers: _Readers, known: KnownValues
) -> Array | None:
    """Return the scale of a DequantizeLinear, or those of the output channels, if they are known and it has no zero point."""
    if node.op_type != "DequantizeLinear" or len(node.inputs) < 2:
        return None
    if len(node.inputs) > 2 and node.inputs[2] is not None and _zero(node, 2):
        return None
    scale = None if node.inputs[1] is None else known.array(node.inputs[1])
    if scale is None or scale.dtype != np.float32:
        return None
    channels = readers.rank - 1 - readers.axes_behind
    axis = int_attribute(node, "axis", 1)
    along_channels = scale.ndim == 1 and readers.rank and axis == channels
    return scale if scale.size == 1 or along_channels else None


def _write(node: ir.Node, grid: _Grid, weights: Array) -> None:
    patch = Patch(node, typed=False)
    scale = grid.scale or patch.number(1, "scale")
    zero = [] if grid.zero is None else [grid.zero]
    reals = patch.add("DequantizeLinear", first(node), scale, *zero)
    constant = patch.constant(weights, "weights")
    attributes = dict(node.attributes)
    if grid.scale is None:
        patch.become(OPERATORS[node.op_type], reals, constant)
        node.attributes.update(attributes)
        return
    product = patch.add(OPERATORS[node.op_type], reals, constant)
    copy_attributes(node, product, *attributes)
    number = np.float32(np.asarray(stored_array(grid.scale)).reshape(()))
    factor = np.array(1 / number, np.float32)
    patch.become("Mul", product, patch.constant(factor, "inverse_scale"))


def _write_readers(readers: _Readers) -> None:
    for cast in readers.casts:
        cast.op_type = "Identity"
        cast.attributes.clear()
    for add, bias in readers.biases.items():
        patch = Patch(add, typed=False)
        integers = add.inputs[0]
        if stored_array(integers) is not None:
            integers = add.inputs[1]
        real = patch.constant(bias.astype(np.float32), "bias")
        patch.become("Add", integers, real)
    for node, scale in readers.scales.items():
        patch = Patch(node, typed=False)
        patch.become("Mul", first(node), patch.constant(scale, "scale"))


def _zero(node: ir.Node, place: int) -> int | None:
    """Return a zero point, 0 if there is none, or None if it is computed or has several numbers."""
    if len(node.inputs) <= place or node.inputs[place] is None:
        return 0
    array = stored_array(node.inputs[place])
    return None if array is None or array.size != 1 else int(array.reshape(()))


def _weights(node: ir.Node) -> Array | str:
    """Return the weights less their zero points, or the problem."""
    array = stored_array(node.inputs[1])
    if array is None:
        return "both operands are computed; expected constant weights"
    zero: Array | None = np.zeros(1, np.int64)
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        zero = stored_array(node.inputs[3])
    if zero is None:
        return "the zero point of its weights is computed; expected a constant"
    zero = zero.astype(np.int64)
    if node.op_type == "ConvInteger" and zero.size > 1:
        zero = zero.reshape(-1, *[1] * (array.ndim - 1))
    return (array.astype(np.int64) - zero).astype(np.float32)


def _is_to_float(node: ir.Node) -> bool:
    kind = int_attribute(node, "to", 0)
    return node.op_type == "Cast" and kind == int(ir.DataType.FLOAT)
