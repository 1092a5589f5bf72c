"""Runs one step of the engine by itself, with its operands and result in any room.

The reference computes the expected result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cvm.plan.steps import OPCODES, Room, integers
from cvm.program import (
    DTYPE_CODES,
    DTYPE_RANGES,
    DTYPES,
    Attribute,
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
    dtype_name,
)
from cvm.proof.validate import Proven, validate
from cvm.reference.interpreter import run
from cvm.runtime import native

GUARD = 64  # bytes around an output that must stay unchanged
UNTOUCHED = 0x5A

OperandTuple = tuple[int, int, int, tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class At:
    """A room and, in the arena, the gap in elements between two rows of the last axis."""

    room: Room
    gap: int = 0


INPUT = At(Room.INPUT)
OUTPUT = At(Room.OUTPUT)
CONSTANT = At(Room.CONSTANT)
ARENA = At(Room.ARENA)


def extreme(
    type_: TensorType,
    seed: int,
    *,
    low: int | None = None,
    high: int | None = None,
) -> IntArray:
    """Return integers of the whole range of a dtype, its extremes often among them."""
    random = np.random.default_rng(seed)
    least, most = DTYPE_RANGES[type_.dtype]
    low, high = least if low is None else low, most if high is None else high
    found = random.integers(low, high + 1, type_.shape)
    ends = np.where(random.integers(0, 2, type_.shape) == 1, low, high)
    return np.asarray(
        np.where(random.integers(0, 4, type_.shape) == 0, ends, found),
        DTYPES[type_.dtype],
    )


def program_of(
    name: str, arrays: Sequence[IntArray], attributes: Mapping[str, Attribute]
) -> Proven:
    """Return a program of one instruction; the arrays' intervals are those of its inputs."""
    inputs = tuple(
        Input(
            f"x{n}",
            TensorType(dtype_name(array), array.shape),
            int(array.min()),
            int(array.max()),
        )
        for n, array in enumerate(arrays)
    )
    instruction = Instruction(name, tuple(range(len(arrays))), attributes)
    return validate(
        Program(inputs, (), (instruction,), (Output("y", len(arrays)),))
    )


def reference(
    name: str, arrays: Sequence[IntArray], attributes: Mapping[str, Attribute]
) -> IntArray:
    """Return the result of the reference."""
    inputs = {f"x{n}": array for n, array in enumerate(arrays)}
    return run(program_of(name, arrays, attributes), inputs)["y"]


class StepPlan:
    """A plan around one step, with copies of operands into the arena and of a result out of it."""

    def __init__(self) -> None:
        self.inputs: list[IntArray] = []
        self.constants: list[IntArray] = []
        self.arena_bytes = 0
        self.steps: list[object] = []

    def operand(self, array: IntArray, at: At) -> OperandTuple:
        """Put an array into a room."""
        if at.room == Room.CONSTANT:
            self.constants.append(array)
            return _operand(at.room, len(self.constants) - 1, array)
        self.inputs.append(array)
        given = _operand(Room.INPUT, len(self.inputs) - 1, array)
        if at.room == Room.INPUT:
            return given
        place = self.place(dtype_name(array), array.shape, at.gap)
        self.copy(given, place)
        return place

    def place(
        self, dtype: str, shape: tuple[int, ...], gap: int
    ) -> OperandTuple:
        """Allocate a place in the arena."""
        start, size = self.arena_bytes, DTYPES[dtype].itemsize
        pitch = (shape[-1] if shape else 1) + gap
        rows = int(np.prod(shape[:-1], dtype=np.int64))
        self.arena_bytes += -(-rows * pitch * size // 64) * 64
        return (
            int(Room.ARENA),
            start + gap // 2 * size,
            DTYPE_CODES[dtype],
            shape,
            pitch,
        )

    def copy(self, source: OperandTuple, target: OperandTuple) -> None:
        """Add a step that copies."""
        self.steps.append(
            (
                OPCODES["reshape"],
                [source],
                [],
                target,
                {"shape": list(target[3])},
                [],
            )
        )


def _operand(room: Room, position: int, array: IntArray) -> OperandTuple:
    return (
        int(room),
        position,
        DTYPE_CODES[dtype_name(array)],
        array.shape,
        array.shape[-1] if array.shape else 1,
    )


def run_step(
    name: str,
    arrays: Sequence[IntArray],
    attributes: Mapping[str, Attribute],
    result: TensorType,
    *,
    at: Sequence[At],
    result_at: At,
    isa: str = "",
    threads: int = 1,
) -> IntArray:
    """Return the step's result; raise AssertionError if it changed a byte beside it."""
    plan = StepPlan()
    operands = [
        plan.operand(array, place)
        for array, place in zip(arrays, at, strict=True)
    ]
    whole = result
    inner = (
        int(Room.OUTPUT),
        0,
        DTYPE_CODES[result.dtype],
        result.shape,
        _last(result),
    )
    if result_at.room == Room.ARENA:
        inner = plan.place(result.dtype, result.shape, result_at.gap)
        whole = TensorType(
            result.dtype, (result.elements // _last(result), inner[4])
        )
        start = inner[1] - result_at.gap // 2 * DTYPES[result.dtype].itemsize
        region = (int(Room.ARENA), start, inner[2], whole.shape, inner[4])
        canvas = np.full(
            whole.shape,
            UNTOUCHED if result.dtype != "bool" else 1,
            DTYPES[result.dtype],
        )
        plan.copy(plan.operand(canvas, INPUT), region)
    plan.steps.append(
        (
            OPCODES[name],
            operands,
            [],
            inner,
            {k: list(integers(v)) for k, v in attributes.items()},
            [],
        )
    )
    output = (
        int(Room.OUTPUT),
        0,
        DTYPE_CODES[whole.dtype],
        whole.shape,
        _last(whole),
    )
    if result_at.room == Room.ARENA:
        plan.copy(region, output)
    found = _run(plan, output, whole, isa or native.chosen_isa(), threads)
    if result_at.room == Room.OUTPUT:
        return found
    first = result_at.gap // 2
    beside = np.delete(found, np.s_[first : first + _last(result)], axis=1)
    assert (beside == canvas.flat[0]).all()
    return found[:, first : first + _last(result)].reshape(result.shape)


def _last(type_: TensorType) -> int:
    return type_.shape[-1] if type_.shape else 1


def _run(
    plan: StepPlan,
    output: OperandTuple,
    type_: TensorType,
    isa: str,
    threads: int,
) -> IntArray:
    """Run a plan into an array that lies between guards."""
    module = native._module()
    assert module is not None
    inputs = [
        _operand(Room.INPUT, n, array) for n, array in enumerate(plan.inputs)
    ]
    core = module.make(
        inputs, [output], plan.constants, plan.arena_bytes, plan.steps, isa
    )
    size = type_.elements * DTYPES[type_.dtype].itemsize
    memory = np.full(GUARD + size + GUARD, UNTOUCHED, np.uint8)
    found = (
        memory[GUARD : GUARD + size]
        .view(DTYPES[type_.dtype])
        .reshape(type_.shape)
    )
    core.run(plan.inputs, [found], threads)
    assert (memory[:GUARD] == UNTOUCHED).all() and (
        memory[GUARD + size :] == UNTOUCHED
    ).all()
    return found
