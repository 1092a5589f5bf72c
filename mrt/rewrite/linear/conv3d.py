"""Lowers convolutions and pools of three spatial axes to those of two.

Depth moves into the batch and into channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, copy_attributes, set_attributes
from mrt.graph.values import (
    CHANNELS_FIRST,
    CHANNELS_LAST,
    Array,
    constant,
    first,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    rank_of,
    shape_of,
)
from mrt.rewrite.linear.conv_pool_attributes import WindowAttributes, window_of


def lower_conv3d(model: ir.Model) -> int:
    """Conv, ConvTranspose, MaxPool, AveragePool on [N, C, D, H, W] -> 2-D nodes.

    The 2-D nodes work on [N * D, C, H, W]. For a Conv, the KD slices of depth that its
    taps read are concatenated as channels, so that one 2-D convolution adds all
    products. A ConvTranspose is lowered likewise, after zeros are put between the
    slices of depth. A pool becomes a pool over height and width, then one over depth.

    Applies when the window is written out and parameters are constant; runs after the
    fusions. Equal but for the order of sums.
    """
    count = 0
    for node in nodes(model, "Conv", "ConvTranspose", "MaxPool", "AveragePool"):
        window = window_of(node)
        shape = shape_of(first(node))
        result = shape_of(node.outputs[0])
        if (
            rank_of(first(node)) != 5
            or window is None
            or shape is None
            or result is None
            or len(node.outputs) != 1
        ):
            continue
        if node.op_type in ("MaxPool", "AveragePool") and not int_attribute(
            node, "ceil_mode", 0
        ):
            _pool(node, window, shape, result)
        elif (
            node.op_type in ("Conv", "ConvTranspose")
            and constant(operand(node, 2)) is not None
        ):
            weights = constant(operand(node, 1))
            if weights is None:
                continue
            lower = (
                _convolve if node.op_type == "Conv" else _convolve_transposed
            )
            lower(node, window, weights, result)
        else:
            continue
        count += 1
    return count


@dataclass(frozen=True)
class _Volume:
    """A value of shape [N, D, H, W, C].

    With channels last, folding depth into the batch moves nothing in memory.
    """

    patch: Patch
    value: ir.Value
    shape: tuple[int, ...]

    @staticmethod
    def of_operand(patch: Patch) -> _Volume:
        n, c, *space = shape_of(first(patch.node)) or ()
        return _Volume(
            patch,
            patch.add("Transpose", first(patch.node), perm=(0, 2, 3, 4, 1)),
            (n, *space, c),
        )

    def reshaped(self, *shape: int) -> _Volume:
        value = self.patch.add(
            "Reshape", self.value, self.patch.axes(shape, "shape"), allowzero=0
        )
        return replace(self, value=value, shape=shape)

    def padded(self, before: int, after: int) -> _Volume:
        """Put zeros before and after along axis 1; a negative number removes elements."""
        cut = self.tap(
            max(-before, 0), 1, self.shape[1] - max(-before, 0) - max(-after, 0)
        )
        rank, (before, after) = len(self.shape), (max(before, 0), max(after, 0))
        if not before and not after:
            return cut
        pads = [0] * 2 * rank
        pads[1], pads[1 + rank] = before, after
        zero = self.patch.constant(np.zeros((), np.float32), "zero")
        value = self.patch.add(
            "Pad",
            cut.value,
            self.patch.axes(pads, "pads"),
            zero,
            mode="constant",
        )
        return replace(
            cut,
            value=value,
            shape=_with(cut.shape, 1, cut.shape[1] + before + after),
        )

    def spread(self, stride: int) -> _Volume:
        """Put stride - 1 slices of zeros behind each slice of depth."""
        if stride == 1:
            return self
        n, depth, *rest = self.shape
        return (
            self.reshaped(n * depth, 1, *rest)
            .padded(0, stride - 1)
            .reshaped(n, depth * stride, *rest)
        )

    def tap(self, start: int, step: int, count: int) -> _Volume:
        """Take `count` entries of axis 1, each `step` behind the one before."""
        if (start, step, count) == (0, 1, self.shape[1]):
            return self
        end = start + (count - 1) * step + 1
        return replace(
            self,
            value=self.patch.slice(self.value, 1, start, end, step=step),
            shape=_with(self.shape, 1, count),
        )

    def side_by_side(
        self, window: WindowAttributes, *, stride: int, depth: int, group: int
    ) -> _Volume:
        """Concatenate the slices of depth that the taps read: [N, depth, H, W, KD * C].

        They become channels, ordered so that the channels of one group stay together.
        """
        taps = [
            self.tap(number * window.dilations[0], stride, depth)
            for number in range(window.kernel[0])
        ]
        if len(taps) == 1:
            return taps[0]
        *front, channels = taps[0].shape
        if group > 1:
            taps = [
                tap.reshaped(*front, group, channels // group) for tap in taps
            ]
        value = self.patch.add(
            "Concat", *(tap.value for tap in taps), axis=len(taps[0].shape) - 1
        )
        shape = (*taps[0].shape[:-1], len(taps) * taps[0].shape[-1])
        joined = replace(self, value=value, shape=shape)
        return (
            joined
            if group == 1
            else joined.reshaped(*front, len(taps) * channels)
        )

    def as_image(self) -> ir.Value:
        """Fold depth into the batch and put channels second: [N * D, C, H, W]."""
        n, depth, *rest = self.shape
        return self.patch.add(
            "Transpose",
            self.reshaped(n * depth, *rest).value,
            perm=CHANNELS_FIRST,
        )

    def from_image(
        self, image: ir.Value, height: int, width: int, channels: int
    ) -> _Volume:
        """Take the result of a 2-D node on `as_image` back to [N, D, H, W, C]."""
        last = replace(
            self, value=self.patch.add("Transpose", image, perm=CHANNELS_LAST)
        )
        return last.reshaped(*self.shape[:2], height, width, channels)

    def finish(self) -> None:
        self.patch.finish(
            self.patch.add("Transpose", self.value, perm=(0, 4, 1, 2, 3))
        )


def _with(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _convolve(
    node: ir.Node,
    window: WindowAttributes,
    weights: Array,
    result: tuple[int, ...],
) -> None:
    group = int_attribute(node, "group", 1)
    x = _Volume.of_operand(Patch(node)).padded(window.pads[0], window.pads[3])
    x = x.side_by_side(
        window, stride=window.strides[0], depth=result[2], group=group
    )
    outputs, _, *kernel = weights.shape
    flat = weights.transpose(0, 2, 1, 3, 4).reshape(outputs, -1, *kernel[1:])
    _finish_convolution(x, flat, window, result, group=group)


def _convolve_transposed(
    node: ir.Node,
    window: WindowAttributes,
    weights: Array,
    result: tuple[int, ...],
) -> None:
    """Lower a ConvTranspose as a Conv over depth with zeros between its slices.

    The taps of depth are in reverse order, as in any ConvTranspose written as a Conv.
    """
    group, reach = int_attribute(node, "group", 1), window.extent[0] - 1
    x = _Volume.of_operand(Patch(node)).spread(window.strides[0])
    before = reach - window.pads[0]
    x = x.padded(before, result[2] + reach - before - x.shape[1])
    x = x.side_by_side(window, stride=1, depth=result[2], group=group)
    inputs, outputs, taps, *kernel = weights.shape
    grouped = weights[:, :, ::-1].reshape(
        group, inputs // group, outputs, taps, *kernel
    )
    flat = grouped.transpose(0, 3, 1, 2, 4, 5).reshape(-1, outputs, *kernel)
    extra = ints_attribute(node, "output_padding") or (0, 0, 0)
    _finish_convolution(
        x, flat, window, result, group=group, output_padding=extra[1:]
    )


def _finish_convolution(
    x: _Volume,
    weights: Array,
    window: WindowAttributes,
    result: tuple[int, ...],
    **attributes: int | tuple[int, ...],
) -> None:
    node = x.patch.node
    image = x.patch.add(
        node.op_type,
        x.as_image(),
        x.patch.constant(weights, "weight"),
        operand(node, 2),
    )
    _set_window(image, window, (1, 2), **attributes)
    x.from_image(image, result[3], result[4], result[1]).finish()


def _pool(
    node: ir.Node,
    window: WindowAttributes,
    shape: tuple[int, ...],
    result: tuple[int, ...],
) -> None:
    """Pool over height and width, then over depth.

    A maximum is a maximum of maxima. The elements of a window that are not padding form
    a box, so their mean is a mean of means. No window lies in padding alone.
    """
    x = _Volume.of_operand(Patch(node))
    height, width, channels, depth = result[3], result[4], result[1], result[2]
    flat = _pooled(x.patch, x.as_image(), window, (1, 2))
    x = x.from_image(flat, height, width, channels).reshaped(
        shape[0], shape[2], height * width, channels
    )
    deep = _pooled(
        x.patch,
        x.patch.add("Transpose", x.value, perm=CHANNELS_FIRST),
        window,
        (0,),
    )
    last = replace(x, value=x.patch.add("Transpose", deep, perm=CHANNELS_LAST))
    last.reshaped(shape[0], depth, height, width, channels).finish()


def _pooled(
    patch: Patch,
    image: ir.Value,
    window: WindowAttributes,
    axes: tuple[int, ...],
) -> ir.Value:
    """Pool along some axes of the window; a window of one axis gets a width of 1."""
    value = patch.add(patch.node.op_type, image)
    _set_window(value, window, axes)
    copy_attributes(
        patch.node, value, "count_include_pad", "ceil_mode", "storage_order"
    )
    return value


def _set_window(
    value: ir.Value,
    window: WindowAttributes,
    axes: tuple[int, ...],
    **attributes: int | tuple[int, ...],
) -> None:
    """Write the window along some of its three axes as attributes of a 2-D node."""
    node, width = value.producer(), 2 - len(axes)
    assert node is not None
    pads = [
        [window.pads[side + axis] for axis in axes] + [0] * width
        for side in (0, 3)
    ]
    numbers = (window.kernel, window.strides, window.dilations)
    kernel, strides, dilations = (
        (*(triple[axis] for axis in axes), *(1,) * width) for triple in numbers
    )
    set_attributes(
        node,
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        pads=(*pads[0], *pads[1]),
        **attributes,
    )
