"""The state of one conversion: the tensor that each float value has become.

The rules of the operators read operands from it, requantize them and change their layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from cvm.program import DTYPE_RANGES, IntArray, Meaning
from mrt.exact.fixed_point import (
    MAX_RATIO,
    FloatArray,
    quantize_array,
    usable_scale,
)
from mrt.exact.short_multipliers import rescale_factors
from mrt.graph.canonical_values import name_of
from mrt.quantize.builder import Handle, ProgramBuilder
from mrt.quantize.curves.curve_memo import CurveMemo
from mrt.quantize.decoded import decoded
from mrt.quantize.file_formats import finer
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.rounding import LayerSteps
from mrt.quantize.state_formats import StateFormats
from mrt.quantize.tensor import (
    NHWC,
    OUTPUT_BITS,
    Format,
    Interval,
    Layout,
    Tensor,
    choose_format,
)
from mrt.quantize.used_ranges import UsedRanges
from mrt.table.table import CalibrationTable, MeasuredRange

LoweringRule = Callable[["LoweringContext", ir.Node], LayerSteps | None]
"""A function that writes the instructions of a node; that of a layer with weights is a generator."""
NEARLY = 2.0**-20
"""Relative difference below which two bounds count as one."""


class LoweringContext:
    """The tensor that each float value has become, and the instructions written so far.

    `output_path` names the values that keep 16 bits up to an output. `shared_ranges`
    names values measured as one with others: their formats may not depend on an
    interval that is proven for one of them alone. `centrable` names the values whose
    channels may have centres. `file_formats` are given by the model's file. The values in
    `wide` keep the bits of their accumulators when they are moved; those in
    `wide_products` are products of wide values.
    """

    def __init__(
        self,
        table: CalibrationTable,
        options: QuantizeOptions,
        output_path: frozenset[str],
        shared_ranges: frozenset[str] = frozenset(),
        centrable: frozenset[str] = frozenset(),
        file_formats: Mapping[str, Format] | None = None,
        wide: frozenset[str] = frozenset(),
        wide_products: frozenset[str] = frozenset(),
    ) -> None:
        self.builder = ProgramBuilder()
        self.curves = CurveMemo()
        self.table = table
        self.options = options
        self.output_path = output_path
        self.shared_ranges = shared_ranges
        self.centrable = centrable
        self.file_formats = file_formats or {}
        self.wide = wide
        self.wide_products = wide_products
        self.states = StateFormats()  # of no input yet
        self.of_16_bits = frozenset[str]()
        self.thresholds = dict[str, Format]()  # of tables for a wide input
        self.masked = frozenset[str]()  # clipped above the masks
        self.filled = dict[str, MeasuredRange]()  # without fills for pooling
        self.ranges = UsedRanges(table.ranges, self.file_formats)
        self._tensors: dict[str, Tensor] = {}
        self._codes: dict[str, Tensor] = {}

    # -- float values and their tensors -----------------------------------------------------

    def define(self, value: ir.Value, tensor: Tensor) -> None:
        """Make `tensor` the representation of `value`; linear ones are made of a code as they are read."""
        name = name_of(value)
        if tensor.octaves is not None:
            self._codes[name] = tensor
            return
        self._tensors[name] = tensor
        if not self.is_requantized(tensor):
            return
        scale = float(tensor.scale.max())
        factors: tuple[float, ...] = ()
        if not tensor.per_tensor:
            factors = tuple((tensor.scale / scale).tolist())
        meaning = Meaning(scale, tensor.zero_point, name, factors)
        self.builder.annotate(tensor.value, meaning)

    def as_computed(self, value: ir.Value | None) -> Tensor:
        """Return the tensor as the rule of its operator left it, often an i32 accumulator."""
        name = name_of(value)
        if name not in self._tensors:
            code, range_ = self._codes[name], self.ranges.of(name)
            scales = self.options.scales
            self._tensors[name] = decoded(self.builder, code, range_, scales)
        return self._tensors[name]

    def code_of(self, value: ir.Value | None) -> Tensor | None:
        """Return the value as an octave code, or None if it is none."""
        return self._codes.get(name_of(value))

    def computed_or_none(self, value: ir.Value | None) -> Tensor | None:
        """Return `as_computed`, or None if the value has not been computed yet."""
        name = name_of(value)
        is_computed = name in self._tensors or name in self._codes
        return self.as_computed(value) if is_computed else None

    def requantized(self, value: ir.Value | None) -> Tensor:
        """Return the value in 8 or 16 bits, with one scale and every clip applied.

        If the calibration table decided channel scales for the value, it has those
        instead, where `requantize_by_channel` applies.
        """
        tensor = self.as_computed(value)
        if self.is_requantized(tensor):
            return tensor
        if tensor.integral:
            dtype = self.narrowest_dtype(tensor)
            if dtype in ("i8", "i16"):
                return self.cast_to(tensor, dtype)
        name = name_of(value)
        target = self.format(value)
        factors = self.channel_factors(name, target)
        if factors is not None and self.can_requantize_by_channel(
            tensor, target
        ):
            return self.requantize_by_channel(tensor, target, factors, name)
        return self.requantize_to(tensor, target, name)

    def accumulator(self, value: ir.Value | None) -> Tensor:
        """Return the most exact form that costs no extra instruction.

        That is the tensor as computed if the value has one reader; with several readers
        the requantized form is needed anyway.
        """
        if value is not None and len(value.uses()) == 1:
            return self.as_computed(value)
        return self.requantized(value)

    def in_16_bits(self, value: ir.Value | None) -> Tensor:
        """Return the value in at most 16 bits with one scale, straight from the accumulator.

        Rules that compute at more than 8 bits inside read their operands so.
        """
        tensor = self.as_computed(value)
        if self.is_requantized(tensor):
            return tensor
        return self.requantize_to(tensor, self.format_for(name_of(value), 16))

    def is_requantized(self, tensor: Tensor) -> bool:
        """Whether a tensor has 8 or 16 bits already, every clip applied, and scales that its readers take."""
        if self.dtype(tensor) not in ("i8", "i16") or tensor.clipped:
            return False
        return tensor.per_tensor or tensor.absorbed

    # -- formats --------------------------------------------------------------------------

    def format(
        self,
        value: ir.Value | None,
        *,
        on_output_path: bool | None = None,
        interval: Interval | None = None,
    ) -> Format:
        """Return the format that the calibration table and the options determine for a value."""
        name = name_of(value)
        if on_output_path is None:
            on_output_path = name in self.output_path
        bits = self.options.activation_bits_of(name)
        if on_output_path:
            bits = OUTPUT_BITS
        fine = bits < OUTPUT_BITS and name in self.of_16_bits
        bits = OUTPUT_BITS if fine else bits
        return self.format_for(name, bits, interval=interval, clipped=not fine)

    def format_for(
        self,
        name: str,
        bits: int,
        *,
        interval: Interval | None = None,
        scales: str | None = None,
        clipped: bool = True,
    ) -> Format:
        """Return the format of a value at a given precision.

        The default interval is the proven one of the value's tensor. Unless `clipped`, the
        format reaches to the least and the greatest number measured.
        """
        if name in self.states.formats:
            return self.states.formats[name]
        if name in self.file_formats:
            file_format = self.file_formats[name]
            return file_format if bits <= 8 else finer(file_format)
        if interval is None:
            interval = self._interval_of(name, bits)
        measured = self._range_of(name, bits, interval)
        if not clipped:
            measured = replace(measured, lo=measured.min, hi=measured.max)
        return choose_format(
            measured,
            bits,
            interval=interval,
            scales=scales or self.options.scales,
            scheme=self.options.scheme,
            unsigned=self.options.unsigned,
        )

    def _range_of(
        self, name: str, bits: int, interval: Interval
    ) -> MeasuredRange:
        """Return the measured range of a value.

        Where the file gives formats and 16 bits leave room, the proven interval takes its
        place, for which no sample is needed; that of masked logits reaches down to the masks.
        """
        is_proven = bits > 8 and np.isfinite(interval).all()
        if self.file_formats and is_proven and name not in self.masked:
            return MeasuredRange(*interval, *interval)
        return self.ranges.of(name)

    def _interval_of(self, name: str, bits: int) -> Interval:
        if bits > 8 and name in self.shared_ranges:
            return -np.inf, np.inf
        return self.interval(self._tensors[name])

    def channel_factors(
        self, name: str, target: Format
    ) -> tuple[float, ...] | None:
        """Return each channel's scale over the format's; None if the channels share one scale.

        With scales "shift", the format's scale was rounded up to a power of two, and
        `spare` is the ideal scale over the rounded one. Times `spare`, a channel's
        factor becomes the next power of two above the scale that the channel needs: it
        is rounded up once instead of twice.
        """
        relative = self.table.scales_of_channels(name)
        if relative is None or name in self.output_path:
            return None
        scales = self.options.scales
        spare = 1.0
        if scales == "shift":
            bits = self.options.product_bits_of(name)
            ideal = self.format_for(
                name, bits, interval=(target.lowest, np.inf), scales="real"
            )
            spare = ideal.scale / target.scale
        return tuple(
            usable_scale(factor * spare, scales) for factor in relative
        )

    def interval(self, tensor: Tensor) -> Interval:
        """Return the proven interval of a tensor's reals, for any input."""
        proven = self.builder.bounds[tensor.value]
        low = float(((proven.lo - tensor.zero_point) * tensor.scale).min())
        high = float(((proven.hi - tensor.zero_point) * tensor.scale).max())
        clipped_low = max(min(low, tensor.high), tensor.low)
        clipped_high = max(min(high, tensor.high), tensor.low)
        return clipped_low, clipped_high

    # -- integers -------------------------------------------------------------------------

    def dtype(self, tensor: Tensor) -> str:
        """Return the dtype of a tensor's integers."""
        return self.builder.types[tensor.value].dtype

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the physical shape of a tensor."""
        return self.builder.types[tensor.value].shape

    def constant(self, array: IntArray) -> Handle:
        """Return a constant of the program."""
        return self.builder.constant(array)

    def narrowest_dtype(self, tensor: Tensor) -> str:
        """Return the narrowest of i8, i16 and i32 in which the integers are proven to lie."""
        proven = self.builder.bounds[tensor.value]
        for dtype in ("i8", "i16"):
            least, most = DTYPE_RANGES[dtype]
            if least <= proven.min and proven.max <= most:
                return dtype
        return "i32"

    def cast_to(self, tensor: Tensor, dtype: str) -> Tensor:
        """Return the same integers in another dtype, in which they are proven to lie."""
        if self.dtype(tensor) == dtype:
            return tensor
        value = self.builder.emit("cast", tensor.value, dtype=dtype)
        return replace(tensor, value=value)

    def widen(self, tensor: Tensor, dtype: str = "i32") -> Tensor:
        """Return the tensor at the same scale in a wider dtype, with zero point 0."""
        if self.dtype(tensor) == dtype:
            return tensor
        if self.dtype(tensor) == "bool":
            return self.cast_to(tensor, dtype)
        value = self.rescale(tensor, np.ones(1), dtype, 0)
        return replace(tensor, value=value, zero_point=0)

    def rescale(
        self, tensor: Tensor, ratios: FloatArray, dtype: str, zero_point: int
    ) -> Handle:
        """Return (integer - tensor.zero_point) * ratio + zero_point, to the nearest integer.

        There is one ratio, or one per channel.
        """
        if self.dtype(tensor) == "bool":
            tensor = self.cast_to(tensor, "i8")
        is_sum = self.dtype(tensor) == "i32" and tensor.zero_point == 0
        is_short = is_sum and dtype == "i8" and not self.file_formats
        x = self.builder.bounds[tensor.value] if is_short else None
        multiplier, shift = rescale_factors(np.minimum(ratios, MAX_RATIO), x)
        return self.builder.emit(
            "rescale",
            tensor.value,
            self.constant(multiplier),
            self.constant(shift),
            input_zp=tensor.zero_point,
            output_zp=zero_point,
            dtype=dtype,
        )

    def requantize_to(
        self, tensor: Tensor, target: Format, source: str = ""
    ) -> Tensor:
        """Requantize a tensor to another format: a rescale, then a clamp if one is needed.

        `source` is the name of the float value that the integers represent.
        """
        value = tensor.value
        ratios = tensor.scale / target.scale
        same_dtype = self.dtype(tensor) == target.dtype
        same_zero_point = tensor.zero_point == target.zero_point
        if not (same_dtype and same_zero_point and np.all(ratios == 1)):
            value = self.rescale(
                tensor, ratios, target.dtype, target.zero_point
            )
        value = self._clamp(value, tensor, target)
        factors = (1.0,) * tensor.centres.size if tensor.centred else ()
        self.builder.annotate(value, _meaning(tensor, target, source, factors))
        scale = np.array([target.scale])
        zero_point, centres = target.zero_point, tensor.centres
        return Tensor(value, scale, zero_point, tensor.layout, centres=centres)

    def can_requantize_by_channel(self, tensor: Tensor, target: Format) -> bool:
        """Whether `requantize_by_channel` applies to a tensor and a format."""
        is_narrow = target.dtype in ("i8", "i16")
        return is_narrow and _ends_before_clip(tensor, target)

    def requantize_by_channel(
        self,
        tensor: Tensor,
        target: Format,
        factors: Sequence[float],
        source: str = "",
    ) -> Tensor:
        """Requantize a tensor with a scale for each index of the last axis.

        The scale of a channel is the format's times its factor. The factor is lowered
        where the channel's greatest integer would lie beyond the tensor's clip.
        """
        factors = [
            self._within_clip(factor, tensor, target) for factor in factors
        ]
        scale = target.scale * np.array(factors)
        ratios = tensor.scale / scale
        value = self.rescale(tensor, ratios, target.dtype, target.zero_point)
        low = target.zero_point if tensor.low >= 0 else target.least
        if self.builder.bounds[value].min < low:
            value = self.builder.emit("clamp", value, min=low, max=target.most)
        self.builder.annotate(value, _meaning(tensor, target, source, factors))
        requantized = Tensor(value, scale, target.zero_point, tensor.layout)
        return replace(requantized, centres=tensor.centres, absorbed=True)

    def _within_clip(
        self, factor: float, tensor: Tensor, target: Format
    ) -> float:
        """Lower a factor to the one at which the greatest integer lies at the tensor's clip."""
        most = tensor.high / target.highest
        if factor <= most * (1 + NEARLY):
            return factor
        if self.options.scales == "real":
            return most
        _, exponent = math.frexp(most * (1 + NEARLY))
        return math.ldexp(0.5, exponent)

    def _clamp(self, value: Handle, tensor: Tensor, target: Format) -> Handle:
        """Apply the tensor's clip and the format's bounds, unless proven to hold."""
        low, high = target.least, target.most
        if tensor.low > -np.inf:
            low = quantized_point(tensor.low, target)
        if tensor.high < np.inf:
            high = max(low, quantized_point(tensor.high, target))
        proven = self.builder.bounds[value]
        if low <= proven.min and proven.max <= high:
            return value
        return self.builder.emit("clamp", value, min=low, max=high)

    # -- layout ---------------------------------------------------------------------------

    def to_layout(self, tensor: Tensor, layout: Layout) -> Tensor:
        """Return the same tensor with its physical axes in another order.

        That takes a transpose, or a reshape where only axes of size 1 move.
        """
        if tensor.layout == layout:
            return tensor
        perm = tuple(tensor.layout.index(axis) for axis in layout)
        assert tensor.per_tensor or perm[-1] == len(perm) - 1, (
            "a per-channel tensor must keep its last axis"
        )
        shape = self.shape(tensor)
        moved = [axis for axis in perm if shape[axis] != 1]
        if moved == sorted(moved):
            new_shape = tuple(shape[axis] for axis in perm)
            value = self.reshaped(tensor.value, new_shape)
        else:
            value = self.builder.emit("transpose", tensor.value, perm=perm)
        return replace(tensor, value=value, layout=layout)

    def to_nhwc(self, tensor: Tensor) -> Tensor:
        """Return an image tensor in the layout of the machine's image instructions."""
        return self.to_layout(tensor, NHWC)

    def to_float_layout(self, tensor: Tensor) -> Tensor:
        """Return a tensor with its axes in the float model's order."""
        return self.to_layout(tensor, identity(len(tensor.layout)))

    def reshaped(self, value: Handle, shape: tuple[int, ...]) -> Handle:
        """Return the value in another shape of equally many elements."""
        if self.builder.types[value].shape == shape:
            return value
        return self.builder.emit("reshape", value, shape=shape)


