"""Inputs that are a picture's own bytes: u8 outside, the same 256 numbers in i8 inside, and what is derived from them exact.

Nothing is calibrated about a byte. What only moves it (and the border that a convolution's padding became) keeps its step
of 1; what is computed from it before the first sum of products or other operator keeps 16 bits, so that no picture is ever
coarser than its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import Input, Meaning, TensorType
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.graph.notes import picture_layout_of
from mrt.quantize.context import LoweringContext, identity
from mrt.quantize.options import LayerBits, QuantizeOptions
from mrt.quantize.tensor import Tensor
from mrt.table.table import CalibrationTable, MeasuredRange

_LEAST, _MOST = 0, 255
_MOVEMENT = frozenset({"Transpose", "Reshape", "Slice", "Concat", "Pad"})
_PREPARATION = _MOVEMENT | {"Mul", "Add", "Sub", "Div"}


def with_pictures(
    graph: ir.Graph,
    nodes: Sequence[ir.Node],
    table: CalibrationTable,
    options: QuantizeOptions,
) -> tuple[CalibrationTable, QuantizeOptions]:
    """The range of bytes for what is made of bytes alone, and 16 bits for what is computed from them, unless a layer says."""
    pictures, prepared = made_of_bytes(graph, nodes)
    if not pictures:
        return table, options
    layers = {
        **dict.fromkeys(prepared, LayerBits(activation_bits=16)),
        **options.layers,
        **dict.fromkeys(pictures, LayerBits(activation_bits=8)),
    }
    bytes_range = MeasuredRange(_LEAST, _MOST, _LEAST, _MOST)
    ranges = {**table.ranges, **dict.fromkeys(pictures, bytes_range)}
    return replace(table, ranges=ranges), replace(options, layers=layers)


def made_of_bytes(
    graph: ir.Graph, nodes: Iterable[ir.Node]
) -> tuple[set[str], set[str]]:
    """The names of values that are bytes, and of those computed from them before anything else is done."""
    pictures = {
        name_of(value) for value in graph.inputs if picture_layout_of(value) is not None
    }
    prepared: set[str] = set()
    for node in nodes if pictures else ():
        name = name_of(node.outputs[0])
        if node.op_type in _MOVEMENT and all(
            _is_byte(value, pictures) for value in _numbers(node)
        ):
            pictures.add(name)
        elif node.op_type in _PREPARATION and _is_prepared(node, pictures | prepared):
            prepared.add(name)
    return pictures, prepared


def _numbers(node: ir.Node) -> list[ir.Value | None]:
    """The operands whose numbers are in the result: not shapes and places."""
    if node.op_type == "Concat":
        return list(node.inputs)
    return (
        [node.inputs[0], node.inputs[2]] if node.op_type == "Pad" else [node.inputs[0]]
    )


def _is_byte(value: ir.Value | None, pictures: set[str]) -> bool:
    array = constant_of(value)
    if array is None:
        return name_of(value) in pictures
    return bool(np.all((array >= _LEAST) & (array <= _MOST)))


def _is_prepared(node: ir.Node, known: set[str]) -> bool:
    computed = [
        name_of(value)
        for value in node.inputs
        if value is not None and constant_of(value) is None
    ]
    return bool(computed) and known.issuperset(computed)


def declare_picture(net: LoweringContext, value: ir.Value) -> None:
    """A program input of bytes. conv2d takes no u8: the first instruction takes 128 off, which is exact."""
    name, shape = name_of(value), shape_of(value)
    handle = net.builder.input(
        Input(name, TensorType("u8", shape), _LEAST, _MOST), Meaning(1.0, 0, name)
    )
    layout, one = identity(len(shape)), np.ones(1)
    shifted = net.rescale(Tensor(handle, one, 0, layout), one, "i8", -128)
    net.define(value, Tensor(shifted, one, -128, layout))
