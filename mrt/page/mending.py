"""Where noise arises in a layer, and the line of a config file that would remove most of it.

The noise of a layer has three parts: what it is given by the layers that it reads, the
rounding of its own values, and the rest, which comes from its weights where it has any.
Only the last two can be mended at the layer, by more bits for the larger of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit

from cvm.program import Program
from mrt.evaluate.layers import Layer
from mrt.page.network import Node

VALUES, WEIGHTS = "activation_bits", "weight_bits"
MOST = {VALUES: 16, WEIGHTS: 15}
_NARROW = ("i8", "u8")
LEAST_SHARE = (
    0.1  # of a layer's noise that must arise in it, to be worth a line
)


@dataclass(frozen=True)
class Mending:
    """One layer, the share of its noise that arises there, and what removes most of that."""

    layer: Layer
    cause: str  # VALUES or WEIGHTS
    share: float
    noise: float  # what arises there, over the signal

    def toml(self) -> str:
        """Return the lines of the config file."""
        layers = tomlkit.table(is_super_table=True)
        layers[self.layer.source] = {self.cause: MOST[self.cause]}
        return tomlkit.dumps({"layers": layers}).strip()


def worst(nodes: Sequence[Node], program: Program, most: int) -> list[Mending]:
    """The layers in which most noise arises over their signal, and which more bits would mend."""
    bits = _bits_of(program)
    found = []
    for node in nodes:
        if node.layer is None or node.layer.snr_db is None:
            continue
        mending = _mending(node, node.layer, nodes, bits)
        if mending is not None:
            found.append(mending)
    return sorted(found, key=lambda item: -item.noise)[:most]


def _mending(
    node: Node, layer: Layer, nodes: Sequence[Node], bits: Mapping[str, Any]
) -> Mending | None:
    total = layer.noise.noise / layer.noise.signal
    given = max((_noise_of(nodes[item]) for item in node.sources), default=0.0)
    rounding = 0.0
    if layer.dtype in _NARROW:
        power = layer.noise.signal / max(layer.count, 1)
        rounding = min(layer.rounding_power / power, total)
    of_weights = max(total - rounding - given, 0.0) if node.has_weights else 0.0
    own = bits.get(layer.source)
    if isinstance(own, dict) and own.get(WEIGHTS) == MOST[WEIGHTS]:
        of_weights = 0.0
    noise = rounding + of_weights
    if not math.isfinite(noise) or noise < LEAST_SHARE * total:
        return None
    cause = VALUES if rounding >= of_weights else WEIGHTS
    return Mending(layer, cause, min(noise / total, 1.0), noise)


def _noise_of(node: Node) -> float:
    if node.layer is None or node.layer.snr_db is None:
        return 0.0
    return node.layer.noise.noise / node.layer.noise.signal


def _bits_of(program: Program) -> Mapping[str, Any]:
    """The precisions of single layers that the program was made with, as a stranger's file has them."""
    try:
        found = json.loads(program.provenance_of("layers") or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
