"""Bits of the weights of small layers: 8 where the others have so few that a file packs them.

Rounding a layer's weights costs the answers about as much whether the layer has hundreds of
weights or a million. So the smallest layers, the first one and the channelwise ones among
them, keep 8 bits as long as they have few of the model's weights together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import onnx_ir as ir

from mrt.quantize.options import PACKED_BITS, LayerBits, QuantizeOptions
from mrt.quantize.weight_groups import WeightGroup, weight_groups

SMALL_LAYER_BITS = 8
SHARE = 1 / 16
"""Of the model's weights, what the small layers have together at most."""


@dataclass(frozen=True)
class SmallLayers:
    """Layers by weights they use, with the share of the model's weights that they hold and the bits they get."""

    groups: tuple[WeightGroup, ...]
    share: float
    bits: int

    def note(self, options: QuantizeOptions) -> str:
        """Return what was decided, why, and what it costs."""
        usual = options.weight_bits
        larger = self.share * (self.bits - usual) / usual
        count = sum(len(group.layers) for group in self.groups)
        return (
            f"the weights of {count} small layers keep {self.bits} bits, the others have {usual}: rounding a small layer costs "
            f"as much accuracy as rounding a large one, and these have {100 * self.share:.1f} % of the weights, whose size "
            f"grows by {100 * larger:.1f} % (--small-layer-bits {usual} leaves all at {usual})"
        )


def with_small_layer_bits(
    model: ir.Model, options: QuantizeOptions
) -> tuple[QuantizeOptions, SmallLayers | None]:
    """Give more bits to the weights of small layers that have none of their own; None if none get more."""
    if not _applies(options):
        return options, None
    small = small_layers(model, options.small_layer_bits or SMALL_LAYER_BITS)
    layers = dict(options.layers)
    for name in (name for group in small.groups for name in group.layers):
        layer_bits = layers.get(name, LayerBits())
        if layer_bits.weight_bits is None:
            layers[name] = replace(layer_bits, weight_bits=small.bits)
    changed = replace(options, layers=layers)
    return changed, None if changed == options else small


def notes_of_file_bits(options: QuantizeOptions) -> list[str]:
    """A note for options that ask for fewer or more bits of weights than the file of a quantized model has."""
    if options.weight_bits == QuantizeOptions().weight_bits:
        return []
    return [
        f"the weights keep the bits of the model's file, which is quantized already: {options.weight_bits} are for weights "
        "that it has in float (--requantize chooses all anew)"
    ]


def _applies(options: QuantizeOptions) -> bool:
    """Whether few bits serve the size of the file: else a machine has no more for values or sums, such as an encrypted one."""
    if options.small_layer_bits is not None:
        return options.small_layer_bits > options.weight_bits
    return options.weight_bits <= PACKED_BITS and not options.has_few_bits


def small_layers(model: ir.Model, bits: int) -> SmallLayers:
    """Return the layers with the fewest weights, of which they have SHARE at most."""
    groups = weight_groups(model)
    total = sum(group.size for group in groups)
    small: list[WeightGroup] = []
    held = 0
    for group in sorted(groups, key=lambda group: group.size):
        if held + group.size > SHARE * total:
            break
        held += group.size
        small.append(group)
    return SmallLayers(tuple(small), held / max(total, 1), bits)
