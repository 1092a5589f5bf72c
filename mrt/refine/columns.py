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

Images = npt.NDArray[np.float32]  # [N,H,W,C]
POSITIONS = 100  # of one sample's outputs that count for the covariance, at equal distances


@dataclass(frozen=True)
class Window:
    """How a convolution meets an image [1,H,W,C]: `pads` are top, left, bottom, right and hold zeros."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, ...]

    def padded(self, images: Images) -> Images:
        """The images with the pads."""
        top, left, bottom, right = self.pads
        return np.pad(images, ((0, 0), (top, bottom), (left, right), (0, 0))) if any(self.pads) else images

    def patches(self, padded: Images) -> Images:
        """[N, OH, OW, KH, KW, C], a view of padded images."""
        extent = tuple((size - 1) * step + 1 for size, step in zip(self.kernel, self.dilation, strict=True))
        views = sliding_window_view(padded, extent, axis=(1, 2))
        views = views[:, :: self.stride[0], :: self.stride[1], :, :: self.dilation[0], :: self.dilation[1]]
        return views.transpose(0, 1, 2, 4, 5, 3)

    def tap_means(self, padded: Images) -> Floats:
        """[N, KH, KW, C]: the mean of what each tap meets: sums of rows first, which are exact of whole numbers in float32."""
        sizes = zip(padded.shape[1:3], self.kernel, self.dilation, self.stride, strict=True)
        high, wide = ((size - (taps - 1) * dilation - 1) // stride + 1 for size, taps, dilation, stride in sizes)
        total = np.empty((len(padded), *self.kernel, padded.shape[3]), np.float64)
        for row in range(self.kernel[0]):
            line = padded[:, row * self.dilation[0] :: self.stride[0]][:, :high].sum(axis=1)
            for column in range(self.kernel[1]):
                met = line[:, column * self.dilation[1] :: self.stride[1]][:, :wide]
                total[:, row, column] = met.sum(axis=1, dtype=np.float64)
        return np.asarray(total / (high * wide))


class Columns:
    """Gathers the inputs of a layer with weights of this shape [O,KH,KW,C/groups], or [O,K] without a window."""

    def __init__(self, shape: tuple[int, ...], window: Window | None) -> None:
        self._shape, self._window = shape, window
        self._taps: list[Floats] = []  # [samples,KH,KW,C]: means over all outputs of each sample
        self._chosen = Moments()  # of some outputs' inputs, by group, beside what the float model has there

    def add(self, inputs: Images, outputs: Array) -> None:
        """Inputs of some samples, zero points taken off: [samples,H,W,C], or [samples,N,K].

        And the float model's outputs at `chosen_places` of each sample: [rows,O].
        """
        if self._window is None:
            patches = inputs[:, :, None, None, None, :]
            self._taps.append(inputs.mean(axis=1, dtype=np.float64)[:, None, None, :])
        else:
            padded = self._window.padded(inputs)
            patches = self._window.patches(padded)
            self._taps.append(self._window.tap_means(padded))
        rows = _chosen(patches, patches.shape[-1] // self._shape[-1])
        by_group = outputs.astype(np.float32).reshape(rows.shape[1], len(rows), -1).transpose(1, 0, 2)
        self._chosen.add(rows, by_group)

    def means_of(self, weights: IntArray | Floats) -> Floats:
        """[samples, O]: the mean of each output's sum of products with these weights."""
        means = np.concatenate(self._taps)
        inputs = self._shape[-1]
        groups = means.shape[-1] // inputs
        taps = means.reshape(len(means), -1, groups, inputs)
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


def _chosen(patches: Images, groups: int) -> Images:
    """[groups, outputs, KH*KW*C/groups]: some of the outputs, at equal distances over the image."""
    channels = patches.shape[-1]
    chosen = patches[(slice(None), *chosen_places(*patches.shape[1:3]))]
    rows = chosen.reshape(-1, *patches.shape[3:5], groups, channels // groups)
    return np.ascontiguousarray(rows.transpose(3, 0, 1, 2, 4).reshape(groups, len(rows), -1))


def chosen_places(height: int, width: int) -> tuple[slice, slice]:
    """At most POSITIONS or so of an image's places, at equal distances; of an image narrower than that, one line."""
    step = max(1, math.ceil(math.sqrt(height * width / POSITIONS)))
    down = height if height < step else math.ceil(height / POSITIONS) if width < step else step
    across = width if width < step else math.ceil(width / POSITIONS) if height < step else step
    return slice(down // 2, None, down), slice(across // 2, None, across)
