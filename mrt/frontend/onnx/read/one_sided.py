"""Writes out the default of an STFT, one-sided, which the onnx library's inference takes for two-sided."""

from __future__ import annotations

import onnx

from mrt.frontend.onnx.read.sizes import nodes_with_bodies


def write_one_sided(proto: onnx.ModelProto) -> None:
    """Give every STFT its `onesided`, in place."""
    for node in nodes_with_bodies(proto.graph.node):
        if node.op_type != "STFT" or node.domain not in ("", "ai.onnx"):
            continue
        if all(attribute.name != "onesided" for attribute in node.attribute):
            one_sided = onnx.helper.make_attribute("onesided", 1)
            node.attribute.append(one_sided)
