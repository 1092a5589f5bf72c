"""Refuses inputs so small that a window of a convolution or of a pool does not fit into its operand.

The library infers sizes of 0 or less there, or 1, and it ends the process where a Slice reads a size below 0.
So Slices are left out of a first inference, and come back once the sizes that they read are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.onnx.read.library import ShapeInference, is_above_small
from mrt.graph.open_shapes import Shape, Sizes
from mrt.graph.values import (
    first,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    shape_of,
    string_attribute,
)

WINDOWS = ("Conv", "MaxPool", "AveragePool", "LpPool")
MOST_ROUNDS = 32  # of Slices one behind the other


def refuse_small_operands(
    model: ir.Model, path: Path, stated: Mapping[str, Sizes]
) -> None:
    """Raise BadModel that names the first such node, and the inputs that the file leaves open.

    `stated` has the sizes of inputs as the file states them: where only the batch is
    open, the file itself states that windows fit.
    """
    is_open = any(sizes is None or None in sizes for sizes in stated.values())
    windows = nodes(model, *WINDOWS)
    if not is_open or not windows:
        return
    inference = ShapeInference(model, {}, is_above_small)
    slices = nodes(model, "Slice")
    left_out = slices
    for _ in range(MOST_ROUNDS):
        names = {str(node.outputs[0].name) for node in left_out}
        shapes = inference.shapes({}, names)
        for node in windows:
            _refuse_small(node, shapes, f"{path}: ", _larger(model, stated))
        waiting = [node for node in slices if not _may_be_read(node, shapes)]
        if len(waiting) == len(left_out):
            return
        left_out = waiting


def _may_be_read(node: ir.Node, shapes: Mapping[str, Shape]) -> bool:
    shape = shapes.get(str(first(node).name))
    return shape is not None and min(shape, default=0) >= 0


def _refuse_small(
    node: ir.Node, shapes: Mapping[str, Shape], before: str, behind: str
) -> None:
    shape = shapes.get(str(first(node).name))
    window = _window(node)
    if shape is None or window is None or len(shape) != len(window) + 2:
        return
    count = len(window)
    pads = ints_attribute(node, "pads") or (0,) * 2 * count
    padded = [
        size + pads[axis] + pads[axis + count]
        for axis, size in enumerate(shape[2:])
    ]
    if any(size < wide for size, wide in zip(padded, window, strict=True)):
        raise BadModel(
            f"{before}{node.name or node.outputs[0].name} ({node.op_type}): its window of {list(window)} does not fit into "
            f"{padded}, the sizes of its operand{' with pads' if any(pads) else ''}: {behind}"
        )


def _window(node: ir.Node) -> Shape | None:
    """Return the sizes of a window with its gaps; None if it is not known, or may stand over the edge."""
    pads_itself = string_attribute(node, "auto_pad", "NOTSET").startswith("SAME")  # fmt: skip
    if pads_itself or int_attribute(node, "ceil_mode", 0):
        return None
    kernel = ints_attribute(node, "kernel_shape")
    weights = shape_of(operand(node, 1))
    if kernel is None and weights is not None:
        kernel = weights[2:]
    if kernel is None:
        return None
    gaps = ints_attribute(node, "dilations") or (1,) * len(kernel)
    pairs = zip(kernel, gaps, strict=True)
    return tuple((size - 1) * gap + 1 for size, gap in pairs)


def _larger(model: ir.Model, stated: Mapping[str, Sizes]) -> str:
    """Return which shapes the inputs have, and which of their sizes may be larger."""
    words = []
    for value in model.graph.inputs:
        sizes = stated.get(str(value.name))
        if sizes is None or None in sizes:
            shape = shape_of(value) or ()
            current_shape = ",".join(map(str, shape))
            open_shape = ",".join("?" if size is None else str(size or 1) for size in sizes or (None,) * len(shape))  # fmt: skip
            words.append(
                f"--shape {value.name}={open_shape} with larger numbers than {current_shape}"
            )
    return " ".join(words)
