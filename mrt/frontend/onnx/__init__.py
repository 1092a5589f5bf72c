"""The reader of .onnx files: float graphs of opset 20 with known shapes, or named refusals."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from mrt.errors import BadData, BadModel, Unsupported
from mrt.frontend.onnx.ml.dictionaries import read_dictionaries
from mrt.frontend.onnx.ml.missing_numbers import note_missing_numbers
from mrt.frontend.onnx.ml.operators import ML_OPERATORS, decompose_ml
from mrt.frontend.onnx.operands import check_operands
from mrt.frontend.onnx.operators import (
    OPERATORS,
    refuse_inputs_of_text,
    refuse_unsupported,
)
from mrt.frontend.onnx.opsets.before_7 import upgrade_to_opset_7
from mrt.frontend.onnx.opsets.ceil_mode import drop_auto_pad_beside_ceil_mode
from mrt.frontend.onnx.opsets.experimental import (
    EXPERIMENTAL,
    decompose_experimental,
)
from mrt.frontend.onnx.opsets.microsoft import OPERANDS as MICROSOFT
from mrt.frontend.onnx.opsets.microsoft import decompose_microsoft, set_domain
from mrt.frontend.onnx.opsets.to_20 import modernize
from mrt.frontend.onnx.opsets.wrong_sizes import (
    MOST_ROUNDS,
    resolve_wrong_sizes,
    too_many_in_a_row,
)
from mrt.frontend.onnx.quantized.dynamic import read_dynamic
from mrt.frontend.onnx.quantized.qdq import read_quantized
from mrt.frontend.onnx.quantized.qonnx import import_qonnx
from mrt.frontend.onnx.quantized.rewritten_grids import read_rewritten_grids
from mrt.frontend.onnx.read.assumed_batch import explained
from mrt.frontend.onnx.read.external import (
    StoredWeights,
    open_stored_weights,
    stored_files,
)
from mrt.frontend.onnx.read.functions import inline_composed, inline_functions
from mrt.frontend.onnx.read.library import (
    check,
    find_shapes,
    to_ir,
    to_protobuf,
)
from mrt.frontend.onnx.read.one_sided import write_one_sided
from mrt.frontend.onnx.read.read import (
    name_opset,
    opset_of,
    parse,
    read_bytes,
)
from mrt.frontend.onnx.read.sizes import refuse_large
from mrt.frontend.onnx.read.splits import refuse_wrong_splits
from mrt.frontend.onnx.read.weights import write_weights
from mrt.frontend.onnx.resolve.bodies import link_outer_outputs
from mrt.frontend.onnx.resolve.class_free import (
    class_free_outputs,
    outputs_of_regressors,
)
from mrt.frontend.onnx.resolve.constants import (
    compute_constant_outputs,
    read_constants_directly,
)
from mrt.frontend.onnx.resolve.control_flow import resolve_control_flow
from mrt.frontend.onnx.resolve.fixed_inputs import Values, fix_values
from mrt.frontend.onnx.resolve.inputs import (
    Shapes,
    drop_initializers_from_inputs,
    fix_inputs,
    forget_shapes,
    input_names,
    options_of_open_shapes,
    stated_sizes,
)
from mrt.frontend.onnx.resolve.outputs import (
    choose_outputs,
    drop_unused_outputs,
    value_names,
)
from mrt.frontend.onnx.resolve.rows_of_boxes import note_rows_of_boxes
from mrt.frontend.onnx.resolve.small_operands import refuse_small_operands
from mrt.graph.class_free import set_class_free
from mrt.graph.notes import read_from_metadata
from mrt.graph.open_shapes import FindShapes, complete_shapes

__all__ = [
    "MICROSOFT",
    "ML_OPERATORS",
    "OPERATORS",
    "Read",
    "load_onnx",
    "read_onnx",
    "stored_files",
]


def load_onnx(
    path: Path, shapes: Shapes | None = None
) -> tuple[ir.Model, bytes]:
    """Return the model in an .onnx file and the bytes whose hash names it."""
    read = read_onnx(path, shapes)
    return read.model, read.data


@dataclass(frozen=True)
class Read:
    """A model, the bytes whose hash names it, and the names of its values.

    The bytes are those of the file. If the file keeps weights in other files, or if
    inputs were made constants, they are the SHA-256 digests of the file and of each of
    those. `missing_outputs` are the requested outputs that the model does not have.
    """

    model: ir.Model
    data: bytes
    names: tuple[str, ...]
    missing_outputs: tuple[str, ...]


def read_onnx(
    path: Path,
    shapes: Shapes | None = None,
    outputs: Sequence[str] = (),
    values: Values | None = None,
    *,
    find_shapes: FindShapes | None = None,
) -> Read:
    """Read an .onnx file; `outputs` are the values to end in, `values` are inputs to fix.

    `find_shapes` gives the shapes of inputs that neither the file nor `shapes` has.

    Raise BadModel or Unsupported before any later stage begins.
    """
    values = values or {}
    data = read_bytes(path)
    model, opset, stored = _parse_model(data, path)
    # Inputs that the user fixed become constants, so that conditions can follow from
    # them.
    shapes = fix_values(model, values, shapes or {})
    stated = stated_sizes(model)
    try:
        shapes = complete_shapes(shapes, stated, find_shapes)
    except BadData:
        # What the model lacks counts more than what the data do.
        refuse_inputs_of_text(model)
        raise
    # If, Loop, Scan and sequences become plain nodes.
    resolve_control_flow(model, shapes)
    names = value_names(model)
    # The model ends in the values that the user requested.
    before = input_names(model)
    missing = choose_outputs(model, outputs)
    drop_unused_outputs(model)
    read_constants_directly(model)
    compute_constant_outputs(model)
    note_missing_numbers(model)
    regressions = outputs_of_regressors(model)
    # Operators that have no form in opset 20 are written in more basic ones.
    model = _decompose_others(model, opset, path)
    # Everything that is not supported is refused at once.
    refuse_unsupported(model, opset, options_of_open_shapes(model, shapes))
    import_qonnx(model)
    check(model, path)
    # Inputs have known shapes from here on. Those that no requested output needs are gone.
    gone = before - input_names(model)
    assumed = fix_inputs(
        model,
        {name: shape for name, shape in shapes.items() if name not in gone},
    )
    _convert_to_opset_20(model)
    refuse_small_operands(model, path, stated)
    # All values have types and known shapes from here on.
    try:
        _find_all_shapes(model, path)
        check_operands(model)
    except (BadModel, Unsupported) as problem:
        raise explained(problem, model, path, assumed) from None
    # A file written by `mrt rewrite` holds the notes of its values as text.
    read_from_metadata(model)
    set_class_free(model, regressions | class_free_outputs(model, stated))
    note_rows_of_boxes(model)
    return Read(model, _bytes_to_hash(data, stored, values), names, missing)


def _parse_model(
    data: bytes, path: Path
) -> tuple[ir.Model, int, StoredWeights]:
    """Return the model in the bytes, its opset, and the weights that are in other files.

    The steps that work on the protobuf are all here; every later one works on onnx_ir.
    """
    proto = parse(data, path)
    name_opset(proto)
    opset = opset_of(proto, path)
    refuse_large(proto, path)
    read_dictionaries(proto)
    read_rewritten_grids(proto)
    # Functions, the model's own and some of ONNX's, are inlined by the onnx library.
    proto = inline_functions(proto, path)
    refuse_wrong_splits(proto)
    proto = inline_composed(proto)
    write_one_sided(proto)
    # Files of weights are opened after a check of their folder and their length.
    stored = open_stored_weights(proto, path)
    model = to_ir(proto, path)
    stored.attach_to(model)
    # Some files deviate from ONNX in two ways, which are corrected here.
    link_outer_outputs(model)
    drop_initializers_from_inputs(model)
    return model, opset, stored


def _decompose_others(model: ir.Model, opset: int, path: Path) -> ir.Model:
    """Decompose operators that onnxruntime, Core ML's converters and scikit-learn's write.

    These steps still work on a protobuf, which is made only for the models that need
    them.
    """
    if not any(_may_be_decomposed(node) for node in model.graph):
        return model
    proto = to_protobuf(model, path)
    set_domain(proto, opset)
    read_dynamic(proto)
    decompose_experimental(proto, opset)
    decompose_ml(proto, opset)
    return to_ir(proto, path)


def _may_be_decomposed(node: ir.Node) -> bool:
    operators = ("DynamicQuantizeLinear", "LayerNormalization", *EXPERIMENTAL)
    simplified = "SimplifiedLayerNormalization"
    return bool(node.domain) or node.op_type in (*operators, simplified)


def _convert_to_opset_20(model: ir.Model) -> None:
    # Names are collected anew: some of these steps choose names by themselves.
    model.graph.meta.clear()
    # Integers of quantized models become the reals that they represent.
    read_quantized(model)
    upgrade_to_opset_7(model)
    # Every weight becomes float32 or an integer constant.
    write_weights(model)
    modernize(model)
    decompose_microsoft(model)


def _find_all_shapes(model: ir.Model, path: Path) -> None:
    """Infer all shapes, and again after nodes whose sizes the library infers wrong."""
    drop_auto_pad_beside_ceil_mode(model)
    find_shapes(model, path)
    rounds = 0
    while resolved := resolve_wrong_sizes(model):
        rounds += 1
        if rounds > MOST_ROUNDS:
            raise too_many_in_a_row(resolved[0])
        forget_shapes(model)
        find_shapes(model, path)


def _bytes_to_hash(data: bytes, stored: StoredWeights, values: Values) -> bytes:
    """Return the bytes whose hash names the model with its other files and values."""
    if not stored.digests and not values:
        return data
    digests = [hashlib.sha256(data).digest()]
    for name, number in sorted(values.items()):
        text = f"{name}={float(number)!r}"
        digests.append(hashlib.sha256(text.encode()).digest())
    return b"".join((*digests, *stored.digests))
