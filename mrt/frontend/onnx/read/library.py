"""The onnx library's own check and shape inference, neither of which is shown the weights: both copy all they see, thrice."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir

from mrt.errors import BadModel

SMALL = 1 << 12  # bytes of a constant that shapes may follow from


def check(proto: onnx.ModelProto, path: Path) -> None:
    """The library's check, except that inputs and outputs without a shape, which it refuses, are accepted."""
    try:
        skeleton = without_weights(proto)
        for value in (*skeleton.graph.input, *skeleton.graph.output):
            if value.type.HasField(
                "tensor_type"
            ) and not value.type.tensor_type.HasField("shape"):
                value.type.tensor_type.shape.SetInParent()
        onnx.checker.check_model(skeleton)
        for tensor in proto.graph.initializer:
            if (
                tensor.data_location != onnx.TensorProto.EXTERNAL
                and tensor.ByteSize() > SMALL
            ):
                onnx.checker.check_tensor(tensor)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise BadModel(f"{path}: not a valid ONNX model: {_one_line(error)}") from None


def without_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which the large initializers are inputs."""
    copy = onnx.ModelProto(ir_version=proto.ir_version)
    copy.opset_import.extend(proto.opset_import)
    for name in ("node", "input", "output", "value_info"):
        getattr(copy.graph, name).extend(getattr(proto.graph, name))
    copy.graph.name = proto.graph.name
    inputs = {value.name for value in proto.graph.input}
    for tensor in proto.graph.initializer:
        if (
            tensor.data_location != onnx.TensorProto.EXTERNAL
            and tensor.ByteSize() <= SMALL
        ):
            copy.graph.initializer.add().CopyFrom(tensor)
        elif tensor.name not in inputs:
            copy.graph.input.append(
                onnx.helper.make_tensor_value_info(
                    tensor.name, tensor.data_type, tensor.dims
                )
            )
    return copy


def to_ir(proto: onnx.ModelProto, path: Path) -> ir.Model:
    """The graph that the rest of this room works on."""
    try:
        return ir.from_proto(proto)
    except Exception as error:  # the library names no type for what it cannot take
        raise BadModel(
            f"{path}: not a valid ONNX model: {_root_cause(error)}"
        ) from None


def find_shapes(model: ir.Model, path: Path) -> None:
    """Give every computed value its shape and type, in place."""
    try:
        proto = _without_arrays(model)
        inferred = onnx.shape_inference.infer_shapes(
            proto, check_type=True, strict_mode=True, data_prop=True
        )
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise BadModel(
            f"{path}: the shapes do not fit together: {_one_line(error)}"
        ) from None
    except ir.serde.SerdeError as error:
        raise BadModel(
            f"{path}: not a valid ONNX model: {_root_cause(error)}"
        ) from None
    found = {
        value.name: value
        for node in to_ir(inferred, path).graph
        for value in node.outputs
    }
    for value in (
        output
        for node in model.graph
        for output in node.outputs
        if output.name in found
    ):
        shape, value.type = found[value.name].shape, found[value.name].type
        if shape is not None and any(
            isinstance(size, int) and size < 0 for size in shape
        ):
            raise BadModel(
                f"{path}: the shapes do not fit together: '{value.name}' would have the shape {shape}"
            )
        value.shape = shape


def _without_arrays(model: ir.Model) -> onnx.ModelProto:
    """The model as a protobuf in which large initializers are inputs; the model stays as it is."""
    graph = model.graph
    large = [
        value
        for value in graph.initializers.values()
        if value.const_value and value.const_value.nbytes > SMALL
    ]
    inputs = list(graph.inputs)
    for value in large:
        del graph.initializers[value.name or ""]
        if value not in inputs:
            graph.inputs.append(value)
    try:
        return ir.to_proto(model)
    finally:
        graph.inputs.clear()
        graph.inputs.extend(inputs)
        for value in large:
            graph.register_initializer(value)


def _root_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return _one_line(error)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
