"""What the weights of a layer are multiplied with: the inputs of single outputs as rows, their means and covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from cvm.program import IntArray
from mrt.calibrate.session import Array
from mrt.refine.moments import Floats, Moments

Image = npt.NDArray[np.float32]
POSITIONS = 100  # of one sample's outputs that count for the covariance, at equal distances


@dataclass(frozen=True)
class Window:
    """How a convolution meets an image [1,H,W,C]: `pads` are top, left, bottom, right and hold zeros."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, ...]

    def padded(self, image: Image) -> Image:
        """[H,W,C] with the pads."""
        top, left, bottom, right = self.pads
        return np.pad(image[0], ((top, bottom), (left, right), (0, 0))) if any(self.pads) else image[0]

    def patches(self, padded: Image) -> Image:
        """[OH, OW, KH, KW, C], a view of the padded image."""
        extent = tuple((size - 1) * step + 1 for size, step in zip(self.kernel, self.dilation, strict=True))
        views = sliding_window_view(padded, extent, axis=(0, 1))
        views = views[:: self.stride[0], :: self.stride[1], :, :: self.dilation[0], :: self.dilation[1]]
        return views.transpose(0, 1, 3, 4, 2)

    def tap_means(self, padded: Image) -> Floats:
        """[KH, KW, C]: the mean of what each tap meets: sums of rows first, which are exact of whole numbers in float32."""
        outputs = [
            (size - (taps - 1) * dilation - 1) // stride + 1
            for size, taps, dilation, stride in zip(padded.shape, self.kernel, self.dilation, self.stride, strict=False)
        ]
        total = np.empty((*self.kernel, padded.shape[2]), np.float64)
        for row in range(self.kernel[0]):
            line = padded[row * self.dilation[0] :: self.stride[0]][: outputs[0]].sum(axis=0)
            for column in range(self.kernel[1]):
                met = line[column * self.dilation[1] :: self.stride[1]][: outputs[1]]
                total[row, column] = met.sum(axis=0, dtype=np.float64)
        return np.asarray(total / math.prod(outputs))


class Columns:
    """Gathers the inputs of a layer with weights of this shape [O,KH,KW,C/groups], or [O,K] without a window."""

    def __init__(self, shape: tuple[int, ...], window: Window | None) -> None:
        self._shape, self._window = shape, window
        self._means: list[Floats] = []  # [KH,KW,C] over all outputs of each sample
        self._chosen = Moments()  # of some outputs' inputs, by group, beside what the float model has there

    def add(self, integers: Image, outputs: Array) -> None:
        """One sample's input, zero points taken off: [1,H,W,C], or [N,K]; and the float model's `chosen_places` [rows,O]."""
        if self._window is None:
            patches = integers[:, None, None, None, :]
            self._means.append(patches.mean(axis=(0, 1), dtype=np.float64))
        else:
            padded = self._window.padded(integers)
            patches = self._window.patches(padded)
            self._means.append(self._window.tap_means(padded))
        rows = _chosen(patches, patches.shape[-1] // self._shape[-1])
        by_group = outputs.astype(np.float32).reshape(rows.shape[1], len(rows), -1).transpose(1, 0, 2)
        self._chosen.add(rows, by_group)

    def means_of(self, weights: IntArray | Floats) -> Floats:
        """[samples, O]: the mean of each output's sum of products with these weights."""
        inputs = self._shape[-1]
        groups = self._means[0].shape[-1] // inputs
        taps = np.stack(self._means).reshape(len(self._means), -1, groups, inputs)
        met = taps.transpose(2, 1, 3, 0).reshape(groups, -1, len(taps))  # [groups, K, samples]
        rows = weights.reshape(groups, -1, met.shape[1]).astype(np.float64)
        return np.asarray(np.matmul(rows, met).reshape(-1, len(taps)).T)

    def covariance(self) -> Floats:
        """[groups, K, K]: of the inputs of one output."""
        return self._chosen.covariance

    def agreement(self, integers: IntArray, scales: Floats) -> tuple[Floats, Floats]:
        """[O], [O]: the covariance of what these weights compute with the float outputs, and its own variance."""
        covariance = self._chosen.covariance
        groups, length = covariance.shape[:2]
        weights = (integers.reshape(len(integers), -1) * scales[:, None]).reshape(groups, -1, length)
        variance = (np.matmul(weights, covariance) * weights).sum(axis=2)
        return (weights * self._chosen.cross.transpose(0, 2, 1)).sum(axis=2).reshape(-1), variance.reshape(-1)


def _chosen(patches: Image, groups: int) -> Image:
    """[groups, outputs, KH*KW*C/groups]: some of the outputs, at equal distances over the image."""
    channels = patches.shape[-1]
    chosen = patches[chosen_places(*patches.shape[:2])]
    rows = chosen.reshape(-1, *patches.shape[2:4], groups, channels // groups)
    return np.ascontiguousarray(rows.transpose(3, 0, 1, 2, 4).reshape(groups, len(rows), -1))


def chosen_places(height: int, width: int) -> tuple[slice, slice]:
    """At most POSITIONS or so of an image's places, at equal distances; of an image narrower than that, one line."""
    step = max(1, math.ceil(math.sqrt(height * width / POSITIONS)))
    down = height if height < step else math.ceil(height / POSITIONS) if width < step else step
    across = width if width < step else math.ceil(width / POSITIONS) if height < step else step
    return slice(down // 2, None, down), slice(across // 2, None, across)
