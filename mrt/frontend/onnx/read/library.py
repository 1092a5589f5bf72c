"""Calls of the onnx library, which works on protobufs: check, shape inference, evaluator.

The library copies its argument three times, so it is never passed large weights.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from mrt.errors import BadModel
from mrt.frontend.onnx.read.sizes import nodes_with_bodies
from mrt.graph.known_lists import are_bounded

SMALL = 1 << 12  # the most bytes of a constant from which shapes may follow
WRONG_SHAPES = "the shapes do not fit together"
WRONG_TYPES = "the types of values do not fit together"
_MARK_OF_TYPES = "typestr"  # in the library's message

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
Opsets = Mapping[str, int]
IsLarge = Callable[[ir.TensorProtocol], bool]


def to_ir(proto: onnx.ModelProto, path: Path) -> ir.Model:
    """Convert the protobuf to the graph on which every later step works."""
    try:
        with _quiet_library():
            return ir.from_proto(proto)
    except (
        Exception
    ) as error:  # the library has no error type for a model that it refuses
        raise BadModel(
            f"{path}: not a valid ONNX model: {_root_cause(error)}"
        ) from None


def to_protobuf(model: ir.Model, path: Path) -> onnx.ModelProto:
    """Convert the model back, for steps that work on a protobuf."""
    try:
        with _quiet_library():
            return ir.to_proto(model)
    except ir.serde.SerdeError as error:
        raise BadModel(
            f"{path}: not a valid ONNX model: {_root_cause(error)}"
        ) from None


@contextmanager
def _quiet_library() -> Iterator[None]:
    """Suppress the library's warnings about what is refused by name later."""
    logger = logging.getLogger(ir.serde.__name__)
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def check(model: ir.Model, path: Path) -> None:
    """Run the library's check, which accepts inputs and outputs without a shape here."""
    try:
        proto = without_large_weights(model, is_above_small)
        for value in (*proto.graph.input, *proto.graph.output):
            kind = value.type
            if kind.HasField("tensor_type") and not kind.tensor_type.HasField(
                "shape"
            ):
                kind.tensor_type.shape.SetInParent()
        onnx.checker.check_model(proto)
        for value in model.graph.initializers.values():
            tensor = value.const_value
            if isinstance(tensor, ir.serde.TensorProtoTensor):
                onnx.checker.check_tensor(tensor.raw)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise BadModel(
            f"{path}: not a valid ONNX model: {_one_line(error)}"
        ) from None
    except ir.serde.SerdeError as error:
        raise BadModel(
            f"{path}: not a valid ONNX model: {_root_cause(error)}"
        ) from None


def find_shapes(model: ir.Model, path: Path) -> None:
    """Set the shape and the type of every computed value, in place."""
    try:
        proto = without_large_weights(model, is_above_small)
        inferred = _with_shapes(proto, check_type=True, strict_mode=True)
    except (
        onnx.shape_inference.InferenceError,
        ValueError,
        IndexError,  # of an STFT whose length of a frame is an empty list
    ) as error:
        text = _one_line(error)
        what = WRONG_TYPES if _MARK_OF_TYPES in text else WRONG_SHAPES
        raise BadModel(f"{path}: {what}: {text}") from None
    except ir.serde.SerdeError as error:
        raise BadModel(
            f"{path}: not a valid ONNX model: {_root_cause(error)}"
        ) from None
    typed = {value.name: value for value in _computed(to_ir(inferred, path))}
    for value in _computed(model):
        if value.name in typed:
            _copy_shape(typed[value.name], value, path)


def with_shapes_in_front(model: ir.Model) -> ir.Model:
    """Return a copy with the shapes that are known in front of what does not fit together."""
    proto = without_large_weights(model, is_above_small)
    with suppress(onnx.shape_inference.InferenceError, ValueError, IndexError):
        proto = _with_shapes(proto)
    return ir.from_proto(proto)


