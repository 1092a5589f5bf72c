"""Sums of products. TOSA sums 16 bits in 48 (EXT-INT16), of which the proof needs 32; groups are convolutions of slices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvm.export.tosa.arithmetic import rescaled
from cvm.export.tosa.builder import TosaBuilder, TosaValue
from cvm.export.tosa.instruction import TosaInstruction
from cvm.program import IntArray
from cvm.tosa.schema import DTYPES

SAME = (np.array([2**14], np.int16), np.array([14], np.int8))  # times 1


@dataclass(frozen=True)
class TosaSum:
    """A convolution of x by weights [O,KH,KW,C/groups], with a bias."""

    operator: str
    x: TosaValue
    weights: IntArray
    bias: IntArray
    zero_point: int
    shape: tuple[int, ...]
    attributes: dict[str, Any]


def conv2d(instruction: TosaInstruction) -> TosaValue:
    """TOSA's, or its depthwise one where every channel is a group."""
    attributes = {
        name: instruction.integers(name)
        for name in ("pad", "stride", "dilation")
    }
    convolution = _whole(instruction, "CONV2D", attributes)
    groups, channels = instruction.integer("groups"), convolution.x.shape[3]
    if groups > 1 and groups == channels:
        return _depthwise(instruction.graph, convolution)
    return _grouped(instruction.graph, convolution, groups)


def conv2d_transpose(instruction: TosaInstruction) -> TosaValue:
    """TOSA's."""
    attributes = {
        name: instruction.integers(name) for name in ("out_pad", "stride")
    }
    convolution = _whole(instruction, "TRANSPOSE_CONV2D", attributes)
    return _grouped(
        instruction.graph, convolution, instruction.integer("groups")
    )


def dense(instruction: TosaInstruction) -> TosaValue:
    """A convolution of images of one place."""
    graph, x = instruction.graph, instruction.operand(0)
    rows, columns = x.shape
    weights = instruction.constant(1)
    outputs = len(weights)
    attributes = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1)}
    convolution = TosaSum(
        "CONV2D",
        graph.reshape(x, (rows, 1, 1, columns)),
        weights.reshape(outputs, 1, 1, columns),
        instruction.constant(2),
        instruction.integer("input_zp"),
        (rows, 1, 1, outputs),
        attributes,
    )
    return graph.reshape(_written(graph, convolution), instruction.result.shape)


def matmul(instruction: TosaInstruction) -> TosaValue:
    """TOSA's."""
    graph, (a, b) = instruction.graph, instruction.all
    points = [
        graph.one(instruction.integer(name), a.element)
        for name in ("a_zp", "b_zp")
    ]
    shape = instruction.result.shape
    element = "INT48" if a.element == "INT16" else "INT32"
    sums = graph.operation("MATMUL", [a, b, *points], element, shape)
    return _in_32_bits(graph, sums)


def _whole(
    instruction: TosaInstruction, operator: str, attributes: dict[str, Any]
) -> TosaSum:
    return TosaSum(
        operator,
        instruction.operand(0),
        instruction.constant(1),
        instruction.constant(2),
        instruction.integer("input_zp"),
        instruction.result.shape,
        attributes,
    )


def _depthwise(graph: TosaBuilder, tosa_sum: TosaSum) -> TosaValue:
    """Weights [KH,KW,C,M]."""
    outputs, kh, kw, _ = tosa_sum.weights.shape
    channels = tosa_sum.x.shape[3]
    split = tosa_sum.weights.reshape(channels, outputs // channels, kh, kw)
    weights = np.ascontiguousarray(split.transpose(2, 3, 0, 1))
    operator = "DEPTHWISE_CONV2D"
    return _written(
        graph, replace(tosa_sum, operator=operator, weights=weights)
    )


def _grouped(graph: TosaBuilder, tosa_sum: TosaSum, groups: int) -> TosaValue:
    """One convolution for each slice of channels, joined."""
    if groups == 1:
        return _written(graph, tosa_sum)
    channels, outputs = (
        tosa_sum.x.shape[3] // groups,
        len(tosa_sum.bias) // groups,
    )
    sums = []
    for group in range(groups):
        group_outputs = slice(group * outputs, (group + 1) * outputs)
        group_sum = replace(
            tosa_sum,
            x=_channels(graph, tosa_sum.x, group * channels, channels),
            weights=np.ascontiguousarray(tosa_sum.weights[group_outputs]),
            bias=tosa_sum.bias[group_outputs],
            shape=(*tosa_sum.shape[:3], outputs),
        )
        sums.append(_written(graph, group_sum))
    return graph.operation("CONCAT", sums, "INT32", tosa_sum.shape, axis=3)


def _channels(
    graph: TosaBuilder, x: TosaValue, start: int, count: int
) -> TosaValue:
    shape = (*x.shape[:3], count)
    places = [graph.sizes((0, 0, 0, start)), graph.sizes(shape)]
    operands: list[TosaValue | str] = [x, *places]
    return graph.operation("SLICE", operands, x.element, shape)


def _written(graph: TosaBuilder, tosa_sum: TosaSum) -> TosaValue:
    """One operator, and where it sums in 48 bits another."""
    element = "INT48" if tosa_sum.x.element == "INT16" else "INT32"
    operands = [
        tosa_sum.x,
        graph.of_array(tosa_sum.weights),
        graph.constant(tosa_sum.bias, element),
        graph.one(tosa_sum.zero_point, tosa_sum.x.element),
        graph.one(0, "INT8"),
    ]
    sums = graph.operation(
        tosa_sum.operator,
        operands,
        element,
        tosa_sum.shape,
        **tosa_sum.attributes,
        local_bound=False,
        acc_type=DTYPES.index(element),
    )
    return _in_32_bits(graph, sums)


def _in_32_bits(graph: TosaBuilder, sums: TosaValue) -> TosaValue:
    """RESCALE by 1 is what leads from 48 bits to 32."""
    if sums.element == "INT32":
        return sums
    return rescaled(graph, sums, SAME, (0, 0), "INT32")