def _meaning(
    tensor: Tensor, target: Format, source: str, factors: Sequence[float]
) -> Meaning:
    centres = tuple(tensor.centres.tolist()) if tensor.centred else ()
    return Meaning(
        target.scale, target.zero_point, source, tuple(factors), centres
    )


def _ends_before_clip(tensor: Tensor, target: Format) -> bool:
    """Whether the channels lie last and the format ends before any clip but one at 0."""
    if tensor.layout[-1] != 1 or tensor.low not in (0.0, -np.inf):
        return False
    return tensor.high >= target.highest * (1 - NEARLY)


def identity(rank: int) -> Layout:
    """Return the layout of a tensor whose axes are in the float model's order."""
    return tuple(range(rank))


def common_layout(tensors: Iterable[Tensor], rank: int) -> Layout:
    """Return the layout in which tensors are combined to a result of this rank.

    It is the first layout of a tensor of that rank that differs from the float model's
    order, so that this tensor need not be transposed.
    """
    float_order = identity(rank)
    for tensor in tensors:
        if len(tensor.layout) == rank and tensor.layout != float_order:
            return tensor.layout
    return float_order


def quantized(reals: npt.ArrayLike, target: Format) -> IntArray:
    """Return the integers nearest to real numbers in a format, half up, in int64."""
    zero = target.zero_point
    least, most = target.least - zero, target.most - zero
    return quantize_array(reals, target.scale, least, most) + zero


def quantized_point(real: float, target: Format) -> int:
    """Return the integer nearest to one real number in a format."""
    return int(quantized(real, target))
