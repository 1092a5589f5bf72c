"""Weights that several layers share, such as the steps of a recurrence: rounded once, stored once.

Rule V13 of the specification holds the constants that a proof reads to some times the
file's elements. So an array of integers serves READERS layers, and more only out of an
allowance for the whole program; then it is decided anew, for the inputs of a later step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mrt.exact.fixed_point import FloatArray
from mrt.quantize.rounding import RoundedLayer, WeightedLayer, digest_of

READERS = 16
"""As many elements may be read for each one that is stored."""
ALLOWANCE = 2**25
"""Elements read besides these: half of what V13 allows, which leaves the other half to all else."""


FEW = 2**16
"""Fewer weights are decided anew for inputs of another scale, as of a state that grows: up to 3 dB better, and hardly larger."""


@dataclass
class _Decided:
    rounded: RoundedLayer
    real_bias: FloatArray  # of the layer that was decided
    readers: int = 1


class SharedWeights:
    """The integers that were decided, for later layers with the same real weights."""

    def __init__(self, allowance: int = ALLOWANCE) -> None:
        self._decided: dict[bytes, _Decided] = {}
        self._allowance = allowance

    def take(self, key: bytes, layer: WeightedLayer) -> RoundedLayer | None:
        """Return the integers of an earlier layer with these weights, with this one's bias; None if they are to be decided."""
        earlier, size = self._decided.get(key), layer.weights.size
        if earlier is None:
            return None
        if earlier.readers >= READERS:
            if self._allowance < size:
                return None
            self._allowance -= size
        earlier.readers += 1
        bias = earlier.rounded.bias + (layer.bias - earlier.real_bias)
        return replace(earlier.rounded, bias=bias)

    def keep(
        self, key: bytes, layer: WeightedLayer, rounded: RoundedLayer
    ) -> None:
        """Remember the integers of a layer, whose weights others may read, too."""
        self._decided[key] = _Decided(rounded, layer.bias)


def key_of(layer: WeightedLayer) -> bytes:
    """A digest of all that rounding the weights depends on, besides the samples.

    It is of the real weights, whose copies each product may have transposed for itself.
    """
    inputs = layer.input.scale if layer.weights.size < FEW else None
    return digest_of(
        inputs,
        layer.bits,
        layer.node.op_type,
        layer.weights,
        layer.scales,
    )
