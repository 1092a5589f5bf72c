"""One use of an MXNet operator while it becomes ONNX nodes: what its handler may ask and emit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet.literals import Literal, Reals
from mrt.frontend.mxnet.params import Array
from mrt.frontend.mxnet.writer import Attributes, RefusalError, Writer, shape_of


class Call:
    """The attributes and inputs of one node; `name` is its name in the ONNX graph."""

    def __init__(
        self,
        writer: Writer,
        name: str,
        values: Mapping[str, Literal],
        inputs: Sequence[ir.Value],
    ) -> None:
        self.writer = writer
        self.name = name
        self.values = values
        self.inputs = inputs

    def refuse(self, trouble: str) -> NoReturn:
        """Say that the node cannot be converted."""
        raise RefusalError(trouble)

    def require(self, condition: bool, trouble: str) -> None:
        """Refuse unless the condition holds."""
        if not condition:
            self.refuse(trouble)

    # Attributes, by the kind they were declared with.

    def flag(self, name: str) -> bool:
        """True or False."""
        value = self.values[name]
        assert isinstance(value, bool)
        return value

    def integer(self, name: str) -> int:
        """An integer."""
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def real(self, name: str) -> float:
        """A number."""
        value = self.values[name]
        assert isinstance(value, float)
        return value

    def reals(self, name: str) -> tuple[float, ...]:
        """Several numbers."""
        value = self.values[name]
        assert isinstance(value, Reals)
        return value.numbers

    def word(self, name: str) -> str:
        """A word."""
        value = self.values[name]
        assert isinstance(value, str)
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """None, where it is allowed, reads as ()."""
        value = self.values[name]
        assert isinstance(value, tuple | None)
        assert value is None or None not in value
        return tuple(item for item in value or () if item is not None)

    def indices(self, name: str) -> tuple[int | None, ...]:
        """Integers, each of which may be None."""
        value = self.values[name]
        assert isinstance(value, tuple)
        return value

    def optional_integer(self, name: str) -> int | None:
        """An integer or None."""
        value = self.values[name]
        assert isinstance(value, int | None)
        return value

    def optional_real(self, name: str) -> float | None:
        """A number or None."""
        value = self.values[name]
        assert isinstance(value, float | None)
        return value

    # Inputs.

    @property
    def data(self) -> ir.Value:
        """The first input."""
        return self.inputs[0]

    def shape(self, value: ir.Value | None = None) -> tuple[int, ...]:
        """The shape of a value, by default of the first input."""
        return shape_of(self.data if value is None else value)

    def require_rank(self, least: int, most: int | None = None) -> None:
        """Of the first input."""
        rank, most = len(self.shape()), most or 2**31
        wanted = (
            f"{least}"
            if least == most
            else f"{least} to {most}"
            if most < 2**31
            else f"at least {least}"
        )
        self.require(
            least <= rank <= most,
            f"input of shape {self.shape()} has {rank} dimensions; expected {wanted}",
        )

    def axis(self, axis: int, rank: int | None = None) -> int:
        """An axis counted from the front, of the first input unless a rank is given."""
        rank = len(self.shape()) if rank is None else rank
        self.require(
            -rank <= axis < rank,
            f"axis {axis} is outside the {rank} dimensions of its input",
        )
        return axis % rank

    def parameter(self, index: int, *shapes: tuple[int, ...]) -> ir.Value:
        """The input at `index`, which must have one of the shapes. A parameter yet without shape gets the first."""
        value = self.inputs[index]
        if self.writer.is_parameter(value):
            self.writer.want(value, shapes)
        else:
            wanted = " or ".join(str(shape) for shape in shapes)
            found = shape_of(value)
            self.require(
                found in shapes,
                f"input {value.name!r} has shape {found}; expected {wanted}",
            )
        return value

    # Emission.

    def constant(self, numbers: float | Sequence[float] | Sequence[int]) -> ir.Value:
        """An initializer: float32 for one number or floats, int64 for integers."""
        integral = isinstance(numbers, Sequence) and all(
            isinstance(number, int) for number in numbers
        )
        return self.writer.constant(
            self.name, np.array(numbers, np.int64 if integral else np.float32)
        )

    def array(self, numbers: Array) -> ir.Value:
        """An initializer of the dtype that the numbers have."""
        return self.writer.constant(self.name, numbers)

    def emit(
        self,
        operator: str,
        inputs: Sequence[ir.Value | None],
        attributes: Attributes | None = None,
    ) -> ir.Value:
        """Add a node of the default domain, with one output whose shape follows."""
        return self.writer.emit(self.name, operator, inputs, attributes or {})

    def emit_all(
        self,
        operator: str,
        inputs: Sequence[ir.Value | None],
        attributes: Attributes,
        *,
        outputs: int,
    ) -> list[ir.Value]:
        """As `emit`, with that many outputs."""
        return self.writer.emit_all(
            self.name, operator, inputs, attributes, outputs=outputs
        )

    def emit_function(
        self,
        function: ir.Function,
        inputs: Sequence[ir.Value],
        attributes: Attributes,
        shape: tuple[int, ...],
        dtype: ir.DataType,
    ) -> ir.Value:
        """Add a node whose meaning is a function of the model, with one output of this shape and dtype."""
        return self.writer.emit_function(
            self.name, function, inputs, attributes, ir.Shape(shape), dtype
        )

    def reshape(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """Emit a Reshape to a shape in which every dimension is written out."""
        return self.emit(
            "Reshape", [value, self.constant(list(shape))], {"allowzero": 0}
        )
