"""The engine's door: plans made by hand, each with one thing wrong, and the sentence that refuses it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from cvm.plan.steps import OPCODES, Room
from cvm.program import DTYPE_CODES, IntArray
from cvm.runtime import native
from tests.support.engine_steps import OperandTuple

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

Integers = tuple[int, ...]
StageTuple = tuple[int, Integers, int, Integers, Mapping[str, Integers]]
ARENA_BYTES = 256


def operand(
    room: Room, position: int, dtype: str, *dims: int, pitch: int | None = None
) -> OperandTuple:
    return (
        int(room),
        position,
        DTYPE_CODES[dtype],
        dims,
        (dims[-1] if dims else 1) if pitch is None else pitch,
    )


def stage(
    name: str,
    sources: Integers,
    parameters: Integers = (),
    **attributes: Integers,
) -> StageTuple:
    return OPCODES[name], sources, -1, parameters, attributes


def load(number: int) -> StageTuple:
    return OPCODES["load"], (), number, (), {}


@dataclass(frozen=True)
class OneStep:
    """A plan of one step."""

    name: str
    operands: Sequence[OperandTuple]
    result: OperandTuple
    attributes: Mapping[str, Integers] = field(default_factory=dict)
    parameters: Integers = ()
    stages: Sequence[StageTuple] = ()
    constants: Sequence[IntArray] = ()
    inputs: Sequence[OperandTuple] = ()
    outputs: Sequence[OperandTuple] = ()
    arena_bytes: int = ARENA_BYTES
    opcode: int | None = None

    def make(self) -> object:
        module = native._module()
        assert module is not None
        opcode = OPCODES[self.name] if self.opcode is None else self.opcode
        step = (
            opcode,
            self.operands,
            self.parameters,
            self.result,
            self.attributes,
            self.stages,
        )
        return module.make(
            self.inputs,
            self.outputs,
            list(self.constants),
            self.arena_bytes,
            [step],
            "",
        )


def refused(plan: OneStep, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^engine: .*{sentence}"):
        plan.make()


X = operand(Room.ARENA, 0, "i16", 4, 8)
Y = operand(Room.ARENA, 64, "i16", 8, 4)
TRANSPOSE = OneStep("transpose", [X], Y, {"perm": (1, 0)})
IMAGE = operand(Room.ARENA, 0, "i8", 1, 4, 4, 1)
SUMS = operand(Room.ARENA, 64, "i32", 1, 2, 2, 1)
CONV = OneStep(
    "conv2d",
    [IMAGE],
    SUMS,
    {
        "pad": (0, 0, 0, 0),
        "stride": (1, 1),
        "dilation": (1, 1),
        "groups": (1,),
        "input_zp": (0,),
    },
    (0, 1),
    constants=[np.ones((1, 3, 3, 1), np.int8), np.zeros(1, np.int32)],
)
A = operand(Room.ARENA, 0, "i32", 4)
B = operand(Room.ARENA, 64, "i32", 4)
CHAIN = OneStep("chain", [A], B, stages=[load(0), stage("abs", (0,))])
POOL = OneStep(
    "max_pool2d",
    [IMAGE],
    operand(Room.ARENA, 64, "i8", 1, 2, 2, 1),
    {"kernel": (3, 3), "stride": (1, 1), "pad": (0, 0, 0, 0)},
)
OVERWRITTEN = replace(
    CONV,
    operands=[IMAGE, SUMS],
    stages=[load(1), stage("add", (0, 1))],
)
RESCALE = OneStep(
    "chain",
    [A],
    B,
    stages=[
        load(0),
        stage(
            "rescale", (0,), (0, 1), input_zp=(0,), output_zp=(0,), dtype=(4,)
        ),
    ],
    constants=[np.full(1, 2**30, np.int32), np.full(1, 33, np.int8)],
)


@pytest.mark.parametrize(
    "plan", [TRANSPOSE, CONV, OVERWRITTEN, CHAIN, POOL, RESCALE]
)
def test_the_plans_are_taken_as_they_are(plan: OneStep) -> None:
    plan.make()


@pytest.mark.parametrize(
    "position", [-2, ARENA_BYTES - 62, 2**40, 2**63 - 2, -(2**63)]
)
def test_an_operand_lies_inside_the_arena(position: int) -> None:
    refused(
        replace(
            TRANSPOSE, operands=[operand(Room.ARENA, position, "i16", 4, 8)]
        ),
        "outside the arena",
    )


def test_an_operand_may_end_where_the_arena_does() -> None:
    replace(
        TRANSPOSE,
        operands=[operand(Room.ARENA, ARENA_BYTES - 64, "i16", 4, 8)],
        result=(3, 0, *Y[2:]),
    ).make()


def test_a_result_lies_inside_the_arena() -> None:
    refused(
        replace(TRANSPOSE, arena_bytes=127), "result: lies outside the arena"
    )


def test_an_operand_is_aligned_to_its_dtype() -> None:
    refused(
        replace(TRANSPOSE, operands=[operand(Room.ARENA, 129, "i16", 4, 8)]),
        "not aligned",
    )


@pytest.mark.parametrize("position", [0, 2, 62, -64 + 64])
def test_a_result_does_not_overlap_an_operand(position: int) -> None:
    refused(
        replace(TRANSPOSE, result=(3, position, *Y[2:])),
        "the result overlaps an operand",
    )


@pytest.mark.parametrize(
    "shortcut",
    [
        operand(Room.ARENA, 68, "i32", 1, 2, 2, 1),
        operand(Room.ARENA, 64, "i32", 1, 2, 2, 1, pitch=2),
        operand(Room.ARENA, 64, "i32", 1, 1, 1, 1),
        operand(Room.ARENA, 64, "i16", 1, 2, 2, 1),
    ],
)
def test_only_a_shortcut_in_the_very_place_of_the_sums_is_overwritten(
    shortcut: OperandTuple,
) -> None:
    refused(
        replace(OVERWRITTEN, operands=[IMAGE, shortcut]),
        "the result overlaps an operand",
    )


def test_what_products_multiply_and_what_chains_read_is_not_overwritten() -> (
    None
):
    image = operand(Room.ARENA, 64, "i8", 1, 4, 4, 1)
    sentence = "the result overlaps an operand"
    refused(replace(OVERWRITTEN, operands=[image, SUMS]), sentence)
    refused(replace(CHAIN, operands=[B]), sentence)


def test_parts_of_one_concat_may_interleave_but_not_share_a_column() -> None:
    wide = replace(
        CHAIN, operands=[operand(Room.ARENA, 0, "i32", 4, 3, pitch=8)]
    )
    replace(wide, result=operand(Room.ARENA, 12, "i32", 4, 3, pitch=8)).make()
    refused(
        replace(wide, result=operand(Room.ARENA, 8, "i32", 4, 3, pitch=8)),
        "overlaps",
    )
    refused(
        replace(wide, result=operand(Room.ARENA, 24, "i32", 4, 3, pitch=8)),
        "overlaps",
    )  # its rows wrap around


@pytest.mark.parametrize(
    "dims", [(0, 8), (4, 0), (-4, 8), (2**31, 1), (2**16, 2**16), (2**62, 4)]
)
def test_shapes_are_those_that_a_program_may_have(dims: Integers) -> None:
    sentence = "a dimension is below 1 or there are too many elements"
    refused(
        replace(TRANSPOSE, operands=[operand(Room.ARENA, 0, "i16", *dims)]),
        sentence,
    )
    refused(
        replace(TRANSPOSE, result=operand(Room.ARENA, 0, "i16", *dims)),
        sentence,
    )
    declared = operand(Room.INPUT, 0, "i16", *dims)
    refused(replace(TRANSPOSE, inputs=[declared]), sentence)


def test_a_rank_is_at_most_6() -> None:
    refused(
        replace(TRANSPOSE, operands=[operand(Room.ARENA, 0, "i16", *[1] * 7)]),
        "rank is not 0..6",
    )


@pytest.mark.parametrize("pitch", [7, 0, -8, -(2**63)])
def test_a_pitch_is_no_less_than_a_row(pitch: int) -> None:
    refused(
        replace(
            TRANSPOSE,
            operands=[operand(Room.ARENA, 0, "i16", 4, 8, pitch=pitch)],
        ),
        "pitch is less",
    )
    refused(
        replace(
            TRANSPOSE,
            result=operand(Room.ARENA, 64, "i16", 8, 4, pitch=min(pitch, 3)),
        ),
        "pitch is less",
    )


@pytest.mark.parametrize("dims", [(4, 8), (1, 8)])
@pytest.mark.parametrize("pitch", [257, 2**40, 2**63 - 1])
def test_rows_lie_inside_the_arena_however_long_the_pitch(
    dims: Integers, pitch: int
) -> None:
    refused(
        replace(
            TRANSPOSE,
            operands=[operand(Room.ARENA, 0, "i16", *dims, pitch=pitch)],
        ),
        "outside the arena",
    )


@pytest.mark.parametrize("opcode", [0, 999, -1, 2**31 - 1])
def test_an_opcode_is_known(opcode: int) -> None:
    refused(replace(TRANSPOSE, opcode=opcode), "unknown opcode")


@pytest.mark.parametrize("name", ["rescale", "load", "add"])
def test_a_stage_is_not_a_step(name: str) -> None:
    refused(replace(TRANSPOSE, opcode=OPCODES[name]), "not a step")


@pytest.mark.parametrize("room", [-1, 5, 255])
def test_a_room_is_known(room: int) -> None:
    refused(
        replace(TRANSPOSE, operands=[(room, *X[1:])]), "unknown room or dtype"
    )


@pytest.mark.parametrize("dtype", [-1, 5, 256])
def test_a_dtype_is_known(dtype: int) -> None:
    refused(
        replace(TRANSPOSE, operands=[(3, 0, dtype, (4, 8), 8)]),
        "unknown room or dtype",
    )


@pytest.mark.parametrize("room", [Room.INPUT, Room.OUTPUT, Room.CONSTANT])
@pytest.mark.parametrize("position", [-1, 1, 2**62])
def test_inputs_outputs_and_constants_are_numbered(
    room: Room, position: int
) -> None:
    ends = replace(
        TRANSPOSE,
        inputs=[operand(Room.INPUT, 0, "i16", 4, 8)],
        outputs=[operand(Room.OUTPUT, 0, "i16", 8, 4)],
    )
    constant = replace(ends, constants=[np.zeros((4, 8), np.int16)])
    refused(
        replace(constant, operands=[operand(room, position, "i16", 4, 8)]),
        "there is no such",
    )


def test_an_input_is_read_as_it_was_declared() -> None:
    ends = replace(TRANSPOSE, inputs=[operand(Room.INPUT, 0, "i16", 4, 8)])
    replace(ends, operands=[operand(Room.INPUT, 0, "i16", 4, 8)]).make()
    for wrong in (
        operand(Room.INPUT, 0, "i16", 4, 9),
        operand(Room.INPUT, 0, "i32", 4, 8),
        operand(Room.INPUT, 0, "i16", 4, 8, pitch=9),
    ):
        refused(replace(ends, operands=[wrong]), "is not that of the input")


def test_outputs_are_only_written() -> None:
    ends = replace(TRANSPOSE, outputs=[operand(Room.OUTPUT, 0, "i16", 4, 8)])
    refused(
        replace(ends, operands=[operand(Room.OUTPUT, 0, "i16", 4, 8)]),
        "outputs are only written",
    )


@pytest.mark.parametrize("room", [Room.INPUT, Room.CONSTANT])
def test_inputs_and_constants_are_never_written(room: Room) -> None:
    inputs = [operand(Room.INPUT, 0, "i16", 8, 4)]
    constants = [np.zeros((8, 4), np.int16)]
    plan = replace(
        TRANSPOSE,
        inputs=inputs,
        constants=constants,
        result=operand(room, 0, "i16", 8, 4),
    )
    refused(plan, "room cannot be written")


@pytest.mark.parametrize("parameter", [-1, 2, 2**63 - 1])
def test_a_parameter_is_a_constant(parameter: int) -> None:
    refused(
        replace(CONV, parameters=(0, parameter)),
        "a parameter is not a constant",
    )
    wrong = stage(
        "rescale",
        (0,),
        (0, parameter),
        input_zp=(0,),
        output_zp=(0,),
        dtype=(4,),
    )
    refused(
        replace(RESCALE, stages=[load(0), wrong]),
        "a parameter is not a constant",
    )


@pytest.mark.parametrize("name", sorted(CONV.attributes))
def test_an_attribute_that_is_missing_or_too_short_is_said_so(
    name: str,
) -> None:
    without = {
        key: values for key, values in CONV.attributes.items() if key != name
    }
    refused(replace(CONV, attributes=without), r"step 0 \(conv2d\): ")
    refused(
        replace(CONV, attributes={**without, name: ()}), r"step 0 \(conv2d\): "
    )


@pytest.mark.parametrize(
    "value", [-1, 2**20 + 1, 2**40, 2**62, 2**63 - 1, -(2**63)]
)
@pytest.mark.parametrize("name", ["pad", "stride", "dilation"])
def test_sizes_of_a_window_are_bounded_before_they_are_multiplied(
    name: str, value: int
) -> None:
    values = (value,) * len(CONV.attributes[name])
    refused(
        replace(CONV, attributes={**CONV.attributes, name: values}),
        "pad, stride or dilation is missing or out of range",
    )


@pytest.mark.parametrize("kernel", [0, -3, 2**20 + 1, 2**62])
def test_a_kernel_of_a_pool_is_bounded(kernel: int) -> None:
    refused(
        replace(POOL, attributes={**POOL.attributes, "kernel": (kernel, 3)}),
        "a kernel or stride is not 1",
    )


@pytest.mark.parametrize(
    "constant",
    [
        np.ones((1, 3, 3, 2), np.int8),
        np.ones((1, 3, 3, 1), np.int16),
        np.ones(9, np.int8),
    ],
)
def test_a_constant_has_the_size_and_dtype_that_its_step_takes(
    constant: IntArray,
) -> None:
    refused(
        replace(CONV, constants=[constant, CONV.constants[1]]),
        r"step 0 \(conv2d\)",
    )


def test_there_is_one_bias_for_each_output() -> None:
    refused(
        replace(CONV, constants=[CONV.constants[0], np.zeros(2, np.int32)]),
        "b is not one i32 per output",
    )


def test_a_constant_is_aligned() -> None:
    bytes_ = np.zeros(5, np.uint8)
    start = 1 if bytes_.ctypes.data % 4 == 0 else 0
    misaligned = bytes_[start : start + 4].view(np.int32)
    refused(
        replace(CONV, constants=[CONV.constants[0], misaligned]), "not aligned"
    )


@pytest.mark.parametrize("source", [1, 2, -1, 2**31 - 1])
def test_a_stage_reads_earlier_registers(source: int) -> None:
    refused(
        replace(CHAIN, stages=[load(0), stage("abs", (source,))]),
        "abs: a source is not an earlier register",
    )


@pytest.mark.parametrize("number", [1, -2, 2**31 - 1])
def test_a_stage_loads_operands_of_its_step(number: int) -> None:
    refused(
        replace(CHAIN, stages=[load(number)]),
        "load: does not name one of the step's operands",
    )


@pytest.mark.parametrize("name", ["conv2d", "chain"])
def test_a_step_is_not_a_stage(name: str) -> None:
    refused(replace(CHAIN, stages=[load(0), stage(name, (0,))]), "not a stage")


def test_a_chain_ends_with_the_dtype_of_its_result() -> None:
    refused(
        replace(CHAIN, result=operand(Room.ARENA, 64, "i16", 4)),
        "the last stage's dtype is not the result's",
    )


def test_stages_and_operands_are_counted() -> None:
    refused(replace(CHAIN, stages=[load(0)] * 65), "too many stages")
    refused(replace(CHAIN, operands=[A] * 17), "too many operands")


@pytest.mark.parametrize("shift", [0, 1, 63, 127, -128])
def test_a_shift_of_a_rescale_is_2_to_62(shift: int) -> None:
    refused(
        replace(
            RESCALE,
            constants=[RESCALE.constants[0], np.full(1, shift, np.int8)],
        ),
        "a shift outside 2..62",
    )


def test_a_multiplier_is_not_negative() -> None:
    refused(
        replace(
            RESCALE, constants=[np.full(1, -1, np.int32), RESCALE.constants[1]]
        ),
        "a multiplier is negative",
    )


def test_multipliers_are_one_or_one_for_each_channel() -> None:
    three: list[IntArray] = [
        np.full(3, 2**30, np.int32),
        np.full(3, 33, np.int8),
    ]
    refused(
        replace(RESCALE, constants=three), "neither 1 entry nor one per channel"
    )


@pytest.mark.parametrize("arena_bytes", [-1, 2**40 + 1, 2**63 - 1])
def test_the_size_of_the_arena_is_bounded(arena_bytes: int) -> None:
    refused(
        replace(TRANSPOSE, arena_bytes=arena_bytes), "arena_bytes is not 0..2"
    )


@pytest.mark.parametrize("rounds", [0, -1, 2**33, 2**63 - 1])
def test_the_rounds_of_a_peak_are_bounded(rounds: int) -> None:
    module = native._module()
    assert module is not None
    with pytest.raises(ValueError, match="rounds is not 1"):
        module.peak("portable", 1, rounds)


def test_arrays_of_a_run_are_those_that_were_declared() -> None:
    ends = replace(
        TRANSPOSE,
        inputs=[operand(Room.INPUT, 0, "i16", 4, 8)],
        outputs=[operand(Room.OUTPUT, 0, "i16", 8, 4)],
    )
    plan = replace(
        ends,
        operands=[operand(Room.INPUT, 0, "i16", 4, 8)],
        result=operand(Room.OUTPUT, 0, "i16", 8, 4),
    )
    engine: object = plan.make()
    x, y = np.zeros((4, 8), np.int16), np.zeros((8, 4), np.int16)
    run = engine.run  # type: ignore[attr-defined]
    run([x], [y], 1)
    for inputs, outputs in (
        ([x[:3]], [y]),
        ([x], [y[:3]]),
        ([x.astype(np.int32)], [y]),
        ([], [y]),
        ([x, x], [y]),
    ):
        with pytest.raises(ValueError, match=r"^engine: "):
            run(inputs, outputs, 1)


TOO_MANY_THREADS = """
import resource
from tests.cvm.engine.test_engine_door import *

plan = replace(TRANSPOSE, inputs=[operand(Room.INPUT, 0, "i16", 4, 8)], outputs=[operand(Room.OUTPUT, 0, "i16", 8, 4)])
plan = replace(plan, operands=[operand(Room.INPUT, 0, "i16", 4, 8)], result=operand(Room.OUTPUT, 0, "i16", 8, 4))
engine, x, y = plan.make(), np.arange(32, dtype=np.int16).reshape(4, 8), np.zeros((8, 4), np.int16)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**22, used + 2**22))  # less than the stack of one thread
try:
    engine.run([x], [y], 256)
except RuntimeError as problem:
    print("refused")
engine.run([x], [y], 1)
print((y == x.T).all())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="a sanitizer reserves more address space than that",
)
@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) == 1,
    reason="on one core the engine starts no thread",
)
def test_a_thread_that_the_system_refuses_ends_the_run_and_not_the_process() -> (
    None
):
    found = subprocess.run(
        [sys.executable, "-c", TOO_MANY_THREADS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.split() == ["refused", "True"], found.stderr
