"""Writes the instructions that give a tensor other integers for the same reals, or another layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray, Meaning
from mrt.exact.fixed_point import (
    MAX_RATIO,
    FloatArray,
    multipliers_and_shifts,
)
from mrt.exact.short_multipliers import narrow_factors
from mrt.quantize.builder import Handle, ProgramBuilder
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.tensor import (
    NHWC,
    Format,
    Interval,
    Layout,
    Tensor,
    identity,
    quantized_point,
)

NEARLY = 2.0**-20
"""Relative difference below which two bounds count as one."""


class TensorWriter:
    """Tensors of one program in other dtypes, formats and layouts.

    Multipliers are short where they can be, unless the model's file gives formats.
    """

    def __init__(
        self, options: QuantizeOptions, file_formats: Mapping[str, Format]
    ) -> None:
        self.builder = ProgramBuilder()
        self.options = options
        self.file_formats = file_formats

    # -- what a tensor holds --------------------------------------------------------------

    def dtype(self, tensor: Tensor) -> str:
        """Return the dtype of a tensor's integers."""
        return self.builder.types[tensor.value].dtype

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the physical shape of a tensor."""
        return self.builder.types[tensor.value].shape

    def is_requantized(self, tensor: Tensor) -> bool:
        """Whether a tensor has 8 or 16 bits already, every clip applied, and scales that its readers take."""
        if self.dtype(tensor) not in ("i8", "i16") or tensor.clipped:
            return False
        return tensor.per_tensor or tensor.absorbed

    def interval(self, tensor: Tensor) -> Interval:
        """Return the proven interval of a tensor's reals, for any input."""
        proven = self.builder.bounds[tensor.value]
        low = float(((proven.lo - tensor.zero_point) * tensor.scale).min())
        high = float(((proven.hi - tensor.zero_point) * tensor.scale).max())
        clipped_low = max(min(low, tensor.high), tensor.low)
        clipped_high = max(min(high, tensor.high), tensor.low)
        return clipped_low, clipped_high

    # -- integers -------------------------------------------------------------------------

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

        There is one ratio, or one per channel. One beyond MAX_RATIO takes two instructions in i32; narrower results are at
        an end then.
        """
        if dtype == "i32" and (ratios > MAX_RATIO).any():
            first = self.rescale(
                tensor, np.minimum(ratios, MAX_RATIO), dtype, 0
            )
            tensor = replace(tensor, value=first, zero_point=0)
            ratios = np.maximum(ratios / MAX_RATIO, 1.0)
        if self.dtype(tensor) == "bool":
            tensor = self.cast_to(tensor, "i8")
        ratios = np.minimum(ratios, MAX_RATIO)
        is_sum = self.dtype(tensor) == "i32" and tensor.zero_point == 0
        if is_sum and dtype in ("i8", "i16") and not self.file_formats:
            sums = self.builder.bounds[tensor.value]
            multiplier, shift = narrow_factors(ratios, sums, dtype)
        else:
            multiplier, shift = multipliers_and_shifts(ratios)
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
