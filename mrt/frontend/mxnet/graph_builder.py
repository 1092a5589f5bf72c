"""The ONNX graph under construction: unique names, and the shapes of values and parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper, shape_inference

from mrt.graph.patch import add_constant, set_attributes
from mrt.graph.values import MOST_ELEMENTS, Array, Attribute

OPSET = 20
IR_VERSION = 10
# The most elements of one value, and of all constants: a gigabyte of float32.
MAX_ELEMENTS = MOST_ELEMENTS
MAX_RANK = 16
MAX_NODES = 2**16
MAX_INFERRED_FROM = 1000  # elements of a constant that sets shapes
MAX_SHOWN = 8  # shapes in an error message

AttributeValue = Attribute | list[int] | list[str]
Attributes = Mapping[str, AttributeValue]
Shape = tuple[int, ...]


class NodeRefusedError(Exception):
    """The reason why a node cannot be converted."""


@dataclass
class GraphParameter:
    """A variable that is filled from the parameter file.

    `shape` is its shape in the file, where that is known. `expected` lists the shapes
    that the first use accepts.
    """

    value: ir.Value
    shape: Shape | None
    expected: tuple[Shape, ...] = ()


@dataclass
class GraphBuilder:
    """The nodes and constants converted so far, and the parameters that they read.

    Names of values are part of calibration tables, so they follow one scheme: the
    wanted name, then `name_2`, `name_3`, ...
    """

    graph: ir.Graph = field(default_factory=lambda: _empty_graph())
    constant_elements: int = 0
    parameters: dict[str, GraphParameter] = field(default_factory=dict)
    ones: dict[str, ir.Value] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    # For each wanted name, the last number that was tried. All smaller ones are taken.
    last_number: dict[str, int] = field(default_factory=dict)
    functions: dict[ir.OperatorIdentifier, ir.Function] = field(
        default_factory=dict
    )

    def claim(self, name: str) -> str:
        """Reserve a name that no other value has: the wanted one, else a numbered one."""
        base_name = name or "node"
        number = self.last_number.get(base_name, 1)
        name = base_name if number == 1 else f"{base_name}_{number}"
        while name in self.names:
            number += 1
            name = f"{base_name}_{number}"
        self.last_number[base_name] = number
        self.names.add(name)
        return name

    def release(self, name: str) -> None:
        """Let another value have this name."""
        self.names.discard(name)
        self.last_number.pop(name, None)
        base_name, _, number = name.rpartition("_")
        is_numbered = number.isdecimal() and len(number) < 10
        if is_numbered and base_name in self.last_number:
            freed = max(int(number), 1)
            self.last_number[base_name] = min(
                self.last_number[base_name], freed
            )

    def variable(self, name: str, shape: Shape | None) -> ir.Value:
        """Return a float32 value that no node computes."""
        known_shape = None if shape is None else ir.Shape(shape)
        dtype = ir.TensorType(ir.DataType.FLOAT)
        return ir.Value(name=name, shape=known_shape, type=dtype)

    def parameter(self, name: str, shape: Shape | None) -> ir.Value:
        """Return a variable filled from the parameter file, with its shape where it is known."""
        value = self.variable(name, shape)
        self.parameters[name] = GraphParameter(value, shape)
        return value

    def is_parameter(self, value: ir.Value) -> bool:
        """Whether the parameter file fills this value."""
        parameter = self.parameters.get(value.name or "")
        return parameter is not None and parameter.value is value

    def expect_shape(self, value: ir.Value, shapes: tuple[Shape, ...]) -> None:
        """Record that a use of a parameter needs one of the shapes.

        The shapes are compared with the file at the end, for all parameters together.
        Raise NodeRefusedError when an earlier use needs other shapes.
        """
        parameter = self.parameters[value.name or ""]
        expected = parameter.expected
        if expected and not set(shapes) & set(expected):
            raise NodeRefusedError(
                f"{value.name!r} should have shape {shapes[0]} here "
                f"and {expected[0]} elsewhere"
            )
        parameter.expected = expected or shapes
        in_file = parameter.shape
        value.shape = ir.Shape(in_file if in_file in shapes else shapes[0])

    def ones_like(self, value: ir.Value) -> ir.Value:
        """Return ones in the shape of a parameter.

        They are filled in after the parameters, whose array in the file must have this
        shape.
        """
        assert value.name is not None
        if value.name not in self.ones:
            name = self.claim(f"{value.name}_ones")
            self.ones[value.name] = self.variable(name, shape_of(value))
        return self.ones[value.name]

    def require_space(self, elements: float) -> None:
        """Refuse a constant of this size if all constants together would become too large."""
        if self.constant_elements + elements > MAX_ELEMENTS:
            raise NodeRefusedError(
                f"{elements:.0f} numbers, with which all constants "
                "would have more than 2^28"
            )

    def constant(self, prefix: str, array: Array) -> ir.Value:
        """Add a constant to the graph as an initializer, and return it."""
        self.require_space(array.size)
        self.constant_elements += array.size
        return add_constant(self.graph, array, self.claim(f"{prefix}_constant"))

    def add_node(
        self,
        prefix: str,
        operator: str,
        inputs: Sequence[ir.Value | None],
        attributes: Attributes,
        *,
        outputs: int = 1,
    ) -> list[ir.Value]:
        """Add a node, infer the shapes of its outputs, and return these.

        Until `publish`, its name joins the name of the MXNet node and the operator.
        """
        if len(self.graph) >= MAX_NODES:
            raise NodeRefusedError(f"more than {MAX_NODES} nodes of ONNX")
        name = self.claim(f"{prefix}_{operator.lower()}")
        node = ir.Node("", operator, inputs, name=name, num_outputs=outputs)
        _set_attributes(node, attributes)
        node.outputs[0].name = name
        for index, output in enumerate(node.outputs[1:], start=1):
            output.name = self.claim(f"{name}_output{index}")
        _infer(node)
        self.graph.append(node)
        return list(node.outputs)

    def add_function_node(
        self,
        prefix: str,
        function: ir.Function,
        inputs: Sequence[ir.Value],
        attributes: Attributes,
    ) -> ir.Value:
        """Add a node that a function of the model defines.

        The function is added to the model once. The caller sets the shape and the dtype
        of the output.
        """
        name = self.claim(f"{prefix}_{function.name.lower()}")
        node = ir.Node(function.domain, function.name, inputs, name=name)
        _set_attributes(node, attributes)
        node.outputs[0].name = name
        self.functions.setdefault(function.identifier(), function)
        self.graph.append(node)
        return node.outputs[0]

    def publish(self, value: ir.Value, name: str) -> None:
        """Name the result of an MXNet node after that node."""
        node = value.producer()
        assert node is not None
        assert value.name is not None
        self.release(value.name)
        value.name = node.name = name

    def finish(
        self, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]
    ) -> ir.Model:
        """Return the model, with filled parameters first and then the constants, if they are used.

        Its producer and version are fixed strings, so that the same files give the same
        bytes.
        """
        graph = self.graph
        constants = list(graph.initializers.values())
        graph.initializers.clear()
        graph.meta.clear()  # the metadata keeps the names taken so far, released ones included
        graph.inputs.extend(inputs)
        graph.outputs.extend(outputs)
        filled = [parameter.value for parameter in self.parameters.values()]
        for value in (*filled, *self.ones.values(), *constants):
            if value.uses() or value.is_graph_output():
                graph.register_initializer(value)
        for function in self.functions.values():
            graph.opset_imports[function.domain] = 1
        return ir.Model(
            graph,
            ir_version=IR_VERSION,
            producer_name="mrt.frontend.mxnet",
            functions=list(self.functions.values()),
        )


def _empty_graph() -> ir.Graph:
    return ir.Graph([], [], nodes=[], opset_imports={"": OPSET}, name="mxnet")


def _set_attributes(node: ir.Node, attributes: Attributes) -> None:
    """Set attributes as `mrt.graph.patch` does, and lists of strings as well."""
    for name, value in attributes.items():
        if not isinstance(value, list):
            set_attributes(node, **{name: value})
        elif all(isinstance(element, int) for element in value):
            integers = tuple(int(element) for element in value)
            set_attributes(node, **{name: integers})
        else:
            node.attributes[name] = ir.AttrStrings(
                name, [str(text) for text in value]
            )


def _infer(node: ir.Node) -> None:
    """Set shape and dtype of the outputs from those of the inputs, by ONNX's own rules."""
    values = [value for value in node.inputs if value is not None]
    try:
        types = shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, OPSET, ""),
            ir.serde.serialize_node(node),
            {value.name or "": _type_proto(value) for value in values},
            _small_constants(values),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
    except (RuntimeError, shape_inference.InferenceError) as error:
        shapes = ", ".join(str(shape_of(value)) for value in values[:MAX_SHOWN])
        reason = str(error).splitlines()[0]
        raise NodeRefusedError(
            f"shapes do not fit: {shapes}: {reason}"
        ) from None
    for output in node.outputs:
        tensor = types[output.name or ""].tensor_type
        shape = tuple(dimension.dim_value for dimension in tensor.shape.dim)
        assert _is_static(tensor), (
            f"the shape of {node.op_type} does not follow"
        )
        _require_supported(shape)
        output.shape = ir.Shape(shape)
        output.type = ir.TensorType(ir.DataType(tensor.elem_type))


