"""Load a symbol file and a parameter file as the float model: plan, build, fill the parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx_ir as ir

from mrt.errors import BadOption
from mrt.frontend.mxnet.build import (
    Built,
    ConversionPlan,
    build,
    marked_parameters,
    plan,
    stated_sizes,
)
from mrt.frontend.mxnet.files import (
    find_params,
    joined_sha256,
    params_beside,
    read_parameters,
    read_symbol_bytes,
)
from mrt.frontend.mxnet.fill import fill
from mrt.frontend.mxnet.gluon_names import match_names
from mrt.frontend.mxnet.random_weights import (
    check_seed,
    fill_randomly,
    seed_digest,
)
from mrt.frontend.mxnet.select_outputs import node_names, select_outputs
from mrt.frontend.mxnet.symbol import Symbol, read_symbol
from mrt.graph.open_shapes import FindShapes, Shape, complete_shapes

NOTES = "mrt_notes"  # metadata key of the model: notes on what loading changed, one a line


@dataclass(frozen=True)
class ModelSource:
    """A symbol file, the origin of its parameters, shapes of inputs and requested outputs."""

    symbol: Path
    params: Path | None = None
    epoch: int | None = None
    random_weights: int | None = None
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    find_shapes: FindShapes | None = None  # for inputs that are still open


@dataclass(frozen=True)
class Loaded:
    """A converted model.

    `sha256` is the joined hash of the two files, `names` are those of the nodes, and
    `missing_outputs` are the requested outputs not found in the file.
    """

    model: ir.Model
    sha256: str
    names: tuple[str, ...]
    missing_outputs: tuple[str, ...] = ()


def load_mxnet(
    symbol_path: Path,
    params_path: Path | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> ir.Model:
    """Return the model with float32 parameters.

    Unsupported operators are refused before the parameters are read.
    """
    return read_mxnet(
        ModelSource(symbol_path, params_path, shapes=shapes or {})
    ).model


def read_mxnet(source: ModelSource) -> Loaded:
    """Return the model with the parameters and outputs that the source requests."""
    _check_options(source)
    data = read_symbol_bytes(source.symbol)
    symbol = read_symbol(data, str(source.symbol))
    names = tuple(node_names(symbol))
    not_found: list[str] = []
    full_symbol = symbol
    if source.outputs:
        symbol, not_found = select_outputs(symbol, source.outputs)
    conversion = plan(symbol)
    if source.random_weights is None:
        model, digest = _with_file(source, conversion, full_symbol)
    else:
        model, digest = _with_random_weights(
            source, conversion, source.random_weights
        )
    return Loaded(model, joined_sha256(data, digest), names, tuple(not_found))


def _check_options(source: ModelSource) -> None:
    if source.params is not None and source.epoch is not None:
        raise BadOption(
            f"--params {source.params} and --epoch {source.epoch}: both name a parameter file; give one"
        )
    if source.random_weights is None:
        return
    check_seed(source.random_weights)
    for option, value in (
        ("--params", source.params),
        ("--epoch", source.epoch),
    ):
        if value is not None:
            raise BadOption(
                f"--random-weights and {option} {value}: the weights are either invented or read; give one of the two"
            )


def _with_file(
    source: ModelSource, conversion: ConversionPlan, full_symbol: Symbol
) -> tuple[ir.Model, bytes]:
    """Fill parameters from their file; a symbol without parameters needs no file."""
    path = source.params or _found_parameter_file(source, conversion)
    if path is None:
        built = build(conversion, source.shapes, {})
        notes = fill(built, conversion, {}, None)
        return _model(built, notes), hashlib.sha256(b"").digest()
    parameters = read_parameters(path)
    arrays, notes = match_names(
        parameters, full_symbol, lambda: _expected_shapes(source, full_symbol)
    )
    shapes_in_file = {
        name: () if array is None else array.shape
        for name, array in arrays.items()
    }
    built = _build(source, conversion, shapes_in_file)
    notes += fill(built, conversion, arrays, path)
    return _model(built, notes), parameters.digest


def _found_parameter_file(
    source: ModelSource, conversion: ConversionPlan
) -> Path | None:
    """Return the parameter file beside the symbol; None if none is needed and none is there."""
    is_needed = conversion.parameters or source.epoch is not None
    if is_needed or params_beside(source.symbol):
        return find_params(source.symbol, source.epoch)
    return None


def _with_random_weights(
    source: ModelSource, conversion: ConversionPlan, seed: int
) -> tuple[ir.Model, bytes]:
    built = _build(
        source, conversion, marked_parameters(conversion, set(source.shapes))
    )
    fill_randomly(built, conversion, seed)
    note = f"the weights are random numbers of seed {seed}: good for shapes, speed and tests, not for answers"
    return _model(built, [note]), seed_digest(seed)


def _build(
    source: ModelSource,
    conversion: ConversionPlan,
    parameter_shapes: Mapping[str, Shape],
) -> Built:
    """Build with shapes from elsewhere for inputs to which neither the file nor the user gave one."""
    stated = stated_sizes(conversion, parameter_shapes)
    shapes = complete_shapes(source.shapes, stated, source.find_shapes)
    return build(conversion, shapes, parameter_shapes)


def _expected_shapes(source: ModelSource, symbol: Symbol) -> dict[str, Shape]:
    """Return the shapes of all parameters that follow from the inputs, in order of first use."""
    conversion = plan(symbol)
    built = _build(
        source, conversion, marked_parameters(conversion, set(source.shapes))
    )
    shapes: dict[str, Shape] = {}
    for name, parameter in built.builder.parameters.items():
        expected = parameter.expected or ((),)
        shapes[name] = parameter.shape or expected[0]
    return shapes


def _model(built: Built, notes: Sequence[str]) -> ir.Model:
    model = built.builder.finish(built.inputs, built.outputs)
    if notes:
        model.metadata_props[NOTES] = "\n".join(notes)
    return model
