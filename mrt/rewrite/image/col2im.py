"""Lowers Col2Im, which adds overlapping columns into an image, to a ConvTranspose."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant_integers,
    first,
    ints_attribute,
    nodes,
    operand,
    shape_of,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT


def lower_col2im(model: ir.Model) -> int:
    """Col2Im(x, image, block) -> ConvTranspose with weights of 0 and 1.

    Each element of the block is an input channel, which one tap adds to the image.
    Applies to known shapes and constant operands. Equal up to rounding.
    """
    count = 0
    for node in nodes(model, "Col2Im"):
        x = shape_of(first(node))
        image = constant_integers(operand(node, 1))
        block = constant_integers(operand(node, 2))
        if (
            x is None
            or image is None
            or block is None
            or len(x) != 3
            or math.prod(block) ** 2 > LARGEST_RESULT
        ):
            continue
        _write(node, x, image, block)
        count += 1
    return count


def _write(
    node: ir.Node,
    x: tuple[int, ...],
    image: tuple[int, ...],
    block: tuple[int, ...],
) -> None:
    ones, taps = (1,) * len(block), math.prod(block)
    strides = ints_attribute(node, "strides") or ones
    dilations = ints_attribute(node, "dilations") or ones
    pads = ints_attribute(node, "pads") or (0, 0) * len(block)
    padded = [
        size + before + after
        for size, before, after in zip(
            image, pads, pads[len(block) :], strict=False
        )
    ]
    steps = [
        size - d * (k - 1) - 1
        for size, k, d in zip(padded, block, dilations, strict=True)
    ]
    columns = [step // s + 1 for step, s in zip(steps, strides, strict=True)]
    uncovered = tuple(
        step % s for step, s in zip(steps, strides, strict=True)
    )  # rows and columns of the image that no block covers
    patch, channels = Patch(node), x[1] // taps
    apart = patch.add(
        "Reshape",
        first(node),
        patch.axes((x[0] * channels, taps, *columns), "apart"),
        allowzero=0,
    )
    weights = patch.constant(
        np.eye(taps, dtype=np.float32).reshape(taps, 1, *block), "weights"
    )
    value = patch.add(
        "ConvTranspose", apart, weights, strides=strides, dilations=dilations, pads=pads, output_padding=uncovered,
        kernel_shape=block, group=1,
    )  # fmt: skip
    patch.output.shape = ir.Shape([x[0], channels, *image])
    patch.finish(
        patch.add(
            "Reshape",
            value,
            patch.axes((x[0], channels, *image), "image"),
            allowzero=0,
        )
    )
