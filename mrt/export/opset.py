"""A graph of opset 20 -> the same meaning at another opset, operator by operator, or a refusal naming those without."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir
from onnx import helper
from onnx_ir.passes.common import InlinePass

from mrt.errors import BadOption, Unsupported
from mrt.export.lowerings import LOWERINGS, RefusalError
from mrt.frontend.mxnet.graph_builder import OPSET

DEFAULT_OPSET = 17  # read by nearly every runtime of the last years
OPSETS = range(11, 27)


def to_opset(model: ir.Model, opset: int) -> None:
    """Change the model in place, functions expanded; Unsupported naming every operator that the opset cannot express."""
    if opset not in OPSETS:
        raise BadOption(
            f"--opset {opset}: expected {OPSETS.start} to {OPSETS.stop - 1}"
        )
    if model.functions:
        InlinePass()(model)
    problems: list[str] = []
    for lowering in LOWERINGS:
        if lowering.applies(opset):
            for node in [
                item
                for item in model.graph
                if item.domain == "" and item.op_type in lowering.operators
            ]:
                try:
                    lowering.lower(node, opset)
                except RefusalError as refusal:
                    problems.append(f"{node.name} ({node.op_type}): {refusal}")
    _drop_defaults(model, opset)
    problems += [problem for node in model.graph for problem in _problems(node, opset)]
    if problems:
        raise Unsupported(
            sorted(set(problems)),
            f"opset {opset} cannot express this; --opset {OPSET} can",
        )
    model.opset_imports.clear()
    model.opset_imports[""] = opset
    model.ir_version = helper.find_min_ir_version_for(
        [helper.make_opsetid("", opset)], ignore_unknown=True
    )


def _schema(node: ir.Node, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None


def _drop_defaults(model: ir.Model, opset: int) -> None:
    """Attributes that the older operator does not have, where they say what it does anyway."""
    for node in model.graph:
        older, newer = _schema(node, opset), _schema(node, OPSET)
        if older is None or newer is None:
            continue
        for name in [name for name in node.attributes if name not in older.attributes]:
            if _is_default(node.attributes[name], newer.attributes):
                node.attributes.pop(name)


def _is_default(
    attribute: ir.Attr, declared: Mapping[str, onnx.defs.OpSchema.Attribute]
) -> bool:
    default = (
        declared[attribute.name].default_value if attribute.name in declared else None
    )
    if default is not None and default.type:
        return bool(helper.get_attribute_value(default) == _plain(attribute))
    return attribute.name == "dilations" and set(attribute.as_ints()) == {1}


def _plain(attribute: ir.Attr) -> object:
    return (
        attribute.value.encode()
        if isinstance(attribute.value, str)
        else attribute.value
    )


def _problems(node: ir.Node, opset: int) -> list[str]:
    label = f"{node.name} ({node.op_type})"
    schema = _schema(node, opset)
    if schema is None or schema.deprecated:
        return [f"{label}: there is no such operator in opset {opset}"]
    unknown = [name for name in node.attributes if name not in schema.attributes]
    problems = [
        f"{label}: attribute {name} came after opset {opset}" for name in unknown
    ]
    if not schema.min_input <= len(node.inputs) <= schema.max_input:
        problems.append(
            f"{label}: {len(node.inputs)} inputs; opset {opset} has at most {schema.max_input}"
        )
    return problems