def _small_constants(values: Sequence[ir.Value]) -> dict[str, onnx.TensorProto]:
    """Return the constants among the inputs from which shapes may follow, by name."""
    constants = {}
    for value in values:
        tensor = value.const_value
        if tensor is not None and tensor.size <= MAX_INFERRED_FROM:
            constants[value.name or ""] = numpy_helper.from_array(
                tensor.numpy()
            )
    return constants


def _is_static(tensor: onnx.TypeProto.Tensor) -> bool:
    dimensions = tensor.shape.dim
    has_numbers = all(
        dimension.HasField("dim_value") for dimension in dimensions
    )
    return tensor.HasField("shape") and has_numbers


def _require_supported(shape: Shape) -> None:
    is_empty = min(shape, default=1) < 1
    is_too_large = len(shape) > MAX_RANK or math.prod(shape) > MAX_ELEMENTS
    if is_empty or is_too_large:
        raise NodeRefusedError(
            f"a result of shape {shape}; expected at most {MAX_RANK} "
            "positive dimensions, 2^28 numbers in all"
        )


def _type_proto(value: ir.Value) -> onnx.TypeProto:
    assert value.dtype is not None
    return helper.make_tensor_type_proto(value.dtype.value, shape_of(value))


def shape_of(value: ir.Value) -> Shape:
    """Return the static shape of a value; raise NodeRefusedError where it is unknown."""
    if value.shape is None:
        raise NodeRefusedError(f"the shape of {value.name!r} is unknown")
    return tuple(int(dimension) for dimension in value.shape.numpy())
