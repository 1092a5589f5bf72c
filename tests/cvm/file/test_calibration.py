"""A calibration table gives its ranges to the program that records it, and to no other; lies are named."""

import hashlib

import pytest

from cvm.errors import BadInput
from cvm.file.calibration import DIGEST, read_ranges
from cvm.program import Metadata, Program

HEAD = '{\n"format": "mrt calibration table",\n'
SHAPES = '"input_shapes": {\n  "x": [1, 3],\n  "z": [2]\n},\n'
TAIL = """"model_sha256": "m",
"ranges": {
  "x": [-1.5, 2.5, -1.0, 2.0],
  "y": [0.0, 1, 0.0, 1]
},
"samples": 1
}
"""


def program_of(text: str) -> Program:
    digest = hashlib.sha256(text.encode()).hexdigest()
    metadata = Metadata(provenance={DIGEST: digest})
    return Program((), (), (), (), metadata)


def given(tmp_path, text):
    path = tmp_path / "t.json"
    path.write_text(text)
    return path


def test_minima_and_maxima_come_by_name(tmp_path):
    """The digest leaves out the shapes."""
    path = given(tmp_path, HEAD + SHAPES + TAIL)
    expected = {"x": (-1.5, 2.5), "y": (0.0, 1.0)}
    assert read_ranges(path, program_of(HEAD + TAIL)) == expected
    path = given(tmp_path, HEAD + TAIL)
    assert read_ranges(path, program_of(HEAD + TAIL)) == expected


def test_the_table_of_another_program_is_refused(tmp_path):
    changed = TAIL.replace("2.5", "2.75")
    path = given(tmp_path, HEAD + SHAPES + changed)
    with pytest.raises(
        BadInput, match="expected the table that the program was made with"
    ):
        read_ranges(path, program_of(HEAD + TAIL))


@pytest.mark.parametrize(
    "text",
    [
        HEAD + SHAPES + SHAPES.replace("1", '"ranges"') + TAIL,
        HEAD + TAIL.replace("\n}\n", ',\n"ranges": {}\n}\n'),
        HEAD + TAIL.replace('"y": [', '"x": ['),
        HEAD + SHAPES.replace('"x": [1, 3]', '"x": 1, "x": 2') + TAIL,
    ],
)
def test_a_key_that_is_there_twice_is_refused(tmp_path, text):
    path = given(tmp_path, text)
    with pytest.raises(BadInput, match="is there twice"):
        read_ranges(path, program_of(text))


def test_nothing_hides_in_the_shapes(tmp_path):
    """What the digest leaves out is the table's shapes alone, once."""
    hidden = SHAPES + '"note": 1,\n' + SHAPES
    lies = SHAPES.replace("},\n", '}, "options": 1,\n')
    below = '"more": {\n' + SHAPES + '"z": 1\n},\n'
    for inserted in (hidden, lies, below):
        path = given(tmp_path, HEAD + inserted + TAIL)
        with pytest.raises(BadInput):
            read_ranges(path, program_of(HEAD + TAIL))
    text = HEAD + below + TAIL
    path = given(tmp_path, text)
    cut = HEAD + '"more": {\n"z": 1\n},\n' + TAIL
    with pytest.raises(BadInput, match="expected the table"):
        read_ranges(path, program_of(cut))


@pytest.mark.parametrize("metadata", [None, Metadata()])
def test_a_program_that_names_no_table_takes_none(tmp_path, metadata):
    path = given(tmp_path, HEAD + TAIL)
    with pytest.raises(BadInput, match="does not record its calibration table"):
        read_ranges(path, Program((), (), (), (), metadata))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("[" * 100_000, "is not a 'mrt calibration table'"),
        ("{}", "is not a 'mrt calibration table'"),
        (HEAD + '"ranges": []}', "has no ranges"),
        (HEAD + '"ranges": {"x": 3}}', "the range of 'x' is 3; expected"),
        (HEAD + '"ranges": {"x": [1, 2]}}', "expected finite numbers"),
        (HEAD + '"ranges": {"x": [1, NaN, 1, 1]}}', "expected finite numbers"),
        (HEAD + '"ranges": {"x": [3, 1, 1, 1]}}', "expected finite numbers"),
        (HEAD + '"ranges": {"x": [0, 1e999, 0, 0]}}', "expected finite"),
        (
            HEAD + f'"ranges": {{"x": [0, {"9" * 400}, 0, 0]}}}}',
            "expected finite",
        ),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, said):
    path = given(tmp_path, text)
    with pytest.raises(BadInput, match=said):
        read_ranges(path, program_of(text))
