"""Fill every parameter of the graph from the file, or list all problems in one error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.mxnet.build import Built, ConversionPlan
from mrt.frontend.mxnet.graph_builder import GraphParameter, shape_of
from mrt.graph.open_shapes import Shape
from mrt.graph.values import Array

MAX_PROBLEMS = 10
FLOATS = ("float32", "float64", "float16")
BLOCK = 2**20  # numbers that are checked together


def fill(
    built: Built,
    conversion: ConversionPlan,
    arrays: Mapping[str, Array | None],
    path: Path | None,
) -> list[str]:
    """Set every parameter, and return notes about those converted from another dtype.

    An array that is already float32 is not copied.
    """
    nodes = conversion.symbol.nodes.values()
    variables = {node.name for node in nodes if node.operator is None}
    problems = [
        f"{name}: not in the symbol" for name in arrays if name not in variables
    ]
    converted: dict[str, list[str]] = {}
    for name, parameter in built.builder.parameters.items():
        problem = _problem(name, parameter, arrays)
        array = arrays.get(name)
        if problem:
            problems.append(f"{name}: {problem}")
        elif array is not None:
            set_numbers(parameter.value, _float32(array))
            converted.setdefault(array.dtype.name, []).append(name)
    _refuse(problems, path)
    set_ones(built)
    converted.pop("float32", None)
    return [
        f"{len(names)} parameters converted from {dtype} to float32"
        for dtype, names in sorted(converted.items())
    ]


def set_numbers(value: ir.Value, array: Array) -> None:
    """Make the value a constant."""
    value.const_value = ir.tensor(array, name=value.name)


def set_ones(built: Built) -> None:
    """Fill the gammas that count as 1 because of fix_gamma."""
    for value in built.builder.ones.values():
        set_numbers(value, np.ones(shape_of(value), np.float32))


def _expected(shapes: tuple[Shape, ...]) -> str:
    if not shapes:
        return ""
    return "; expected shape " + " or ".join(str(shape) for shape in shapes)


def _problem(
    name: str, parameter: GraphParameter, arrays: Mapping[str, Array | None]
) -> str:
    """Return the problem with one parameter, or ''."""
    expected = parameter.expected
    if name not in arrays:
        return f"missing{_expected(expected)}"
    array = arrays[name]
    if array is None:
        return "holds no array"
    if array.dtype.name not in FLOATS:
        return f"dtype {array.dtype.name}; expected {', '.join(FLOATS)}"
    if expected and array.shape not in expected:
        return f"shape {array.shape}{_expected(expected)}"
    wrong = _not_finite(array)
    return (
        f"{wrong} of {array.size} numbers are not finite float32"
        if wrong
        else ""
    )


def _not_finite(array: Array) -> int:
    """Return the number of elements that are not finite, counted by blocks to keep memory small."""
    flat = array.reshape(-1)
    blocks = (
        _float32(flat[start : start + BLOCK])
        for start in range(0, flat.size, BLOCK)
    )
    return sum(block.size - int(np.isfinite(block).sum()) for block in blocks)


def _float32(array: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(array, np.float32)


def _refuse(problems: list[str], path: Path | None) -> None:
    if not problems:
        return
    lines = problems[:MAX_PROBLEMS]
    if len(problems) > MAX_PROBLEMS:
        lines.append(f"and {len(problems) - MAX_PROBLEMS} more")
    hints = []
    if len(problems) > MAX_PROBLEMS:
        hints.append(
            "With so many, the file may be another model's: see --params"
        )
    if any("shape" in problem for problem in problems):
        hints.append(
            "If many shapes are wrong, so may be the --shape of the input"
        )
    where = path or "no parameter file"
    raise BadModel(
        f"{where}: {len(problems)} parameters do not suit the symbol:",
        lines,
        "; ".join(hints),
    )
