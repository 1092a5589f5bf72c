"""A ConvTranspose that names the size of its result: the library's shape inference finds another one, or gives up."""

from __future__ import annotations

import onnx_ir as ir


def resolve_conv_transpose_output(model: ir.Model) -> bool:
    """Write the pads of the first one whose inferred shape is wrong; whether there was one.

    Inference has to run again afterwards, since every size behind it was wrong too.
    """
    return any(
        node.op_type == "ConvTranspose" and _settle(node) for node in model.graph
    )


def _settle(node: ir.Node) -> bool:
    """Of SAME_UPPER and SAME_LOWER the size is input times stride, or what there is, if that is less."""
    x, weights, y = (
        _shape(value) for value in (node.inputs[0], node.inputs[1], node.outputs[0])
    )
    given = _ints(node, "output_shape", ())
    mode = (
        node.attributes["auto_pad"].as_string()
        if "auto_pad" in node.attributes
        else "NOTSET"
    )
    if (
        x is None
        or weights is None
        or len(x) < 3
        or len(weights) != len(x)
        or not (given or mode.startswith("SAME"))
    ):
        return False
    spatial = len(x) - 2
    strides, dilations = (
        _ints(node, name, (1,) * spatial) for name in ("strides", "dilations")
    )
    extra = _ints(node, "output_padding", (0,) * spatial)
    if any(
        len(numbers) != spatial
        for numbers in (strides, dilations, extra, given[-spatial:] or strides)
    ):
        return False
    kernel = zip(x[2:], strides, weights[2:], dilations, extra, strict=True)
    full = [
        (size - 1) * step + (taps - 1) * wide + 1 + more
        for size, step, taps, wide, more in kernel
    ]
    same = (
        min(size * step, most)
        for size, step, most in zip(x[2:], strides, full, strict=True)
    )
    wanted = given[-spatial:] or tuple(same)
    if y is not None and y[2:] == wanted:
        return False
    totals = [size - want for size, want in zip(full, wanted, strict=True)]
    before = [
        max(total, 0) // 2
        if mode == "SAME_UPPER"
        else max(total, 0) - max(total, 0) // 2
        for total in totals
    ]
    after = [max(total, 0) - half for total, half in zip(totals, before, strict=True)]
    node.attributes["pads"] = ir.AttrInt64s("pads", [*before, *after])
    grown = [more + max(-total, 0) for more, total in zip(extra, totals, strict=True)]
    node.attributes["output_padding"] = ir.AttrInt64s("output_padding", grown)
    for name in ("auto_pad", "output_shape"):
        node.attributes.pop(name, None)
    return True


def _shape(value: ir.Value | None) -> tuple[int, ...] | None:
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(int(str(size)) for size in value.shape)


def _ints(node: ir.Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    attribute = node.attributes.get(name)
    return default if attribute is None else tuple(attribute.as_ints())
