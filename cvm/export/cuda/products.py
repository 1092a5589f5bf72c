"""Sums of products: by tensor cores where many outputs read the same integers, else by each thread."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from cvm.export.c.instruction import (
    CInstruction,
    narrowed,
)
from cvm.export.c.nest import indented
from cvm.export.cuda.finish import FOUR
from cvm.export.cuda.work import WARP, KernelWork, structure
from cvm.program import IntArray

DEEP = 64  # bytes that the threads of a warp read at once of a row
WIDE = 8  # outputs of a tensor core
HIGH = 16  # rows of one
LEAST_DEPTH = 32  # of a group: a tensor core multiplies so many bytes at once
FEW_ROWS = 128  # of a sample; then smaller tiles keep more of the GPU busy


def sums(node: CInstruction, finish: Sequence[str]) -> KernelWork:
    """The kernel of conv2d or dense; `finish` has the lines for its sums, of four at once or of one."""
    if _by_tensor_cores(node):
        return _tiles(node, finish)
    if _by_channels(node):
        return _channels(node, finish)
    window = f"window_sum<{_convolution(node)}>(x0, x1, row, o) + x2[o]"
    return _places(node, window, finish)


def transposed(node: CInstruction, finish: Sequence[str]) -> KernelWork:
    """The kernel of conv2d_transpose."""
    place = f"transposed_sum<{_convolution(node)}>(x0, x1, row, o) + x2[o]"
    return _places(node, place, finish)


def matrices(node: CInstruction, finish: Sequence[str]) -> KernelWork:
    """The kernel of matmul; `finish` has the lines for four sums at once."""
    a, b = node.operands
    count, rows, depth = a.shape
    columns = b.shape[2]
    fields = {
        "count": count,
        "rows": rows,
        "depth": depth,
        "columns": columns,
        "left_zero_point": node.integer("a_zp"),
        "right_zero_point": node.integer("b_zp"),
    }
    few = rows <= HIGH or count * rows <= FEW_ROWS
    high = 1 if few or "i16" in (a.stored, b.stored) else 2
    tiles = count * -(-rows // (HIGH * high)) * -(-columns // (WIDE * FOUR))
    shape = structure("Matrices", fields)
    lines = _giving(f"matrix_sums<{shape}, {high}, {FOUR}>(x0, x1", finish)
    return KernelWork(tiles * WARP, lines, "matrices.cuh", meets=True)


def gives_four(node: CInstruction) -> bool:
    """Whether threads have the sums of four neighbouring outputs."""
    return _by_tensor_cores(node) or _by_channels(node)


def _by_tensor_cores(node: CInstruction) -> bool:
    """Whether every output reads every channel, or groups are deep and have their outputs in fours."""
    groups, weights = _groups(node), node.operands[1].shape
    if groups == 1:
        return True
    in_fours = weights[0] // groups % FOUR == 0
    return in_fours and prod(weights[1:]) >= LEAST_DEPTH


def _by_channels(node: CInstruction) -> bool:
    """Whether four outputs at once can read the channels of their numbers."""
    channels, outputs = node.operands[0].shape[-1], node.result.shape[-1]
    return channels == outputs == _groups(node) and channels % FOUR == 0


def constant(node: CInstruction, index: int) -> IntArray | None:
    """Weights as threads read them; for tensor cores, biases that hold what the zero point takes away."""
    array = node.operands[index].constant
    if array is None or index == 0:
        return None
    if node.name == "conv2d_transpose" or not _by_tensor_cores(node):
        return _outputs_last(array) if index == 1 else array
    return _panels(array, _groups(node)) if index == 1 else _biases(node)


def _outputs_last(weights: IntArray) -> IntArray:
    """`[O,..]` as `[..,O]`, so that neighbouring threads read neighbours."""
    return np.ascontiguousarray(np.moveaxis(narrowed(weights), 0, -1))


def _panels(weights: IntArray, groups: int) -> IntArray:
    """Bytes in the order of `tile_sums`; panels are filled up with zeros, those of each group."""
    grouped = weights.reshape(groups, len(weights) // groups, -1)
    wide = WIDE * _tile(grouped.shape[1])
    missing = (-grouped.shape[1] % wide, -grouped.shape[2] % DEEP)
    padded = np.pad(grouped, ((0, 0), (0, missing[0]), (0, missing[1])))
    depth = padded.shape[2]
    filled = padded.reshape(-1, depth).astype(np.int8)
    # A thread has two columns of each tensor core's eight: of two cores side by side, four neighbouring outputs.
    fours = filled.reshape(-1, 4, 2, 2, depth).transpose(0, 2, 1, 3, 4)
    split = fours.reshape(-1, WIDE, depth // DEEP, DEEP)
    return np.ascontiguousarray(split.transpose(0, 2, 1, 3))


def _biases(node: CInstruction) -> IntArray:
    """b - zero point * the sum of an output's weights, as far as 32 bits hold it: sums of 32 bits wrap around alike."""
    _, w, b = node.operands
    assert w.constant is not None and b.constant is not None
    totals = w.constant.reshape(len(w.constant), -1).sum(1, dtype=np.int64)
    exact = b.constant.astype(np.int64) - node.integer("input_zp") * totals
    grouped = exact.reshape(_groups(node), -1)
    missing = -grouped.shape[1] % (WIDE * _tile(grouped.shape[1]))
    filled = np.pad(grouped, ((0, 0), (0, missing))).reshape(-1)
    return filled.astype(np.uint64).astype(np.uint32).view(np.int32)


