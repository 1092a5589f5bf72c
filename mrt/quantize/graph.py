"""Walks a canonical float graph in order and lets the rule of each operator write its part of the program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.errors import Invalid
from cvm.program import Input, Meaning, Program, TensorType
from mrt.errors import BadOption, NotProvable, Unsupported
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.graph.notes import BYTES, ONE_RANGE
from mrt.quantize.channel_centres import centrable
from mrt.quantize.channel_scales import check_channel_scales
from mrt.quantize.context import LoweringContext, identity
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.curve_memo import CurveMemo
from mrt.quantize.curves.table_fusion import find_curves, lower_curve
from mrt.quantize.inputs import input_interval
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.picture_inputs import declare_picture, with_pictures
from mrt.quantize.rounding import Rounding, as_decided
from mrt.quantize.rules import RULES
from mrt.quantize.rules.integers import lower_integer
from mrt.quantize.rules.non_max_suppression import suppress
from mrt.quantize.softmax_masks import without_masks
from mrt.quantize.source_map import SourceMap
from mrt.quantize.tensor import Tensor
from mrt.table.table import CalibrationTable

HEAD_OPERATORS = frozenset(
    {
        "Reshape",
        "Transpose",
        "Slice",
        "Concat",
        "Softmax",
        "Relu",
        "Clip",
        "Neg",
        "Pad",
        "ArgMax",
        "TopK",
        "Gather",
        "GatherElements",
        "Cast",
    }
)
"""Operators through which a model's output is still a head: its inputs keep 16 bits too."""

DETECTOR_OPERATORS = HEAD_OPERATORS | {
    "NonMaxSuppression",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Min",
    "Max",
    "Where",
}
"""The same in a model that chooses among boxes: what makes boxes of offsets needs more than 8 bits."""


def quantize(
    model: ir.Model,
    table: CalibrationTable,
    options: QuantizeOptions,
    *,
    provenance: Mapping[str, str] | None = None,
    labels: Sequence[str] = (),
    source_map: SourceMap | None = None,
    memo: CurveMemo | None = None,
    rounding: Rounding = as_decided,
) -> Program:
    """A canonical float model as a program. Every instruction is proven as it is written; `NotProvable` says which cannot be.

    `source_map`, if given, notes for which float value each instruction was written; `memo` spares what was computed for another
    program of the same model; `rounding` makes integers of weights.
    """
    source_map = source_map or SourceMap()
    nodes = list(model.graph)
    _check_layers(model.graph, options)
    check_channel_scales(model, table)
    curves = find_curves(nodes)
    needed = _needed(model.graph, nodes, curves)
    table = replace(table, decisions=table.decisions.for_options(options.key()))
    table, options = with_pictures(
        model.graph, nodes, without_masks(nodes, table), options
    )
    net = LoweringContext(
        table,
        options,
        _heads(model.graph, needed, curves),
        _alike(needed),
        centrable(model.graph),
        rounding,
    )
    net.curves = memo or net.curves
    for value in model.graph.inputs:
        with source_map.noting(net.builder, name_of(value)):
            _declare(net, value)
    for node in needed:
        with source_map.noting(net.builder, name_of(node.outputs[0])):
            _lower(net, node, curves)
    for value in model.graph.outputs:
        with source_map.noting(net.builder, name_of(value)):
            _emit_output(net, value)
    program = net.builder.finish(provenance or {}, labels)
    source_map.finish(program, net.builder.written)
    return program


def _alike(nodes: Sequence[ir.Node]) -> frozenset[str]:
    values = (value for node in nodes for value in node.outputs)
    return frozenset(
        name_of(value) for value in values if ONE_RANGE in value.metadata_props
    )


def _check_layers(graph: ir.Graph, options: QuantizeOptions) -> None:
    known = {
        name_of(value)
        for value in (
            *graph.inputs,
            *(output for node in graph for output in node.outputs),
        )
    }
    unknown = sorted(set(options.layers) - known)
    if unknown:
        raise BadOption(
            f"layer '{unknown[0]}' is not a value of the rewritten model; `mrt rewrite` writes that model"
        )


