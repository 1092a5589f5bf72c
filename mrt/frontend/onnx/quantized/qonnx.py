"""Read the operators of QONNX: Quant, BipolarQuant and Trunc.

    Quant(x)         (clip(round(x / scale + zero point), least, most) - zero point) * scale
    BipolarQuant(x)  scale where x >= 0, else -scale
    Trunc(x)         the integer of x without its last bits, times the scale

Weights become the reals that they represent. A computed value keeps its grid as a note,
as behind a QuantizeLinear (`qdq.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.quantized.stored_weights import hold, stored_array
from mrt.graph import notes
from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    first,
    int_attribute,
    string_attribute,
)

DOMAINS = ("onnx.brevitas", "qonnx.custom_op.general", "finn.custom_op.general")
OPERATORS = ("Quant", "IntQuant", "BipolarQuant", "Trunc")
MOST_BITS = 16
_INTEGER_OPERANDS = {"Quant": 4, "IntQuant": 4, "BipolarQuant": 2, "Trunc": 5}


def is_qonnx(node: ir.Node) -> bool:
    """Whether a node is one of QONNX's operators that are read here."""
    return node.domain in DOMAINS and node.op_type in OPERATORS


def qonnx_problem(node: ir.Node) -> str | None:
    """Return why a node of QONNX cannot be read, or None."""
    if len(node.inputs) < _INTEGER_OPERANDS[node.op_type]:
        return "an operand is missing"
    operands = [stored_array(value) for value in node.inputs[1:]]
    if any(array is None for array in operands):
        return "its scale, zero point or bits are computed; expected constants"
    arrays = [array for array in operands if array is not None]
    if not all(map(_is_usable, arrays)) or np.any(arrays[0] <= 0):
        return "its scale, zero point or bits are no usable numbers"
    if (problem := _problem_of_weights(node, arrays[0])) is not None:
        return problem
    if any(
        name in node.attributes and node.attributes[name].type != kind
        for name, kind in _ATTRIBUTES.items()
    ):
        return "an attribute of another type than QONNX's"
    mode = string_attribute(node, "rounding_mode", "").upper()
    usual = "FLOOR" if node.op_type == "Trunc" else "ROUND"
    if mode not in ("", usual):
        return f"rounding_mode {mode}; expected {usual}"
    if node.op_type == "BipolarQuant":
        return None if _is_weight(node) or arrays[0].size == 1 else _SEVERAL
    return _problem_of_grid(node, arrays)


_ATTRIBUTES = {
    "signed": ir.AttributeType.INT,
    "narrow": ir.AttributeType.INT,
    "rounding_mode": ir.AttributeType.STRING,
}


def _is_usable(array: Array) -> bool:
    is_number = array.dtype.kind in "fiu" and array.size > 0
    return is_number and bool(np.isfinite(array).all())


def _problem_of_weights(node: ir.Node, scale: Array) -> str | None:
    """Return why weights and their scales do not fit together, or None."""
    weights = stored_array(node.inputs[0])
    if weights is None:
        return None
    if weights.dtype.kind != "f":
        return f"weights of type {weights.dtype}; expected floats"
    try:
        fits = np.broadcast_shapes(weights.shape, scale.shape) == weights.shape
    except ValueError:
        fits = False
    return None if fits else "scales that do not fit its weights"


_SEVERAL = "scales of channels, of values that are computed; expected one scale"


def _problem_of_grid(node: ir.Node, arrays: list[Array]) -> str | None:
    if any(array.size != 1 for array in arrays[1:]):
        return "several zero points or bits; expected one"
    numbers = [float(array.reshape(-1)[0]) for array in arrays[1:]]
    if any(number != math.floor(number) for number in numbers):
        return "a zero point or bits that are no integer"
    least = 1 if node.op_type == "Trunc" else 2 - _is_unsigned(node)
    if not all(least <= bits <= MOST_BITS for bits in numbers[1:]):
        return f"{numbers[1:]} bits; expected {least} to {MOST_BITS}"
    if _is_weight(node):
        return None
    return None if arrays[0].size == 1 else _SEVERAL


def import_qonnx(model: ir.Model) -> None:
    """Import the domains of QONNX's nodes; many of its files do not."""
    for node in model.graph:
        if is_qonnx(node):
            model.graph.opset_imports.setdefault(node.domain, 1)


