"""Inputs that are bytes of a picture: u8 outside the program, i8 with zero point -128 inside.

A byte needs no calibration. Values that only move bytes (and add a border of bytes)
keep the step of 1. Values computed from bytes keep 16 bits up to the first sum of
products or other operator, so that no picture becomes coarser than its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import Input, Meaning, TensorType
from mrt.graph.canonical_values import (
    constant_of,
    is_constant,
    name_of,
    shape_of,
)
from mrt.graph.notes import picture_layout_of
from mrt.graph.operators import MOVEMENT
from mrt.quantize.context import LoweringContext
from mrt.quantize.options import LayerBits, QuantizeOptions
from mrt.quantize.tensor import (
    Tensor,
    identity,
)
from mrt.table.table import MeasuredRange

_LEAST, _MOST = 0, 255
_PREPARATION = MOVEMENT | {"Mul", "Add", "Sub", "Div"}


def with_picture_bits(
    graph: ir.Graph, options: QuantizeOptions
) -> QuantizeOptions:
    """Give 8 bits to bytes that are only moved, and 16 to values computed from them for which the options choose none."""
    pictures, prepared = made_of_bytes(graph, graph)
    layers = {
        **dict.fromkeys(prepared, LayerBits(activation_bits=16)),
        **options.layers,
        **dict.fromkeys(pictures, LayerBits(activation_bits=8)),
    }
    return replace(options, layers=layers) if pictures else options


def ranges_of_bytes(
    graph: ir.Graph, nodes: Iterable[ir.Node]
) -> dict[str, MeasuredRange]:
    """Return the range 0..255, by name of each value that is bytes."""
    pictures, _ = made_of_bytes(graph, nodes)
    bytes_range = MeasuredRange(_LEAST, _MOST, _LEAST, _MOST)
    return dict.fromkeys(pictures, bytes_range)


def made_of_bytes(
    graph: ir.Graph, nodes: Iterable[ir.Node]
) -> tuple[set[str], set[str]]:
    """Return the names of the values that are bytes, and of those computed from bytes alone."""
    pictures = {
        name_of(value)
        for value in graph.inputs
        if picture_layout_of(value) is not None
    }
    prepared: set[str] = set()
    for node in nodes if pictures else ():
        name = name_of(node.outputs[0])
        if node.op_type in MOVEMENT and all(
            _is_byte(value, pictures) for value in _numbers(node)
        ):
            pictures.add(name)
        elif node.op_type in _PREPARATION and _is_prepared(
            node, pictures | prepared
        ):
            prepared.add(name)
    return pictures, prepared


def _numbers(node: ir.Node) -> list[ir.Value | None]:
    """Return the operands whose elements become elements of the result; not shapes and indices."""
    if node.op_type == "Concat":
        return list(node.inputs)
    return (
        [node.inputs[0], node.inputs[2]]
        if node.op_type == "Pad"
        else [node.inputs[0]]
    )


def _is_byte(value: ir.Value | None, pictures: set[str]) -> bool:
    array = constant_of(value)
    if array is None:
        return name_of(value) in pictures
    return bool(np.all((array >= _LEAST) & (array <= _MOST)))


def _is_prepared(node: ir.Node, prepared: set[str]) -> bool:
    computed = [
        name_of(value)
        for value in node.inputs
        if value is not None and not is_constant(value)
    ]
    return bool(computed) and prepared.issuperset(computed)


def declare_picture(net: LoweringContext, value: ir.Value) -> None:
    """Declare a program input of bytes; conv2d takes no u8, so 128 is subtracted, exactly."""
    name, shape = name_of(value), shape_of(value)
    handle = net.builder.input(
        Input(name, TensorType("u8", shape), _LEAST, _MOST),
        Meaning(1.0, 0, name),
    )
    layout, scale = identity(len(shape)), np.ones(1)
    shifted = net.rescale(Tensor(handle, scale, 0, layout), scale, "i8", -128)
    net.define(value, Tensor(shifted, scale, -128, layout))
