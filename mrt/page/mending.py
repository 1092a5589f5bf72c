"""Where noise arises in a layer, and the lines of a config file that would remove most of it.

What arises in a layer is the rounding of its own values and, where it has any, of its
weights. More bits for the larger of the two remove most of it; what the layer is given by
those that it reads is theirs to mend.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit

from cvm.program import Program
from mrt.evaluate.layers import Layer
from mrt.evaluate.scores import Noise
from mrt.page.network import Node

VALUES, WEIGHTS = "activation_bits", "weight_bits"
MOST = {VALUES: 16, WEIGHTS: 15}
_NARROW = ("i8", "u8")
LEAST_SHARE = 0.1  # of a layer's noise that must arise in it


@dataclass(frozen=True)
class Mending:
    """One layer, the share of its noise that arises there, and what removes most of that."""

    layer: Layer
    cause: str  # VALUES or WEIGHTS
    share: float
    noise: float  # what arises there, over the signal
    names: tuple[str, ...]  # by which a config names what gets more bits

    def toml(self) -> str:
        """Return the lines of the config file."""
        layers = tomlkit.table(is_super_table=True)
        for name in self.names:
            layers[name] = {self.cause: MOST[self.cause]}
        return tomlkit.dumps({"layers": layers}).strip()


def worst(
    nodes: Sequence[Node],
    local: Mapping[int, Noise],
    program: Program,
    weights: Mapping[str, tuple[str, ...]],
    *,
    most: int,
) -> list[Mending]:
    """The layers in which most noise arises over their signal, and what more bits would remove it.

    `local` is the noise that arises in each layer, by its number; `weights` are the
    operators with weights of each layer, by its name.
    """
    bits = _bits_of(program)
    mendings = [
        mending
        for node in nodes
        if node.layer is not None
        and (
            mending := _mending(
                node.layer,
                local.get(node.layer.number, Noise()),
                _with_fewer_bits(weights.get(node.layer.source, ()), bits),
            )
        )
    ]
    return sorted(mendings, key=lambda entry: -entry.noise)[:most]


def _mending(
    layer: Layer, local: Noise, weights: tuple[str, ...]
) -> Mending | None:
    if layer.snr_db is None or local.decibels() is None:
        return None
    arisen = local.noise / local.signal
    share = arisen * layer.noise.signal / layer.noise.noise
    of_weights = 0.0
    if weights:
        rounding = layer.rounding_power * layer.count / local.signal
        of_weights = max(arisen - rounding, 0.0)
    of_values = arisen - of_weights if layer.dtype in _NARROW else 0.0
    noise = max(of_values, of_weights)
    if noise == 0 or share < LEAST_SHARE:
        return None
    share = min(share, 1.0)
    if of_values >= of_weights:
        return Mending(layer, VALUES, share, noise, (layer.source,))
    return Mending(layer, WEIGHTS, share, noise, weights)


def _with_fewer_bits(
    weights: tuple[str, ...], bits: Mapping[str, Any]
) -> tuple[str, ...]:
    """The operators whose weights can have more bits than they have."""
    names = []
    for name in weights:
        layer_bits = bits.get(name)
        weight_bits = (
            layer_bits.get(WEIGHTS) if isinstance(layer_bits, dict) else None
        )
        if weight_bits != MOST[WEIGHTS]:
            names.append(name)
    return tuple(names)


def _bits_of(program: Program) -> Mapping[str, Any]:
    """The precisions of single layers that the program was made with, as a stranger's file has them."""
    try:
        layers = json.loads(program.provenance_of("layers") or "{}")
    except (ValueError, RecursionError):
        return {}
    return layers if isinstance(layers, dict) else {}
