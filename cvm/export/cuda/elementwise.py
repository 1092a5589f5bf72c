"""Kernels with a thread for each element of the result."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, prod

from cvm.export.c.instruction import CInstruction, literal
from cvm.export.c.movement import COPIES, Copy
from cvm.export.c.nest import View, collapsed
from cvm.export.cuda.work import KernelWork, each_place, only_below, structure
from cvm.program import DTYPE_RANGES, DTYPES

Writer = Callable[[CInstruction], KernelWork]
MOST_BYTES = 16  # that a thread moves at once


def copies(name: str) -> Writer:
    """The writer of an instruction that changes the places of elements."""

    def write(node: CInstruction) -> KernelWork:
        copy_lines = [_copy(node, copy) for copy in COPIES[name](node)]
        lines = [
            line
            for counts, body in copy_lines
            for line in only_below(prod(counts), each_place(counts, [body]))
        ]
        return KernelWork(max(prod(counts) for counts, _ in copy_lines), lines)

    return write


def _copy(node: CInstruction, copy: Copy) -> tuple[list[int], str]:
    """The counts of a copy, and its line, which moves as many bytes at once as lie beside each other everywhere."""
    counts, (to, source) = collapsed(copy.counts, [copy.to, copy.source])
    width = DTYPES[node.result.dtype].itemsize
    together = 1
    if node.operands[copy.operand].c_type == node.c_type:
        together = _together(counts, [to, source], MOST_BYTES // width)
    y, x = "y", f"x{copy.operand}"
    if together > 1:
        piece = f"Piece<{together * width}>"
        y = f"reinterpret_cast<{piece} *>(y)"
        x = f"reinterpret_cast<const {piece} *>({x})"
        counts = [*counts[:-1], counts[-1] // together]
        to, source = (_in_pieces(view, together) for view in (to, source))
    return counts, f"{y}[{to.index()}] = {x}[{source.index()}];"


def _together(counts: list[int], views: list[View], most: int) -> int:
    """How many elements, a power of two, each view has beside each other wherever a piece of the last axis begins."""
    if not counts or any(view.strides[-1] != 1 for view in views):
        return 1
    steps = [step for view in views for step in view.strides[:-1]]
    starts = [view.offset for view in views]
    return gcd(counts[-1], most, *steps, *starts)


def _in_pieces(view: View, together: int) -> View:
    """The same view, counted in pieces of so many elements."""
    strides = tuple(step // together for step in view.strides[:-1])
    return View((*strides, 1), view.offset // together)


def pad(node: CInstruction) -> KernelWork:
    """An element of x where there is one, else the value."""
    shape, x_shape = node.result.shape, node.operands[0].shape
    before = node.integers("pads")[::2]
    terms, tests = [], []
    for axis, (begin, size) in enumerate(zip(before, x_shape, strict=True)):
        index = f"(i{axis} - {begin})" if begin else f"i{axis}"
        terms.append(f"{index} * {prod(x_shape[axis + 1 :])}")
        if begin:
            tests.append(f"i{axis} >= {begin}")
        if begin + size < shape[axis]:
            tests.append(f"i{axis} < {begin + size}")
    inside = " && ".join(tests) or "true"
    place, value = " + ".join(terms) or "0", literal(node.integer("value"))
    line = f"y[t] = {inside} ? x0[{place}] : ({node.c_type}){value};"
    return KernelWork(prod(shape), each_place(shape, [line]))


def gather(node: CInstruction) -> KernelWork:
    """The proof holds every index inside 0..K-1."""
    values, indices = node.operands
    _, rows, channels = values.shape
    count = indices.shape[1]
    lines = [
        f"const int32_t place = t / {channels};",
        f"const int32_t row = place / {count} * {rows} + x1[place];",
        f"y[t] = x0[row * {channels} + t % {channels}];",
    ]
    return KernelWork(prod(node.result.shape), lines)


def along(name: str) -> Writer:
    """The writer of a reduction."""

    def write(node: CInstruction) -> KernelWork:
        shape, axis = node.operands[0].shape, node.integer("axis")
        count, inner = shape[axis], prod(shape[axis + 1 :])
        line = f"line, {count}, {inner}"
        expressions = {
            "reduce_sum": f"sum_along({line})",
            "reduce_max": f"line[greatest_along({line}) * {inner}]",
            "reduce_min": f"line[least_along({line}) * {inner}]",
            "argmax": f"greatest_along({line})",
        }
        lines = [
            f"const auto *line = line_of(x0, t, {count}, {inner});",
            f"y[t] = {expressions[name]};",
        ]
        return KernelWork(prod(node.result.shape), lines, "along.cuh")

    return write


def argsort(node: CInstruction) -> KernelWork:
    """A heap sort by one thread for each row."""
    x = node.operands[0]
    count = x.shape[-1]
    descending = int(bool(node.attributes["descending"]))
    lines = [
        f"int32_t *order = y + t * {count};",
        f"for (int32_t k = 0; k < {count}; k++) order[k] = k;",
        f"sort_{x.stored[1:]}(x0 + t * {count}, order, {count}, {descending});",
    ]
    return KernelWork(prod(x.shape[:-1]), lines)


def max_pool2d(node: CInstruction) -> KernelWork:
    """The greatest of each window."""
    line = f"y[t] = window_greatest<{_pooling(node)}>(x0, t);"
    return KernelWork(prod(node.result.shape), [line], "windows.cuh")


def avg_pool2d(node: CInstruction) -> KernelWork:
    """The mean of each window."""
    least, most = DTYPE_RANGES[node.result.dtype]
    input_zp, output_zp = node.integer("input_zp"), node.integer("output_zp")
    mean = f"window_mean<{_pooling(node)}>(x0, t, {input_zp})"
    line = (
        f"y[t] = ({node.c_type})clamped({mean} + {output_zp}, {least}, {most});"
    )
    return KernelWork(prod(node.result.shape), [line], "windows.cuh")


def _pooling(node: CInstruction) -> str:
    _, height, width, channels = node.operands[0].shape
    kernel, stride = node.integers("kernel"), node.integers("stride")
    fields = {
        "height": height,
        "width": width,
        "channels": channels,
        "out_height": node.result.shape[1],
        "out_width": node.result.shape[2],
        "kernel_height": kernel[0],
        "kernel_width": kernel[1],
        "stride_y": stride[0],
        "stride_x": stride[1],
        "top": node.integers("pad")[0],
        "left": node.integers("pad")[2],
    }
    return structure("Pooling", fields)


def resize(node: CInstruction) -> KernelWork:
    """Nearest or bilinear."""
    axes = ", ".join(_axis(node, axis) for axis in (0, 1))
    _, height, width, channels = node.result.shape
    call = f"{node.word('mode')}<{axes}>(x0, t, {height}, {width}, {channels})"
    return KernelWork(
        prod(node.result.shape), [f"y[t] = {call};"], "resize.cuh"
    )


def _axis(node: CInstruction, axis: int) -> str:
    scale = node.integers("scale")
    fields = {
        "size": node.operands[0].shape[1 + axis],
        "n": scale[2 * axis],
        "d": scale[2 * axis + 1],
        "offset": node.integers("offset")[axis],
    }
    return structure("Axis", fields)
