"""One MXNet node under conversion: its attributes are read, and ONNX nodes are written for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet.graph_builder import (
    Attributes,
    AttributeValue,
    GraphBuilder,
    NodeRefusedError,
    shape_of,
)
from mrt.frontend.mxnet.literals import Literal, Reals
from mrt.graph.values import Array


class OperatorCall:
    """The attributes and inputs of one node; `name` is its name in the ONNX graph."""

    def __init__(
        self,
        builder: GraphBuilder,
        name: str,
        values: Mapping[str, Literal],
        inputs: Sequence[ir.Value],
    ) -> None:
        self.builder = builder
        self.name = name
        self.values = values
        self.inputs = inputs

    def refuse(self, problem: str) -> NoReturn:
        """Raise NodeRefusedError: the node cannot be converted, for this reason."""
        raise NodeRefusedError(problem)

    def require(self, condition: bool, problem: str) -> None:
        """Refuse the node unless the condition holds."""
        if not condition:
            self.refuse(problem)

    # Readers of attributes, one for each type that `registry.py` declares.

    def bool_attribute(self, name: str) -> bool:
        """Return a boolean attribute."""
        value = self.values[name]
        assert isinstance(value, bool)
        return value

    def int_attribute(self, name: str) -> int:
        """Return an integer attribute."""
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def float_attribute(self, name: str) -> float:
        """Return a float attribute."""
        value = self.values[name]
        assert isinstance(value, float)
        return value

    def floats_attribute(self, name: str) -> tuple[float, ...]:
        """Return a list of floats."""
        value = self.values[name]
        assert isinstance(value, Reals)
        return value.numbers

    def string_attribute(self, name: str) -> str:
        """Return a string attribute."""
        value = self.values[name]
        assert isinstance(value, str)
        return value

    def ints_attribute(self, name: str) -> tuple[int, ...]:
        """Return a list of integers; a None, where it is allowed, counts as ()."""
        value = self.values[name]
        assert isinstance(value, tuple | None)
        assert value is None or None not in value
        return tuple(number for number in value or () if number is not None)

    def optional_ints_attribute(self, name: str) -> tuple[int | None, ...]:
        """Return a list in which each element is an integer or None."""
        value = self.values[name]
        assert isinstance(value, tuple)
        return value

    def optional_int_attribute(self, name: str) -> int | None:
        """Return an integer attribute that may be None."""
        value = self.values[name]
        assert isinstance(value, int | None)
        return value

    def optional_float_attribute(self, name: str) -> float | None:
        """Return a float attribute that may be None."""
        value = self.values[name]
        assert isinstance(value, float | None)
        return value

    @property
    def data(self) -> ir.Value:
        """The first input."""
        return self.inputs[0]

    def shape(self, value: ir.Value | None = None) -> tuple[int, ...]:
        """Return the shape of a value, by default that of the first input."""
        return shape_of(self.data if value is None else value)

    def rank(self, value: ir.Value | None = None) -> int:
        """Return the number of dimensions of a value, by default that of the first input."""
        return len(self.shape(value))

    def require_rank(self, least: int, most: int | None = None) -> None:
        """Refuse the node unless its first input has `least` to `most` dimensions."""
        rank = self.rank()
        if most is None:
            expected = f"at least {least}"
        elif least == most:
            expected = f"{least}"
        else:
            expected = f"{least} to {most}"
        fits = least <= rank and (most is None or rank <= most)
        self.require(
            fits,
            f"input of shape {self.shape()} has {rank} dimensions; expected {expected}",
        )

    def axis(self, axis: int, rank: int | None = None) -> int:
        """Return this axis counted from the front, of the first input unless a rank is given."""
        rank = self.rank() if rank is None else rank
        self.require(
            -rank <= axis < rank,
            f"axis {axis} is outside the {rank} dimensions of its input",
        )
        return axis % rank

    def axis_attribute(self, name: str = "axis") -> int:
        """Return the axis of the first input that an attribute holds, counted from the front."""
        return self.axis(self.int_attribute(name))

    def parameter(self, index: int, *shapes: tuple[int, ...]) -> ir.Value:
        """Return the input at `index`, which must have one of the shapes.

        A parameter whose shape is not yet known gets the first of them.
        """
        value = self.inputs[index]
        if self.builder.is_parameter(value):
            self.builder.expect_shape(value, shapes)
            return value
        expected = " or ".join(str(shape) for shape in shapes)
        shape = shape_of(value)
        self.require(
            shape in shapes,
            f"input {value.name!r} has shape {shape}; expected {expected}",
        )
        return value

    # New nodes and constants.

    def constant(
        self, numbers: float | Sequence[float] | Sequence[int]
    ) -> ir.Value:
        """Add an initializer: float32 for one number or floats, int64 for integers."""
        is_integral = isinstance(numbers, Sequence) and all(
            isinstance(number, int) for number in numbers
        )
        dtype = np.int64 if is_integral else np.float32
        return self.array(np.array(numbers, dtype))

    def index(self, number: int) -> ir.Value:
        """Add an initializer of one int64 without dimensions."""
        return self.array(np.array(number, np.int64))

    def array(self, numbers: Array) -> ir.Value:
        """Add an initializer with the dtype of the numbers."""
        return self.builder.constant(self.name, numbers)

    def add(
        self,
        operator: str,
        *inputs: ir.Value | None,
        **attributes: AttributeValue,
    ) -> ir.Value:
        """Add an ONNX node with one output, whose shape is inferred, and return the output."""
        (output,) = self.builder.add_node(
            self.name, operator, inputs, attributes
        )
        return output

    def add_all(
        self,
        operator: str,
        *inputs: ir.Value | None,
        outputs: int,
        **attributes: AttributeValue,
    ) -> list[ir.Value]:
        """Add an ONNX node with so many outputs, and return them."""
        return self.builder.add_node(
            self.name, operator, inputs, attributes, outputs=outputs
        )

    def add_function(
        self,
        function: ir.Function,
        inputs: Sequence[ir.Value],
        attributes: Attributes,
    ) -> ir.Value:
        """Add a node that a function of the model defines, and return its output.

        The caller sets the shape and the dtype of the output.
        """
        return self.builder.add_function_node(
            self.name, function, inputs, attributes
        )

    def reshape(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """Add a Reshape to a shape in which every dimension is stated."""
        return self.add(
            "Reshape", value, self.constant(list(shape)), allowzero=0
        )

    def transpose(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """Add a Transpose to this order of axes."""
        return self.add("Transpose", value, perm=list(order))