def _with_shapes(proto: onnx.ModelProto, **checks: bool) -> onnx.ModelProto:
    """Return a copy with inferred shapes, from lists that are computed where that helps.

    The library computes real numbers as well, and takes some for lists of the wrong
    length: what fails with them is inferred without any.
    """
    infer = partial(onnx.shape_inference.infer_shapes, proto, **checks)
    if not _lists_are_bounded(proto):
        return infer()
    try:
        return infer(data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        with suppress(onnx.shape_inference.InferenceError):
            return infer()
        raise error


def _lists_are_bounded(proto: onnx.ModelProto) -> bool:
    """Return whether the lists from which shapes may follow are small enough to be computed."""
    nodes = list(nodes_with_bodies(proto.graph.node))
    constants = {
        tensor.name: math.prod(tensor.dims)
        for tensor in proto.graph.initializer
        if len(tensor.dims) < 2
    }
    for node in nodes:
        if node.op_type == "Constant" and node.output:
            constants[node.output[0]] = _length_of_constant(node)
    steps = ((node.op_type, node.input, node.output) for node in nodes)
    return are_bounded(steps, constants)


def _length_of_constant(node: onnx.NodeProto) -> int:
    """Return the most numbers that the list in a Constant may have."""
    return max(
        (
            max(
                math.prod(attribute.t.dims),
                len(attribute.ints),
                len(attribute.floats),
                1,
            )
            for attribute in node.attribute
        ),
        default=0,
    )


def _computed(model: ir.Model) -> Iterator[ir.Value]:
    for node in model.graph:
        yield from node.outputs


def _copy_shape(inferred: ir.Value, value: ir.Value, path: Path) -> None:
    """Copy type and shape; refuse a negative size, which inference accepts for some scales."""
    shape = inferred.shape
    sizes = (
        []
        if shape is None
        else [size for size in shape if isinstance(size, int)]
    )
    if min(sizes, default=0) < 0:
        raise BadModel(
            f"{path}: {WRONG_SHAPES}: "
            f"'{value.name}' would have the shape {shape}"
        )
    value.type = inferred.type
    value.shape = shape


def without_large_weights(
    model: ir.Model, is_large: IsLarge
) -> onnx.ModelProto:
    """Return a protobuf in which the large initializers are inputs.

    The model itself is the same afterwards.
    """
    graph = model.graph
    initializers = list(graph.initializers.values())
    inputs = list(graph.inputs)
    large = [
        value
        for value in initializers
        if value.const_value is not None and is_large(value.const_value)
    ]
    for value in large:
        del graph.initializers[value.name or ""]
        if value not in inputs:
            graph.inputs.append(value)
    try:
        with _quiet_library():
            return ir.to_proto(model)
    finally:
        graph.inputs.clear()
        graph.inputs.extend(inputs)
        graph.initializers.clear()
        for value in initializers:
            graph.register_initializer(value)


def is_above_small(tensor: ir.TensorProtocol) -> bool:
    """Whether no shape follows from a constant, since it is large."""
    try:
        return tensor.nbytes > SMALL
    except TypeError:  # text and unknown types have no width
        return tensor.size > SMALL


class ShapeInference:
    """The library's shape inference, with some values as constants because they are known.

    It never raises: a value for which it finds no shape stays unknown, and any error in
    the model is reported by `find_shapes`.
    """

    def __init__(
        self, model: ir.Model, inputs: Shapes, is_large: IsLarge
    ) -> None:
        self._proto = onnx.ModelProto()
        try:
            self._proto = without_large_weights(model, is_large)
        except (
            Exception
        ):  # if anything is wrong with the model, nothing is known
            return
        # Shapes in the file may have unknown dimensions, or be wrong.
        del self._proto.graph.value_info[:], self._proto.graph.output[:]
        for value in self._proto.graph.input:
            _fix_input(value, inputs.get(value.name))

    def shapes(
        self,
        arrays: Mapping[str, Array],
        left_out: AbstractSet[str] = frozenset(),
    ) -> dict[str, Shape]:
        """Infer the shapes that have known sizes, with these values as constants, and others as unknown."""
        proto = onnx.ModelProto()
        proto.CopyFrom(self._proto)
        graph = proto.graph
        for index in reversed(range(len(graph.node))):
            if (arrays.keys() | left_out) & set(graph.node[index].output):
                del graph.node[index]
        for name, array in arrays.items():
            graph.initializer.append(numpy_helper.from_array(array, name))
        try:
            graph = _with_shapes(proto).graph
        except Exception:  # the library has no common type for its errors
            return {}
        shapes = dict(_static_shapes((*graph.value_info, *graph.input)))
        for tensor in graph.initializer:
            shapes[tensor.name] = tuple(tensor.dims)
        return shapes


def _fix_input(value: onnx.ValueInfoProto, user_shape: Shape | None) -> None:
    """Fix the sizes of an input as `fix_inputs` will: an unknown first one is 1."""
    kind = value.type.tensor_type
    dimensions = kind.shape.dim
    if not kind.HasField("shape"):
        return
    if user_shape is not None and len(user_shape) != len(dimensions):
        return
    for axis, dimension in enumerate(dimensions):
        size = dimension.dim_value if user_shape is None else user_shape[axis]
        if size > 0:
            dimension.dim_value = size
        elif axis == 0:
            dimension.dim_value = 1


def _static_shapes(
    values: tuple[onnx.ValueInfoProto, ...],
) -> Iterator[tuple[str, Shape]]:
    for value in values:
        if not value.type.tensor_type.HasField("shape"):
            continue
        dimensions = value.type.tensor_type.shape.dim
        if all(dimension.HasField("dim_value") for dimension in dimensions):
            yield (
                value.name,
                tuple(dimension.dim_value for dimension in dimensions),
            )


def evaluate(
    node: ir.Node, output: str, arrays: Mapping[str, Array], opsets: Opsets
) -> Array:
    """Compute one output of a node by the library's reference evaluator."""
    inputs = [onnx.helper.make_empty_tensor_value_info(name) for name in arrays]
    outputs = [onnx.helper.make_empty_tensor_value_info(output)]
    with _quiet_library():
        nodes = [ir.to_proto(node)]
    graph = onnx.helper.make_graph(nodes, "g", inputs, outputs)
    imports = [onnx.helper.make_opsetid(*entry) for entry in opsets.items()]
    model = onnx.helper.make_model(graph, opset_imports=imports)
    results = ReferenceEvaluator(model).run([output], dict(arrays))
    return np.asarray(next(iter(results)))


def _root_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return _one_line(error)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
