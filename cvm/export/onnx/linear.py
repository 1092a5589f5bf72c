"""Sums of products: conv2d, conv2d_transpose, dense, matmul.

ConvInteger and MatMulInteger take unsigned bytes on both sides here, each with zero point 128 more than ours. With a signed
side, kernels for processors without VNNI add pairs of products in 16 bits, where they saturate. What does not fit goes
through MatMul of 32-bit integers, in which every partial sum fits by proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from cvm.export.onnx.graph import OnnxGraph
from cvm.export.onnx.instruction import OnnxInstruction
from cvm.export.onnx.windows import padded, windows
from cvm.program import IntArray

MOST_BYTES = (2**31 - 1) // 255**2  # terms whose sum of raw products fits i32


@dataclass(frozen=True)
class OnnxConvolution:
    """A convolution of x, of this shape in NHWC, by weights [O,KH,KW,C/groups]."""

    x: str
    shape: tuple[int, ...]
    weights: IntArray
    pad: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    zero_point: int


def conv2d(instruction: OnnxInstruction) -> str:
    """Sums and bias."""
    convolution = OnnxConvolution(
        instruction.operand(0),
        instruction.types[0].shape,
        instruction.constant(1),
        instruction.integers("pad"),
        instruction.integers("stride"),
        instruction.integers("dilation"),
        instruction.integer("groups"),
        instruction.integer("input_zp"),
    )
    return _biased(instruction, _convolved(instruction, convolution))


def conv2d_transpose(instruction: OnnxInstruction) -> str:
    """A convolution by the reversed kernel of x with stride - 1 places of zero point behind each of its places."""
    weights, stride = instruction.constant(1), instruction.integers("stride")
    out_pad = instruction.integers("out_pad")
    sizes = np.repeat(weights.shape[1:3], 2)
    convolution = OnnxConvolution(
        instruction.operand(0),
        instruction.types[0].shape,
        weights[:, ::-1, ::-1],
        tuple(int(pad) for pad in sizes - 1 + out_pad),
        (1, 1),
        (1, 1),
        instruction.integer("groups"),
        instruction.integer("input_zp"),
    )
    return _biased(
        instruction,
        _convolved(
            instruction, _spread(instruction.graph, convolution, stride)
        ),
    )


def _spread(
    graph: OnnxGraph, convolution: OnnxConvolution, stride: tuple[int, ...]
) -> OnnxConvolution:
    """Zero points between the places of x, none behind the last."""
    if stride == (1, 1):
        return convolution
    n, h, w, c = convolution.shape
    down, right = stride
    cells = graph.reshape(convolution.x, (n, h, 1, w, 1, c))
    pads = (*[0] * 8, down - 1, 0, right - 1, 0)
    spaced = padded(graph, cells, pads, convolution.zero_point)
    image = graph.reshape(spaced, (n, h * down, w * right, c))
    shape = (n, (h - 1) * down + 1, (w - 1) * right + 1, c)
    stops = graph.integers(shape)
    x = graph.node("Slice", image, graph.integers([0] * 4), stops)
    return replace(convolution, x=x, shape=shape)


def _convolved(
    instruction: OnnxInstruction, convolution: OnnxConvolution
) -> str:
    terms = prod(convolution.weights.shape[1:])
    if instruction.types[0].dtype != "i8" or terms > MOST_BYTES:
        return _by_windows(instruction.graph, convolution)
    if _is_pointwise(convolution):
        weights = convolution.weights.reshape(-1, convolution.shape[3]).T
        return _bytes_product(
            instruction.graph, convolution.x, weights, convolution.zero_point
        )
    return _by_bytes(instruction.graph, convolution)


def _is_pointwise(convolution: OnnxConvolution) -> bool:
    kernel, plain = convolution.weights.shape[1:3], (1, 1)
    return (
        kernel == plain
        and convolution.stride == plain
        and convolution.groups == 1
        and not any(convolution.pad)
    )


def _by_bytes(graph: OnnxGraph, convolution: OnnxConvolution) -> str:
    """ConvInteger, which takes NCHW."""
    top, bottom, left, right = convolution.pad
    weights = unsigned(convolution.weights.transpose(0, 3, 1, 2))
    x = graph.node(
        "Transpose", _unsigned(graph, convolution.x), perm=[0, 3, 1, 2]
    )
    sums = graph.node(
        "ConvInteger",
        x,
        graph.constant(weights),
        graph.number(convolution.zero_point + 128, "u8"),
        graph.number(128, "u8"),
        dtype="i32",
        pads=[top, left, bottom, right],
        strides=convolution.stride,
        dilations=convolution.dilation,
        group=convolution.groups,
    )
    return graph.node("Transpose", sums, perm=[0, 2, 3, 1])


def _by_windows(graph: OnnxGraph, convolution: OnnxConvolution) -> str:
    """The windows as rows of a matrix, one for each group."""
    outputs, kh, kw, channels = convolution.weights.shape
    top, bottom, left, right = convolution.pad
    x = _centred(graph, convolution.x, convolution.zero_point)
    x = padded(graph, x, (0, top, left, 0, 0, bottom, right, 0), 0)
    sizes = (
        convolution.shape[1] + top + bottom,
        convolution.shape[2] + left + right,
    )
    down, across = (
        windows(
            sizes[i],
            convolution.weights.shape[1 + i],
            convolution.stride[i],
            convolution.dilation[i],
        )
        for i in (0, 1)
    )
    x = graph.node("Gather", x, graph.constant(down), axis=1)
    x = graph.node("Gather", x, graph.constant(across), axis=3)
    n, oh, ow = convolution.shape[0], len(down), len(across)
    x = graph.reshape(x, (n, oh, kh, ow, kw, convolution.groups, channels))
    x = graph.node("Transpose", x, perm=[5, 0, 1, 3, 2, 4, 6])
    x = graph.reshape(x, (convolution.groups, n * oh * ow, kh * kw * channels))
    shape = (convolution.groups, outputs // convolution.groups, -1)
    weights = convolution.weights.reshape(shape).transpose(0, 2, 1)
    right_side = graph.cast(graph.constant(weights), "i32")
    sums = graph.node("MatMul", x, right_side)
    rows = graph.node("Transpose", sums, perm=[1, 0, 2])
    return graph.reshape(rows, (n, oh, ow, outputs))


def dense(instruction: OnnxInstruction) -> str:
    """x times the transposed weights, and the bias."""
    graph, weights = instruction.graph, instruction.constant(1).T
    x, zero_point = instruction.operand(0), instruction.integer("input_zp")
    if instruction.types[0].dtype == "i8" and len(weights) <= MOST_BYTES:
        return _biased(
            instruction, _bytes_product(graph, x, weights, zero_point)
        )
    right = graph.cast(graph.constant(weights), "i32")
    sums = graph.node("MatMul", _centred(graph, x, zero_point), right)
    return _biased(instruction, sums)


def matmul(instruction: OnnxInstruction) -> str:
    """Both sides may be computed."""
    graph = instruction.graph
    points = instruction.integer("a_zp"), instruction.integer("b_zp")
    if (
        instruction.types[0].dtype == "i8"
        and instruction.types[1].shape[1] <= MOST_BYTES
    ):
        sides = [_unsigned(graph, instruction.operand(i)) for i in (0, 1)]
        zeros = [graph.number(point + 128, "u8") for point in points]
        return graph.node("MatMulInteger", *sides, *zeros, dtype="i32")
    sides = [_centred(graph, instruction.operand(i), points[i]) for i in (0, 1)]
    return graph.node("MatMul", *sides)


def _bytes_product(
    graph: OnnxGraph, x: str, weights: IntArray, zero_point: int
) -> str:
    """x of i8 times weights [K,N]."""
    return graph.node(
        "MatMulInteger",
        _unsigned(graph, x),
        graph.constant(unsigned(weights)),
        graph.number(zero_point + 128, "u8"),
        graph.number(128, "u8"),
        dtype="i32",
    )


def _biased(instruction: OnnxInstruction, sums: str) -> str:
    return instruction.graph.node("Add", sums, instruction.operand(2))


def _centred(graph: OnnxGraph, x: str, zero_point: int) -> str:
    """x - zero_point in 32 bits."""
    x = graph.cast(x, "i32")
    if not zero_point:
        return x
    return graph.node("Sub", x, graph.number(zero_point, "i32"))


def _unsigned(graph: OnnxGraph, x: str) -> str:
    """x + 128 of i8 as u8: the same byte with the highest bit flipped."""
    top = graph.number(128, "u8")
    return graph.node("BitwiseXor", graph.cast(x, "u8"), top)


def unsigned(weights: IntArray) -> IntArray:
    """Weights + 128 as u8."""
    raised: IntArray = (weights.astype(np.int16) + 128).astype(np.uint8)
    return raised
