"""What a model's file holds, found without accepting it: so that a model which is refused can be looked at, too."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir

from mrt.frontend import kind_of
from mrt.frontend.mxnet.files import read_symbol_bytes
from mrt.frontend.mxnet.symbol import read_symbol
from mrt.frontend.onnx.read.read import parse, read_bytes

Size = int | str | None
"""Of a dimension: a number, the name of one that is open, or None."""


@dataclass(frozen=True)
class ModelPort:
    """An input or output. `shape` is None where not even the rank is known."""

    name: str
    dtype: str
    shape: tuple[Size, ...] | None

    def __str__(self) -> str:
        sizes = "of unknown shape"
        if self.shape is not None:
            shown = ["?" if size is None else str(size) for size in self.shape]
            sizes = f"[{','.join(shown)}]"
        return f"{self.name}: {self.dtype} {sizes}"


@dataclass(frozen=True)
class ParameterCount:
    """How many numbers the parameters hold, in how many tensors and bytes."""

    numbers: int
    tensors: int
    size: int


@dataclass(frozen=True)
class Contents:
    """A model as its file has it. An MXNet symbol has no shapes of its own, and no parameters."""

    written_as: str  # such as "ONNX, opset 17, by pytorch 2.0.1"
    inputs: tuple[ModelPort, ...]
    outputs: tuple[ModelPort, ...]
    operators: Mapping[str, int]  # how often each occurs
    parameters: ParameterCount | None


def contents_of(path: Path) -> Contents:
    """Read a model's file as far as it can be read at all.

    Raise BadModel if it is no model.
    """
    return _of_onnx(path) if kind_of(path) == "onnx" else _of_mxnet(path)


def contents_of_graph(model: ir.Model, written_as: str) -> Contents:
    """The contents of a model that was accepted: its shapes and parameters are known."""
    parameters = model.graph.initializers
    tensors = [
        value.const_value
        for value in parameters.values()
        if value.const_value is not None
    ]
    return Contents(
        written_as,
        tuple(_port(value) for value in model.graph.inputs),
        tuple(_port(value) for value in model.graph.outputs),
        _counted(node.op_type for node in model.graph),
        ParameterCount(
            sum(tensor.size for tensor in tensors),
            len(tensors),
            sum(tensor.nbytes for tensor in tensors),
        ),
    )


def _of_onnx(path: Path) -> Contents:
    proto = parse(read_bytes(path), path)
    graph = proto.graph
    initializers = {value.name for value in graph.initializer}
    return Contents(
        _written_as(proto),
        tuple(
            _proto_port(value)
            for value in graph.input
            if value.name not in initializers
        ),
        tuple(map(_proto_port, graph.output)),
        _counted(_operator(node) for node in graph.node),
        _parameters(graph.initializer),
    )


def _written_as(proto: onnx.ModelProto) -> str:
    opsets = [
        f"opset {opset.version}{f' of {opset.domain}' if opset.domain else ''}"
        for opset in proto.opset_import
    ]
    maker = f"{proto.producer_name} {proto.producer_version}".strip()
    return ", ".join(["ONNX", *opsets, *([f"by {maker}"] if maker else [])])


def _operator(node: onnx.NodeProto) -> str:
    default = node.domain in ("", "ai.onnx")
    return node.op_type if default else f"{node.domain}.{node.op_type}"


def _parameters(tensors: Iterable[onnx.TensorProto]) -> ParameterCount:
    listed = list(tensors)
    return ParameterCount(
        sum(math.prod(tensor.dims) for tensor in listed),
        len(listed),
        sum(map(_bytes_of, listed)),
    )


def _bytes_of(tensor: onnx.TensorProto) -> int:
    """How many bytes the numbers or the texts have; the file may be any, and its dims of any size."""
    if tensor.data_type == onnx.TensorProto.STRING:
        return sum(map(len, tensor.string_data))
    if not tensor.data_type:
        return 0
    count: int = math.prod(tensor.dims)
    return count * ir.DataType(tensor.data_type).bitwidth // 8


def _proto_port(value: onnx.ValueInfoProto) -> ModelPort:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return ModelPort(
            value.name, kind.removesuffix("_type") if kind else "?", None
        )
    tensor = value.type.tensor_type
    dtype = _dtype(_name_of_type(tensor.elem_type))
    if not tensor.HasField("shape"):
        return ModelPort(value.name, dtype, None)
    sizes = tuple(_size(dimension) for dimension in tensor.shape.dim)
    return ModelPort(value.name, dtype, sizes)


def _name_of_type(number: int) -> str:
    """ONNX's name of an element type; of one that it does not have, its number."""
    is_known = number in onnx.TensorProto.DataType.values()
    return (
        onnx.TensorProto.DataType.Name(number) if is_known else f"type {number}"
    )


def _size(dimension: onnx.TensorShapeProto.Dimension) -> Size:
    kind = dimension.WhichOneof("value")
    if kind == "dim_value":
        return int(dimension.dim_value)
    return dimension.dim_param or None if kind == "dim_param" else None


def _of_mxnet(path: Path) -> Contents:
    symbol = read_symbol(read_symbol_bytes(path), str(path))
    major, minor = divmod(symbol.version, 10_000)
    minor, patch = divmod(minor, 100)
    nodes = [symbol.nodes[index] for index in symbol.order]
    heads = {edge.node for edge in symbol.heads}
    return Contents(
        f"MXNet symbol, version {major}.{minor}.{patch}",
        (),
        tuple(
            ModelPort(symbol.nodes[index].name, "float32", None)
            for index in sorted(heads)
        ),
        _counted(node.operator for node in nodes if node.operator),
        None,
    )


def _port(value: ir.Value) -> ModelPort:
    dtype = _dtype(value.dtype.name) if value.dtype else "?"
    shape = None if value.shape is None else tuple(map(_ir_size, value.shape))
    return ModelPort(str(value.name), dtype, shape)


def _dtype(name: str) -> str:
    """Return numpy's name, which includes the number of bits, for ONNX's."""
    return {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())


def _ir_size(size: int | ir.SymbolicDim) -> Size:
    return size if isinstance(size, int) else size.value


def _counted(names: Iterable[str]) -> dict[str, int]:
    """The names and how often each occurs, the commonest first."""
    return dict(Counter(names).most_common())
