"""Well-encoded files whose meaning is wrong are refused by validation; so are the faults that earlier systems had."""

from __future__ import annotations

import re
import tracemalloc
from operator import setitem

import numpy as np
import pytest

from cvm.errors import Invalid, Malformed
from cvm.file import format as file_format
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from tests.support.hostile_files import (
    CAST,
    CLAMP,
    CONV2D,
    DATA,
    I8,
    I16,
    I32,
    RESHAPE,
    SLICE,
    TABLE,
    assemble,
    header,
    lie,
    padded,
)

HONEST = assemble(header())


INVALID: dict[str, tuple[bytes, str]] = {
    "no inputs": (
        lie(lambda h: h.update(inputs=[])),
        "0 inputs; allowed are 1..1024 [V1]",
    ),
    "no outputs": (
        lie(lambda h: h.update(outputs=[])),
        "0 outputs; allowed are 1..1024 [V1]",
    ),
    "no instructions": (
        lie(lambda h: h.update(instructions=[])),
        "0 instructions; allowed are 1..1048576 [V1]",
    ),
    "an empty name": (
        lie(lambda h: setitem(h["inputs"][0], 0, "")),
        "input name '': allowed are 1..256 bytes",
    ),
    "two outputs of one name": (
        lie(lambda h: h["outputs"].append(["y", 3])),
        "two outputs are named 'y' [V2]",
    ),
    "two inputs of one name": (
        lie(lambda h: h["inputs"].append(h["inputs"][0])),
        "two inputs are named 'x' [V2]",
    ),
    "an interval outside its dtype": (
        lie(lambda h: setitem(h["inputs"][0], 4, 128)),
        "-128..128 is not inside -128..127",
    ),
    "an empty interval": (
        lie(lambda h: setitem(h["inputs"][0], 3, 127 + 1)),
        "interval 128..127 is not inside",
    ),
    "an operand that is the instruction itself": (
        lie(lambda h: setitem(h["instructions"][1], 1, [4])),
        "operand %4 is not an earlier value (0..3)",
    ),
    "an operand that comes later": (
        lie(lambda h: setitem(h["instructions"][0], 1, [4, 1, 2])),
        "operand %4 is not an earlier value (0..2)",
    ),
    "an operand that nothing defines": (
        lie(lambda h: setitem(h["instructions"][1], 1, [2**20])),
        "operand %1048576 is not",
    ),
    "an operand too few": (
        lie(lambda h: setitem(h["instructions"][0], 1, [0, 1])),
        "2 operands; expected 3 [V5]",
    ),
    "an operand too many": (
        lie(lambda h: setitem(h["instructions"][1], 1, [3, 3])),
        "2 operands; expected 1 [V5]",
    ),
    "a computed value where a constant must be": (
        lie(lambda h: setitem(h["instructions"][0], 1, [0, 0, 2])),
        "operand 'multiplier' must be a constant [V7]",
    ),
    "an output that is an input": (
        lie(lambda h: setitem(h["outputs"][0], 1, 0)),
        "output 'y' is %0, not the value of an instruction [V10]",
    ),
    "an output that is a constant": (
        lie(lambda h: setitem(h["outputs"][0], 1, 2)),
        "output 'y' is %2, not the value",
    ),
    "an output that nothing defines": (
        lie(lambda h: setitem(h["outputs"][0], 1, 5)),
        "output 'y' is %5, not the value",
    ),
    "a constant that nothing reads": (
        lie(
            lambda h: h.update(
                constants=[*h["constants"], [I8, [1]]],
                outputs=[["y", 5]],
                instructions=[h["instructions"][0], [CLAMP, [4], [-10, 10]]],
            ),
            DATA + bytes(64),
        ),
        "constant %3 is unused [V11]",
    ),
    "an instruction that nothing reads": (
        lie(lambda h: setitem(h["outputs"][0], 1, 3)),
        "%4 = clamp is dead: nothing reads it [V11]",
    ),
    "constants in another order than their use": (
        lie(
            lambda h: (
                h.update(constants=h["constants"][::-1]),
                setitem(h["instructions"][0], 1, [0, 2, 1]),
            ),
            DATA[64:] + DATA[:64],
        ),
        "constants are not in the order of their first use [V12]",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_well_encoded_but_invalid(name: str) -> None:
    data, message = INVALID[name]
    program = file_format.decode(data)
    assert file_format.encode(program) == data
    with pytest.raises(Invalid, match=re.escape(message)):
        validate(program)


def test_control_characters_of_a_name_do_not_reach_the_terminal() -> None:
    program = file_format.decode(
        lie(lambda h: h["outputs"].extend([["\x1b[2J", 3], ["\x1b[2J", 3]]))
    )
    with pytest.raises(Invalid) as caught:
        validate(program)
    assert "\x1b" not in str(caught.value)


# Faults of earlier systems, each met through a model file.


def refused(
    instruction: list[object],
    message: str,
    *,
    shape: tuple[int, ...] = (1, 2),
    data: bytes = b"",
    **head: object,
) -> None:
    """One instruction on x i8[shape] is refused by validation."""
    changed = {
        **header(),
        "constants": [],
        "inputs": [["x", I8, list(shape), -128, 127]],
        "instructions": [instruction],
    }
    changed["outputs"] = [["y", 1 + len(head.get("constants", ()))]]
    program = file_format.decode(assemble({**changed, **head}, data))
    with pytest.raises(Invalid, match=re.escape(message)):
        validate(program)


def test_a_convolution_s_weights_must_suit_its_attributes() -> None:
    constants = [[I8, [2, 1, 1, 3]], [I32, [2]]]
    attributes = [[0, 0, 0, 0], [1, 1], [1, 1], 4, 0]
    refused(
        [CONV2D, [0, 1, 2], attributes],
        "[conv2d.C6]",
        shape=(1, 2, 2, 3),
        data=bytes(128),
        constants=constants,
    )


def test_a_convolution_s_bias_must_suit_its_weights() -> None:
    constants = [[I8, [2, 1, 1, 3]], [I32, [1]]]
    attributes = [[0, 0, 0, 0], [1, 1], [1, 1], 1, 0]
    refused(
        [CONV2D, [0, 1, 2], attributes],
        "[conv2d.C3]",
        shape=(1, 2, 2, 3),
        data=bytes(128),
        constants=constants,
    )


@pytest.mark.parametrize("length", [31, 32, 33, 255, 256])
def test_texts_up_to_their_limit_are_read_whole(length: int) -> None:
    name = "p" * length
    program = file_format.decode(
        lie(lambda h: setitem(h["outputs"][0], 0, name))
    )
    assert validate(program).program.outputs[0].name == name


@pytest.mark.parametrize("target", [[0], [0, 2], [2, 0], [-1], [-1, -2]])
def test_a_reshape_target_below_1_is_refused(target: list[int]) -> None:
    refused([RESHAPE, [0], [target]], "[reshape.C1]")


def test_a_missing_table_is_refused() -> None:
    refused([TABLE, [0], []], "1 operands; expected 2 [V5]")


def test_a_table_that_is_not_a_constant_is_refused() -> None:
    refused([TABLE, [0, 0], []], "operand 'values' must be a constant [V7]")


def test_a_short_table_is_refused() -> None:
    refused(
        [TABLE, [0, 1], []],
        "[table.C3]",
        data=padded(bytes(255)),
        constants=[[I8, [255]]],
    )


def test_a_slice_with_more_entries_than_dimensions_is_refused() -> None:
    refused([SLICE, [0], [[0, 0, 0], [1, 2, 1]]], "[slice.C1]")


@pytest.mark.parametrize("shape", [[2**31 - 1], [2**30], [1, 46340, 46340]])
def test_a_shape_decides_no_allocation_before_it_is_checked(
    shape: list[int],
) -> None:
    data = lie(lambda h: h.update(constants=[[I32, shape]] * 2))
    tracemalloc.start()
    with pytest.raises(
        Malformed, match="the constants with padding reach to byte"
    ):
        file_format.decode(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_a_large_input_is_refused_or_proven_without_its_tensor() -> None:
    head = {
        **header(),
        "inputs": [["x", I8, [2**15, 2**15], 0, 9]],
        "constants": [],
        "outputs": [["y", 1]],
    }
    program = file_format.decode(
        assemble({**head, "instructions": [[CAST, [0], [I16]]]}, b"")
    )
    tracemalloc.start()
    assert validate(program).intervals[1] == (0, 9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


def test_no_two_constants_share_storage() -> None:
    program = file_format.decode(HONEST)
    assert not np.shares_memory(*program.constants)


def test_successive_runs_give_one_answer() -> None:
    proven = validate(file_format.decode(HONEST))
    x = np.array([[12, -3]], np.int8)
    assert [run(proven, {"x": x})["y"].tolist() for _ in range(3)] == [
        [[6, -1]]
    ] * 3
