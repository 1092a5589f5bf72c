"""Read QDQ models (QuantizeLinear, DequantizeLinear) as the float models that they represent.

A QuantizeLinear and its DequantizeLinear become a Clip to the interval of their type, or of
the Clip between them.
Their rounding is left out, because the program has scales of its own. Weights become the
reals that their integers represent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.frontend.onnx.quantized.block_tables import read_block_tables
from mrt.frontend.onnx.quantized.integer_operators import (
    decompose_integer_operators,
)
from mrt.frontend.onnx.quantized.integer_products import (
    read_integer_products,
)
from mrt.frontend.onnx.quantized.intervals import interval_of
from mrt.frontend.onnx.quantized.narrow_grids import take_clips
from mrt.frontend.onnx.quantized.qonnx import read_qonnx
from mrt.frontend.onnx.quantized.stored_weights import (
    HOLD,
    fold_dequantized,
    fold_quantized,
    release,
    stated_type,
)
from mrt.frontend.onnx.read.read import NOTES
from mrt.graph import notes
from mrt.graph.notes import STEPS_OF_WEIGHTS, WIDE_WEIGHTS, set_grid
from mrt.graph.operators import WEIGHT_OPERANDS
from mrt.graph.patch import Patch
from mrt.graph.values import Array, first

NOTE = (
    "values that the model quantizes (QuantizeLinear) are read as they are, clipped to the range of their integers: "
    "the program has scales of its own"
)
KEPT = (
    "the model is quantized already: the scales, zero points and integers of weights are those of its file; "
    "--requantize chooses new ones"
)
MOST_WEIGHT = 2**14 - 1  # of a program, in two products of i8
# Operators that act on the integers exactly as on the reals they represent.
_MOVEMENT = (
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "MaxPool",
    "Reshape",
    "Slice",
    "SpaceToDepth",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
)
# Which operands of a product are weights; the rows that a Gather takes of a table are values.
_WEIGHTS = {
    **WEIGHT_OPERANDS,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (1, 2)),
    "Einsum": (0, 1, 2),
}


@dataclass(frozen=True)
class QdqGrid:
    """A quantization: real = scale * (integer - zero), for integers from least to most."""

    scale: Array
    zero: int
    least: int
    most: int
    kind: ir.DataType

    def within(self, least: int, most: int) -> QdqGrid:
        """Return the part of the grid between two integers."""
        return replace(
            self, least=max(self.least, least), most=min(self.most, most)
        )

    def real(self, integer: int) -> Array:
        """Return the real of an integer, rounded once as onnxruntime rounds it."""
        number: Array = np.asarray(
            (integer - self.zero) * self.scale.astype(np.float64)
        ).astype(self.scale.dtype)
        return number.reshape(())

    def as_note(self) -> notes.IntegerGrid:
        """Return the grid as it is noted on a value."""
        return notes.IntegerGrid(
            float(self.scale), self.zero, self.least, self.most
        )

    def is_of(self, other: QdqGrid) -> bool:
        """Return whether the integers of the other represent the same reals here."""
        return self.zero == other.zero and self.scale == other.scale


def read_quantized(model: ir.Model) -> None:
    """Replace every QuantizeLinear, DequantizeLinear and operator on integers, in place.

    Raise Unsupported, with a line for each node, for computed scales, for scales of
    channels or blocks of computed values, and for types that are not integers.
    """
    read_block_tables(model)
    decompose_integer_operators(model)
    read_integer_products(model)
    problems, finds_quantizer = [], False
    wide: list[str] = []
    steps = {array.tobytes(): array for array in read_qonnx(model)}
    narrowed = take_clips(model)
    quantizers = ("QuantizeLinear", "DequantizeLinear")
    for node in [node for node in model.graph if node.op_type in quantizers]:
        if node.op_type == "Identity":
            continue  # resolved with the QuantizeLinear before it
        node.domain = ""
        stored = _steps_of_weights(node)
        role = _role(node.outputs[0]) if _is_wide(node) else ""
        folded = _folded(node)
        if folded is True:
            if role:
                name = node.name or node.outputs[0].name
                wide.append(f"{name}: {role} of 16 bits")
            steps[stored.tobytes()] = stored
            continue
        name = f"{node.name or node.outputs[0].name} ({node.op_type})"
        grid = folded if isinstance(folded, str) else _grid(node)
        if isinstance(grid, str):
            problems.append(f"{name}: {grid}")
            continue
        if node in narrowed:
            grid = grid.within(*narrowed[node])
        finds_quantizer = finds_quantizer or node.op_type == "QuantizeLinear"
        _resolve(node, grid)
    if problems:
        raise Unsupported(problems)
    of_weights = tuple(array for array in steps.values() if array.size)
    model.meta[STEPS_OF_WEIGHTS] = of_weights
    model.meta[WIDE_WEIGHTS] = tuple(wide)
    if finds_quantizer:
        _add_note(model)


def _folded(node: ir.Node) -> bool | str:
    """Fold a node of constant operands; return whether it was one, or a string with the problem."""
    if node.op_type == "QuantizeLinear":
        return fold_quantized(node)
    return fold_dequantized(node)


def _add_note(model: ir.Model) -> None:
    earlier = model.metadata_props.get(NOTES)
    model.metadata_props[NOTES] = (
        NOTE if earlier is None else f"{earlier}\n{NOTE}"
    )


def _steps_of_weights(node: ir.Node) -> Array:
    """Return the scales of a DequantizeLinear, [1] or one for each channel; none of other nodes."""
    integers, scale = (
        None if value is None else ir.convenience.get_const_tensor(value)
        for value in node.inputs[:2]
    )
    if node.op_type != "DequantizeLinear" or integers is None or scale is None:
        return np.zeros(0)
    if integers.dtype == ir.DataType.INT32 or scale.size == 0:
        return np.zeros(0)
    if len(scale.shape) > 1 and scale.size > 1:
        return np.zeros(0)
    array: Array = scale.numpy().astype(np.float64).reshape(-1)
    return array


def _is_wide(node: ir.Node) -> bool:
    """Return whether a node's constant integers, less the zero points, have more than 15 bits."""
    tensors = [
        None if value is None else ir.convenience.get_const_tensor(value)
        for value in node.inputs
    ]
    integers, zero = tensors[0], tensors[2] if len(tensors) > 2 else None
    kinds = (ir.DataType.INT16, ir.DataType.UINT16)
    if integers is None or integers.dtype not in kinds:
        return False
    points = np.zeros(1, np.int64) if zero is None else zero.numpy()
    held = integers.numpy().astype(np.int64)
    least, most = int(points.min()), int(points.max())
    return bool(max(held.max() - least, most - held.min()) > MOST_WEIGHT)


