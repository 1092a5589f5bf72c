"""The options of quantization: with model and calibration table they determine a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from mrt.option_values import Form
from mrt.options import FLAGS, check_options, option

ACTIVATION_BITS = (*range(2, 9), 16)
COMPARED_BITS = (*ACTIVATION_BITS, 30)
WEIGHT_BITS = tuple(range(2, 16))
SUM_BITS = tuple(range(4, 17))
SCALES = ("real", "shift")
SCHEMES = ("symmetric", "affine")
MOST = WEIGHT_BITS[-1]
PACKED_BITS = 4
FEW_BITS = 8
"""With fewer bits of values, a program is for a machine that has no more, as an encrypted one."""
PROCESSORS = ("avx2",)


AUTO = "auto"
_NUMBERS = "2..8, or beside activation_bits 2..15"
_Bits = Annotated[int, Form(_NUMBERS)]
_BitsOrAuto = Annotated[int | str, Form(f"{AUTO}, {_NUMBERS}")]


@dataclass(frozen=True)
class BothBits:
    """What sets both precisions of a model, where they are not given."""

    bits: _BitsOrAuto | None = option(
        None,
        help="Sets weight_bits and activation_bits; auto: 8, and more where 8 are not good.",
        allowed=(AUTO, *WEIGHT_BITS),
    )


@dataclass(frozen=True)
class BothLayerBits:
    """What sets both precisions of a layer, where they are not given."""

    bits: _Bits | None = option(
        None, help="Sets weight_bits and activation_bits.", allowed=WEIGHT_BITS
    )


@dataclass(frozen=True)
class LayerBits:
    """Precisions of one layer that differ from the model's; None leaves the model's."""

    weight_bits: int | None = option(
        None, help="Bits of the layer's weights, 2..15.", allowed=WEIGHT_BITS
    )
    activation_bits: int | None = option(
        None, help="Bits of its output, 2..8 or 16.", allowed=ACTIVATION_BITS
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class QuantizeOptions:
    """Bits and scales of the whole model; `layers` overrides them for single layers.

    A layer is named as its output in the rewritten model. Residual streams are found by
    `residual_streams.py`.
    """

    weight_bits: int = option(
        8,
        help="Bits of weights, 2..15; beyond 8 each product is two.",
        allowed=WEIGHT_BITS,
        in_provenance="always",
    )
    activation_bits: int = option(
        8,
        help="Bits of values between layers, 2..8 or 16.",
        allowed=ACTIVATION_BITS,
        in_provenance="always",
    )
    scales: str = option(
        "real",
        help="Ratios of scales: any real number, or powers of two (shift).",
        allowed=SCALES,
        in_provenance="always",
    )
    scheme: str = option(
        "symmetric",
        help="Zero point of signed values: 0, or any (affine).",
        allowed=SCHEMES,
        in_provenance="always",
    )
    bias_correction: bool = option(
        True,
        help="Subtract the mean error of rounded weights from each bias.",
        allowed=FLAGS,
        on_command_line=False,
        in_provenance="always",
    )
    per_channel: bool = option(
        True,
        help="A scale for the weights of each output, else one for the layer.",
        allowed=FLAGS,
        on_command_line=False,
        in_provenance="unless default",
    )
    unsigned: bool = option(
        True,
        help="255 steps for values that are never negative, else 127.",
        allowed=FLAGS,
        on_command_line=False,
        in_provenance="unless default",
    )
    product_bits: int | None = option(
        None,
        help="Bits of what products read, 2..8 or 16 (default: activation_bits; with layer normalizations all else then has 16).",
        allowed=ACTIVATION_BITS,
    )
    stream_bits: int | None = option(
        None,
        help="Bits of residual streams, 2..8 or 16 (default: as other values).",
        allowed=ACTIVATION_BITS,
    )
    channelwise_bits: int | None = option(
        None,
        help="Bits of what only channelwise convolutions read, 2..8 or 16 (default: as other values).",
        allowed=ACTIVATION_BITS,
    )
    compared_bits: int | None = option(
        None,
        help="Bits of tables read by comparisons and scalers of columns alone: 2..8, 16 or 30 (default: 30 where values have 8).",
        allowed=COMPARED_BITS,
    )
    small_layer_bits: int | None = option(
        None,
        help="Bits of the weights of the smallest layers, 2..15 (default: 8 where weight_bits are 4 or fewer and values have 8).",
        allowed=WEIGHT_BITS,
    )
    sum_bits: int | None = option(
        None,
        help="Bits of what is added, 4..16: for encryption, where wide sums are dear (default: as exact as 32 bits allow).",
        allowed=SUM_BITS,
        in_provenance="unless default",
    )
    fast_on: str | None = option(
        None,
        help="Weights that processors with AVX2 and no VNNI multiply faster: a fraction of a bit coarser.",
        allowed=PROCESSORS,
    )
    requantize: bool = option(
        False,
        help="Choose scales anew for a model that is quantized already.",
        allowed=FLAGS,
        in_provenance="unless default",
    )
    fold: bool = option(
        False,
        help="Equal branches become one instruction, and products of one input: fewer instructions, the same integers.",
        allowed=FLAGS,
        in_provenance="unless default",
    )
    layers: Mapping[str, LayerBits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_options(self)

    def key(self) -> dict[str, Any]:
        """Return the options as they are recorded in a calibration table and in provenance.

        Folding is none of them: it comes after all that is decided on samples.
        """
        layers = {
            name: asdict(bits) for name, bits in sorted(self.layers.items())
        }
        values = asdict(replace(self, layers={}))
        del values["fold"]
        if not self.requantize:
            del values["requantize"]
        given = {
            name: value for name, value in values.items() if value is not None
        }
        return {**given, "layers": layers}

    @property
    def chooses_weight_scales(self) -> bool:
        """Whether the weights of each output may have any scale."""
        return self.scales == "real" and self.per_channel

    def steps_from_zero(self, bits: int, *, negative: bool) -> int:
        """Return how many steps the greatest integer of at most 8 bits lies from 0."""
        return (
            int(2 ** (bits - 1 if negative or not self.unsigned else bits)) - 1
        )

    @property
    def packs_weights(self) -> bool:
        """Whether weights of some layer fit half a byte, so that the program's file packs such constants."""
        layer_bits = [bits.weight_bits or MOST for bits in self.layers.values()]
        return min(self.weight_bits, *layer_bits, MOST) <= PACKED_BITS

    def weight_bits_of(self, value: str) -> int:
        """Return the precision of the weights of the layer whose output is this value."""
        layer_bits = self.layers.get(value, LayerBits()).weight_bits
        return self.weight_bits if layer_bits is None else layer_bits

    def activation_bits_of(self, value: str) -> int:
        """Return the precision of one value between layers."""
        layer_bits = self.layers.get(value, LayerBits()).activation_bits
        return self.activation_bits if layer_bits is None else layer_bits

    def product_bits_of(self, value: str) -> int:
        """Return the precision in which products read one value."""
        layer_bits = self.layers.get(value, LayerBits()).activation_bits
        if layer_bits is not None or self.product_bits is None:
            return self.activation_bits_of(value)
        return min(self.product_bits, self.activation_bits)

    def chooses_activation_bits(self, value: str) -> bool:
        """Whether the options choose the precision of this single value."""
        layer_bits = self.layers.get(value)
        return layer_bits is not None and layer_bits.activation_bits is not None

    def with_bits_of_values(
        self, values: Iterable[str], bits: int
    ) -> QuantizeOptions:
        """Return the options with a precision for values for which none is chosen."""
        layers = dict(self.layers)
        for value in values:
            if not self.chooses_activation_bits(value):
                layer_bits = layers.get(value, LayerBits())
                layers[value] = replace(layer_bits, activation_bits=bits)
        return replace(self, layers=layers)

    @property
    def has_few_bits(self) -> bool:
        """Whether the program is for a machine that has no more bits than these, as an encrypted one."""
        return self.activation_bits < FEW_BITS or self.sum_bits is not None

    @property
    def clipped_bits(self) -> int:
        """The precision for which the observer weighs clipping against rounding."""
        return min(self.product_bits or 16, self.activation_bits)


def both_bits(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options, with both precisions in place of `bits`; without any in place of "auto"."""
    bits = {
        name: given["bits"]
        for name in ("weight_bits", "activation_bits")
        if given.get("bits", AUTO) != AUTO
    }
    return {
        **bits,
        **{name: value for name, value in given.items() if name != "bits"},
    }


def check_both_bits(given: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why `bits` are too many for the activations, if these have none of their own, or do not go with others; else None."""
    if given.get("bits") == AUTO:
        others = [name for name in given if name.endswith("_bits")]
        if others:
            return "bits", f"{AUTO} chooses them all: leave {others[0]} away"
    bits = both_bits(given).get("activation_bits")
    if bits is None or bits in ACTIVATION_BITS:
        return None
    *most, last = ACTIVATION_BITS
    return (
        "bits",
        f"activations take {most[0]}..{most[-1]} or {last} bits; for weights alone give weight_bits {bits} (--weight-bits {bits})",
    )
