"""ceil_mode drops a last window that would begin in the end padding, and says nothing where auto_pad sets the size.

The library's shape inference forgets both.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from mrt.frontend.onnx.opsets.after_20 import Spelling


def resolve_ceil_mode(model: ir.Model) -> bool:
    """Rewrite the first pool whose inferred size is wrong so that it needs no ceil_mode; whether there was one.

    Inference has to run again afterwards, since every size behind the pool was wrong too.
    """
    for node in model.graph:
        if (
            node.op_type in ("MaxPool", "AveragePool", "LpPool")
            and _ints(node, "ceil_mode", (0,))[0]
            and _settle(node)
        ):
            return True
    return False


def _settle(node: ir.Node) -> bool:
    x, y = _sizes(node.inputs[0]), _sizes(node.outputs[0])
    kernel = _ints(node, "kernel_shape", ())
    if "auto_pad" in node.attributes and node.attributes[
        "auto_pad"
    ].as_string().startswith("SAME"):
        node.attributes["ceil_mode"] = ir.AttrInt64("ceil_mode", 0)
        return True
    if (
        "auto_pad" in node.attributes
        and node.attributes["auto_pad"].as_string() == "VALID"
    ):
        node.attributes.pop("auto_pad")
        node.attributes["pads"] = ir.AttrInt64s("pads", [0] * 2 * len(kernel))
        return True
    if x is None or y is None or "auto_pad" in node.attributes:
        return False
    spatial = len(kernel)
    strides = _ints(node, "strides", (1,) * spatial)
    pads = _ints(node, "pads", (0,) * 2 * spatial)
    begins, ends = pads[:spatial], list(pads[spatial:])
    starts = [(size - 1) * stride for size, stride in zip(y, strides, strict=True)]
    dropped = [
        start >= size + begin
        for start, size, begin in zip(starts, x, begins, strict=True)
    ]
    if not any(dropped):
        return False
    extents = [
        (k - 1) * d + 1
        for k, d in zip(kernel, _ints(node, "dilations", (1,) * spatial), strict=True)
    ]
    overhang = [
        start + e - size - begin
        for start, e, size, begin in zip(starts, extents, x, begins, strict=True)
    ]
    grown = [
        end if drop else max(end, over)
        for end, drop, over in zip(ends, dropped, overhang, strict=True)
    ]
    if grown != ends and _ints(node, "count_include_pad", (0,))[0]:
        if any(pads):
            _write_padding(node, begins, ends)
        grown = [more - end for more, end in zip(grown, ends, strict=True)]
        begins = (0,) * spatial
        node.attributes["count_include_pad"] = ir.AttrInt64("count_include_pad", 0)
    node.attributes["ceil_mode"] = ir.AttrInt64("ceil_mode", 0)
    node.attributes["pads"] = ir.AttrInt64s("pads", [*begins, *grown])
    return True


def _write_padding(node: ir.Node, begins: Sequence[int], ends: Sequence[int]) -> None:
    """Padding that counts is part of the input; what a window has beyond it does not count."""
    s = Spelling(node)
    node.replace_input_with(
        0, s.add("Pad", s.x, s.integers(0, 0, *begins, 0, 0, *ends))
    )


def _sizes(value: ir.Value | None) -> tuple[int, ...] | None:
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(int(str(size)) for size in value.shape)[2:]


def _ints(node: ir.Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    attribute = node.attributes.get(name)
    if attribute is None:
        return default
    return (
        (attribute.as_int(),)
        if attribute.type == ir.AttributeType.INT
        else tuple(attribute.as_ints())
    )
