"""An .onnx file becomes a float graph of opset 20 with known shapes, or a named refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from mrt.frontend.onnx.ml.operators import ML_OPERATORS, decompose_ml
from mrt.frontend.onnx.operands import check_operands
from mrt.frontend.onnx.operators import OPERATORS, refuse_unsupported
from mrt.frontend.onnx.opsets.before_7 import upgrade_to_opset_7
from mrt.frontend.onnx.opsets.ceil_mode import resolve_ceil_mode
from mrt.frontend.onnx.opsets.conv_transpose import resolve_conv_transpose_output
from mrt.frontend.onnx.opsets.experimental import decompose_experimental
from mrt.frontend.onnx.opsets.microsoft import OPERANDS as MICROSOFT
from mrt.frontend.onnx.opsets.microsoft import decompose_microsoft, set_domain
from mrt.frontend.onnx.opsets.to_20 import modernize
from mrt.frontend.onnx.quantized.dynamic import read_dynamic
from mrt.frontend.onnx.quantized.qdq import read_quantised
from mrt.frontend.onnx.read.external import bring_in
from mrt.frontend.onnx.read.library import check, find_shapes, to_ir
from mrt.frontend.onnx.read.read import drop_unused_outputs, opset_of, parse, read_bytes
from mrt.frontend.onnx.read.weights import write_weights
from mrt.frontend.onnx.resolve.control_flow import resolve_control_flow
from mrt.frontend.onnx.resolve.fixed_inputs import Values, fix_values
from mrt.frontend.onnx.resolve.functions import write_out_composed, write_out_functions
from mrt.frontend.onnx.resolve.inputs import Shapes, fix_inputs, forget_shapes
from mrt.frontend.onnx.resolve.outputs import cut, value_names

__all__ = ["MICROSOFT", "ML_OPERATORS", "OPERATORS", "Read", "load_onnx", "read_onnx"]


def load_onnx(path: Path, shapes: Shapes | None = None) -> tuple[ir.Model, bytes]:
    """The model in an .onnx file and the bytes whose hash names it."""
    read = read_onnx(path, shapes)
    return read.model, read.data


@dataclass(frozen=True)
class Read:
    """A model, the bytes whose hash names it, its values' names, and the outputs wanted that it does not have.

    The bytes are the file's or, where it keeps weights in other files or has inputs made constants, the SHA-256 of it and
    of each of those.
    """

    model: ir.Model
    data: bytes
    names: tuple[str, ...]
    outputs_left: tuple[str, ...]


def read_onnx(
    path: Path,
    shapes: Shapes | None = None,
    outputs: Sequence[str] = (),
    values: Values | None = None,
) -> Read:
    """The model in an .onnx file, ending in other outputs and with inputs made constants (`values`) if so wanted.

    Raises BadModel or Unsupported before any work.
    """
    data = read_bytes(path)
    proto = parse(data, path)
    opset = opset_of(proto, path)
    shapes = fix_values(proto, values or {}, shapes or {})
    proto = write_out_functions(proto, path)
    proto = write_out_composed(proto)
    resolve_control_flow(proto, shapes)
    names = value_names(proto)
    left = cut(proto, outputs)
    drop_unused_outputs(proto)
    set_domain(proto, opset)
    read_dynamic(proto)
    decompose_experimental(proto, opset)
    decompose_ml(proto, opset)
    refuse_unsupported(proto, opset)
    brought = bring_in(proto, path)
    if brought.digests or values:
        fixed = [
            f"{name}={float(number)!r}".encode()
            for name, number in sorted((values or {}).items())
        ]
        data = b"".join(
            hashlib.sha256(part).digest() for part in (data, *fixed)
        ) + b"".join(brought.digests)
    check(proto, path)
    model = to_ir(proto, path)
    brought.hand_to(model)
    fix_inputs(model, shapes)
    read_quantised(model)
    upgrade_to_opset_7(model)
    write_weights(model)
    modernize(model)
    decompose_microsoft(model)
    find_shapes(model, path)
    while resolve_ceil_mode(model) or resolve_conv_transpose_output(model):
        forget_shapes(model)
        find_shapes(model, path)
    check_operands(model)
    return Read(model, data, names, left)
