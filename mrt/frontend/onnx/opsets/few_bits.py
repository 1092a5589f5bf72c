"""Read MatMulNBits of onnxruntime's domain: a product with weights of a few bits, in blocks with a scale each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    MOST_ELEMENTS,
    Array,
    constant,
    first,
    int_attribute,
    operand,
)

WIDTHS = (2, 4, 8)
BITS_OF_BYTE = 8
AT_ONCE = 256  # outputs that are unpacked at a time: they take some times the memory of their weights


@dataclass(frozen=True)
class _Blocks:
    """The layout of weights [outputs, blocks, size], of which the last block may lie partly beyond the inputs."""

    inputs: int
    outputs: int
    bits: int
    size: int

    @classmethod
    def of(cls, node: ir.Node) -> _Blocks:
        return cls(
            int_attribute(node, "K", 0),
            int_attribute(node, "N", 0),
            int_attribute(node, "bits", 4),
            int_attribute(node, "block_size", 0),
        )

    @property
    def count(self) -> int:
        """How many blocks an output has."""
        return -(-self.inputs // self.size)

    def bytes_of(self, integers: int) -> int:
        """How many bytes so many integers take, each output's or block's from a whole one on."""
        return -(-integers * self.bits // BITS_OF_BYTE)

    def unpacked(self, stored: Array, integers: int) -> Array:
        """Return the integers of rows of bytes, the lowest bits first."""
        shifts = np.arange(0, BITS_OF_BYTE, self.bits, dtype=np.uint8)
        parts = stored[..., None] >> shifts & np.uint8(2**self.bits - 1)
        return parts.reshape(*stored.shape[:-1], -1)[..., :integers]


def decompose_few_bits(node: ir.Node) -> str:
    """MatMulNBits -> MatMul by the weights as reals, Add of a bias if there is one.

    Return what does not fit, or nothing.
    """
    blocks = _Blocks.of(node)
    if blocks.bits not in WIDTHS:
        return f"bits={blocks.bits}; expected {', '.join(map(str, WIDTHS))}"
    if min(blocks.inputs, blocks.outputs, blocks.size) < 1:
        return "K, N or block_size is less than 1"
    if operand(node, 4) is not None:
        return "its inputs are in an order of their own (g_idx)"
    if blocks.outputs * blocks.count * blocks.size > MOST_ELEMENTS:
        return f"it has more than {MOST_ELEMENTS:,} weights"
    matrix = _matrix(node, blocks)
    if matrix is None:
        return "its weights, scales or zero points are not constants of the sizes that K, N, bits and block_size state"
    patch = Patch(node)
    product = patch.add("MatMul", first(node), patch.constant(matrix, "matrix"))
    bias = operand(node, 5)
    patch.finish(product if bias is None else patch.add("Add", product, bias))
    return ""


def _matrix(node: ir.Node, blocks: _Blocks) -> Array | None:
    """Return the weights [inputs, outputs]; None if what is stored has other sizes."""
    rows = blocks.outputs, blocks.count
    stored = _of_size(node, 1, (*rows, blocks.bytes_of(blocks.size)))
    scales = _of_size(node, 2, (*rows, 1))
    zeros = _zeros(node, blocks)
    if stored is None or scales is None or zeros is None:
        return None
    if stored.dtype != np.uint8:
        return None
    matrix = np.empty((blocks.inputs, blocks.outputs), scales.dtype)
    for start in range(0, blocks.outputs, AT_ONCE):
        some = slice(start, start + AT_ONCE)
        reals = blocks.unpacked(stored[some], blocks.size).astype(scales.dtype)
        reals -= zeros[some].astype(scales.dtype)
        reals *= scales[some]
        by_output = reals.reshape(len(reals), -1)
        matrix[:, some] = by_output[:, : blocks.inputs].T
    return matrix


def _zeros(node: ir.Node, blocks: _Blocks) -> Array | None:
    """Return the zero points [outputs, blocks, 1], stored as reals or packed as the weights are."""
    if operand(node, 3) is None:
        middle = np.float32(2 ** (blocks.bits - 1))
        return np.broadcast_to(middle, (blocks.outputs, 1, 1))
    rows = blocks.outputs, blocks.count
    reals = _of_size(node, 3, (*rows, 1))
    if reals is not None and reals.dtype.kind == "f":
        return reals
    packed = _of_size(node, 3, (rows[0], blocks.bytes_of(rows[1])))
    if packed is None or packed.dtype != np.uint8:
        return None
    return blocks.unpacked(packed, rows[1])[..., None]


def _of_size(node: ir.Node, place: int, shape: tuple[int, ...]) -> Array | None:
    """Return a constant operand in this shape; None if it is none, or has another size."""
    array = constant(operand(node, place))
    if array is None or array.size != math.prod(shape):
        return None
    return array.reshape(shape)
