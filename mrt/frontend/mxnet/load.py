"""Symbol file and parameter file -> the float model: plans, builds, fills."""

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
    Shape,
    build,
    marked_parameters,
    plan,
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
from mrt.frontend.mxnet.random_weights import check_seed, fill_randomly, seed_digest
from mrt.frontend.mxnet.select_outputs import node_names, select_outputs
from mrt.frontend.mxnet.symbol import Symbol, read_symbol

NOTES = "mrt_notes"  # key of the model's metadata under which one reads what was changed on the way, one a line


@dataclass(frozen=True)
class Source:
    """A symbol's file, where its parameters come from, the shapes of its inputs, and which outputs are wanted."""

    symbol: Path
    params: Path | None = None
    epoch: int | None = None
    random_weights: int | None = None
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    outputs: Sequence[str] = ()


@dataclass(frozen=True)
class Loaded:
    """The model, the hash of what it came from, the names of its nodes, and the outputs wanted that it does not know."""

    model: ir.Model
    sha256: str
    names: tuple[str, ...]
    outputs_left: tuple[str, ...] = ()


def load_mxnet(
    symbol_path: Path,
    params_path: Path | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> ir.Model:
    """The model with float32 parameters. What is unsupported is refused before any parameter is read."""
    return read_mxnet(Source(symbol_path, params_path, shapes=shapes or {})).model


def read_mxnet(source: Source) -> Loaded:
    """The model as the options want it."""
    _check_options(source)
    data = read_symbol_bytes(source.symbol)
    symbol = read_symbol(data, str(source.symbol))
    names = tuple(node_names(symbol))
    left: list[str] = []
    whole = symbol
    if source.outputs:
        symbol, left = select_outputs(symbol, source.outputs)
    made = plan(symbol)
    if source.random_weights is None:
        model, digest = _with_file(source, made, whole)
    else:
        model, digest = _with_random_weights(source, made, source.random_weights)
    return Loaded(model, joined_sha256(data, digest), names, tuple(left))


def _check_options(source: Source) -> None:
    if source.params is not None and source.epoch is not None:
        raise BadOption(
            f"--params {source.params} and --epoch {source.epoch}: both name a parameter file; give one"
        )
    if source.random_weights is None:
        return
    check_seed(source.random_weights)
    for option, value in (("--params", source.params), ("--epoch", source.epoch)):
        if value is not None:
            raise BadOption(
                f"--random-weights and {option} {value}: the weights are either invented or read; give one of the two"
            )


def _with_file(
    source: Source, made: ConversionPlan, whole: Symbol
) -> tuple[ir.Model, bytes]:
    """Filled from the parameter file; without parameters and without a file, as it is."""
    path = source.params
    if path is None and (
        made.parameters or source.epoch is not None or params_beside(source.symbol)
    ):
        path = find_params(source.symbol, source.epoch)
    if path is None:
        built = build(made, source.shapes, {})
        return _model(built, fill(built, made, {}, None)), hashlib.sha256(b"").digest()
    parameters = read_parameters(path)
    arrays, notes = match_names(
        parameters, whole, lambda: _wanted_shapes(source, whole)
    )
    known = {
        name: () if array is None else array.shape for name, array in arrays.items()
    }
    built = build(made, source.shapes, known)
    return _model(built, notes + fill(built, made, arrays, path)), parameters.digest


def _with_random_weights(
    source: Source, made: ConversionPlan, seed: int
) -> tuple[ir.Model, bytes]:
    built = build(made, source.shapes, marked_parameters(made, set(source.shapes)))
    fill_randomly(built, made, seed)
    note = f"the weights are random numbers of seed {seed}: good for shapes, speed and tests, not for answers"
    return _model(built, [note]), seed_digest(seed)


def _wanted_shapes(source: Source, symbol: Symbol) -> dict[str, Shape]:
    """Of all parameters of the symbol, in the order of their first use, as they follow from its inputs' shapes."""
    made = plan(symbol)
    built = build(made, source.shapes, marked_parameters(made, set(source.shapes)))
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