def _tile(outputs: int) -> int:
    """How many times eight outputs a warp has, an even number."""
    return min(8, -(-outputs // (2 * WIDE)) * 2)


def _tiles(node: CInstruction, finish: Sequence[str]) -> KernelWork:
    rows, outputs = _size(node)
    groups = _groups(node)
    wide = _tile(outputs // groups)
    high = 1 if rows <= FEW_ROWS or node.operands[0].stored == "i16" else 2
    columns = groups * -(-(outputs // groups) // (WIDE * wide))
    tiles = -(-rows // (HIGH * high)) * columns
    call = f"tile_sums<{_convolution(node)}, {high}, {wide}>(x0, x1, x2"
    lines = _giving(call, finish)
    return KernelWork(tiles * WARP, lines, "products.cuh", meets=True)


def _channels(node: CInstruction, finish: Sequence[str]) -> KernelWork:
    """A thread for four sums."""
    rows, outputs = _size(node)
    quarter = outputs // FOUR
    place = f"t / {quarter}, t % {quarter} * {FOUR}"
    call = f"channel_sums<{_convolution(node)}>(x0, x1, x2, {place}"
    lines = _giving(call, finish)
    return KernelWork(rows * quarter, lines, "products.cuh")


def _giving(call: str, finish: Sequence[str]) -> list[str]:
    """A call that gives four sums at a time to the lines."""
    parameters = f"int32_t row, int32_t first, const int32_t (&sums)[{FOUR}]"
    return [f"{call}, [=]({parameters}) {{", *indented(finish), "});"]


def _places(node: CInstruction, sum_: str, finish: Sequence[str]) -> KernelWork:
    """A thread for each sum."""
    rows, outputs = _size(node)
    lines = [
        f"const int32_t row = t / {outputs}, o = t % {outputs};",
        f"const int32_t sum = {sum_};",
        *finish,
    ]
    return KernelWork(rows * outputs, lines, "products.cuh")


def _size(node: CInstruction) -> tuple[int, int]:
    shape = node.result.shape
    return prod(shape[:-1]), shape[-1]


def _groups(node: CInstruction) -> int:
    return 1 if node.name == "dense" else node.integer("groups")


def _convolution(node: CInstruction) -> str:
    """The structure that `products.cuh` takes; a dense layer has an image of one place for each row."""
    x, w, _ = node.operands
    image, kernel, result = x.shape, w.shape, node.result.shape
    if node.name == "dense":
        image, kernel = (image[0], 1, 1, image[1]), (kernel[0], 1, 1)
        result = (result[0], 1, 1, result[1])
    names = ("samples", "height", "width", "channels")
    fields = dict(zip(names, image, strict=True))
    fields |= {"out_height": result[1], "out_width": result[2]}
    fields |= {
        "outputs": kernel[0],
        "kernel_height": kernel[1],
        "kernel_width": kernel[2],
    }
    fields |= _placement(node)
    return structure("Convolution", fields)


def _placement(node: CInstruction) -> dict[str, int]:
    """Strides, dilation, margins, groups and zero point."""
    stride: Sequence[int] = (1, 1)
    dilation: Sequence[int] = (1, 1)
    margins: Sequence[int] = (0, 0, 0, 0)
    if node.name == "conv2d":
        stride, dilation = node.integers("stride"), node.integers("dilation")
        margins = node.integers("pad")
    elif node.name == "conv2d_transpose":
        stride, margins = node.integers("stride"), node.integers("out_pad")
    return {
        "stride_y": stride[0],
        "stride_x": stride[1],
        "dilation_y": dilation[0],
        "dilation_x": dilation[1],
        "top": margins[0],
        "left": margins[2],
        "groups": _groups(node),
        "zero_point": node.integer("input_zp"),
    }
