"""The state of one conversion: which tensor each float value has become, and how to bring it to another format or layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from cvm.program import DTYPE_RANGES, IntArray, Meaning
from mrt.errors import MrtError
from mrt.exact.fixed_point import (
    MAX_RATIO,
    FloatArray,
    multipliers_and_shifts,
    quantize_array,
    usable_scale,
)
from mrt.graph.canonical_values import name_of
from mrt.quantize.builder import Handle, ProgramBuilder
from mrt.quantize.curves.curve_memo import CurveMemo
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.rounding import LayerSteps
from mrt.quantize.tensor import (
    HEAD_BITS,
    NHWC,
    Format,
    Interval,
    Layout,
    Tensor,
    choose_format,
)
from mrt.table.table import CalibrationTable

Rule = Callable[["LoweringContext", ir.Node], LayerSteps | None]
"""Writes the instructions of a node; the rule of a layer with weights is a generator."""

NEARLY = 2.0**-20  # of two ends, the share by which one may pass for the other


class LoweringContext:
    """What the rules of the operators share."""

    def __init__(
        self,
        table: CalibrationTable,
        options: QuantizeOptions,
        heads: frozenset[str],
        alike: frozenset[str] = frozenset(),
        centrable: frozenset[str] = frozenset(),
    ) -> None:
        self.builder = ProgramBuilder()
        self.curves = CurveMemo()
        self.table = table
        self.options = options
        self.heads = heads
        self.alike = alike  # values watched as one with others: their format may not depend on what is proven of each
        self.centrable = centrable  # values whose channels may have centres
        self._tensors: dict[str, Tensor] = {}

    # -- float values and what they have become -------------------------------------------------

    def define(self, value: ir.Value, tensor: Tensor) -> None:
        """`value` is represented by `tensor` from here on."""
        self._tensors[name_of(value)] = tensor
        if self._is_requantized(tensor):
            scale = float(tensor.scale.max())
            factors = (
                () if tensor.per_tensor else tuple((tensor.scale / scale).tolist())
            )
            self.builder.annotate(
                tensor.value, Meaning(scale, tensor.zero_point, name_of(value), factors)
            )

    def source(self, value: ir.Value | None) -> Tensor:
        """The first form of a computed value, as its rule left it: often a wide accumulator."""
        return self._tensors[name_of(value)]

    def known(self, value: ir.Value | None) -> Tensor | None:
        """As `source`, if the value has been computed by now."""
        return self._tensors.get(name_of(value))

    def requantized(self, value: ir.Value | None) -> Tensor:
        """The narrow form of a computed value (8 or 16 bits, one scale, no clip left to apply)."""
        tensor = self.source(value)
        if self._is_requantized(tensor):
            return tensor
        if tensor.integral and (dtype := self.narrowest(tensor)) in ("i8", "i16"):
            return self.recast(tensor, dtype)
        target = self.format(value)
        factors = self.factors_of_channels(name_of(value), target)
        if factors is not None and self.can_requantize_by_channel(tensor, target):
            return self.requantize_by_channel(tensor, target, factors, name_of(value))
        return self.requantize_to(tensor, target, name_of(value))

    def factors_of_channels(
        self, name: str, target: Format
    ) -> tuple[float, ...] | None:
        """What the scale of each channel is to that of the format, if channels have scales of their own.

        Of powers of two the scale of the format is one already: a channel's is the next above what it needs, not above that.
        """
        relative = self.table.scales_of_channels(name)
        if relative is None:
            return None
        spare = 1.0
        if self.options.scales == "shift":
            needed = self.format_for(
                name,
                self.options.activation_bits_of(name),
                reach=(target.lowest, np.inf),
                scales="real",
            )
            spare = needed.scale / target.scale
        return tuple(
            usable_scale(item * spare, self.options.scales) for item in relative
        )

    def narrowest(self, tensor: Tensor) -> str:
        """The narrowest of i8, i16 and i32 in which the integers of a tensor are proven to lie."""
        proven = self.builder.bounds[tensor.value]
        return next(
            dtype
            for dtype in ("i8", "i16", "i32")
            if DTYPE_RANGES[dtype][0] <= proven.min
            and proven.max <= DTYPE_RANGES[dtype][1]
        )

    def recast(self, tensor: Tensor, dtype: str) -> Tensor:
        """The same integers in another dtype, in which they are proven to lie."""
        if self.dtype(tensor) == dtype:
            return tensor
        return replace(
            tensor, value=self.builder.emit("cast", tensor.value, dtype=dtype)
        )

    def _is_requantized(self, tensor: Tensor) -> bool:
        narrow = self.dtype(tensor) in ("i8", "i16") and (
            tensor.per_tensor or tensor.taken_up
        )
        return narrow and not tensor.clipped

    def wide(self, value: ir.Value | None) -> Tensor:
        """The most exact form that costs no extra memory: the accumulator if nobody else needs the narrow form."""
        return (
            self.source(value)
            if value is not None and len(value.uses()) == 1
            else self.requantized(value)
        )

    def precise(self, value: ir.Value | None) -> Tensor:
        """At most 16 bits with one scale, straight from the accumulator: for what works inside at more than 8 bits."""
        tensor = self.source(value)
        return (
            tensor
            if self._is_requantized(tensor)
            else self.requantize_to(tensor, self.format_for(name_of(value), 16))
        )

    def operand(self, value: ir.Value | None) -> Tensor:
        """A computed operand of a product: 8 bits, or 16 where the options say so."""
        tensor = self.requantized(value)
        if (
            self.dtype(tensor) == "i16"
            and self.options.activation_bits_of(name_of(value)) <= 8
        ):
            tensor = self.requantize_to(
                self.source(value), self.format(value, head=False), name_of(value)
            )
        return tensor

    def format(
        self,
        value: ir.Value | None,
        *,
        head: bool | None = None,
        reach: Interval | None = None,
    ) -> Format:
        """The format that the calibration table and the options give to a value."""
        name = name_of(value)
        is_head = name in self.heads if head is None else head
        bits = HEAD_BITS if is_head else self.options.activation_bits_of(name)
        return self.format_for(name, bits, reach=reach)

    def format_for(
        self,
        name: str,
        bits: int,
        *,
        reach: Interval | None = None,
        scales: str | None = None,
    ) -> Format:
        """The format of a value at a given precision; `reach`, unless given, is that of the value's tensor."""
        if name not in self.table.ranges:
            raise MrtError(
                f"the calibration table has no range for '{name}': calibrate this model again"
            )
        if reach is None:
            anything = (-np.inf, np.inf)
            reach = (
                anything
                if bits > 8 and name in self.alike
                else self.reach(self._tensors[name])
            )
        return choose_format(
            self.table.ranges[name],
            bits,
            reach=reach,
            scales=scales or self.options.scales,
            scheme=self.options.scheme,
            unsigned=self.options.unsigned,
        )

    def reach(self, tensor: Tensor) -> Interval:
        """The least and the greatest real that any input can make of a tensor, by the proof."""
        proven = self.builder.bounds[tensor.value]
        low = float(((proven.lo - tensor.zero_point) * tensor.scale).min())
        high = float(((proven.hi - tensor.zero_point) * tensor.scale).max())
        return max(min(low, tensor.high), tensor.low), max(
            min(high, tensor.high), tensor.low
        )

    # -- integers ---------------------------------------------------------------------------------

    def dtype(self, tensor: Tensor) -> str:
        """The dtype of a tensor's integers."""
        return self.builder.types[tensor.value].dtype

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """The physical shape of a tensor."""
        return self.builder.types[tensor.value].shape

    def constant(self, array: IntArray) -> Handle:
        """A constant of the program."""
        return self.builder.constant(array)

    def requantize_to(self, tensor: Tensor, target: Format, source: str = "") -> Tensor:
        """The same reals in another format: one rescale, and a clamp where the type does not stop at the right places."""
        value = tensor.value
        ratios = tensor.scale / target.scale
        same = (
            np.all(ratios == 1)
            and self.dtype(tensor) == target.dtype
            and tensor.zero_point == target.zero_point
        )
        if not same:
            value = self.rescale(tensor, ratios, target.dtype, target.zero_point)
        value = self._clamp(value, tensor, target)
        factors = (1.0,) * tensor.centres.size if tensor.centred else ()
        self.builder.annotate(value, _meaning(tensor, target, source, factors))
        return Tensor(
            value,
            np.array([target.scale]),
            target.zero_point,
            tensor.layout,
            centres=tensor.centres,
        )

    def can_requantize_by_channel(self, tensor: Tensor, target: Format) -> bool:
        """Whether `requantize_by_channel` can."""
        return target.dtype == "i8" and _reaches_no_clip(tensor, target)

    def requantize_by_channel(
        self, tensor: Tensor, target: Format, factors: Sequence[float], source: str = ""
    ) -> Tensor:
        """As `requantize_to`, each index of the last axis at a scale of its own: so many times the format's, but within the clip."""
        factors = [self._within_clip(factor, tensor, target) for factor in factors]
        scale = target.scale * np.array(factors)
        value = self.rescale(
            tensor, tensor.scale / scale, target.dtype, target.zero_point
        )
        low = target.zero_point if tensor.low >= 0 else target.least
        if self.builder.bounds[value].min < low:
            value = self.builder.emit("clamp", value, min=low, max=target.most)
        self.builder.annotate(value, _meaning(tensor, target, source, factors))
        return Tensor(
            value,
            scale,
            target.zero_point,
            tensor.layout,
            centres=tensor.centres,
            taken_up=True,
        )

    def _within_clip(self, factor: float, tensor: Tensor, target: Format) -> float:
        """The factor, or the greatest with which a channel's integers end where the tensor's clip does."""
        most = tensor.high / _end(target)
        if factor <= most * (1 + NEARLY):
            return factor
        return (
            most
            if self.options.scales == "real"
            else math.ldexp(0.5, math.frexp(most * (1 + NEARLY))[1])
        )

    def rescale(
        self, tensor: Tensor, ratios: FloatArray, dtype: str, zero_point: int
    ) -> Handle:
        """integer -> nearest to (integer - tensor.zero_point) * ratio + zero_point, per tensor or per channel."""
        if self.dtype(tensor) == "bool":
            tensor = self.recast(tensor, "i8")
        multiplier, shift = multipliers_and_shifts(np.minimum(ratios, MAX_RATIO))
        return self.builder.emit(
            "rescale",
            tensor.value,
            self.constant(multiplier),
            self.constant(shift),
            input_zp=tensor.zero_point,
            output_zp=zero_point,
            dtype=dtype,
        )

    def widen(self, tensor: Tensor, dtype: str = "i32") -> Tensor:
        """The same scale in a wider dtype, with zero point 0."""
        if self.dtype(tensor) == dtype:
            return tensor
        if self.dtype(tensor) == "bool":
            return self.recast(tensor, dtype)
        return replace(
            tensor, value=self.rescale(tensor, np.ones(1), dtype, 0), zero_point=0
        )

    def _clamp(self, value: Handle, tensor: Tensor, target: Format) -> Handle:
        low, high = target.least, target.most
        if tensor.low > -np.inf:
            low = quantized_point(tensor.low, target)
        if tensor.high < np.inf:
            high = max(low, quantized_point(tensor.high, target))
        proven = self.builder.bounds[value]
        if low <= proven.min and proven.max <= high:
            return value
        return self.builder.emit("clamp", value, min=low, max=high)

    # -- layout -----------------------------------------------------------------------------------

    def to_layout(self, tensor: Tensor, layout: Layout) -> Tensor:
        """The same tensor with its physical axes in another order; a reshape where only axes of size 1 move."""
        if tensor.layout == layout:
            return tensor
        perm = tuple(tensor.layout.index(axis) for axis in layout)
        assert tensor.per_tensor or perm[-1] == len(perm) - 1, (
            "a per-channel tensor must keep its last axis"
        )
        shape = self.shape(tensor)
        moved = [axis for axis in perm if shape[axis] != 1]
        if moved == sorted(moved):
            value = self.reshaped(tensor.value, tuple(shape[axis] for axis in perm))
        else:
            value = self.builder.emit("transpose", tensor.value, perm=perm)
        return replace(tensor, value=value, layout=layout)

    def reshaped(self, value: Handle, shape: tuple[int, ...]) -> Handle:
        """The value in another shape of equally many elements."""
        if self.builder.types[value].shape == shape:
            return value
        return self.builder.emit("reshape", value, shape=shape)

    def image(self, tensor: Tensor) -> Tensor:
        """An image tensor as the machine's instructions want it: NHWC."""
        return self.to_layout(tensor, NHWC)

    def logical(self, tensor: Tensor) -> Tensor:
        """A tensor with its axes in the float model's order."""
        return self.to_layout(tensor, identity(len(tensor.layout)))


