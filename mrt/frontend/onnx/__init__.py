"""An .onnx file becomes a float graph of opset 20 with known shapes, or a named refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.onnx.ancient import write_ancient
from mrt.frontend.onnx.branches import settle_branches
from mrt.frontend.onnx.ceil import settle_ceil_mode
from mrt.frontend.onnx.cut import cut, value_names
from mrt.frontend.onnx.experimental import spell_experimental
from mrt.frontend.onnx.external import bring_in
from mrt.frontend.onnx.functions import write_out_functions
from mrt.frontend.onnx.inputs import Shapes, fix_inputs, forget_shapes
from mrt.frontend.onnx.modernize import modernize
from mrt.frontend.onnx.operands import check_operands
from mrt.frontend.onnx.operators import OPERATORS, refuse_unsupported
from mrt.frontend.onnx.read import drop_unused_outputs, opset_of, parse, read_bytes
from mrt.frontend.onnx.weights import write_weights

__all__ = ["OPERATORS", "Read", "load_onnx", "read_onnx"]


def load_onnx(path: Path, shapes: Shapes | None = None) -> tuple[ir.Model, bytes]:
    """The model in an .onnx file and the bytes whose hash names it."""
    read = read_onnx(path, shapes)
    return read.model, read.data


@dataclass(frozen=True)
class Read:
    """A model, the bytes whose hash names it, its values' names, and the outputs wanted that it does not have.

    The bytes are the file's or, where it keeps weights in other files, the SHA-256 of it and of each of those.
    """

    model: ir.Model
    data: bytes
    names: tuple[str, ...]
    outputs_left: tuple[str, ...]


def read_onnx(path: Path, shapes: Shapes | None = None, outputs: Sequence[str] = ()) -> Read:
    """The model in an .onnx file, ending in other outputs if so wanted. Raises BadModel or Unsupported before any work."""
    data = read_bytes(path)
    proto = parse(data, path)
    opset = opset_of(proto, path)
    proto = write_out_functions(proto, path)
    settle_branches(proto, shapes or {})
    names = value_names(proto)
    left = cut(proto, outputs)
    drop_unused_outputs(proto)
    spell_experimental(proto, opset)
    refuse_unsupported(proto, opset)
    if others := bring_in(proto, path):
        data = b"".join([hashlib.sha256(data).digest(), *others])
    _check(proto, path)
    model = _to_ir(proto, path)
    fix_inputs(model, shapes or {})
    write_ancient(model)
    write_weights(model)
    modernize(model)
    model = _with_shapes(model, path)
    while settle_ceil_mode(model):
        forget_shapes(model)
        model = _with_shapes(model, path)
    check_operands(model)
    return Read(model, data, names, left)


def _check(proto: onnx.ModelProto, path: Path) -> None:
    """The library's own check, except that inputs and outputs without a shape, which it refuses, are accepted."""
    shapeless = [value for value in (*proto.graph.input, *proto.graph.output) if _lacks_shape(value)]
    for value in shapeless:
        value.type.tensor_type.shape.SetInParent()
    try:
        onnx.checker.check_model(proto)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise BadModel(f"{path}: not a valid ONNX model: {_one_line(error)}") from None
    for value in shapeless:
        value.type.tensor_type.ClearField("shape")


def _to_ir(proto: onnx.ModelProto, path: Path) -> ir.Model:
    try:
        return ir.from_proto(proto)
    except Exception as error:  # the library names no type for what it cannot take
        raise BadModel(f"{path}: not a valid ONNX model: {_root_cause(error)}") from None


def _root_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return _one_line(error)


def _lacks_shape(value: onnx.ValueInfoProto) -> bool:
    return value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape")


def _with_shapes(model: ir.Model, path: Path) -> ir.Model:
    try:
        proto = onnx.shape_inference.infer_shapes(ir.to_proto(model), check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise BadModel(f"{path}: the shapes do not fit together: {_one_line(error)}") from None
    except ir.serde.SerdeError as error:
        raise BadModel(f"{path}: not a valid ONNX model: {_root_cause(error)}") from None
    return _to_ir(proto, path)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
