"""Convert nodes of opsets 7 to 28 to the form that the same operator has in opset 20."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.opsets.after_20 import AFTER_20
from mrt.frontend.onnx.opsets.microsoft import DOMAIN as MICROSOFT_DOMAIN
from mrt.graph.patch import Patch, drop_attributes, set_attributes
from mrt.graph.values import (
    first,
    int_attribute,
    operand,
    string_attribute,
)

OPSET = 20
ALWAYS = 1000  # above every opset

_REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)


def modernize(model: ir.Model) -> None:
    """Convert the model to opset 20 of the default domain alone; each node keeps its meaning."""
    imports = model.graph.opset_imports
    opset = imports.get("", imports.get("ai.onnx", OPSET))
    for node in list(model.graph):
        if node.domain != MICROSOFT_DOMAIN:
            _modernize_node(node, opset)
    imports.clear()
    imports[""] = OPSET
    model.ir_version = 9  # the first IR version with opset 20
    _refuse_unknown_attributes(model)


def _modernize_node(node: ir.Node, opset: int) -> None:
    node.domain, node.version = "", None
    for below, change in CHANGES.get(node.op_type, ()):
        if opset < below:
            change(node)
    if node.op_type in AFTER_20:
        since, decompose = AFTER_20[node.op_type]
        if opset >= since:
            decompose(node)


def _refuse_unknown_attributes(model: ir.Model) -> None:
    """Refuse attributes that opset 20 lacks: a newer opset added them to change the meaning."""
    problems = []
    for node in model.graph:
        if node.domain:
            continue
        attributes = onnx.defs.get_schema(node.op_type, OPSET).attributes
        place = f"{node.name or node.outputs[0].name} ({node.op_type})"
        unknown = [name for name in node.attributes if name not in attributes]
        problems += [
            f"{place}: attribute {name} is not one of opset {OPSET}"
            for name in unknown
        ]
    if problems:
        raise Unsupported(problems)


def _move_to_inputs(
    *names: str, dtype: type[np.generic] = np.int64
) -> Callable[[ir.Node], None]:
    """Make a change that turns attributes into operands, appended in this order."""

    def change(node: ir.Node) -> None:
        values = [_move_to_constant(node, name, dtype) for name in names]
        while values and values[-1] is None:
            values.pop()
        start = len(node.inputs)
        node.resize_inputs(start + len(values))
        for offset, value in enumerate(values):
            node.replace_input_with(start + offset, value)

    return change


def _move_to_constant(
    node: ir.Node, name: str, dtype: type[np.generic]
) -> ir.Value | None:
    """Remove an attribute and return a constant with its value; None where it is absent."""
    attribute = node.attributes.pop(name, None)
    if attribute is None:
        return None
    return Patch(node).constant(np.array(attribute.value, dtype), name)


def _drop(*names: str) -> Callable[[ir.Node], None]:
    def change(node: ir.Node) -> None:
        drop_attributes(node, *names)

    return change


def _flatten_softmax(node: ir.Node) -> None:
    """Softmax -> Flatten, Softmax of rows, Reshape.

    Before opset 13 it worked on the input as a matrix that is split at `axis`.
    """
    patch, x = Patch(node, typed=False), first(node)
    shape = patch.add("Shape", x)
    matrix = patch.add("Flatten", x, axis=int_attribute(node, "axis", 1))
    rows = patch.add(node.op_type, matrix, axis=1)
    patch.become("Reshape", rows, shape)


def _pad_to_inputs(node: ir.Node) -> None:
    """Turn the pads and the value, which were attributes, into operands."""
    pads = _move_to_constant(node, "pads", np.int64)
    value = _move_to_constant(node, "value", np.float32)
    node.resize_inputs(3)
    node.replace_input_with(1, pads)
    node.replace_input_with(2, value)


def _old_resize(node: ir.Node) -> None:
    """Resize or Upsample of (x, scales) -> Resize of (x, region, scales).

    Before opset 11 element i came from floor(i / scale).
    """
    scales = operand(node, 1)
    if len(node.inputs) < 2:
        scales = _move_to_constant(node, "scales", np.float32)
    node.op_type = "Resize"
    node.resize_inputs(3)
    node.replace_input_with(1, None)
    node.replace_input_with(2, scales)
    set_attributes(
        node, coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )


def _move_k(node: ir.Node) -> None:
    """Turn k, which was an attribute, into an operand."""
    k = int_attribute(node, "k", 0)
    drop_attributes(node, "k")
    node.resize_inputs(2)
    node.replace_input_with(1, Patch(node).axes([k], "k"))


def _rename_scatter(node: ir.Node) -> None:
    node.op_type = "ScatterElements"


def _count_outputs(node: ir.Node) -> None:
    """Write the number of pieces, which opset 18 requires where no sizes are given."""
    if operand(node, 1) is None:
        set_attributes(node, num_outputs=len(node.outputs))


def _move_dft_axis(node: ir.Node) -> None:
    """Turn the axis, an attribute that was 1 by default, into an operand."""
    axis = _move_to_constant(node, "axis", np.int64)
    if axis is None:
        axis = Patch(node).constant(np.array(1), "axis")
    node.resize_inputs(3)
    node.replace_input_with(2, axis)


def _write_axes(node: ir.Node) -> None:
    """Write the default axes.

    The library infers the shape from a body of other operators, which does not receive
    the default.
    """
    if "axes" not in node.attributes:
        set_attributes(node, axes=(0, 2, 3))


def _rename_interpolation(node: ir.Node) -> None:
    """Rename bilinear -> linear, bicubic -> cubic: the mode is valid for any number of axes."""
    if "mode" in node.attributes:
        mode = string_attribute(node, "mode", "")
        set_attributes(node, mode=mode.removeprefix("bi"))


CHANGES: dict[str, tuple[tuple[int, Callable[[ir.Node], None]], ...]] = {
    "BatchNormalization": ((9, _drop("spatial")), (14, _drop("momentum"))),
    "Clip": ((11, _move_to_inputs("min", "max", dtype=np.float32)),),
    "DFT": ((20, _move_dft_axis),),
    "Dropout": ((12, _drop("ratio", "seed")),),
    "GridSample": ((20, _rename_interpolation),),
    "Hardmax": ((13, _flatten_softmax),),
    "LogSoftmax": ((13, _flatten_softmax),),
    "MeanVarianceNormalization": ((ALWAYS, _write_axes),),
    "Pad": ((11, _pad_to_inputs),),
    "ReduceSum": ((13, _move_to_inputs("axes")),),
    "Resize": ((11, _old_resize),),
    "Scatter": ((11, _rename_scatter),),
    "Slice": ((10, _move_to_inputs("starts", "ends", "axes")),),
    "Softmax": ((13, _flatten_softmax),),
    "Split": ((13, _move_to_inputs("split")), (18, _count_outputs)),
    "Squeeze": ((13, _move_to_inputs("axes")),),
    "TopK": ((10, _move_k),),
    "Upsample": ((10, _old_resize),),
    "Unsqueeze": ((13, _move_to_inputs("axes")),),
    **dict.fromkeys(_REDUCTIONS, ((18, _move_to_inputs("axes")),)),
}
