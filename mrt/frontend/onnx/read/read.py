"""Bytes of a file become an ONNX protobuf, or a named refusal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx

from mrt.errors import BadModel

LARGEST_FILE = (1 << 31) - 1  # what protobuf itself can read
FREE_WEIGHTS = 4  # the IR version from which on initializers need not be inputs
OLDEST_OPSET = 1
NEWEST_OPSET = 28  # the newest that onnx 1.23 describes

DEFAULT_DOMAINS = ("", "ai.onnx")


def read_bytes(path: Path) -> bytes:
    """The content of a model file."""
    if path.is_dir():
        raise BadModel(f"{path}: is a folder; expected an .onnx file")
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise BadModel(
                f"{path}: {size} bytes; the largest .onnx file is {LARGEST_FILE} bytes"
            )
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadModel(f"{path}: no such file") from None
    except OSError as error:
        raise BadModel(f"{path}: cannot be read ({error.strerror})") from None
    if not data:
        raise BadModel(f"{path}: the file is empty")
    return data


def parse(data: bytes, path: Path) -> onnx.ModelProto:
    """The protobuf in `data`, with the parts that every model has."""
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception:  # protobuf's DecodeError, which is not ours to import
        raise BadModel(f"{path}: not an ONNX file, or cut short") from None
    if not proto.HasField("graph") or not proto.ir_version:
        raise BadModel(f"{path}: not an ONNX model (it has no graph or no IR version)")
    if not proto.graph.output:
        raise BadModel(f"{path}: the graph has no outputs")
    _refuse_tensors(proto, path)
    if not _has_readable_names(proto.graph):
        raise BadModel(f"{path}: a name in it is no text (UTF-8)")
    proto.ir_version = max(proto.ir_version, FREE_WEIGHTS)
    return proto


def opset_of(proto: onnx.ModelProto, path: Path) -> int:
    """The version of the default operator set, if it is one we read."""
    versions = list(
        dict.fromkeys(
            entry.version
            for entry in proto.opset_import
            if entry.domain in DEFAULT_DOMAINS
        )
    )
    if len(versions) != 1:
        raise BadModel(
            f"{path}: names {len(versions)} versions of the default operator set; expected one"
        )
    if not OLDEST_OPSET <= versions[0] <= NEWEST_OPSET:
        raise BadModel(
            f"{path}: opset {versions[0]}; supported are {OLDEST_OPSET} to {NEWEST_OPSET}"
        )
    return int(versions[0])


def drop_unused_outputs(proto: onnx.ModelProto) -> None:
    """A Dropout's mask and a MaxPool's indices are left out where nothing reads them.

    A BatchNormalization keeps its own: before opset 14 they say that it trains.
    """
    read = {name for node in proto.graph.node for name in node.input} | {
        value.name for value in proto.graph.output
    }
    for node in proto.graph.node:
        if node.op_type in ("Dropout", "MaxPool") and not read & set(node.output[1:]):
            del node.output[1:]


NOTES = "mrt_notes"  # key of the model's metadata under which one reads what was changed on the way, one a line


def add_note(proto: onnx.ModelProto, note: str) -> None:
    """Say something to the user about how the model was read."""
    for entry in proto.metadata_props:
        if entry.key == NOTES:
            entry.value += f"\n{note}"
            return
    proto.metadata_props.add(key=NOTES, value=note)


def _has_readable_names(graph: onnx.GraphProto) -> bool:
    """Of nodes, their operands, results and attributes, and of tensors: the library hands out bytes for what is no text."""
    waiting = [graph]
    try:
        while waiting:
            item = waiting.pop()
            names: list[object] = [
                value.name for value in (*item.input, *item.output, *item.initializer)
            ]
            for node in item.node:
                names += [
                    node.name,
                    node.op_type,
                    node.domain,
                    *node.input,
                    *node.output,
                ]
                names += [attribute.name for attribute in node.attribute]
                for attribute in node.attribute:
                    waiting += [
                        *attribute.graphs,
                        *([attribute.g] if attribute.HasField("g") else []),
                    ]
            if not all(isinstance(name, str) for name in names):
                return False
    except UnicodeDecodeError:
        return False
    return True


def _refuse_tensors(proto: onnx.ModelProto, path: Path) -> None:
    for tensor in tensors(proto.graph):
        if tensor.data_type not in onnx.TensorProto.DataType.values():
            raise BadModel(
                f"{path}: '{tensor.name}' has the unknown element type {tensor.data_type}"
            )


def tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Initializers and tensor attributes of the main graph."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
