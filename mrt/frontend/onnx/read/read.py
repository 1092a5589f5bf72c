"""Read the bytes of a file as an ONNX protobuf, or refuse them with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx_ir as ir
from onnx import helper

from mrt.errors import BadModel, MissingModel
from mrt.frontend.onnx.read.sparse import write_dense

LARGEST_FILE = (1 << 31) - 1  # the most that protobuf itself can read
FREE_WEIGHTS = 4  # the IR version from which on initializers need not be inputs
OLDEST_OPSET = 1
FREE_OPSET = 20  # of what is added to a file that names none
NEWEST_OPSET = 28  # the newest that onnx 1.23 describes

DEFAULT_DOMAINS = ("", "ai.onnx")

NOTES = "mrt_notes"
"""Key of the model's metadata: notes on what reading changed, one a line."""


GIT_LFS = b"version https://git-lfs"
"""What a file begins with that Git keeps in the place of a large one."""


def read_bytes(path: Path) -> bytes:
    """Return the content of a model file."""
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
        raise MissingModel(f"{path}: No such file or directory") from None
    except OSError as error:
        raise BadModel(f"{path}: cannot be read ({error.strerror})") from None
    if not data:
        raise BadModel(f"{path}: the file is empty")
    if data.startswith(GIT_LFS):
        raise BadModel(
            f"{path}: a pointer of Git LFS, not the model itself; fetch that: git lfs pull"
        )
    return data


def parse(data: bytes, path: Path) -> onnx.ModelProto:
    """Parse the protobuf in `data` and check that the fields which every model has are present."""
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception:  # protobuf's DecodeError; protobuf is not ours to import
        raise BadModel(
            f"{path}: {len(data):,} bytes that are not an ONNX file, or one cut short; copy or export it again"
        ) from None
    if not proto.HasField("graph") or not proto.ir_version:
        raise BadModel(
            f"{path}: not an ONNX model (it has no graph or no IR version)"
        )
    if not proto.graph.output:
        raise BadModel(f"{path}: the graph has no outputs")
    _refuse_unknown_types(proto, path)
    if not _has_readable_names(proto.graph):
        raise BadModel(f"{path}: a name in it is no text (UTF-8)")
    write_dense(all_graphs(proto.graph), path)
    proto.graph.name = proto.graph.name or "graph"  # the checker wants one
    proto.ir_version = max(proto.ir_version, FREE_WEIGHTS)
    return proto


def name_opset(proto: onnx.ModelProto) -> None:
    """Name opset 20 in a file of other domains' operators alone, which may name none.

    ONNX requires the version of the default set only where a node belongs to it.
    """
    named = any(entry.domain in DEFAULT_DOMAINS for entry in proto.opset_import)
    used = any(node.domain in DEFAULT_DOMAINS for node in proto.graph.node)
    if not (named or used or proto.functions):
        proto.opset_import.append(helper.make_opsetid("", FREE_OPSET))


def opset_of(proto: onnx.ModelProto, path: Path) -> int:
    """Return the version of the default operator set, if it is one that is supported."""
    stated = [
        entry.version
        for entry in proto.opset_import
        if entry.domain in DEFAULT_DOMAINS
    ]
    versions = list(dict.fromkeys(stated))
    if len(versions) != 1:
        raise BadModel(
            f"{path}: names {len(versions)} versions of the default operator set; "
            "expected one"
        )
    opset = int(versions[0])
    if not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise BadModel(
            f"{path}: opset {opset}; supported are {OLDEST_OPSET} to {NEWEST_OPSET}: export the model for one of these"
        )
    return opset


def add_note(model: onnx.ModelProto | ir.Model, note: str) -> None:
    """Add a line to the notes for the user on how the model was read."""
    if isinstance(model, ir.Model):
        notes = model.metadata_props.get(NOTES)
        model.metadata_props[NOTES] = (
            note if notes is None else f"{notes}\n{note}"
        )
        return
    for entry in model.metadata_props:
        if entry.key == NOTES:
            entry.value += f"\n{note}"
            return
    model.metadata_props.add(key=NOTES, value=note)


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph and the bodies inside it, without recursion."""
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        yield current
        for node in current.node:
            for attribute in node.attribute:
                waiting.extend(attribute.graphs)
                if attribute.HasField("g"):
                    waiting.append(attribute.g)


def tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield the main graph's initializers first, then every other stored tensor."""
    yield from graph.initializer
    for current in all_graphs(graph):
        if current is not graph:
            yield from current.initializer
        for node in current.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors


def _has_readable_names(graph: onnx.GraphProto) -> bool:
    """Return whether all names are UTF-8; for others, protobuf returns bytes."""
    try:
        for current in all_graphs(graph):
            for name in _names(current):
                if not isinstance(name, str):
                    return False
    except UnicodeDecodeError:
        return False
    return True


def _names(graph: onnx.GraphProto) -> Iterator[object]:
    """Yield the names of a graph, and of its values, nodes, operands and attributes."""
    yield graph.name
    for sparse in graph.sparse_initializer:
        yield sparse.values.name
    for value in (*graph.input, *graph.output, *graph.initializer):
        yield value.name
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain)
        yield from node.input
        yield from node.output
        for attribute in node.attribute:
            yield attribute.name
            yield attribute.sparse_tensor.values.name


def _refuse_unknown_types(proto: onnx.ModelProto, path: Path) -> None:
    element_types = onnx.TensorProto.DataType.values()
    for tensor in tensors(proto.graph):
        if tensor.data_type not in element_types:
            raise BadModel(
                f"{path}: '{tensor.name}' has the unknown element type "
                f"{tensor.data_type}"
            )
