"""`cvm accumulate` in clear: outputs that go on as the inputs of their names."""

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.runtime.accumulation import Carried, accumulate
from cvm.runtime.machine import choose
from tests.support.command import cvm, said

SMALL = TensorType("i32", (1, 2))


def greatest(low=-1000, high=1000, name="most", outputs=None):
    """The greatest of each of two integers so far."""
    return Program(
        (Input("x", SMALL, -500, 500), Input(name, SMALL, low, high)),
        (),
        (Instruction("maximum", (0, 1)),),
        outputs or (Output("most", 2),),
    )


def test_each_sample_meets_what_the_one_before_gave():
    form = validate(greatest())
    carried = Carried.of(form)
    assert carried.places == ((1, 0),)
    assert [item.name for item in carried.program.inputs] == ["x"]
    assert carried.start()["most"].tolist() == [[-1000, -1000]]
    samples = [
        {"x": np.array([row], np.int32)}
        for row in ([3, -9], [-7, -8], [2, -11])
    ]
    found = accumulate(carried, choose(form, "reference"), samples)
    assert found["most"].tolist() == [[3, -8]]


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (
            greatest(name="other"),
            "output 'most' has no input of its name to go on as",
        ),
        (
            greatest(high=400),
            "output 'most' is i32[1,2] in -500..500; it goes on as i32[1,2] in -1000..400",
        ),
    ],
)
def test_what_cannot_go_on_is_refused(program, sentence):
    with pytest.raises(BadInput) as refused:
        Carried.of(validate(program))
    assert str(refused.value).startswith(sentence)


def test_something_must_be_left_for_the_samples():
    program = Program(
        (Input("x", SMALL, 0, 9),),
        (),
        (Instruction("maximum", (0, 0)),),
        (Output("x", 1),),
    )
    with pytest.raises(BadInput, match="none is left for the samples"):
        Carried.of(validate(program))


def test_the_command(tmp_path):
    file_format.write(greatest(), tmp_path / "p.cvm")
    np.save(tmp_path / "x.npy", np.array([[3, -9], [-7, -8]], np.int32))
    words = (tmp_path / "p.cvm", "--input", tmp_path / "x.npy")
    out = tmp_path / "out.npz"
    done = cvm("accumulate", *words, "-o", out)
    assert done.stdout == f"wrote {out}: most of 2 samples\n"
    assert np.load(out)["most"].tolist() == [[3, -8]]
    assert said(
        cvm("accumulate", *words, "-o", tmp_path / "y.npy"), 2
    ).endswith("outputs are written as .npz; name it so")
    assert said(
        cvm("accumulate", *words, "-o", out, "--protocol", "aby3"), 2
    ) == ("--protocol is of a back end: add --backend spu")
