"""Canonicalizes normalizations to two operators, and norms to quotients.

The two have constant scale and shift.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import (
    Array,
    constant,
    first,
    float_attribute,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    shape_of,
)
from mrt.rewrite.normalization.normalized import add_normalized

# Smaller than any variance of float32 numbers but 0, and above 0, so that the quotient
# of zeros is 0. onnxruntime adds 1e-9 to the root for the same effect.
NO_EPSILON = 1e-18

Shape = tuple[int, ...]


def canonicalize_normalization(model: ir.Model) -> int:
    """LayerNormalization, InstanceNormalization -> constant scale and shift of full shape.

      axis: counted from the front
      a computed scale or shift -> Mul and Add after the node
      MeanVarianceNormalization -> one of the two
      LpNormalization -> x / Sqrt(sum x * x), or x / sum |x|

    NO_EPSILON keeps the sums above 0, so that the quotient is 0 where all of x is 0.
    Applies where shapes are known. Equal up to rounding.
    """
    count = 0
    for node in nodes(model, *_WRITERS):
        shape = shape_of(first(node))
        if (
            shape is not None
            and len(shape) > 0
            and node.outputs[0].shape is not None
        ):
            count += _WRITERS[node.op_type](node, shape)
    return count


def _write_layer_norm(node: ir.Node, shape: Shape) -> bool:
    axis = int_attribute(node, "axis", -1) % len(shape)
    parameters = [constant(operand(node, 1)), constant(operand(node, 2))]
    if any(
        output.uses() or output.is_graph_output() for output in node.outputs[1:]
    ):
        return _write_moments(node, shape, axis)
    if int_attribute(node, "axis", -1) == axis and all(
        parameter is not None and parameter.shape == shape[axis:]
        for parameter in parameters
    ):
        return False
    patch = Patch(node)
    epsilon = float_attribute(node, "epsilon", 1e-5)
    if all(
        parameter is not None or operand(node, index) is None
        for index, parameter in enumerate(parameters, 1)
    ):
        scale, shift = parameters
        value = patch.add(
            "LayerNormalization",
            first(node),
            _full(patch, scale, 1.0, shape[axis:], "scale"),
            _full(patch, shift, 0.0, shape[axis:], "shift"),
            axis=axis,
            epsilon=epsilon,
            stash_type=1,
        )
    else:
        axes = tuple(range(axis, len(shape)))
        value = add_normalized(patch, first(node), shape, axes, epsilon)
        value = _affine(patch, value, operand(node, 1), operand(node, 2))
    patch.take_over(value)
    assert node.graph is not None
    node.graph.remove(node, safe=True)
    return True


def _full(
    patch: Patch,
    parameter: Array | None,
    default: float,
    shape: Shape,
    role: str,
) -> ir.Value:
    """Return a parameter, or its default where it is left out, as a constant of full shape."""
    given = np.array(default) if parameter is None else parameter
    full = np.broadcast_to(given, shape).astype(np.float32)
    return patch.constant(full, role)


def _write_moments(node: ir.Node, shape: Shape, axis: int) -> bool:
    """Write the second output, the mean, and the third, 1 / standard deviation."""
    axes = tuple(range(axis, len(shape)))
    for output, role in zip(
        node.outputs[1:], ("mean", "deviation"), strict=False
    ):
        if not output.uses() and not output.is_graph_output():
            continue
        patch = Patch(node, output)
        value = patch.add(
            "ReduceMean", first(node), patch.axes(axes), keepdims=1
        )
        if role == "deviation":
            centred = patch.add("Sub", first(node), value)
            squares = patch.add("Mul", centred, centred)
            variance = patch.add(
                "ReduceMean", squares, patch.axes(axes), keepdims=1
            )
            epsilon = patch.constant(
                np.array(float_attribute(node, "epsilon", 1e-5), np.float32),
                "epsilon",
            )
            value = patch.add(
                "Reciprocal",
                patch.add("Sqrt", patch.add("Add", variance, epsilon)),
            )
        patch.take_over(value)
    return True


def _affine(
    patch: Patch,
    value: ir.Value,
    scale: ir.Value | None,
    shift: ir.Value | None,
) -> ir.Value:
    value = value if scale is None else patch.add("Mul", value, scale)
    return value if shift is None else patch.add("Add", value, shift)


def _write_instance_norm(node: ir.Node, shape: Shape) -> bool:
    if all(constant(operand(node, index)) is not None for index in (1, 2)):
        if "epsilon" in node.attributes:
            return False
        set_attributes(node, epsilon=1e-5)
        return True
    patch = Patch(node)
    per_channel = patch.axes((-1, *[1] * (len(shape) - 2)), "per_channel")
    parts = [
        patch.add("Reshape", operand(node, index), per_channel, allowzero=0)
        for index in (1, 2)
    ]
    axes = tuple(range(2, len(shape)))
    value = add_normalized(
        patch, first(node), shape, axes, float_attribute(node, "epsilon", 1e-5)
    )
    patch.finish(_affine(patch, value, parts[0], parts[1]))
    return True


def _write_mean_variance(node: ir.Node, shape: Shape) -> bool:
    signed_axes = ints_attribute(node, "axes")
    axes = tuple(
        sorted(
            {
                axis % len(shape)
                for axis in ((0, 2, 3) if signed_axes is None else signed_axes)
            }
        )
    )
    if (
        shape[0] == 1 and axes[:1] == (0,) and len(axes) > 1
    ):  # with one sample, the batch axis changes no mean
        axes = axes[1:]
    patch = Patch(node)
    patch.finish(add_normalized(patch, first(node), shape, axes, NO_EPSILON))
    return True


def _write_lp_norm(node: ir.Node, shape: Shape) -> bool:
    patch, axis = Patch(node), int_attribute(node, "axis", -1) % len(shape)
    is_l1 = int_attribute(node, "p", 2) == 1
    parts = (
        patch.add("Abs", first(node))
        if is_l1
        else patch.add("Mul", first(node), first(node))
    )
    norm = patch.add(
        "ReduceSum",
        parts,
        patch.axes((axis,)),
        keepdims=1,
        noop_with_empty_axes=0,
    )
    above_zero = patch.add(
        "Add", norm, patch.constant(np.array(NO_EPSILON, np.float32), "epsilon")
    )
    patch.finish(
        patch.add(
            "Div",
            first(node),
            above_zero if is_l1 else patch.add("Sqrt", above_zero),
        )
    )
    return True


_WRITERS: dict[str, Callable[[ir.Node, Shape], bool]] = {
    "LayerNormalization": _write_layer_norm,
    "InstanceNormalization": _write_instance_norm,
    "MeanVarianceNormalization": _write_mean_variance,
    "LpNormalization": _write_lp_norm,
}
