"""The state of one conversion: the tensor that each float value has become, and its format.

The rules of the operators read operands from it, requantized or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import Meaning
from mrt.exact.fixed_point import usable_scale
from mrt.graph.canonical_values import name_of, shape_of
from mrt.graph.values import IMAGE_RANK
from mrt.quantize.curves.curve_memo import CurveMemo
from mrt.quantize.decoded import decoded
from mrt.quantize.file_formats import widened
from mrt.quantize.lowering_plan import LoweringPlan
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.rounding import LayerSteps
from mrt.quantize.state_formats import StateFormats
from mrt.quantize.tensor import (
    HEADROOM,
    OUTPUT_BITS,
    Format,
    Interval,
    Tensor,
    choose_format,
)
from mrt.quantize.tensor_writer import TensorWriter
from mrt.quantize.used_ranges import UsedRanges
from mrt.table.table import CalibrationTable, MeasuredRange

LoweringRule = Callable[["LoweringContext", ir.Node], LayerSteps | None]
"""A function that writes the instructions of a node; that of a layer with weights is a generator."""


class LoweringContext(TensorWriter):
    """The tensor that each float value has become, and the instructions written so far.

    `plan` has what is decided about values beforehand; `file_formats` are given by the
    model's file, by value. `curves` keeps what is computed of curves. As inputs are declared,
    `states` gets the formats of states, and `thresholds` those of constants that are looked up
    to be compared with an input, by value.
    """

    def __init__(
        self,
        table: CalibrationTable,
        options: QuantizeOptions,
        plan: LoweringPlan | None = None,
        *,
        file_formats: Mapping[str, Format] | None = None,
        memo: CurveMemo | None = None,
    ) -> None:
        super().__init__(options, file_formats or {})
        self.table = table
        self.plan = LoweringPlan() if plan is None else plan
        self.curves = CurveMemo() if memo is None else memo
        self.states = StateFormats()
        self.thresholds: dict[str, Format] = {}
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
        """Return the tensor as the rule of its operator left it, often an i32 accumulator.

        An octave code is decoded by a table, which is written when the first reader asks for its numbers.
        """
        name = name_of(value)
        if name not in self._tensors:
            code, range_ = self._codes[name], self.ranges.of(name)
            scales = self.options.scales
            self._tensors[name] = decoded(self.builder, code, range_, scales)
        return self._tensors[name]

    def code_of(self, value: ir.Value | None) -> Tensor | None:
        """Return the value as an octave code, or None if it is none."""
        return self._codes.get(name_of(value))

    def codes_for(
        self, node: ir.Node, operands: Sequence[ir.Value | None]
    ) -> list[Tensor]:
        """Return operands as octave codes if all are such and the node's result becomes one; else none."""
        if name_of(node.outputs[0]) not in self.plan.coded:
            return []
        codes = [self.code_of(value) for value in operands]
        return [] if None in codes else [it for it in codes if it is not None]

    def greatest_expected(self, value: ir.Value | None) -> float:
        """Return the greatest real that is expected of a value, for which its octave code has room: twice the greatest measured."""
        return self.ranges.of(name_of(value)).magnitude * HEADROOM

    def computed_or_none(self, value: ir.Value | None) -> Tensor | None:
        """Return `as_computed`, or None if the value has not been computed yet."""
        name = name_of(value)
        is_computed = name in self._tensors or name in self._codes
        return self.as_computed(value) if is_computed else None

    def requantized(self, value: ir.Value | None) -> Tensor:
        """Return the value in 8 or 16 bits, with one scale and every clip applied.

        If the calibration table decided channel scales for an image, it has those
        instead, where `requantize_by_channel` applies. Those of rows are for the form that
        products read alone (`product_operand`): other readers would not absorb them.
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
        factors = None
        if value is not None and len(shape_of(value)) == IMAGE_RANK:
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
            on_output_path = name in self.plan.output_path
        bits = self.options.activation_bits_of(name)
        if on_output_path:
            bits = OUTPUT_BITS
        is_raised = bits < OUTPUT_BITS and name in self.plan.of_16_bits
        if is_raised:
            bits = OUTPUT_BITS
        return self.format_for(
            name, bits, interval=interval, clipped=not is_raised
        )

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
            return file_format if bits <= 8 else widened(file_format)
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
        if self.file_formats and is_proven and name not in self.plan.masked:
            return MeasuredRange(*interval, *interval)
        return self.ranges.of(name)

    def _interval_of(self, name: str, bits: int) -> Interval:
        if bits > 8 and name in self.plan.shared_ranges:
            return -np.inf, np.inf
        return self.interval(self._tensors[name])

    def channel_factors(
        self, name: str, target: Format
    ) -> tuple[float, ...] | None:
        """Return each channel's scale over the format's; None if the channels share one scale, as on an output path."""
        if name in self.plan.output_path:
            return None
        return self.factors_for_products(name, target)

    def factors_for_products(
        self, name: str, target: Format
    ) -> tuple[float, ...] | None:
        """Return the same for a form that products alone read, on an output path, too.

        With scales "shift", the format's scale was rounded up to a power of two, and
        `spare` is the ideal scale over the rounded one. Times `spare`, a channel's
        factor becomes the next power of two above the scale that the channel needs: it
        is rounded up once instead of twice.
        """
        relative = self.table.scales_of_channels(name)
        if relative is None:
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
