"""A miniature of networks with their spectrogram inside: a seeded STFT by convolutions, in float."""

import numpy as np

from mrt.quantize import QuantizeOptions
from tests.support.float_models import FloatModel

SIXTEEN = QuantizeOptions(15, 16)
"""15 bits for weights, 16 for all values."""

WINDOW, BINS, FRAMES = 32, 12, 6
SAMPLES = WINDOW + (FRAMES - 1) * (WINDOW // 2)
LOUDNESS = np.geomspace(1, 1e-3, BINS)
"""Bins of speech differ by 60 dB; those of the noise that tests calibrate on do not by themselves."""


class Spectrogram(FloatModel):
    """Waveforms x[1,1,SAMPLES,1], and the real and imaginary parts of their bins."""

    def __init__(self):
        super().__init__(x=(1, 1, SAMPLES, 1))
        times = np.arange(WINDOW)[None] * (np.arange(BINS)[:, None] + 1)
        angles = 2 * np.pi * times / WINDOW
        window = np.hanning(WINDOW) * LOUDNESS[:, None]
        self.real = self._bins(np.cos(angles) * window)
        self.imaginary = self._bins(-np.sin(angles) * window)

    def _bins(self, kernels):
        weights = kernels.reshape(BINS, 1, WINDOW, 1)
        return self.conv("x", weights, np.zeros(BINS), strides=[WINDOW // 2, 1])

    def power(self):
        squares = [
            self.add("Mul", part, part) for part in (self.real, self.imaginary)
        ]
        return self.add("Add", *squares)

    def layer(self, value, seed=0):
        """Return a small convolution, as the first layer behind a spectrogram."""
        generator = np.random.default_rng(seed)
        weights = generator.normal(size=(4, BINS, 3, 1)) / LOUDNESS.size
        return self.conv(
            value, weights, generator.normal(size=4), pads=(1, 0, 1, 0)
        )


BANDS = 5


def bands(bins=BINS):
    """Return triangles that sum bins to bands: most weights are 0."""
    centres = np.linspace(1, bins - 2, BANDS)[:, None]
    return np.maximum(0, 1 - np.abs(np.arange(bins) - centres) / 2)
