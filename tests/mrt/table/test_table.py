"""The calibration table's file: readable, exact, strict, and only for the model and options it was made with."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mrt.errors import BadData, BadOption
from mrt.table.table import CalibrationOptions, CalibrationTable, MeasuredRange

TABLE = CalibrationTable(
    model_sha256="aa",
    options=CalibrationOptions("percentile", percentile=99.9),
    samples=3,
    data_sha256="bb",
    ranges={
        "z": MeasuredRange(-1.0, 2.0, -0.5, 1.5),
        "a": MeasuredRange(0.0, 0.1, 0.0, 0.1),
    },
    channel_means={"z": (0.25, -1e-30)},
)
TEXT = """{
"channel_means": {
  "z": [0.25, -1e-30]
},
"data_sha256": "bb",
"format": "mrt calibration table",
"model_sha256": "aa",
"options": {"observer": "percentile", "percentile": 99.9},
"ranges": {
  "a": [0.0, 0.1, 0.0, 0.1],
  "z": [-1.0, 2.0, -0.5, 1.5]
},
"samples": 3,
"version": 1
}
"""


def test_the_file_is_sorted_json_with_one_value_a_line(tmp_path: Path) -> None:
    TABLE.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text() == TEXT
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_what_is_saved_loads_the_same(tmp_path: Path) -> None:
    third = CalibrationTable(
        "aa",
        CalibrationOptions(),
        1,
        "",
        {"é": MeasuredRange(1 / 3, 1 / 3, 1 / 3, 1 / 3)},
    )
    fourth = replace(TABLE, duplicates={"z": (0, 2), "a": (1,)})
    fifth = replace(TABLE, input_shapes={"x": (1, 3, 8, 8), "n": ()})
    for table in (TABLE, third, fourth, fifth):
        table.save(tmp_path / "t.json")
        assert CalibrationTable.load(tmp_path / "t.json") == table


def lie(**changes) -> str:
    content = json.loads(TEXT) | changes
    return json.dumps(
        {key: value for key, value in content.items() if value is not None}
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello", "is not a calibration table (Expecting value"),
        (lie(twins=[1]), "twins must be an object"),
        (
            lie(twins={"z": [0.5]}),
            "the twins of 'z' must be channels, integers from 0",
        ),
        (lie(twins={"z": [-1]}), "the twins of 'z' must be channels"),
        (lie(input_shapes=[1]), "input_shapes must be an object"),
        (
            lie(input_shapes={"x": [1, 0]}),
            "the shape of 'x' must be integers from 1",
        ),
        (lie(input_shapes={"x": "8"}), "the shape of 'x' must be integers"),
        (lie(twins={"z": [True]}), "the twins of 'z' must be channels"),
        ("[]", "is not a 'mrt calibration table'"),
        ("[" * 100_000, "is not a calibration table (maximum recursion"),
        (
            TEXT.replace("0.25", "NaN"),
            "is not a calibration table (NaN is not a number)",
        ),
        (
            TEXT.replace('"a"', '"z"'),
            "is not a calibration table (a name appears twice)",
        ),
        (TEXT.replace("0.25", "1e999"), "'z' needs a list of finite numbers"),
        (
            TEXT.replace("0.25", "1" + "0" * 400),
            "'z' needs a list of finite numbers",
        ),
        (
            lie(ranges={"a": [0, 2**1024 - 1, 0, 1]}),  # rounds to no float
            "'a' needs a list of finite numbers",
        ),
        (
            lie(options={"observer": "percentile", "percentile": 10**400}),
            "percentile = 1",
        ),
        (lie(version=2), "has version 2, expected 1"),
        (
            lie(extra=1),
            "has the entries ['channel_means', 'data_sha256', 'extra'",
        ),
        (
            lie(samples=None),
            "has the entries ['channel_means', 'data_sha256', 'format', 'model_sha256', 'options'",
        ),
        (lie(samples=True), "samples must be an integer above 0"),
        (lie(samples=0), "samples must be an integer above 0"),
        (lie(model_sha256=7), "model_sha256 must be text"),
        (lie(ranges=[]), "ranges must be an object"),
        (
            lie(ranges={"a": [0, 1]}),
            "the range of 'a' has 2 numbers, expected min, max, lo, hi",
        ),
        (
            lie(ranges={"a": [0, 1, 0, 2]}),
            "breaks min <= lo <= hi <= max: [0.0, 1.0, 0.0, 2.0]",
        ),
        (lie(ranges={"a": [0, 1, 1, 0]}), "breaks min <= lo <= hi <= max"),
        (
            lie(ranges={"a": ["0", 1, 0, 1]}),
            "'a' needs a list of finite numbers",
        ),
        (lie(ranges={"a": 5}), "'a' needs a list of finite numbers"),
        (
            lie(options={"observer": "best"}),
            "observer = 'best': expected one of minmax, percentile, entropy, mse",
        ),
        (
            lie(options={"observer": ["mse"]}),
            "has an unusable option observer = ['mse']",
        ),
        (lie(options={"speed": 1}), "has an unusable option speed = 1"),
        (
            lie(options={"observer": "mse", "bits": 1}),
            "bits = 1: expected a precision from 2 to 16",
        ),
        (
            lie(options={"observer": "minmax", "bits": 8}),
            "has the options {'observer': 'minmax', 'bits': 8}, expected",
        ),
    ],
)
def test_a_file_that_save_would_not_write_is_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(BadData) as caught:
        CalibrationTable.load(tmp_path / "t.json")
    assert sentence in str(caught.value)
    assert str(tmp_path / "t.json") in str(caught.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        BadData, match=r"t\.json: cannot be read \(No such file"
    ):
        CalibrationTable.load(tmp_path / "t.json")
    (tmp_path / "t.json").write_bytes(b"\xff\xfe")
    with pytest.raises(BadData, match="is not a calibration table"):
        CalibrationTable.load(tmp_path / "t.json")


def test_a_folder_that_is_not_there_cannot_be_written_to(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        BadData, match=r"t\.json: cannot be written \(No such file"
    ):
        TABLE.save(tmp_path / "gone" / "t.json")


def test_another_model_is_refused_naming_both() -> None:
    TABLE.require(model_sha256="aa")
    with pytest.raises(
        BadData,
        match="is for the model with SHA-256 aa, not for cc; calibrate again",
    ):
        TABLE.require(model_sha256="cc")


def test_other_options_are_refused_naming_both() -> None:
    TABLE.require(
        model_sha256="aa",
        options=CalibrationOptions("percentile", percentile=99.9, bits=4),
    )
    with pytest.raises(
        BadData,
        match=r"was made with observer percentile, percentile 99.9, not with observer mse, bits 4",
    ):
        TABLE.require(
            model_sha256="aa", options=CalibrationOptions("mse", bits=4)
        )


@pytest.mark.parametrize("percentile", [50.0, 100.1, float("nan")])
def test_percentiles_out_of_range_are_refused(percentile: float) -> None:
    with pytest.raises(
        BadOption, match="expected a number above 50, up to 100"
    ):
        CalibrationOptions("percentile", percentile=percentile)
