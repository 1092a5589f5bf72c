"""Sums of products. TOSA's convolutions of bytes; linalg where TOSA would sum in 48 bits or has no groups."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cvm.export.mlir.instruction import MlirInstruction
from cvm.export.mlir.movement import padded
from cvm.export.mlir.text import MlirValue, Text, array
from cvm.program import IntArray

OVERFLOW = "<{overflowFlags = #arith.overflow<none>}>"
WINDOW = """
(n, i, j, g, o, p, q, c) -> (n, i * {down} + p * {lower}, j * {right} + q * {further}, g, c)
(n, i, j, g, o, p, q, c) -> (g, o, p, q, c)
(n, i, j, g, o, p, q, c) -> (n, i, j, g, o)
"""
PRODUCT = """
(b, m, n, k) -> (b, m, k)
(b, m, n, k) -> (b, k, n)
(b, m, n, k) -> (b, m, n)
"""


@dataclass(frozen=True)
class MlirConvolution:
    """A convolution of x by weights [O,KH,KW,C/groups], with a bias."""

    x: MlirValue
    weights: IntArray
    bias: MlirValue
    pad: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    zero_point: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        sizes = [
            (
                self.x.shape[1 + axis]
                + sum(self.pad[2 * axis : 2 * axis + 2])
                - (self.weights.shape[1 + axis] - 1) * self.dilation[axis]
                - 1
            )
            // self.stride[axis]
            + 1
            for axis in (0, 1)
        ]
        return (self.x.shape[0], *sizes, len(self.weights))


def conv2d(instruction: MlirInstruction) -> MlirValue:
    """Sums and bias."""
    convolution = MlirConvolution(
        instruction.operand(0),
        instruction.constant(1),
        instruction.operand(2),
        instruction.integers("pad"),
        instruction.integers("stride"),
        instruction.integers("dilation"),
        instruction.integer("groups"),
        instruction.integer("input_zp"),
    )
    return _convolved(instruction.text, convolution)


def conv2d_transpose(instruction: MlirInstruction) -> MlirValue:
    """A convolution by the reversed kernel of x with stride - 1 places of zero point behind each of its places."""
    weights, text = instruction.constant(1), instruction.text
    sizes = np.repeat(weights.shape[1:3], 2)
    pad = sizes - 1 + instruction.integers("out_pad")
    convolution = MlirConvolution(
        instruction.operand(0),
        np.ascontiguousarray(weights[:, ::-1, ::-1]),
        instruction.operand(2),
        tuple(int(size) for size in pad),
        (1, 1),
        (1, 1),
        instruction.integer("groups"),
        instruction.integer("input_zp"),
    )
    stride = instruction.integers("stride")
    return _convolved(text, _spread(text, convolution, stride))


def _spread(
    text: Text, convolution: MlirConvolution, stride: tuple[int, ...]
) -> MlirConvolution:
    """Zero points between the places of x, none behind the last."""
    if stride == (1, 1):
        return convolution
    n, h, w, c = convolution.x.shape
    down, right = stride
    cells = text.reshape(convolution.x, (n * h, 1, w, 1, c))
    pads = (0, 0, 0, down - 1, 0, 0, 0, right - 1, 0, 0)
    spaced = padded(text, cells, pads, convolution.zero_point)
    image = text.reshape(spaced, (n, h * down, w * right, c))
    shape = (n, (h - 1) * down + 1, (w - 1) * right + 1, c)
    x = text.shaped("tosa.slice", image, [(0, 0, 0, 0), shape], shape)
    return replace(convolution, x=x)


def _convolved(text: Text, convolution: MlirConvolution) -> MlirValue:
    if convolution.x.element == "i8" and convolution.groups == 1:
        return _tosa(text, convolution, "conv2d", convolution.weights)
    channels = convolution.x.shape[3]
    if convolution.x.element == "i8" and convolution.groups == channels:
        o, kh, kw, _ = convolution.weights.shape
        split = convolution.weights.reshape(channels, o // channels, kh, kw)
        weights = np.ascontiguousarray(split.transpose(2, 3, 0, 1))
        return _tosa(text, convolution, "depthwise_conv2d", weights)
    return _by_loops(text, convolution)


def _tosa(
    text: Text, convolution: MlirConvolution, operator: str, weights: IntArray
) -> MlirValue:
    """Bytes, summed in 32 bits."""
    points = [text.one(convolution.zero_point, "i8"), text.one(0, "i8")]
    operands = [
        convolution.x,
        text.constant(weights),
        convolution.bias,
        *points,
    ]
    return text.operation(
        f"tosa.{operator}",
        operands,
        "i32",
        convolution.shape,
        acc_type="i32",
        pad=array("i64", convolution.pad),
        stride=array("i64", convolution.stride),
        dilation=array("i64", convolution.dilation),
    )


def _by_loops(text: Text, convolution: MlirConvolution) -> MlirValue:
    """The groups are an axis of their own."""
    top, bottom, left, right = convolution.pad
    pads = (0, 0, top, bottom, left, right, 0, 0)
    x = padded(text, convolution.x, pads, convolution.zero_point)
    outputs, kh, kw, c = convolution.weights.shape
    x = text.reshape(x, (*x.shape[:3], convolution.groups, c))
    shape = (convolution.groups, outputs // convolution.groups, kh, kw, c)
    weights = text.constant(convolution.weights.reshape(shape))
    maps = WINDOW.format(
        down=convolution.stride[0],
        right=convolution.stride[1],
        lower=convolution.dilation[0],
        further=convolution.dilation[1],
    )
    result = ("i32", (*convolution.shape[:3], *shape[:2]))
    body = products(x.element, convolution.zero_point, 0)
    sums = text.generic(
        [x, weights], result, _lines(maps), _iterators(5, 3), body
    )
    return _biased(
        text, text.reshape(sums, convolution.shape), convolution.bias
    )


def dense(instruction: MlirInstruction) -> MlirValue:
    """x times the transposed weights, and the bias."""
    x = instruction.operand(0)
    weights = instruction.constant(1)
    text = instruction.text
    right = text.constant(np.ascontiguousarray(weights.T)[np.newaxis])
    left = text.reshape(x, (1, *x.shape))
    sums = _product(text, left, right, (instruction.integer("input_zp"), 0))
    return _biased(instruction.text, text.reshape(sums, instruction.result.shape), instruction.operand(2))  # fmt: skip


def matmul(instruction: MlirInstruction) -> MlirValue:
    """Both sides may be computed."""
    points = instruction.integer("a_zp"), instruction.integer("b_zp")
    return _product(
        instruction.text, instruction.operand(0), instruction.operand(1), points
    )


def _product(
    text: Text, a: MlirValue, b: MlirValue, points: tuple[int, int]
) -> MlirValue:
    shape = (*a.shape[:2], b.shape[2])
    if a.element == b.element == "i8":
        zeros = [text.one(point, "i8") for point in points]
        return text.operation("tosa.matmul", [a, b, *zeros], "i32", shape)
    return text.generic(
        [a, b],
        ("i32", shape),
        _lines(PRODUCT),
        _iterators(3, 1),
        products(a.element, *points, right=b.element),
    )


def products(
    left: str, left_zp: int, right_zp: int, right: str = "i8"
) -> list[str]:
    """The body of a sum of products of integers less their zero points."""
    types = "(i32, i32) -> i32"
    return [
        f'%az = "arith.constant"() <{{value = {left_zp} : i32}}> : () -> i32',
        f'%bz = "arith.constant"() <{{value = {right_zp} : i32}}> : () -> i32',
        f'%aw = "arith.extsi"(%a) : ({left}) -> i32',
        f'%bw = "arith.extsi"(%b) : ({right}) -> i32',
        f'%ac = "arith.subi"(%aw, %az) {OVERFLOW} : {types}',
        f'%bc = "arith.subi"(%bw, %bz) {OVERFLOW} : {types}',
        f'%ab = "arith.muli"(%ac, %bc) {OVERFLOW} : {types}',
        f'%next = "arith.addi"(%sum, %ab) {OVERFLOW} : {types}',
        '"linalg.yield"(%next) : (i32) -> ()',
    ]


def _biased(text: Text, sums: MlirValue, bias: MlirValue) -> MlirValue:
    """A bias for each of the last axis."""
    ones = (1,) * (len(sums.shape) - 1)
    operands = [sums, text.reshape(bias, (*ones, *bias.shape))]
    return text.operation("tosa.add", operands, "i32", sums.shape)


def _lines(maps: str) -> tuple[str, ...]:
    return tuple(maps.strip().splitlines())


def _iterators(parallel: int, reduction: int) -> list[str]:
    return ["parallel"] * parallel + ["reduction"] * reduction
