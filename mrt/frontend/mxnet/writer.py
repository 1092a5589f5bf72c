"""The ONNX graph as it grows: unique names, a shape for every value, parameters with the shapes they must have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper, shape_inference

from mrt.frontend.mxnet.params import Array

OPSET = 20
IR_VERSION = 10
MAX_ELEMENTS = (
    2**28
)  # of one value, and of all constants together: a gigabyte of float32
MAX_RANK = 16
MAX_NODES = 2**16
MOST_SIZES = 1000  # numbers of a constant that shapes may follow from
MOST_SHOWN = 8  # shapes in a refusal

Attributes = Mapping[str, int | float | str | Sequence[int] | Sequence[str]]


class RefusalError(Exception):
    """A node that cannot be converted, and why."""


@dataclass
class Parameter:
    """A variable filled by the parameter file. `shape` is what the file or else the first use says."""

    value: ir.Value
    shape: tuple[int, ...] | None
    wanted: tuple[tuple[int, ...], ...] = ()


@dataclass
class Writer:
    """Nodes in order of emission, initializers, parameters and what is wrong with them."""

    nodes: list[ir.Node] = field(default_factory=list)
    constants: list[ir.Value] = field(default_factory=list)
    constant_numbers: int = 0
    parameters: dict[str, Parameter] = field(default_factory=dict)
    ones: dict[str, ir.Value] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    numbered: dict[str, int] = field(
        default_factory=dict
    )  # by wanted name: up to which number all are taken
    functions: dict[ir.OperatorIdentifier, ir.Function] = field(default_factory=dict)

    def claim(self, name: str) -> str:
        """A name that no other value has: the wanted one if it is free, else with a number."""
        wanted = name or "node"
        number = self.numbered.get(wanted, 1)
        name = wanted if number == 1 else f"{wanted}_{number}"
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.numbered[wanted] = number
        self.names.add(name)
        return name

    def release(self, name: str) -> None:
        """Another value may have the name."""
        self.names.discard(name)
        wanted, _, number = name.rpartition("_")
        self.numbered.pop(name, None)
        if wanted in self.numbered and number.isdecimal() and len(number) < 10:
            self.numbered[wanted] = min(self.numbered[wanted], max(int(number), 1))

    def variable(self, name: str, shape: tuple[int, ...] | None) -> ir.Value:
        """A float32 value that no node computes."""
        return ir.Value(
            name=name,
            shape=None if shape is None else ir.Shape(shape),
            type=ir.TensorType(ir.DataType.FLOAT),
        )

    def parameter(self, name: str, shape: tuple[int, ...] | None) -> ir.Value:
        """A variable filled by the parameter file, where its shape is already known if it is there."""
        value = self.variable(name, shape)
        self.parameters[name] = Parameter(value, shape)
        return value

    def is_parameter(self, value: ir.Value) -> bool:
        """Whether the parameter file fills this value."""
        return (
            value.name in self.parameters and self.parameters[value.name].value is value
        )

    def want(self, value: ir.Value, shapes: tuple[tuple[int, ...], ...]) -> None:
        """A use that needs one of the shapes; what the file holds is compared in the end, for all at once."""
        parameter = self.parameters[value.name or ""]
        known = parameter.shape
        if parameter.wanted and not set(shapes) & set(parameter.wanted):
            raise RefusalError(
                f"{value.name!r} should have shape {shapes[0]} here and {parameter.wanted[0]} elsewhere"
            )
        parameter.wanted = parameter.wanted or shapes
        value.shape = ir.Shape(known if known in shapes else shapes[0])

    def ones_like(self, value: ir.Value) -> ir.Value:
        """Ones in the shape of a parameter, made only once the file has shown that it has this shape."""
        assert value.name is not None
        if value.name not in self.ones:
            self.ones[value.name] = self.variable(
                self.claim(f"{value.name}_ones"), shape_of(value)
            )
        return self.ones[value.name]

    def require_room(self, numbers: float) -> None:
        """Refuse so many more numbers of constants, before they take memory."""
        if self.constant_numbers + numbers > MAX_ELEMENTS:
            raise RefusalError(
                f"{numbers:.0f} numbers, with which all constants would have more than 2^28"
            )

    def constant(self, prefix: str, array: Array) -> ir.Value:
        """An initializer."""
        self.require_room(array.size)
        self.constant_numbers += array.size
        name = self.claim(f"{prefix}_constant")
        value = ir.Value(
            name=name,
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            const_value=ir.Tensor(array, name=name),
        )
        self.constants.append(value)
        return value

    def emit(
        self,
        prefix: str,
        operator: str,
        inputs: Sequence[ir.Value | None],
        attributes: Attributes,
    ) -> ir.Value:
        """Add a node with one output, named after the source node and the operator until `publish` renames it."""
        (output,) = self.emit_all(prefix, operator, inputs, attributes, outputs=1)
        return output

    def emit_all(
        self,
        prefix: str,
        operator: str,
        inputs: Sequence[ir.Value | None],
        attributes: Attributes,
        *,
        outputs: int,
    ) -> list[ir.Value]:
        """Add a node with that many outputs, the first of which is named as by `emit`."""
        if len(self.nodes) >= MAX_NODES:
            raise RefusalError(f"more than {MAX_NODES} nodes of ONNX")
        name = self.claim(f"{prefix}_{operator.lower()}")
        node = ir.node(
            operator, inputs, dict(attributes), name=name, num_outputs=outputs
        )
        for index, output in enumerate(node.outputs):
            output.name = self.claim(f"{name}_output{index}") if index else name
        _infer(node)
        self.nodes.append(node)
        return list(node.outputs)

    def emit_function(
        self,
        prefix: str,
        function: ir.Function,
        inputs: Sequence[ir.Value],
        attributes: Attributes,
        shape: ir.Shape,
        dtype: ir.DataType,
    ) -> ir.Value:
        """Add a node whose meaning is a function, which joins the model once."""
        name = self.claim(f"{prefix}_{function.name.lower()}")
        node = ir.node(
            function.name, inputs, dict(attributes), domain=function.domain, name=name
        )
        (output,) = node.outputs
        output.name, output.shape, output.type = name, shape, ir.TensorType(dtype)
        self.functions.setdefault(function.identifier(), function)
        self.nodes.append(node)
        return output

    def publish(self, value: ir.Value, name: str) -> None:
        """Give the result of a source node its own name."""
        node = value.producer()
        assert node is not None
        assert value.name is not None
        self.release(value.name)
        value.name = node.name = name

    def model(
        self,
        inputs: Iterable[ir.Value],
        outputs: Iterable[ir.Value],
        initializers: Iterable[ir.Value],
    ) -> ir.Model:
        """The finished model. Its fixed strings keep the same source the same bytes."""
        graph = ir.Graph(
            list(inputs),
            list(outputs),
            nodes=self.nodes,
            initializers=list(initializers),
            opset_imports={"": OPSET}
            | {function.domain: 1 for function in self.functions.values()},
            name="mxnet",
        )
        functions = list(self.functions.values())
        return ir.Model(
            graph,
            ir_version=IR_VERSION,
            producer_name="mrt.frontend.mxnet",
            functions=functions,
        )


def _infer(node: ir.Node) -> None:
    """Shape and dtype of the outputs by ONNX's own rules, from those of the inputs."""
    values = [value for value in node.inputs if value is not None]
    schema = onnx.defs.get_schema(node.op_type, OPSET, "")
    try:
        types = shape_inference.infer_node_outputs(
            schema,
            ir.serde.serialize_node(node),
            {value.name or "": _type_proto(value) for value in values},
            {
                value.name or "": numpy_helper.from_array(value.const_value.numpy())
                for value in values
                if value.const_value is not None
                and value.const_value.size <= MOST_SIZES
            },
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
    except (RuntimeError, shape_inference.InferenceError) as error:
        shapes = ", ".join(str(shape_of(value)) for value in values[:MOST_SHOWN])
        raise RefusalError(
            f"shapes do not fit: {shapes}: {str(error).splitlines()[0]}"
        ) from None
    for output in node.outputs:
        tensor = types[output.name or ""].tensor_type
        shape = tuple(dimension.dim_value for dimension in tensor.shape.dim)
        _require_sensible(node, tensor, shape)
        output.shape = ir.Shape(shape)
        output.type = ir.TensorType(ir.DataType(tensor.elem_type))


def _require_sensible(
    node: ir.Node, tensor: onnx.TypeProto.Tensor, shape: tuple[int, ...]
) -> None:
    known = tensor.HasField("shape") and all(
        dimension.HasField("dim_value") for dimension in tensor.shape.dim
    )
    assert known, f"{node.op_type} was emitted without what fixes its shape"
    if (
        min(shape, default=1) < 1
        or len(shape) > MAX_RANK
        or math.prod(shape) > MAX_ELEMENTS
    ):
        raise RefusalError(
            f"a result of shape {shape}; expected at most {MAX_RANK} positive dimensions, 2^28 numbers in all"
        )


def _type_proto(value: ir.Value) -> onnx.TypeProto:
    assert value.dtype is not None
    return helper.make_tensor_type_proto(value.dtype.value, shape_of(value))


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """The shape of a value that has a static one."""
    if value.shape is None:
        raise RefusalError(f"the shape of {value.name!r} is unknown")
    return tuple(int(dimension) for dimension in value.shape)  # type: ignore[arg-type]
