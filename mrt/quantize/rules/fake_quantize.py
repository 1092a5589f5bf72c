"""The rule of FakeQuantize of the domain "mrt": the value in the format that the file gives."""

from __future__ import annotations

import onnx_ir as ir

from mrt.quantize.context import LoweringContext
from mrt.quantize.file_formats import format_of_node
from mrt.quantize.rules.registry import own_rule


@own_rule("FakeQuantize")
def fake_quantize(net: LoweringContext, node: ir.Node) -> None:
    """Requantize to the file's format; a tensor that has it already stays as it is."""
    tensor = net.as_computed(node.inputs[0])
    target, result = format_of_node(node), node.outputs[0]
    net.define(result, net.requantize_to(tensor, target, str(result.name)))
