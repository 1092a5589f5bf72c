"""Nodes of opsets 7 to 28 take the form that the same operator has in opset 20."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.opsets.after_20 import AFTER_20
from mrt.frontend.onnx.opsets.microsoft import DOMAIN as MICROSOFT_DOMAIN

OPSET = 20
ALWAYS = 1000  # above every opset

_REDUCTIONS = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
               "ReduceSumSquare")  # fmt: skip


def modernize(model: ir.Model) -> None:
    """Bring the model to opset 20 of the default domain alone, each node meaning what it meant."""
    opset = model.graph.opset_imports.get(
        "", model.graph.opset_imports.get("ai.onnx", OPSET)
    )
    for node in list(model.graph):
        if node.domain == MICROSOFT_DOMAIN:
            continue
        node.domain, node.version = "", None
        for below, change in CHANGES.get(node.op_type, ()):
            if opset < below:
                change(node)
        since, decompose = AFTER_20.get(node.op_type, (opset + 1, None))
        if decompose is not None and opset >= since:
            decompose(node)
    model.graph.opset_imports.clear()
    model.graph.opset_imports[""] = OPSET
    model.ir_version = 9  # the first that knows opset 20
    _refuse_unknown_attributes(model)


def _refuse_unknown_attributes(model: ir.Model) -> None:
    """An attribute that opset 20 does not have came with a newer one, and changes the meaning."""
    problems = []
    for node in [node for node in model.graph if not node.domain]:
        known, name = (
            onnx.defs.get_schema(node.op_type, OPSET).attributes,
            node.name or node.outputs[0].name,
        )
        problems += [
            f"{name} ({node.op_type}): attribute {attribute} is not one of opset {OPSET}"
            for attribute in node.attributes
            if attribute not in known
        ]
    if problems:
        raise Unsupported(problems)


def _move_to_inputs(
    *names: str, dtype: type[np.generic] = np.int64
) -> Callable[[ir.Node], None]:
    """Attributes that became operands, in order, behind the operands there are."""

    def change(node: ir.Node) -> None:
        values = [_as_constant(node, name, dtype) for name in names]
        while values and values[-1] is None:
            values.pop()
        start = len(node.inputs)
        node.resize_inputs(start + len(values))
        for offset, value in enumerate(values):
            node.replace_input_with(start + offset, value)

    return change


def _as_constant(node: ir.Node, name: str, dtype: type[np.generic]) -> ir.Value | None:
    attribute = node.attributes.pop(name, None)
    if attribute is None:
        return None
    return _constant(node, name, np.array(attribute.value, dtype))


def _constant(node: ir.Node, role: str, array: npt.NDArray[Any]) -> ir.Value:
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    taken = {
        value.name
        for other in graph
        for value in (*other.inputs, *other.outputs)
        if value is not None
    }
    name = base = f"{node.outputs[0].name}.{role}"
    count = 1
    while name in taken or name in graph.initializers:
        count += 1
        name = f"{base}.{count}"
    value = ir.Value(
        name=name, const_value=ir.tensor(array, name=name), shape=ir.Shape(array.shape)
    )
    value.type = ir.TensorType(ir.DataType.from_numpy(array.dtype))
    graph.register_initializer(value)
    return value


def _insert(
    node: ir.Node, operator: str, inputs: list[ir.Value | None], **attributes: int
) -> ir.Value:
    made = ir.node(
        operator,
        inputs,
        attributes,
        name=f"{node.name or node.outputs[0].name}.{operator.lower()}",
    )
    assert isinstance(node.graph, ir.Graph)
    made.outputs[0].name = f"{node.outputs[0].name}.{operator.lower()}"
    node.graph.insert_before(node, made)
    return made.outputs[0]


def _drop(*names: str) -> Callable[[ir.Node], None]:
    def change(node: ir.Node) -> None:
        for name in names:
            node.attributes.pop(name, None)

    return change


def _flatten_softmax(node: ir.Node) -> None:
    """Before opset 13 it worked on the input seen as a matrix, split at `axis`: Flatten, Softmax, back to the shape."""
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 1
    x = node.inputs[0]
    shape = _insert(node, "Shape", [x])
    matrix = _insert(node, "Flatten", [x], axis=axis)
    result = _insert(node, node.op_type, [matrix], axis=1)
    node.attributes.clear()
    node.op_type = "Reshape"
    node.resize_inputs(2)
    node.replace_input_with(0, result)
    node.replace_input_with(1, shape)


def _pad_to_inputs(node: ir.Node) -> None:
    pads = _as_constant(node, "pads", np.int64)
    value = _as_constant(node, "value", np.float32)
    node.resize_inputs(3)
    node.replace_input_with(1, pads)
    node.replace_input_with(2, value)


def _old_resize(node: ir.Node) -> None:
    """Before opset 11 both Resize and Upsample took (x, scales), and element i came from floor(i / scale)."""
    scales = (
        node.inputs[1]
        if len(node.inputs) > 1
        else _as_constant(node, "scales", np.float32)
    )
    node.op_type = "Resize"
    node.resize_inputs(3)
    node.replace_input_with(1, None)
    node.replace_input_with(2, scales)
    node.attributes["coordinate_transformation_mode"] = ir.AttrString(
        "coordinate_transformation_mode", "asymmetric"
    )
    node.attributes["nearest_mode"] = ir.AttrString("nearest_mode", "floor")


def _count_best(node: ir.Node) -> None:
    """k was an attribute."""
    k = node.attributes.pop("k")
    node.resize_inputs(2)
    node.replace_input_with(1, _constant(node, "k", np.array([k.as_int()], np.int64)))


def _scatter_elements(node: ir.Node) -> None:
    node.op_type = "ScatterElements"


def _count_pieces(node: ir.Node) -> None:
    """Without sizes, the pieces are as many as the outputs; since opset 18 that has to be said."""
    if len(node.inputs) < 2 or node.inputs[1] is None:
        node.attributes["num_outputs"] = ir.AttrInt64("num_outputs", len(node.outputs))


def _transformed_axis(node: ir.Node) -> None:
    """The axis was an attribute, and 1 by default."""
    axis = _as_constant(node, "axis", np.int64) or _constant(node, "axis", np.array(1))
    node.resize_inputs(3)
    node.replace_input_with(2, axis)


def _name_axes(node: ir.Node) -> None:
    """The library infers its shape from a body of other operators, to which it does not hand the default."""
    if "axes" not in node.attributes:
        node.attributes["axes"] = ir.AttrInt64s("axes", [0, 2, 3])


def _rename_interpolation(node: ir.Node) -> None:
    """Interpolation is of as many axes as there are, and not named after two."""
    mode = node.attributes.get("mode")
    if mode is not None:
        node.attributes["mode"] = ir.AttrString(
            "mode", mode.as_string().removeprefix("bi")
        )


CHANGES: dict[str, tuple[tuple[int, Callable[[ir.Node], None]], ...]] = {
    "BatchNormalization": ((9, _drop("spatial")), (14, _drop("momentum"))),
    "Clip": ((11, _move_to_inputs("min", "max", dtype=np.float32)),),
    "DFT": ((20, _transformed_axis),),
    "Dropout": ((12, _drop("ratio", "seed")),),
    "GridSample": ((20, _rename_interpolation),),
    "Hardmax": ((13, _flatten_softmax),),
    "LogSoftmax": ((13, _flatten_softmax),),
    "MeanVarianceNormalization": ((ALWAYS, _name_axes),),
    "Pad": ((11, _pad_to_inputs),),
    "ReduceSum": ((13, _move_to_inputs("axes")),),
    "Resize": ((11, _old_resize),),
    "Scatter": ((11, _scatter_elements),),
    "Slice": ((10, _move_to_inputs("starts", "ends", "axes")),),
    "Softmax": ((13, _flatten_softmax),),
    "Split": ((13, _move_to_inputs("split")), (18, _count_pieces)),
    "Squeeze": ((13, _move_to_inputs("axes")),),
    "TopK": ((10, _count_best),),
    "Upsample": ((10, _old_resize),),
    "Unsqueeze": ((13, _move_to_inputs("axes")),),
    **dict.fromkeys(_REDUCTIONS, ((18, _move_to_inputs("axes")),)),
}