def _role(constant: ir.Value) -> str:
    """Say what a constant is to the nodes that read it, possibly after movement."""
    waiting, role = [constant], "a constant"
    while waiting:
        for use in waiting.pop().uses():
            operator = use.node.op_type
            if use.idx in _WEIGHTS.get(operator, ()):
                return "weights"
            if use.idx == 0 and operator == "Gather":
                role = "a table"
            elif use.idx == 0 and operator in _MOVEMENT:
                waiting.append(use.node.outputs[0])
    return role


def _grid(node: ir.Node) -> QdqGrid | str:
    """Return the grid of a node, or a string with the problem."""
    tensors = [
        ir.convenience.get_const_tensor(value)
        for value in node.inputs[1:3]
        if value is not None
    ]
    arrays = [tensor.numpy() for tensor in tensors if tensor is not None]
    if len(arrays) != len(tensors) or not arrays:
        return "its scale or zero point is computed; expected constants"
    if any(array.size != 1 for array in arrays):
        return "scales of channels or blocks, of values that are computed; expected one scale"
    kind = _kind(node, tensors[1] if len(tensors) > 1 else None)
    if kind not in HOLD:
        return f"values of type {kind.name.lower()}; expected integers of up to 16 bits"
    scale = arrays[0].reshape(())
    if not np.isfinite(scale) or not scale > 0:
        return f"a scale of {scale}; expected a number above 0"
    zero = int(arrays[1].reshape(())) if len(arrays) > 1 else 0
    return QdqGrid(scale, zero, *HOLD[kind], kind)