def _meaning(
    tensor: Tensor, target: Format, source: str, factors: Sequence[float]
) -> Meaning:
    centres = tuple(tensor.centres.tolist()) if tensor.centred else ()
    return Meaning(target.scale, target.zero_point, source, tuple(factors), centres)


def _reaches_no_clip(tensor: Tensor, target: Format) -> bool:
    """Whether the format itself ends before any clip that the tensor still needs, but one at 0."""
    return (
        tensor.layout[-1] == 1
        and tensor.low in (0.0, -np.inf)
        and tensor.high >= _end(target) * (1 - NEARLY)
    )


def _end(target: Format) -> float:
    """The greatest real of a format."""
    return (target.most - target.zero_point) * target.scale


def identity(rank: int) -> Layout:
    """The layout of a tensor whose axes are where the float model has them."""
    return tuple(range(rank))


def common_layout(tensors: Iterable[Tensor], rank: int) -> Layout:
    """The layout of the first tensor of this rank that has one of its own; it costs nothing to keep."""
    plain = identity(rank)
    own = (
        tensor.layout
        for tensor in tensors
        if len(tensor.layout) == rank and tensor.layout != plain
    )
    return next(own, plain)


def quantized(reals: npt.ArrayLike, target: Format) -> IntArray:
    """The nearest integers to real numbers in a format, half up; int64."""
    least, most = target.least - target.zero_point, target.most - target.zero_point
    return quantize_array(reals, target.scale, least, most) + target.zero_point


def quantized_point(real: float, target: Format) -> int:
    """The nearest integer to one real number in a format."""
    return int(quantized(real, target))
