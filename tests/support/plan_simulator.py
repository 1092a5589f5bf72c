"""Runs a plan in numpy as the engine must.

Every value lies in the bytes that the plan assigns to it, and nowhere else.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cvm.instructions import INSTRUCTIONS
from cvm.plan.steps import CHAIN, LINEAR, LOAD, Place, Plan, Room, Stage, Step
from cvm.program import (
    DTYPE_CODES,
    DTYPES,
    Attribute,
    Instruction,
    IntArray,
    TensorType,
    dtype_name,
)
from cvm.proof.validate import infer_type
from cvm.reference.registry import RULES

DTYPE_NAMES = {code: name for name, code in DTYPE_CODES.items()}
BIAS = 128  # is added to i8 bytes in the arena


def simulate(
    plan: Plan, inputs: Mapping[str, IntArray], seed: int = 0
) -> dict[str, IntArray]:
    """Return the outputs by name; all bytes that no step has written are random."""
    memory = _Memory(plan, inputs, np.random.default_rng(seed))
    for step in plan.steps:
        memory.write(
            step.result,
            _value(plan, step, [memory.read(value) for value in step.operands]),
        )
    return {
        item.name: memory.outputs[place].view(DTYPES[plan.form.types[item.value].dtype]).reshape(
            plan.form.types[item.value].shape
        )
        for place, item in enumerate(plan.form.program.outputs)
    }  # fmt: skip


def type_of(plan: Plan, value: int) -> TensorType:
    return plan.form.types[plan.source(value)]


def byte_places(place: Place, type_: TensorType) -> IntArray:
    """Return the offset in its room of every byte of a value, [elements, bytes of one].

    The order is row-major.
    """
    size = DTYPES[type_.dtype].itemsize
    length = type_.shape[-1] if type_.shape else 1
    start = place.position if place.room is Room.ARENA else 0
    rows = np.arange(type_.elements // length)[
        :, None
    ] * place.pitch + np.arange(length)
    return start + rows.reshape(-1, 1) * size + np.arange(size)


class _Memory:
    def __init__(
        self,
        plan: Plan,
        inputs: Mapping[str, IntArray],
        random: np.random.Generator,
    ) -> None:
        self.plan, program = plan, plan.form.program
        self.inputs = [_bytes(inputs[item.name]) for item in program.inputs]
        self.constants = [_bytes(array) for array in program.constants]
        sizes = [type_of(plan, item.value) for item in program.outputs]
        self.outputs = [
            random.integers(
                256, size=t.elements * DTYPES[t.dtype].itemsize
            ).astype(np.uint8)
            for t in sizes
        ]
        self.arena = random.integers(256, size=plan.arena_bytes).astype(
            np.uint8
        )
        self.passed: IntArray | None = None

    def room(self, place: Place) -> IntArray:
        if place.room is Room.ARENA:
            return self.arena
        return {
            Room.INPUT: self.inputs,
            Room.OUTPUT: self.outputs,
            Room.CONSTANT: self.constants,
        }[place.room][place.position]

    def read(self, value: int) -> IntArray:
        place, type_ = self.plan.places[value], type_of(self.plan, value)
        if place.room is Room.PASSED:
            assert self.passed is not None
            return self.passed
        found = np.ascontiguousarray(
            self.room(place)[byte_places(place, type_)]
        )
        if place.room is Room.ARENA and type_.dtype == "i8":
            found ^= BIAS
        return found.view(DTYPES[type_.dtype]).reshape(type_.shape)

    def write(self, value: int, array: IntArray) -> None:
        place, type_ = self.plan.places[value], type_of(self.plan, value)
        self.passed = array if place.room is Room.PASSED else None
        if self.passed is not None:
            return
        assert (
            place.room in (Room.OUTPUT, Room.ARENA)
            and array.shape == type_.shape
        )
        assert array.dtype == DTYPES[type_.dtype]
        found = _bytes(array).reshape(type_.elements, -1)
        if place.room is Room.ARENA and type_.dtype == "i8":
            found ^= BIAS
        self.room(place)[byte_places(place, type_)] = found


def _bytes(array: IntArray) -> IntArray:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8).copy()


def _value(plan: Plan, step: Step, operands: Sequence[IntArray]) -> IntArray:
    registers: list[IntArray] = []
    if step.name != CHAIN:
        own = (
            {"matmul": 2}.get(step.name, 1)
            if step.name in LINEAR
            else len(operands)
        )
        low_bits = step.attributes.get("low_bits")
        both = step.parameters
        halves = [both] if low_bits is None else [both[:2], both[2:]]
        low, *high = (
            _call(plan, step.name, operands[:own], half, step.attributes)
            for half in halves
        )
        registers += [low + (one << low_bits[0]) for one in high] or [low]
    for stage in step.stages:
        registers.append(_register(plan, step, stage, operands, registers))
    return registers[-1]


def _register(
    plan: Plan,
    step: Step,
    stage: Stage,
    operands: Sequence[IntArray],
    registers: Sequence[IntArray],
) -> IntArray:
    shape = type_of(plan, step.result).shape
    if stage.name == LOAD:
        return np.broadcast_to(operands[stage.operand], shape)
    found = _call(
        plan,
        stage.name,
        [registers[source] for source in stage.sources],
        stage.parameters,
        stage.attributes,
    )
    assert found.shape == shape
    return found


def _call(
    plan: Plan,
    name: str,
    data: Sequence[IntArray],
    parameters: Sequence[int],
    integers: Mapping[str, tuple[int, ...]],
) -> IntArray:
    """Run one instruction of a step or stage in the reference."""
    spec, first = INSTRUCTIONS[name], plan.form.program.first_constant
    constants = iter(
        [plan.form.program.constants[value - first] for value in parameters]
    )
    remaining = iter(data)
    operands = [
        next(constants if item in spec.constant else remaining)
        for item in spec.inputs
    ] + list(remaining)
    known = {
        key: value for key, value in integers.items() if key in spec.attributes
    }  # the others only help the engine
    attributes = {
        key: _attribute(spec.attributes[key], value)
        for key, value in known.items()
    }
    types = [TensorType(dtype_name(array), array.shape) for array in operands]
    result = infer_type(
        Instruction(name, tuple(range(len(operands))), attributes),
        types,
        tuple(operands),
    )
    exact = np.asarray(RULES[name].run(*operands, **attributes))
    narrow = exact.astype(DTYPES[result.dtype])
    assert np.array_equal(exact, narrow)
    return narrow.reshape(result.shape)


def _attribute(kind: str, value: tuple[int, ...]) -> Attribute:
    if kind.startswith("ints"):
        return value
    if kind == "dtype":
        return DTYPE_NAMES[value[0]]
    if kind.startswith("mode:"):
        return ("nearest", "bilinear")[value[0]]
    return bool(value[0]) if kind == "bool" else value[0]
