"""The duplicated channels in a program's provenance."""

import pytest

from cvm.program import Metadata, Program
from mrt.duplicate import duplicates_provenance, read_duplicates
from mrt.errors import BadData


def claiming(**provenance: str) -> Program:
    return Program((), (), (), (), Metadata(provenance=provenance))


def test_what_is_written_is_read_and_nothing_is_nothing():
    duplicates = {"first": [1, 5], "Δ": [0]}
    assert (
        read_duplicates(claiming(**duplicates_provenance(duplicates)))
        == duplicates
    )
    assert duplicates_provenance({}) == {}
    assert read_duplicates(claiming()) == {}
    assert read_duplicates(Program((), (), (), ())) == {}


@pytest.mark.parametrize(
    "lie",
    [
        "",
        "[]",
        "{",
        '{"first": 1}',
        '{"first": [1.5]}',
        '{"first": [true]}',
        "[" * 60000,
    ],
)
def test_a_program_that_lies_is_refused(lie):
    with pytest.raises(BadData, match="provenance 'twins' cannot be used"):
        read_duplicates(claiming(twins=lie))
