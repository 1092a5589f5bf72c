"""Every parameter of the graph gets its numbers from the file, or all that is wrong with them is said at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.mxnet.build import Built, ConversionPlan, Shape
from mrt.frontend.mxnet.graph_builder import shape_of
from mrt.frontend.mxnet.params import Array

MAX_TROUBLES = 40
FLOATS = ("float32", "float64", "float16")
BLOCK = 2**20  # numbers looked at together


def fill(
    built: Built,
    made: ConversionPlan,
    arrays: Mapping[str, Array | None],
    path: Path | None,
) -> list[str]:
    """Set every parameter, without a copy where the file has float32 already. What was converted, as notes."""
    variables = {
        node.name for node in made.symbol.nodes.values() if node.operator is None
    }
    troubles = [
        f"{name}: not in the symbol" for name in arrays if name not in variables
    ]
    converted: dict[str, list[str]] = {}
    for name, parameter in built.builder.parameters.items():
        if name not in arrays:
            troubles.append(f"{name}: missing{_expected(parameter.expected)}")
            continue
        array = arrays[name]
        trouble = _trouble(array, parameter.expected)
        if trouble:
            troubles.append(f"{name}: {trouble}")
        elif array is not None:
            if array.dtype != np.float32:
                converted.setdefault(array.dtype.name, []).append(name)
            set_numbers(parameter.value, _float32(array))
    _refuse(troubles, path)
    set_ones(built)
    return [
        f"{len(names)} parameters converted from {dtype} to float32"
        for dtype, names in sorted(converted.items())
    ]


def set_numbers(value: ir.Value, array: Array) -> None:
    """Make it an initializer."""
    value.const_value = ir.tensor(array, name=value.name)


def set_ones(built: Built) -> None:
    """The gammas that count as 1."""
    for value in built.builder.ones.values():
        set_numbers(value, np.ones(shape_of(value), np.float32))


def _expected(wanted: tuple[Shape, ...]) -> str:
    return (
        f"; expected shape {' or '.join(str(shape) for shape in wanted)}"
        if wanted
        else ""
    )


def _trouble(array: Array | None, wanted: tuple[Shape, ...]) -> str:
    """What is wrong with one parameter, or nothing."""
    if array is None:
        return "holds no array"
    if array.dtype.name not in FLOATS:
        return f"dtype {array.dtype.name}; expected {', '.join(FLOATS)}"
    if wanted and array.shape not in wanted:
        return f"shape {array.shape}{_expected(wanted)}"
    wrong = _not_finite(array)
    return f"{wrong} of {array.size} numbers are not finite float32" if wrong else ""


def _not_finite(array: Array) -> int:
    """How many, looked at block by block to keep memory small."""
    flat = array.reshape(-1)
    blocks = (
        _float32(flat[start : start + BLOCK]) for start in range(0, flat.size, BLOCK)
    )
    return sum(block.size - int(np.isfinite(block).sum()) for block in blocks)


def _float32(array: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(array, np.float32)


def _refuse(troubles: list[str], path: Path | None) -> None:
    if not troubles:
        return
    lines = troubles[:MAX_TROUBLES]
    if len(troubles) > MAX_TROUBLES:
        lines.append(f"and {len(troubles) - MAX_TROUBLES} more")
    hint = ""
    if any("shape" in trouble for trouble in troubles):
        hint = "\nIf many shapes are wrong, so may be the --shape of the input"
    text = "\n".join(f"  {line}" for line in lines)
    raise BadModel(
        f"{path or 'no parameter file'}: {len(troubles)} parameters do not suit the symbol:\n{text}{hint}"
    )
