"""Rewrites a graph of opset 20 for another opset, or refuses operators that it cannot express."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir
from onnx import helper
from onnx_ir.passes.common import InlinePass

from mrt.errors import BadOption, Unsupported
from mrt.export.lowerings import OPSET_CHANGES, NotExpressible
from mrt.frontend.mxnet.graph_builder import OPSET
from mrt.graph.values import nodes

DEFAULT_OPSET = 17  # nearly every runtime of the last years reads it
OPSETS = range(11, 27)


def to_opset(model: ir.Model, opset: int) -> None:
    """Change the model in place, with its functions inlined.

    Raise Unsupported with every operator that the opset cannot express.
    """
    if opset not in OPSETS:
        raise BadOption(
            f"--opset {opset}: expected {OPSETS.start} to {OPSETS.stop - 1}"
        )
    if model.functions:
        InlinePass()(model)
    problems = _change_operators(model, opset)
    _drop_defaults(model, opset)
    for node in model.graph:
        problems += _problems(node, opset)
    if problems:
        raise Unsupported(
            sorted(set(problems)),
            f"opset {opset} cannot express this; --opset {OPSET} can",
        )
    model.opset_imports.clear()
    model.opset_imports[""] = opset
    imports = [helper.make_opsetid("", opset)]
    model.ir_version = helper.find_min_ir_version_for(
        imports, ignore_unknown=True
    )


def _change_operators(model: ir.Model, opset: int) -> list[str]:
    """Rewrite each operator for the opset; return the reasons why some cannot be."""
    problems: list[str] = []
    for change in OPSET_CHANGES:
        if not change.applies(opset):
            continue
        for node in nodes(model, *change.operators):
            try:
                change.lower(node, opset)
            except NotExpressible as reason:
                problems.append(f"{node.name} ({node.op_type}): {reason}")
    return problems


def _schema(node: ir.Node, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None


def _drop_defaults(model: ir.Model, opset: int) -> None:
    """Drop attributes that the older operator lacks, where their value is its behaviour."""
    for node in model.graph:
        target = _schema(node, opset)
        current = _schema(node, OPSET)
        if target is None or current is None:
            continue
        for name, attribute in list(node.attributes.items()):
            if name in target.attributes:
                continue
            if _is_default(attribute, current.attributes):
                node.attributes.pop(name)


def _is_default(
    attribute: ir.Attr, declared: Mapping[str, onnx.defs.OpSchema.Attribute]
) -> bool:
    if attribute.name in declared:
        default = declared[attribute.name].default_value
        if default is not None and default.type:
            return bool(
                helper.get_attribute_value(default) == _plain(attribute)
            )
    return attribute.name == "dilations" and set(attribute.as_ints()) == {1}


def _plain(attribute: ir.Attr) -> object:
    """Return the value as protobufs hold it, with bytes for a text."""
    value = attribute.value
    return value.encode() if isinstance(value, str) else value


def _problems(node: ir.Node, opset: int) -> list[str]:
    label = f"{node.name} ({node.op_type})"
    schema = _schema(node, opset)
    if schema is None or schema.deprecated:
        return [f"{label}: there is no such operator in opset {opset}"]
    problems = [
        f"{label}: attribute {name} came after opset {opset}"
        for name in node.attributes
        if name not in schema.attributes
    ]
    if not schema.min_input <= len(node.inputs) <= schema.max_input:
        problems.append(
            f"{label}: {len(node.inputs)} inputs; "
            f"opset {opset} has at most {schema.max_input}"
        )
    return problems