def _lower(net: LoweringContext, node: ir.Node, curves: Mapping[str, Curve]) -> None:
    value = node.outputs[0]
    try:
        if name_of(value) in curves:
            lower_curve(net, value, curves[name_of(value)])
        elif node.domain:
            suppress(net, node)
        elif lower_integer(net, node):
            pass
        elif node.op_type in RULES:
            RULES[node.op_type](net, node)
        else:
            raise Unsupported(
                [f"{node.name} ({node.op_type}): cannot be computed with integers here"]
            )
    except Invalid as problem:
        raise NotProvable(f"{node.name} ({node.op_type}): {problem}") from problem


def _read(node: ir.Node, curves: Mapping[str, Curve]) -> list[str]:
    """Names of what the program reads to compute a node: a table reads its root alone."""
    curve = curves.get(name_of(node.outputs[0]))
    return [
        name_of(value)
        for value in ([curve.root] if curve else node.inputs)
        if value is not None
    ]


def _needed(
    graph: ir.Graph, nodes: Sequence[ir.Node], curves: Mapping[str, Curve]
) -> list[ir.Node]:
    """The nodes that outputs need, in order; what lies inside a table need not be computed."""
    names = {name_of(value) for value in graph.outputs}
    needed: list[ir.Node] = []
    for node in reversed(nodes):
        if names & {name_of(value) for value in node.outputs}:
            needed.append(node)
            names.update(_read(node, curves))
    return needed[::-1]


def _heads(
    graph: ir.Graph, nodes: Sequence[ir.Node], curves: Mapping[str, Curve]
) -> frozenset[str]:
    """Names of the values that lead to outputs through movement, softmax and curves only: they keep 16 bits."""
    outputs = {name_of(value) for value in graph.outputs}
    operators = (
        DETECTOR_OPERATORS if any(node.domain for node in nodes) else HEAD_OPERATORS
    )
    heads, others = (
        set(outputs),
        set[str](),
    )  # others: read by something that is not on the way to a head
    for node in reversed(nodes):
        made = {name_of(value) for value in node.outputs}
        passes = (
            not made & others
            and bool(made & heads)
            and (node.op_type in operators or bool(made & curves.keys()))
        )
        (heads if passes else others).update(_read(node, curves))
    return frozenset(heads - (others - outputs))


def _declare(net: LoweringContext, value: ir.Value) -> None:
    """A program input at the value's own range: unsigned if calibration saw nothing negative."""
    if BYTES in value.metadata_props:
        return declare_picture(net, value)
    name, shape = name_of(value), shape_of(value)
    if (whole := input_interval(net, value)) is not None:
        item = Input(name, TensorType(whole.dtype, shape), whole.least, whole.most)
        handle = net.builder.input(item, Meaning(1.0, 0, name))
        return net.define(value, Tensor(handle, np.ones(1), 0, identity(len(shape))))
    seen = net.table.ranges.get(name)
    least = 0.0 if seen is not None and seen.min >= 0 else -math.inf
    target = net.format_for(
        name, net.options.activation_bits_of(name), interval=(least, math.inf)
    )
    meaning = Meaning(target.scale, target.zero_point, name)
    item = Input(name, TensorType(target.dtype, shape), target.least, target.most)
    handle = net.builder.input(item, meaning)
    return net.define(
        value,
        Tensor(
            handle, np.array([target.scale]), target.zero_point, identity(len(shape))
        ),
    )


def _emit_output(net: LoweringContext, value: ir.Value) -> None:
    """The narrow form of a head, in the float model's shape and order of axes."""
    name = name_of(value)
    if constant_of(value) is not None or value.is_graph_input():
        raise Unsupported([f"output '{name}' is not computed from the inputs"])
    tensor = net.as_computed(value)
    tensor = net.to_float_layout(tensor if tensor.integral else net.requantized(value))
    if tensor.integral and net.dtype(tensor) == "i32":
        tensor = net.cast_to(tensor, net.narrowest_dtype(tensor))
    net.builder.output(
        name, tensor.value, Meaning(float(tensor.scale[0]), tensor.zero_point, name)
    )
