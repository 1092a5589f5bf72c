"""Lowers a canonical float graph: the rule of each operator writes its instructions.

`GraphLowering` goes through the nodes in the order of the program and stops at each
layer with weights. Its caller decides the integers of these weights: `quantize` takes
them from the calibration table, the walker of `mrt.refine` finds them on samples.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches

import numpy as np
import onnx_ir as ir

from cvm.errors import Invalid
from cvm.program import ENDLESS, Input, Meaning, Program, TensorType
from mrt.errors import BadOption, NotProvable, Unsupported
from mrt.graph.canonical_values import is_constant, name_of, shape_of
from mrt.graph.notes import (
    STEPS_OF_WEIGHTS,
    picture_layout_of,
    shared_range_of,
)
from mrt.graph.operators import WEIGHT_OPERANDS
from mrt.graph.states import states_of
from mrt.quantize.builder import ProgramBuilder
from mrt.quantize.cancellation import with_bits_for_differences
from mrt.quantize.channel_centres import centrable
from mrt.quantize.channel_scales import check_channel_scales
from mrt.quantize.compared_inputs import compared_inputs
from mrt.quantize.context import LoweringContext
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.curve_memo import CurveMemo
from mrt.quantize.curves.gate import lower_gate
from mrt.quantize.curves.octave_curves import lower_to_code
from mrt.quantize.curves.sign import lower_sign
from mrt.quantize.curves.table_fusion import lower_curve
from mrt.quantize.factors import factors
from mrt.quantize.file_formats import file_formats
from mrt.quantize.gated_sums import gated_sums
from mrt.quantize.inputs import input_interval
from mrt.quantize.lowering_plan import LoweringPlan
from mrt.quantize.lowering_ranges import LoweringRanges, ranges_for_lowering
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.output_paths import needed_nodes, output_path_values
from mrt.quantize.picture_inputs import declare_picture, with_picture_bits
from mrt.quantize.rounding import (
    LayerSteps,
    NearestMemo,
    RoundedLayer,
    WeightedLayer,
    as_decided,
)
from mrt.quantize.rules.lowering import lower
from mrt.quantize.rules.sum_of_squares import sum_of_squares
from mrt.quantize.scaled_tables import (
    product_with_factors,
    scales_of_columns,
    with_bits_of_tables,
)
from mrt.quantize.source_map import SourceMap
from mrt.quantize.spectra import find_spectra
from mrt.quantize.state_formats import StateFormats
from mrt.quantize.stored_steps import stored_integers
from mrt.quantize.tensor import (
    Format,
    Tensor,
    identity,
)
from mrt.quantize.uneven_outputs import has_uneven_columns, uneven_outputs
from mrt.quantize.waveforms import sound_format, with_waveform_bits
from mrt.quantize.wide_values import as_wide
from mrt.table.table import CalibrationTable


def quantize(
    model: ir.Model,
    table: CalibrationTable,
    options: QuantizeOptions,
    *,
    provenance: Mapping[str, str] | None = None,
    labels: Sequence[str] = (),
    source_map: SourceMap | None = None,
    memo: CurveMemo | None = None,
) -> Program:
    """Write a canonical float model as a program.

    Every instruction is proven as it is written; `NotProvable` names the node whose
    instruction is not. `source_map` receives the float value that each instruction was
    written for. `memo` keeps the curves of one program for other programs of the same
    model, so that they are not computed again.
    """
    lowering = GraphLowering(
        model, table, options, source_map=source_map, memo=memo
    )
    steps, nearest_memo = model.meta.get(STEPS_OF_WEIGHTS, ()), NearestMemo()
    layer = lowering.next_layer()
    while layer is not None:
        rounded = None
        if lowering.keeps_file_formats:
            rounded = stored_integers(layer, steps)
        if rounded is None:
            rounded = as_decided(
                layer, lowering.table, lowering.options, nearest_memo
            )
            lowering.source_map.rounded.append(layer.name)
        layer = lowering.next_layer(rounded)
    return lowering.finish(provenance or {}, labels)


class GraphLowering:
    """A float model on the way to a program, lowered node by node.

    `next_layer` lowers up to the next layer with weights and returns it; the next call
    takes its rounded weights and goes on. Behind the last layer, `finish` returns the
    program.
    """

    def __init__(
        self,
        model: ir.Model,
        table: CalibrationTable,
        options: QuantizeOptions,
        *,
        source_map: SourceMap | None = None,
        memo: CurveMemo | None = None,
    ) -> None:
        graph, nodes = model.graph, list(model.graph)
        _check_layers(graph, options)
        check_channel_scales(model, table)
        formats, states = file_formats(graph, nodes), states_of(model)
        ranges = ranges_for_lowering(graph, table, formats, states.values())
        decisions = table.decisions.for_options(options.key())
        table = replace(table, ranges=ranges.ranges, decisions=decisions)
        options = with_picture_bits(graph, options)
        spectra = find_spectra(nodes, options, ranges.ranges, coded=not formats)
        self._graph = graph
        self._spectra = spectra
        self._compared = compared_inputs(graph, options)
        self._uneven = uneven_outputs(graph, table, options)
        # Last, since those before ask for which values the options choose bits.
        options = with_waveform_bits(options, spectra.waveforms)
        if not formats:
            options = with_bits_for_differences(graph, options, ranges.ranges)
        options = with_bits_of_tables(graph, options)
        self._nodes = needed_nodes(
            graph, nodes, spectra.curves, spectra.sums, spectra.quotients
        )
        plan = self._plan(ranges, options)
        self._context = LoweringContext(
            table, options, plan, file_formats=formats, memo=memo
        )
        self._context.states = StateFormats.of(
            graph, states, self._context.ranges.get
        )
        self.source_map = source_map or SourceMap()
        self._endless: list[str] = []  # keys of provenance
        self._declared: set[ir.Value] = set()  # products, each with its input
        self._layers = self._lower_nodes()

    def _plan(
        self, ranges: LoweringRanges, options: QuantizeOptions
    ) -> LoweringPlan:
        """Decide on the bits and the form of values, with the final options."""
        graph, nodes, spectra = self._graph, self._nodes, self._spectra
        output_path = output_path_values(
            graph, nodes, spectra.curves, averages=options.scales == "real"
        )
        gates = factors(nodes, spectra.curves, options)
        return LoweringPlan(
            output_path=output_path,
            of_16_bits=gates | gated_sums(nodes, options),
            shared_ranges=_values_of_shared_range(nodes),
            centrable=centrable(graph),
            masked=ranges.masked,
            filled=ranges.without_fills,
            wide=spectra.wide | self._compared.wide | self._uneven,
            wide_products=spectra.wide_products,
            coded=frozenset(spectra.quotients.coded),
            waveforms=spectra.waveforms,
        )

    @property
    def builder(self) -> ProgramBuilder:
        """The program as far as it is written."""
        return self._context.builder

    @property
    def keeps_file_formats(self) -> bool:
        """Whether the model's file gives formats."""
        return bool(self._context.file_formats)

    @property
    def table(self) -> CalibrationTable:
        """The calibration table as this lowering uses it."""
        return self._context.table

    @property
    def options(self) -> QuantizeOptions:
        """The options as this lowering uses them."""
        return self._context.options

    def next_layer(
        self, rounded: RoundedLayer | None = None
    ) -> WeightedLayer | None:
        """Write the layer returned before with these weights, and lower up to the next one.

        Return None once all nodes are lowered. The first call takes no weights.
        """
        try:
            if rounded is None:
                return next(self._layers)
            return self._layers.send(rounded)
        except StopIteration:
            return None

    def finish(
        self, provenance: Mapping[str, str], labels: Sequence[str]
    ) -> Program:
        """Declare the outputs of a graph whose nodes are all lowered, and return the program."""
        for value in self._graph.outputs:
            with self._noting(value):
                _emit_output(self._context, value, self._uneven)
        endless = dict.fromkeys(self._endless, "only compared")
        program = self.builder.finish(
            {**provenance, **endless}, labels, packs=self.options.packs_weights
        )
        self.source_map.finish(program, self.builder.written)
        self.source_map.measured = frozenset(self._context.ranges.names)
        return program

    def _lower_nodes(self) -> LayerSteps:
        """Declare the inputs, then lower the nodes in order."""
        for value in self._graph.inputs:
            with self._noting(value):
                self._declare(value)
        for node in self._nodes:
            with self._noting(node.outputs[0]):
                yield from self._lower(node)

    def _declare(self, value: ir.Value) -> None:
        """Declare a program input: of bytes, of integers, a state, or of reals."""
        context, name = self._context, name_of(value)
        if picture_layout_of(value) is not None:
            declare_picture(context, value)
            return
        integers = input_interval(context, value)
        if integers is not None:
            _declare_as(context, value, integers)
        elif name in context.states.values:
            target = context.states.declare(name, context)
            _declare_as(context, value, target)
        else:
            product = product_with_factors(value)
            source = name if product is None else name_of(product)
            target = self._format_of_reals(name, source)
            self._declared |= set() if product is None else {product}
            _declare_as(context, value, target, product)

    def _format_of_reals(self, name: str, source: str) -> Format:
        """Return the format of an input, from the range of `source`: of 30 bits if only comparisons or scalers read it.

        Any other input is unsigned if no sample was negative.
        """
        context, compared = self._context, self._compared
        measured = context.ranges.get(source)
        if name in compared.constants and measured is not None:
            target = compared.format(measured, name, self.options.scales)
            thresholds = compared.thresholds_of(name)
            context.thresholds |= dict.fromkeys(thresholds, target)
            if compared.is_endless(name, target):
                self._endless.append(f"{ENDLESS}{name}")
            return target
        least = 0.0 if measured is not None and measured.min >= 0 else -math.inf
        bits = self.options.activation_bits_of(source)
        target = context.format_for(source, bits, interval=(least, math.inf))
        if name in self._spectra.waveforms and measured is not None:
            target = sound_format(target, measured)
        return target

    def _lower(self, node: ir.Node) -> LayerSteps:
        try:
            yield from self._written(node)
        except Invalid as problem:
            raise NotProvable(
                f"{node.name} ({node.op_type}): {problem}"
            ) from problem

    def _written(self, node: ir.Node) -> LayerSteps:
        """Lower one node: as a lookup table if it ends a curve, as a code if it is such a sum, else by its rule.

        The product of an input with factors of its columns may have been declared with the input.
        """
        context, value = self._context, node.outputs[0]
        if value in self._declared:
            return
        if self._is_code_of_function(value):
            return
        curve = self._spectra.curves.get(name_of(value))
        if curve is not None:
            _lower_curve(context, value, curve)
            return
        if self._is_coded(value):
            return
        steps = lower(context, node)
        if steps is not None:
            yield from steps

    def _is_code_of_function(self, value: ir.Value) -> bool:
        """Write a function that a quotient reads as an octave code, if it can be one."""
        context, name = self._context, name_of(value)
        numerator = self._spectra.quotients.numerators.get(name)
        if numerator is not None:
            return lower_to_code(context, value, numerator, of_code=False)
        curve = self._spectra.quotients.curves.get(name)
        return curve is not None and lower_to_code(
            context, value, curve, of_code=True
        )

    def _is_coded(self, value: ir.Value) -> bool:
        """Write a sum of squares as an octave code, if that is what it becomes."""
        total = self._spectra.sums.get(name_of(value))
        if total is None:
            return False
        tensor = sum_of_squares(self._context, total)
        if tensor is not None:
            self._context.define(value, tensor)
        return tensor is not None

    @contextmanager
    def _noting(self, value: ir.Value) -> Iterator[None]:
        with self.source_map.noting(self.builder, name_of(value)):
            yield


