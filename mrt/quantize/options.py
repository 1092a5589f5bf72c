"""The options of quantizing: with model and calibration table they determine a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mrt.errors import BadOption

ACTIVATION_BITS = (*range(2, 9), 16)
WEIGHT_BITS = tuple(range(2, 16))
SCALES = ("real", "shift")
SCHEMES = ("symmetric", "affine")


@dataclass(frozen=True)
class LayerBits:
    """Precisions of one layer that differ from the model's; None leaves the model's."""

    weight_bits: int | None = None
    activation_bits: int | None = None


@dataclass(frozen=True)
class QuantizeOptions:
    """`weight_bits` 2..15 and `activation_bits` 2..8 or 16, sign included. Weights beyond 8 bits cost two products each.

    `stream_bits` are those of residual streams, where they are others (`residual_streams.py`). `layers` overrides them for a
    layer, named as its output in the rewritten model. `bias_correction` takes off what rounding the weights adds to a layer's
    output on average. Weights have a scale for each output if `per_channel`, else one for the layer; values that are never
    negative have the full unsigned range if `unsigned`, else half of the signed one.
    """

    weight_bits: int = 8
    activation_bits: int = 8
    scales: str = "real"
    scheme: str = "symmetric"
    bias_correction: bool = True
    per_channel: bool = True
    unsigned: bool = True
    stream_bits: int | None = None
    layers: Mapping[str, LayerBits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for where, bits in (
            ("", LayerBits(self.weight_bits, self.activation_bits)),
            *self.layers.items(),
        ):
            prefix = f"layer '{where}': " if where else ""
            if bits.weight_bits is not None and bits.weight_bits not in WEIGHT_BITS:
                raise BadOption(
                    f"{prefix}{bits.weight_bits} weight bits; allowed are 2..15"
                )
            if (
                bits.activation_bits is not None
                and bits.activation_bits not in ACTIVATION_BITS
            ):
                raise BadOption(
                    f"{prefix}{bits.activation_bits} activation bits; allowed are 2..8 and 16"
                )
        if self.stream_bits not in (None, *ACTIVATION_BITS):
            raise BadOption(
                f"{self.stream_bits} bits of residual streams; allowed are 2..8 and 16"
            )
        if self.scales not in SCALES:
            raise BadOption(
                f"scales '{self.scales}'; allowed are {' and '.join(SCALES)}"
            )
        if self.scheme not in SCHEMES:
            raise BadOption(
                f"scheme '{self.scheme}'; allowed are {' and '.join(SCHEMES)}"
            )

    def key(self) -> dict[str, Any]:
        """The options as they are recorded in a calibration table and in provenance."""
        layers = {name: asdict(bits) for name, bits in sorted(self.layers.items())}
        plain = asdict(replace(self, layers={}))
        return {
            **{name: value for name, value in plain.items() if value is not None},
            "layers": layers,
        }

    @property
    def chooses_weight_scales(self) -> bool:
        """Whether any scale will do for the weights of an output."""
        return self.scales == "real" and self.per_channel

    def steps_from_zero(self, bits: int, *, negative: bool) -> int:
        """How many steps the greatest integer of at most 8 bits lies from 0."""
        return int(2 ** (bits - 1 if negative or not self.unsigned else bits)) - 1

    def weight_bits_of(self, value: str) -> int:
        """The precision of the weights of the layer that gives this value."""
        own = self.layers.get(value, LayerBits()).weight_bits
        return self.weight_bits if own is None else own

    def activation_bits_of(self, value: str) -> int:
        """The precision of one value between layers."""
        own = self.layers.get(value, LayerBits()).activation_bits
        return self.activation_bits if own is None else own
