"""Read GatherBlockQuantized of onnxruntime's domain: rows of a table whose integers, of a few bits, have a scale for each block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.quantized.stored_weights import release, stored_array
from mrt.graph.patch import Patch
from mrt.graph.values import MOST_ELEMENTS, Array, int_attribute, operand

OPERATOR = "GatherBlockQuantized"
WIDTHS = (2, 4, 8)
BITS_OF_BYTE = 8
AT_ONCE = 256  # rows that become reals at a time: they take some times the memory of their integers
_UNPACKED = ("int4", "uint4")  # stored one by one, with a zero point of 0


def read_block_tables(model: ir.Model) -> None:
    """GatherBlockQuantized(table, indices) -> Gather of the table as reals, in place.

    Raise Unsupported with a line for each whose table is not read.
    """
    problems: list[str] = []
    for node in list(model.graph):
        if node.op_type == OPERATOR and node.domain == "com.microsoft":
            table = _reals(node)
            if isinstance(table, str):
                name = node.name or node.outputs[0].name
                problems.append(f"{name} ({OPERATOR}): {table}")
            else:
                _write(node, table)
    if problems:
        raise Unsupported(problems)


def _write(node: ir.Node, table: Array) -> None:
    patch, operands = Patch(node, typed=False), list(node.inputs)
    axis = int_attribute(node, "gather_axis", 0)
    stored = patch.constant(table, "table")
    patch.become("Gather", stored, operands[1], axis=axis)
    release(node, operands)


@dataclass(frozen=True)
class _Table:
    """Integers with scales and zero points for the blocks of one axis; those of a byte are stored several in each."""

    stored: Array
    scales: Array
    zeros: Array | None
    bits: int
    size: int
    axis: int

    @property
    def is_packed(self) -> bool:
        """Return whether bytes hold the integers, of which the last axis counts the bytes."""
        return self.stored.dtype == np.uint8

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the integers."""
        in_byte = BITS_OF_BYTE // self.bits if self.is_packed else 1
        return (*self.stored.shape[:-1], self.stored.shape[-1] * in_byte)

    def problem(self) -> str:
        """Return what does not fit, or nothing."""
        if self.stored.dtype.name not in ("uint8", *_UNPACKED):
            return f"a table of {self.stored.dtype.name}; expected uint8, int4 or uint4"
        if self.bits not in (WIDTHS if self.is_packed else (4,)):
            return f"bits={self.bits}; expected {', '.join(map(str, WIDTHS))}, of int4 and uint4 4"
        if self.size < 1 or not 0 <= self.axis < self.stored.ndim:
            return "block_size is less than 1, or quantize_axis is none of its table's axes"
        if self.is_packed and not 0 < self.axis == self.stored.ndim - 1:
            return "a table of bytes with blocks of another axis than the last of several"
        if np.prod(self.shape, dtype=float) > MOST_ELEMENTS:
            return f"it has more than {MOST_ELEMENTS:,} weights"
        if self.scales.shape != self._of_blocks() or not self._fit_zeros():
            return "its scales or zero points are not of the sizes that its table and block_size state"
        return ""

    def _of_blocks(self, in_byte: int = 1) -> tuple[int, ...]:
        """Return the shape of one number for each block, so many in a byte."""
        shape = list(self.shape)
        blocks = -(-shape[self.axis] // self.size)
        shape[self.axis] = -(-blocks // in_byte)
        return tuple(shape)

    def _fit_zeros(self) -> bool:
        if self.zeros is None:
            return True
        in_byte = BITS_OF_BYTE // self.bits if self.is_packed else 1
        same = self.zeros.dtype == self.stored.dtype
        return same and self.zeros.shape == self._of_blocks(in_byte)

    def reals(self) -> Array:
        """Return the table as reals, (integer - zero point) * scale."""
        reals = np.empty(self.shape, self.scales.dtype)
        zeros = None if self.zeros is None else self._unpacked(self.zeros)
        rows = len(self.stored)
        for start in range(0, rows, AT_ONCE):
            some = np.arange(start, min(start + AT_ONCE, rows))
            integers = self._unpacked(self.stored[some])
            if zeros is not None:
                integers -= self._of_rows(zeros, some)
            elif self.is_packed:
                integers -= 2 ** (self.bits - 1)
            steps = integers.astype(np.float32)
            scales = self._of_rows(self.scales, some).astype(np.float32)
            reals[some] = steps * scales
        return reals

    def _of_rows(self, of_blocks: Array, some: Array) -> Array:
        """Return the number of its block for each integer of some rows."""
        if self.axis == 0:
            return np.asarray(of_blocks[some // self.size])
        places = np.arange(self.shape[self.axis]) // self.size
        return np.take(of_blocks[some], places, axis=self.axis)

    def _unpacked(self, stored: Array) -> Array:
        """Return integers as i16; bytes hold the lowest bits first."""
        if not self.is_packed:
            return stored.astype(np.int16)
        shifts = np.arange(0, BITS_OF_BYTE, self.bits, dtype=np.uint8)
        parts = stored[..., None] >> shifts & np.uint8(2**self.bits - 1)
        return parts.reshape(*stored.shape[:-1], -1).astype(np.int16)


def _reals(node: ir.Node) -> Array | str:
    """Return the table of reals, or a string with the problem."""
    stored, scales = (stored_array(operand(node, place)) for place in (0, 2))
    zeros = stored_array(operand(node, 3))
    is_computed = operand(node, 3) is not None and zeros is None
    if stored is None or scales is None or is_computed:
        return (
            "its table, scales or zero points are computed; expected constants"
        )
    axis = int_attribute(node, "quantize_axis", 1)
    table = _Table(
        stored,
        scales,
        zeros,
        int_attribute(node, "bits", 4),
        int_attribute(node, "block_size", 128),
        axis + stored.ndim if axis < 0 else axis,
    )
    return table.problem() or table.reals()
