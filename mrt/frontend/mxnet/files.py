"""The files of an MXNet model: find and read the parameter file of a symbol, and hash both."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from mrt.errors import BadModel, BadOption, MissingModel
from mrt.frontend.mxnet.params import (
    Array,
    ParameterFile,
    read_params,
    read_params_from,
)
from mrt.frontend.mxnet.symbol import MAX_BYTES

PREFIXES = ("arg:", "aux:")
LAST_EPOCH = 10**9


@dataclass(frozen=True)
class Parameters:
    """The arrays of a parameter file, by name without 'arg:' and 'aux:', and its SHA-256."""

    path: Path
    arrays: dict[str, Array | None]
    digest: bytes


def read_symbol_bytes(path: Path) -> bytes:
    """Return the bytes of a symbol file, at most one more than allowed.

    Raise BadModel when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise MissingModel(f"{path}: No such file or directory") from None
    except OSError as error:
        raise BadModel(f"{path}: cannot be read ({error.strerror})") from None


def find_params(symbol_path: Path, epoch: int | None = None) -> Path:
    """Return the parameter file P.params or P-NNNN.params beside P-symbol.json or P.json.

    With an epoch, it is the file of that epoch; else the only one there is. Raise
    BadModel when there is none or, without an epoch, more than one.
    """
    if epoch is not None:
        return _of_epoch(symbol_path, epoch)
    names = params_beside(symbol_path)
    if not names:
        stem = _stem(symbol_path)
        raise BadModel(
            f"{symbol_path}: no parameters found; looked for {stem}.params and {stem}-NNNN.params "
            f"in {symbol_path.parent}; name them with --params, or invent them with --random-weights SEED"
        )
    if len(names) > 1:
        raise BadModel(
            f"{symbol_path}: several parameter files: {', '.join(names)}; choose one with --params, or with --epoch N"
        )
    return symbol_path.parent / names[0]


def _of_epoch(symbol_path: Path, epoch: int) -> Path:
    if not 0 <= epoch <= LAST_EPOCH:
        raise BadOption(
            f"--epoch {epoch}: expected the number of an epoch, 0 or more"
        )
    name = f"{_stem(symbol_path)}-{epoch:04d}.params"
    names = params_beside(symbol_path)
    if name not in names:
        there = ", ".join(names) or "no parameter file"
        raise BadModel(
            f"{symbol_path}: --epoch {epoch} is {name}, which is not beside it; there is {there}"
        )
    return symbol_path.parent / name


def _stem(symbol_path: Path) -> str:
    return symbol_path.name.removesuffix(".json").removesuffix("-symbol")


def params_beside(symbol_path: Path) -> list[str]:
    """Return the names of the files that could be this symbol's parameters."""
    pattern = re.compile(
        re.escape(_stem(symbol_path)) + r"(-[0-9]{4,})?\.params"
    )
    folder = symbol_path.parent
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(name for name in names if pattern.fullmatch(name))


def read_parameters(path: Path) -> Parameters:
    """Read all arrays of a parameter file, opening it once."""
    file = _read_params(path)
    if file.arrays and not file.names:
        raise BadModel(
            f"{path}: its {len(file.arrays)} arrays have no names; expected a checkpoint"
        )
    arrays: dict[str, Array | None] = {}
    for name, array in zip(file.names, file.arrays, strict=True):
        plain = name[4:] if name.startswith(PREFIXES) else name
        if plain in arrays:
            raise BadModel(
                f"{path}: parameter {plain!r} occurs twice, as {name!r} and with another prefix"
            )
        arrays[plain] = array
    return Parameters(path, arrays, file.digest)


def _read_params(path: Path) -> ParameterFile:
    """Read array by array, or at once if the file has no size, such as a pipe."""
    try:
        if stat.S_ISCHR(path.stat().st_mode):
            raise BadModel(f"{path}: is a device; expected a parameter file")
        if not path.is_file():
            return read_params(path.read_bytes(), str(path))
        with path.open("rb") as file:
            return read_params_from(
                file, os.fstat(file.fileno()).st_size, str(path)
            )
    except OSError as error:
        raise BadModel(f"{path}: cannot be read ({error.strerror})") from None


def joined_sha256(symbol: bytes, parameters: bytes) -> str:
    """Return the SHA-256 of two digests: the symbol's, then that of the parameters."""
    return hashlib.sha256(
        hashlib.sha256(symbol).digest() + parameters
    ).hexdigest()
