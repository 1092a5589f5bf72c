"""What the last stage says of a program that is refused."""

from types import SimpleNamespace

import pytest

from cvm.errors import Invalid
from mrt import stages
from mrt.errors import BadModel, NotProvable


@pytest.mark.parametrize(
    ("rule", "error", "said"),
    [
        (
            "V13",
            BadModel,
            "the program would be too large to prove: too much .V13.; a shorter sequence or a smaller picture "
            "than --shape x=1,40 may fit, or convert a part of the model",
        ),
        ("add.C1", NotProvable, "this is a fault of mrt"),
    ],
)
def test_only_a_program_too_large_to_prove_is_no_fault_of_mrt(
    monkeypatch, rule, error, said
):
    def refuse(program):
        raise Invalid(rule, "too much")

    monkeypatch.setattr(stages, "validate", refuse)
    with pytest.raises(error, match=said):
        stages.prove(
            SimpleNamespace(
                program=object(),
                config=SimpleNamespace(
                    model=SimpleNamespace(shapes={"x": (1, 40)})
                ),
            )
        )
