"""Rules of windows without weights: MaxPool and AveragePool. The scale of the input stays."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.octave_pools import average_of_codes
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor
from mrt.quantize.window import fit_window


@rule("MaxPool")
def max_pool(net: LoweringContext, node: ir.Node) -> None:
    """Write a max_pool2d, of codes, too; padded positions are never the maximum."""
    codes = net.codes_for(node, node.inputs[:1])
    x = codes[0] if codes else net.requantized(node.inputs[0])
    _pool(net, node, "max_pool2d", x)


@rule("AveragePool")
def average_pool(net: LoweringContext, node: ir.Node) -> None:
    """Write an avg_pool2d, of codes sums as codes; padded positions are not counted."""
    if net.codes_for(node, node.inputs[:1]):
        net.define(node.outputs[0], average_of_codes(net, node))
        return
    _pool(net, node, "avg_pool2d", net.requantized(node.inputs[0]))


def _pool(net: LoweringContext, node: ir.Node, name: str, x: Tensor) -> None:
    x = net.to_nhwc(x)
    kernel, stride = (
        tuple(node.attributes[key].as_ints())
        for key in ("kernel_shape", "strides")
    )
    value, pad = fit_window(
        net, x.value, kernel, stride, tuple(node.attributes["pads"].as_ints())
    )
    zero_points: dict[str, int] = {}
    if name == "avg_pool2d":
        zero_points = {"input_zp": x.zero_point, "output_zp": x.zero_point}
    value = net.builder.emit(
        name, value, kernel=kernel, stride=stride, pad=pad, **zero_points
    )
    net.define(node.outputs[0], replace(x, value=value))