def _kind(node: ir.Node, zero: ir.TensorProtocol | None) -> ir.DataType:
    if zero is not None:
        return zero.dtype
    if node.op_type == "DequantizeLinear":
        return ir.DataType.INT32
    stated = stated_type(node)
    assert not isinstance(stated, str)  # refused before
    return stated


def _resolve(node: ir.Node, grid: QdqGrid) -> None:
    operands = node.inputs[1:]
    if node.op_type == "DequantizeLinear":
        _write_reals(node, grid)
    elif (readers := _readers(node.outputs[0], grid)) is not None:
        _write_clip(node, grid)
        for reader in readers:
            _become_identity(reader)
    else:
        _write_integers(node, grid)
    release(node, operands)


def _readers(integers: ir.Value, grid: QdqGrid) -> list[ir.Node] | None:
    """Return the DequantizeLinear nodes that read the integers, possibly after movement.

    Return None if anything else reads them.
    """
    waiting, readers = [integers], []
    while waiting:
        value = waiting.pop()
        if value.is_graph_output():
            return None
        for use in value.uses():
            reader = use.node
            if use.idx == 0 and reader.op_type == "DequantizeLinear":
                other = _grid(reader)
                if isinstance(other, str) or not other.is_of(grid):
                    return None
                readers.append(reader)
            elif (
                use.idx == 0
                and reader.op_type in _MOVEMENT
                and len(reader.outputs) == 1
            ):
                waiting.append(reader.outputs[0])
            else:
                return None
    return readers


def _become_identity(node: ir.Node) -> None:
    operands = node.inputs[1:]
    node.op_type, node.domain = "Identity", ""
    node.attributes.clear()
    node.resize_inputs(1)
    release(node, operands)


def _write_clip(node: ir.Node, grid: QdqGrid) -> None:
    """QuantizeLinear -> Clip to the interval of its integers.

    It becomes an Identity where the value cannot leave that interval by more than half a
    step, which is rounded away.
    """
    patch, x = Patch(node, typed=False), first(node)
    set_grid(node.outputs[0], grid.as_note())
    low, high = grid.real(grid.least), grid.real(grid.most)
    proven_low, proven_high = interval_of(x)
    half = float(grid.scale) / 2
    if float(low) - half <= proven_low and proven_high <= float(high) + half:
        patch.become("Identity", x)
        return
    bounds = patch.constant(low, "low"), patch.constant(high, "high")
    patch.become("Clip", x, *bounds)


def _write_integers(node: ir.Node, grid: QdqGrid) -> None:
    """Write round(x / scale) + zero point, half to even, saturated, for readers of integers."""
    patch = Patch(node, typed=False)
    steps = patch.add("Div", first(node), patch.constant(grid.scale, "scale"))
    zero = _number(patch, grid, grid.zero, "zero_point")
    integers = patch.add("Add", patch.add("Round", steps), zero)
    low = _number(patch, grid, grid.least, "low")
    high = _number(patch, grid, grid.most, "high")
    saturated = patch.add("Clip", integers, low, high)
    patch.become("Cast", saturated, to=int(grid.kind))


def _write_reals(node: ir.Node, grid: QdqGrid) -> None:
    """Write (integer - zero point) * scale, for integers that are inputs or computed."""
    patch = Patch(node, typed=False)
    dtype = ir.DataType.from_numpy(grid.scale.dtype)
    real = patch.add("Cast", first(node), to=int(dtype))
    zero = _number(patch, grid, grid.zero, "zero_point")
    scale = patch.constant(grid.scale, "scale")
    patch.become("Mul", patch.add("Sub", real, zero), scale)


def _number(patch: Patch, grid: QdqGrid, integer: int, role: str) -> ir.Value:
    return patch.constant(np.array(integer, grid.scale.dtype), role)
