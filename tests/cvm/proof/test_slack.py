import numpy as np
import pytest

from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof import slack as proof
from cvm.proof.validate import validate


@pytest.mark.parametrize(
    ("dtype", "interval", "hundredths"),
    [
        ("i32", (-(2**31), 0), 0),
        ("i32", (0, 2**31 - 1), 0),
        ("i32", (-(2**30), 0), 100),
        ("i32", (0, 2**30), 99),  # 2^31 - 1 is not twice 2^30
        ("i32", (0, 2**30 - 1), 100),
        ("i32", (-(2**20), 1), 1100),
        ("i32", (1, 2**20), 1099),
        ("i32", (0, 1000), 2103),  # log2(2147483.647) = 21.0342
        ("i32", (-5, -4), 2867),  # log2(429496729.6) = 28.6781
        ("i16", (-3, 7), 1219),  # log2(32767 / 7) = 12.1926
        ("u8", (0, 100), 135),  # log2(2.55) = 1.3505
        ("i32", (0, 0), None),
        ("bool", (0, 1), None),
    ],
)
def test_slack_is_the_room_to_grow_in_hundredths_of_a_bit_rounded_down(
    dtype: str, interval: tuple[int, int], hundredths: int | None
) -> None:
    assert proof.slack(dtype, interval) == hundredths


def test_slack_is_shown_in_bits() -> None:
    assert [proof.bits(found) for found in (2103, 7, 0, None)] == [
        "21.03",
        "0.07",
        "0.00",
        "-",
    ]


def test_the_tightest_value_is_one_that_could_have_overflowed() -> None:
    inputs = tuple(
        Input(name, TensorType("i32", (1, 3)), -high, high)
        for name, high in (("x", 2**31 - 1), ("y", 9))
    )
    steps = (
        Instruction(
            "reverse", (0,), {"axis": 1}
        ),  # as wide as i32, but nothing is computed
        Instruction("add", (1, 1)),
        Instruction("mul", (1, 1), {"shift": 0}),
    )
    outputs = tuple(Output(f"z{value}", value) for value in (2, 3, 4))
    assert proof.tightest(validate(Program(inputs, (), steps, outputs))) == 4
    assert (
        proof.tightest(
            validate(
                Program(
                    inputs[:1],
                    (),
                    (Instruction("reverse", (0,), {"axis": 1}),),
                    (Output("z", 1),),
                )
            )
        )
        is None
    )


def test_a_quotient_could_have_overflowed() -> None:
    # -2^31 / -1 does not fit i32; here 2^30 / 1 leaves one bit, less a little: 2^31 - 1 is below twice 2^30
    x = Input("x", TensorType("i32", (3,)), 0, 2**30)
    divided = Instruction("intdiv", (0, 1))
    program = Program(
        (x,), (np.asarray([1, 2, 3], np.int32),), (divided,), (Output("z", 2),)
    )
    form = validate(program)
    assert proof.tightest(form) == 2
    assert proof.slack("i32", form.intervals[2]) == 99