def read_qonnx(model: ir.Model) -> list[Array]:
    """Replace all nodes of QONNX in place; return the scales of the weights."""
    scales: list[Array] = []
    for node in list(model.graph):
        if not is_qonnx(node):
            continue
        problem = qonnx_problem(node)
        if problem is not None:
            raise Unsupported([f"{node.name} ({node.op_type}): {problem}"])
        if _is_weight(node) and node.op_type != "Trunc":
            scale = stored_array(node.inputs[1])
            assert scale is not None
            scales.append(scale.astype(np.float64).reshape(-1))
            _fold(node)
        else:
            _WRITE[node.op_type](node)
    return scales


def _is_weight(node: ir.Node) -> bool:
    return stored_array(node.inputs[0]) is not None


def _is_unsigned(node: ir.Node) -> bool:
    return int_attribute(node, "signed", 1) == 0


def _numbers(node: ir.Node) -> list[float]:
    """Return the scale, the zero point and the bits of a node with one scale."""
    arrays = [stored_array(value) for value in node.inputs[1:]]
    return [
        float(array.reshape(-1)[0]) for array in arrays if array is not None
    ]


def _interval(node: ir.Node, bits: int) -> tuple[int, int]:
    """Return the least and the greatest integer of a Quant."""
    narrow = int_attribute(node, "narrow", 0)
    return interval(int_attribute(node, "signed", 1), narrow, bits)


def interval(signed: int, narrow: int, bits: int) -> tuple[int, int]:
    """Return the least and the greatest integer of so many bits."""
    if not signed:
        return 0, 2**bits - 1 - narrow
    return -(2 ** (bits - 1)) + narrow, 2 ** (bits - 1) - 1


def _fold(node: ir.Node) -> None:
    """Quant or BipolarQuant of weights -> an initializer of the reals that they represent."""
    x, scale, *rest = (stored_array(value) for value in node.inputs)
    assert x is not None and scale is not None
    if node.op_type == "BipolarQuant":
        integers: Array = np.where(x >= 0, 1, -1)
        zero = 0.0
    else:
        zero, bits = (float(array.reshape(-1)[0]) for array in rest if array is not None)  # fmt: skip
        steps = np.rint(x.astype(np.float32) / scale.astype(np.float32) + zero)
        integers = np.clip(steps, *_interval(node, int(bits)))
    moved = (integers - zero).astype(np.float32)
    hold(node, moved * scale.astype(np.float32))


def _write_grid(node: ir.Node) -> None:
    """Quant of a computed value -> Identity or Clip with a note of its grid."""
    scale, zero, bits = _numbers(node)
    least, most = _interval(node, int(bits))
    grid = notes.IntegerGrid(float(np.float32(scale)), int(zero), least, most)
    notes.set_grid(node.outputs[0], grid)
    patch, x = Patch(node, typed=False), first(node)
    bounds = (
        patch.number((integer - zero) * scale, role)
        for integer, role in ((least, "low"), (most, "high"))
    )
    patch.become("Clip", x, *bounds)


def _write_sign(node: ir.Node) -> None:
    """BipolarQuant of a computed value -> Where(x < 0, -scale, scale)."""
    patch, (scale, *_) = Patch(node, typed=False), _numbers(node)
    is_negative = patch.add("Less", first(node), patch.number(0, "zero"))
    both = patch.number(-scale, "negative"), patch.number(scale, "positive")
    patch.become("Where", is_negative, *both)


def _write_trunc(node: ir.Node) -> None:
    """Trunc -> Floor(Round(x / scale + zero point) / 2^dropped bits), back at the scale."""
    patch = Patch(node, typed=False)
    scale, zero, had, keeps = _numbers(node)[:4]
    divisor = patch.number(2.0 ** (had - keeps), "divisor")
    zero_point, step = patch.number(zero, "zero"), patch.number(scale, "scale")
    steps = patch.add("Div", first(node), step)
    integers = patch.add("Round", patch.add("Add", steps, zero_point))
    kept = patch.add("Floor", patch.add("Div", integers, divisor))
    patch.become("Mul", patch.add("Sub", kept, zero_point), step)


_WRITE: dict[str, Callable[[ir.Node], None]] = {
    "Quant": _write_grid,
    "IntQuant": _write_grid,
    "BipolarQuant": _write_sign,
    "Trunc": _write_trunc,
}
