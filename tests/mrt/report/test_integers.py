"""The check that only integers are left sees what is not one."""

from dataclasses import replace

import numpy as np
import pytest

from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import WellFormed, check
from mrt.errors import NotProvable
from mrt.report.integers import check_integers


def _form() -> WellFormed:
    """%0 input, %1 multiplier, %2 shift, %3 rescale, %4 cast."""
    constants = (np.array([2**30], np.int32), np.array([30], np.int8))
    attributes = {"input_zp": 0, "output_zp": -128, "dtype": "i8"}
    steps = (
        Instruction("rescale", (0, 1, 2), attributes),
        Instruction("cast", (3,), {"dtype": "i16"}),
    )
    return check(
        Program(
            (Input("x", TensorType("u8", (4,)), 0, 255),),
            constants,
            steps,
            (Output("y", 4),),
        )
    )


def test_integers_are_counted_by_dtype():
    found = check_integers(_form())
    assert dict(found.values) == {"i8": 2, "u8": 1, "i16": 1, "i32": 1}
    assert (
        found.constants,
        found.instructions,
        dict(found.inputs),
        dict(found.outputs),
    ) == (
        2,
        2,
        {"x": "u8"},
        {"y": "i16"},
    )
    assert found.sentence() == (
        "all 5 values are integers (2 i8, 1 u8, 1 i16, 1 i32); none of the 2 instructions takes or gives a real number"
    )


def _with(form: WellFormed, **changes: object) -> WellFormed:
    return replace(form, program=replace(form.program, **changes))


def _doctored() -> dict[str, tuple[WellFormed, str]]:
    form = _form()
    first, second = form.program.instructions
    real_type = replace(
        form, types=(*form.types[:3], TensorType("f32", (4,)), form.types[4])
    )
    real_constant = _with(
        form,
        constants=(
            form.program.constants[0].astype(np.float32),
            form.program.constants[1],
        ),
    )
    real_number = _with(
        form,
        instructions=(
            replace(first, attributes={**first.attributes, "input_zp": 0.5}),
            second,
        ),
    )
    foreign = _with(
        form, instructions=(replace(first, name="conv_float"), second)
    )
    return {
        "a value": (real_type, "value %3 of the program has the dtype f32"),
        "a constant": (
            real_constant,
            "constant %1 of the program holds float32",
        ),
        "an attribute": (
            real_number,
            r"instruction %3 \(rescale\) of the program has input_zp = 0.5",
        ),
        "an instruction": (
            foreign,
            "instruction %3 of the program is 'conv_float', which the machine does not have",
        ),
    }


@pytest.mark.parametrize(
    "what", ["a value", "a constant", "an attribute", "an instruction"]
)
def test_what_is_no_integer_is_refused_by_its_number(what):
    form, sentence = _doctored()[what]
    with pytest.raises(NotProvable, match=sentence):
        check_integers(form)
