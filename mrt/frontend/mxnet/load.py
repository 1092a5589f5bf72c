"""Symbol file and parameter file -> the float model: finds them, compares them with one another, fills the graph."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.mxnet.build import Built, Plan, Shape, build, plan
from mrt.frontend.mxnet.params import Array, read_params
from mrt.frontend.mxnet.symbol import read_symbol
from mrt.frontend.mxnet.writer import shape_of

MAX_TROUBLES = 40
PREFIXES = ("arg:", "aux:")
FLOATS = ("float32", "float64", "float16")
NOTES = "mrt_notes"  # key of the model's metadata under which one reads what was changed on the way


def load_mxnet(
    symbol_path: Path, params_path: Path | None = None, shapes: Mapping[str, Shape] | None = None
) -> ir.Model:
    """The model with float32 parameters. What is unsupported is refused before any parameter is read."""
    symbol = read_symbol(read_bytes(symbol_path), str(symbol_path))
    made = plan(symbol)
    if params_path is None and (made.parameters or _params_beside(symbol_path)):
        params_path = find_params(symbol_path)
    arrays = read_parameters(params_path) if params_path is not None else {}
    known = {name: array.shape for name, array in arrays.items() if array is not None}
    known |= {name: () for name, array in arrays.items() if array is None}
    built = build(made, shapes or {}, known)
    return _fill(built, made, arrays, params_path)


def read_bytes(path: Path) -> bytes:
    """Raise BadModel where the file cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadModel(f"{path}: cannot be read ({error.strerror})") from None


def find_params(symbol_path: Path) -> Path:
    """P.params or P-NNNN.params beside P-symbol.json or P.json, if there is just one."""
    found = _params_beside(symbol_path)
    if not found:
        stem = _stem(symbol_path)
        raise BadModel(
            f"{symbol_path}: no parameters found; looked for {stem}.params and {stem}-NNNN.params "
            f"in {symbol_path.parent}; name them with --params"
        )
    if len(found) > 1:
        raise BadModel(f"{symbol_path}: several parameter files: {', '.join(found)}; choose one with --params")
    return symbol_path.parent / found[0]


def _stem(symbol_path: Path) -> str:
    return symbol_path.name.removesuffix(".json").removesuffix("-symbol")


def _params_beside(symbol_path: Path) -> list[str]:
    pattern = re.compile(re.escape(_stem(symbol_path)) + r"(-[0-9]{4,})?\.params")
    folder = symbol_path.parent
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(name for name in names if pattern.fullmatch(name))


def model_sha256(symbol_path: Path, params_path: Path | None = None) -> str:
    """SHA-256 of the SHA-256 of the symbol's bytes followed by the SHA-256 of the parameters' bytes (none: empty)."""
    parts = [read_bytes(symbol_path), b"" if params_path is None else read_bytes(params_path)]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def read_parameters(path: Path) -> dict[str, Array | None]:
    """By name without 'arg:' and 'aux:'."""
    file = read_params(read_bytes(path), str(path))
    if file.arrays and not file.names:
        raise BadModel(f"{path}: its {len(file.arrays)} arrays have no names; expected a checkpoint")
    arrays: dict[str, Array | None] = {}
    for name, array in zip(file.names, file.arrays, strict=True):
        plain = name[4:] if name.startswith(PREFIXES) else name
        if plain in arrays:
            raise BadModel(f"{path}: parameter {plain!r} occurs twice, as {name!r} and with another prefix")
        arrays[plain] = array
    return arrays


def _fill(built: Built, made: Plan, arrays: Mapping[str, Array | None], path: Path | None) -> ir.Model:
    """Give every parameter its numbers, or say all that is wrong with them at once."""
    troubles = [f"{name}: not in the symbol" for name in arrays if name not in _variables(made)]
    converted: dict[str, list[str]] = {}
    for name, parameter in built.writer.parameters.items():
        if name not in arrays:
            troubles.append(f"{name}: missing{_expected(parameter.wanted)}")
            continue
        array = arrays[name]
        trouble = _trouble(array, parameter.wanted)
        if trouble:
            troubles.append(f"{name}: {trouble}")
        elif array is not None:
            if array.dtype != np.float32:
                converted.setdefault(array.dtype.name, []).append(name)
            _set(parameter.value, _float32(array))
    _refuse_parameters(troubles, path, arrays)
    for value in built.writer.ones.values():
        _set(value, np.ones(shape_of(value), np.float32))
    return _model(built, converted)


def _variables(made: Plan) -> set[str]:
    return {node.name for node in made.symbol.nodes.values() if node.operator is None}


def _expected(wanted: tuple[Shape, ...]) -> str:
    return f"; expected shape {' or '.join(str(shape) for shape in wanted)}" if wanted else ""


def _trouble(array: Array | None, wanted: tuple[Shape, ...]) -> str:
    """What is wrong with one parameter, or nothing."""
    if array is None:
        return "holds no array"
    if array.dtype.name not in FLOATS:
        return f"dtype {array.dtype.name}; expected {', '.join(FLOATS)}"
    if wanted and array.shape not in wanted:
        return f"shape {array.shape}{_expected(wanted)}"
    with np.errstate(over="ignore"):
        finite = np.isfinite(_float32(array))
    return "" if finite.all() else f"{finite.size - int(finite.sum())} of {finite.size} numbers are not finite float32"


def _float32(array: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.array(array, np.float32)


def _set(value: ir.Value, array: Array) -> None:
    value.const_value = ir.tensor(array, name=value.name)


def _refuse_parameters(troubles: list[str], path: Path | None, arrays: Mapping[str, Array | None]) -> None:
    if not troubles:
        return
    lines = troubles[:MAX_TROUBLES]
    if len(troubles) > MAX_TROUBLES:
        lines.append(f"and {len(troubles) - MAX_TROUBLES} more")
    hint = ""
    if any("shape" in trouble for trouble in troubles):
        hint = "\nIf many shapes are wrong, so may be the --shape of the input"
    if arrays and all("." in name for name in arrays):
        hint = "\nThese are the names of gluon's save_parameters; export the model with HybridBlock.export instead"
    text = "\n".join(f"  {line}" for line in lines)
    raise BadModel(f"{path or 'no parameter file'}: {len(troubles)} parameters do not suit the symbol:\n{text}{hint}")


def _model(built: Built, converted: Mapping[str, list[str]]) -> ir.Model:
    writer = built.writer
    used = {value.name for node in writer.nodes for value in node.inputs if value is not None}
    used |= {value.name for value in built.outputs}
    filled = [parameter.value for parameter in writer.parameters.values()]
    initializers = [value for value in (*filled, *writer.ones.values(), *writer.constants) if value.name in used]
    model = writer.model(built.inputs, built.outputs, initializers)
    if converted:
        model.metadata_props[NOTES] = "; ".join(
            f"{len(names)} parameters converted from {dtype} to float32" for dtype, names in sorted(converted.items())
        )
    return model