def _values_of_shared_range(nodes: Sequence[ir.Node]) -> frozenset[str]:
    values = (value for node in nodes for value in node.outputs)
    return frozenset(
        name_of(value) for value in values if shared_range_of(value) is not None
    )


def _check_layers(graph: ir.Graph, options: QuantizeOptions) -> None:
    """Raise BadOption for bits of what is no value, and for weight bits alone of what has no weights."""
    made_by = {name_of(value): "an input" for value in graph.inputs}
    for node in graph:
        for value in node.outputs:
            made_by[name_of(value)] = node.op_type
    unknown = sorted(set(options.layers) - made_by.keys())
    if unknown:
        near = get_close_matches(unknown[0][:80], sorted(made_by), 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise BadOption(
            f"[layers.{unknown[0]}]: layer '{unknown[0]}' is not a value of the rewritten model; "
            f"{hint}`mrt rewrite` writes that model"
        )
    for name, bits in options.layers.items():
        has_weights = made_by[name] in WEIGHT_OPERANDS
        if not has_weights and bits.weight_bits and not bits.activation_bits:
            raise BadOption(
                f"[layers.{name}] weight_bits = {bits.weight_bits}: '{name}' ({made_by[name]}) has no weights; "
                "give activation_bits, or name a layer with weights"
            )


def _lower_curve(
    context: LoweringContext, value: ir.Value, curve: Curve
) -> None:
    """Write a curve as a comparison or a gate if it is one, else as a lookup table."""
    if lower_sign(context, value, curve):
        return
    if not lower_gate(context, value, curve):
        lower_curve(context, value, curve)


def _declare_as(
    context: LoweringContext,
    value: ir.Value,
    target: Format,
    product: ir.Value | None = None,
) -> None:
    """Declare a program input in a format, in the float model's layout; its integers are those of the product, if there is one."""
    name, shape = name_of(value), shape_of(value)
    layout = identity(len(shape))
    scale, zero_point = target.scale, target.zero_point
    type_ = TensorType(target.dtype, shape)
    input_ = Input(name, type_, target.least, target.most)
    meaning = Meaning(scale, zero_point, name)
    if product is not None:
        scales = scales_of_columns(product, scale)
        widest = max(scales)
        factors = tuple(one / widest for one in scales)
        several = factors if len(factors) > 1 else ()
        meaning = Meaning(widest, zero_point, name, several)
    handle = context.builder.input(input_, meaning)
    tensor = Tensor(handle, np.array([scale]), zero_point, layout)
    context.define(value if product is None else product, tensor)


def _emit_output(
    context: LoweringContext, value: ir.Value, wide: Container[str]
) -> None:
    """Emit an output in 16 bits or fewer unless it is wide, in the float model's shape and order of axes."""
    name = name_of(value)
    if is_constant(value) or value.is_graph_input():
        raise Unsupported([f"output '{name}' is not computed from the inputs"])
    tensor = context.as_computed(value)
    if name in context.states.formats:
        tensor = context.requantize_to(tensor, context.format(value), name)
    elif name in wide or has_uneven_columns(context, value):
        tensor = as_wide(context, value)
    elif not tensor.integral:
        tensor = context.requantized(value)
    tensor = context.to_float_layout(tensor)
    if tensor.integral and context.dtype(tensor) == "i32":
        tensor = context.cast_to(tensor, context.narrowest_dtype(tensor))
    meaning = Meaning(float(tensor.scale[0]), tensor.zero_point, name)
    context.builder.output(name, tensor.value, meaning)
