"""The graph as a program: first one message for all operators that cannot be expressed, then the rule of each operator."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvm.errors import BadInput, Invalid, brief
from cvm.program import (
    DTYPE_RANGES,
    MAX_RANK,
    Input,
    IntArray,
    Program,
    TensorType,
)
from cvm.tosa.graph import TosaGraph, TosaOperator, TosaTensor
from cvm.tosa.importing.draft import DraftValue, ProgramDraft, constant
from cvm.tosa.importing.reading import TosaReading
from cvm.tosa.importing.rules import ELEMENT_DTYPES, RULES
from cvm.tosa.importing.signatures import WITH_AN_AXIS, matches
from cvm.tosa.importing.unsigned import MOVEMENT, without_sign

Intervals = Mapping[str, tuple[int, int]]
WIDTHS = {"BOOL": 1, "INT8": 1, "INT16": 2, "INT32": 4, "INT48": 6}
CODES = {"BOOL": "?", "INT8": "<i1", "INT16": "<i2", "INT32": "<i4"}
SHOWN = 20  # refused operators in one message
READINGS = 16  # of each element of a constant, on average, as V13 has it
LEAST_WORK = 2**26


def program_of(graph: TosaGraph, intervals: Intervals) -> Program:
    """The program, whose form is that of the graph; `intervals` are those of inputs that are narrower than their type.

    BadInput names every operator that no instruction expresses, or the first one that breaks a rule.
    """
    reader = _GraphReader(graph)
    reader.require_expressible()
    return reader.program(intervals)


class _GraphReader:
    """A graph and what its names stand for."""

    def __init__(self, graph: TosaGraph) -> None:
        self.graph = graph
        self.tensors = {tensor.name: tensor for tensor in graph.tensors}
        self.shapes = {shape.name: shape for shape in graph.shapes}
        self.unsigned = without_sign(graph)
        self.draft = ProgramDraft()
        self.values: dict[str, DraftValue] = {}
        self.sizes: dict[str, tuple[int, ...]] = {}
        stored = sum(len(tensor.data) for tensor in graph.tensors)
        self.left = LEAST_WORK + READINGS * stored
        count = len(graph.tensors) + len(graph.shapes)
        if len(self.tensors.keys() | self.shapes.keys()) != count:
            raise BadInput("two tensors or shapes have one name")

    def require_expressible(self) -> None:
        """Raise BadInput with every operator that is refused by its name or its types."""
        refused: dict[str, list[str]] = {}
        for operator in self.graph.operators:
            reason = self._reason(operator)
            if reason:
                refused.setdefault(reason, []).append(_name_of(operator))
        if refused:
            listed = [
                f"{reason} ({', '.join(map(brief, names[:3]))}{', ...' if len(names) > 3 else ''})"
                for reason, names in list(refused.items())[:SHOWN]
            ]
            more = len(refused) - SHOWN
            if more > 0:
                listed.append(f"and {more} more")
            raise BadInput(
                f"no instruction has the meaning of {'; '.join(listed)}"
            )

    def _reason(self, operator: TosaOperator) -> str:
        """The operator, with its types where these are the reason; else nothing."""
        if operator.name in ("CONST", "CONST_SHAPE"):
            return ""
        if operator.name not in RULES:
            return operator.name
        inputs = " ".join(map(self._type_of, operator.inputs))
        signature = (
            f"{inputs} > {' '.join(map(self._type_of, operator.outputs))}"
        )
        return (
            ""
            if matches(operator.name, signature)
            else f"{operator.name}: {signature}"
        )

    def _type_of(self, name: str) -> str:
        if name in self.shapes:
            return "SIZES"
        return self._tensor(name).dtype

    def _tensor(self, name: str) -> TosaTensor:
        if name not in self.tensors:
            raise BadInput(f"there is no tensor {brief(name)}")
        return self.tensors[name]

    def program(self, intervals: Intervals) -> Program:
        """Inputs, then every operator in order, then outputs."""
        for name in self.graph.inputs:
            self._define(name, self._input(name, intervals))
        unknown = intervals.keys() - set(self.graph.inputs)
        if unknown:
            raise BadInput(f"there is no input {brief(min(unknown))}")
        for operator in self.graph.operators:
            try:
                self._read(operator)
            except (BadInput, Invalid) as problem:
                where = f"{operator.name} {brief(_name_of(operator))}"
                raise BadInput(f"{where}: {problem}") from None
        outputs = [(name, self._output(name)) for name in self.graph.outputs]
        return self.draft.program(outputs)

    def _define(self, name: str, value: DraftValue) -> None:
        if name in self.values:
            raise BadInput(f"{brief(name)} is defined twice")
        self.values[name] = value

    def _input(self, name: str, intervals: Intervals) -> DraftValue:
        tensor = self._tensor(name)
        type_ = self._value_type(tensor)
        if tensor.data or tensor.dtype not in CODES:
            raise BadInput(f"input {brief(name)} is {tensor.dtype} with data")
        low, high = intervals.get(name, DTYPE_RANGES[type_.dtype])
        return self.draft.input(Input(name, type_, low, high))

    def _value_type(self, tensor: TosaTensor) -> TensorType:
        dtype = ELEMENT_DTYPES.get(tensor.dtype)
        if dtype is None or len(tensor.shape) > MAX_RANK:
            description = f"{tensor.dtype} of rank {len(tensor.shape)}"
            raise BadInput(f"{brief(tensor.name)} is {description}")
        if dtype == "i8" and tensor.name in self.unsigned:
            dtype = "u8"
        return TensorType(dtype, tensor.shape)

    def _read(self, operator: TosaOperator) -> None:
        """Define what an operator defines."""
        if len(operator.outputs) != 1:
            raise BadInput(f"{len(operator.outputs)} outputs; expected 1")
        (name,) = operator.outputs
        if operator.name == "CONST_SHAPE":
            self._read_shape(operator, name)
        elif operator.name == "CONST":
            self._require_no_inputs(operator)
            self._define(name, constant(self._elements(self._tensor(name))))
        else:
            self._define(name, self._result(operator, self._tensor(name)))

    def _require_no_inputs(self, operator: TosaOperator) -> None:
        if operator.inputs:
            raise BadInput(f"{len(operator.inputs)} inputs; expected 0")

    def _read_shape(self, operator: TosaOperator, name: str) -> None:
        self._require_no_inputs(operator)
        if name not in self.shapes or name in self.sizes:
            raise BadInput(f"{brief(name)} is no shape, or defined twice")
        values = self.shapes[name].values
        if values is None:
            raise BadInput(f"the shape {brief(name)} has no integers")
        self.sizes[name] = values

    def _elements(self, tensor: TosaTensor) -> IntArray:
        """The elements of a constant."""
        type_ = self._value_type(tensor)
        size = type_.elements * WIDTHS[tensor.dtype]
        if len(tensor.data) != size or not size:
            raise BadInput(f"{len(tensor.data)} bytes for {type_}")
        if tensor.dtype == "INT48":
            wide = _unpacked(tensor.data).reshape(tensor.shape)
            if (wide != wide.astype(np.int32)).any():
                raise BadInput("its integers of 48 bits do not fit 32")
            return wide.astype(np.int32)
        if tensor.dtype == "BOOL" and set(tensor.data) - {0, 1}:
            raise BadInput("a boolean is neither 0 nor 1")
        flat = np.frombuffer(tensor.data, CODES[tensor.dtype])
        array = flat.reshape(tensor.shape)
        return array.view(np.uint8) if type_.dtype == "u8" else array

    def _result(
        self, operator: TosaOperator, declared: TosaTensor
    ) -> DraftValue:
        """By the rule of the operator; its type must be the declared one."""
        operands = tuple(map(self._operand, operator.inputs))
        reading = TosaReading(self.draft, operator, operands, declared)
        _require_ranks(reading)
        _require_signs(reading)
        self._require_work(reading)
        result = RULES[operator.name](reading)
        expected = self._value_type(declared)
        dtypes = {result.type.dtype, expected.dtype}
        same_dtype = len(dtypes) == 1 or dtypes == {"i8", "u8"}
        if not same_dtype or result.type.shape != expected.shape:
            raise BadInput(f"it gives {result.type}, but {expected} stands there")  # fmt: skip
        if declared.data:
            raise BadInput("its result has data, as if it were a constant")
        return result

    def _require_work(self, reading: TosaReading) -> None:
        """A small file may name one large constant in many operators."""
        for value in reading.values:
            if value.constant is not None:
                self.left -= value.constant.size
        if self.left < 0:
            raise BadInput("the same constants are read too often")

    def _operand(self, name: str) -> DraftValue | tuple[int, ...]:
        if name in self.sizes:
            return self.sizes[name]
        if name not in self.values:
            raise BadInput(f"nothing has defined {brief(name)} before")
        return self.values[name]

    def _output(self, name: str) -> DraftValue:
        if name not in self.values:
            raise BadInput(f"nothing defines the output {brief(name)}")
        value = self.values[name]
        if value.step < 0:
            raise BadInput(
                f"the output {brief(name)} is an input or a constant; programs give results of instructions"
            )
        return value


def _name_of(operator: TosaOperator) -> str:
    return operator.outputs[0] if operator.outputs else "without a result"


def _require_ranks(reading: TosaReading) -> None:
    """TOSA has some operators for no tensor of rank 0."""
    if reading.operator.name in WITH_AN_AXIS:
        for value in reading.values[:1]:
            if not value.type.rank:
                raise BadInput("its operand has rank 0; it needs an axis")


def _require_signs(reading: TosaReading) -> None:
    """Bytes without sign are moved and rescaled, no more."""
    allowed = (
        reading.operator.name in MOVEMENT or reading.operator.name == "RESCALE"
    )
    if not allowed and any(
        value.type.dtype == "u8" for value in reading.values
    ):
        raise BadInput("bytes that are without sign elsewhere have one here")


def _unpacked(data: bytes) -> IntArray:
    """Integers of 48 bits, six bytes each."""
    six = np.frombuffer(data, np.uint8).reshape(-1, 6)
    sign = np.where(six[:, 5:] > 127, 255, 0).astype(np.uint8)
    eight = np.concatenate([six, sign, sign], axis=1)
    return np.ascontiguousarray(eight).view("<i8").reshape(-1)
