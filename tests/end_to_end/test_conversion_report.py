"""`mrt convert --report`: the report as a person gets it, from the command, of a real checkpoint."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import cvm
from mrt.cli import cli

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL = ROOT / "calibration_data/digits8/resnet_digits8-symbol.json"
WORDS = ("convert", MODEL, "--shape", "data=1,1,8,8", "--samples", 2)


def mrt(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """What is printed, the report as JSON, the program."""
    place = tmp_path_factory.mktemp("report")
    said = mrt(*WORDS, "-o", place / "p.cvm", "--report", place / "r.json")
    return (
        said,
        json.loads((place / "r.json").read_text()),
        cvm.load(place / "p.cvm"),
    )


def test_every_instruction_of_the_program_is_accounted_for(converted):
    _, report, program = converted
    places = {
        tuple(item["into"]): item["instructions"]
        for item in report["operators"]
    }
    counted = sum(sum(found.values()) for found in places.values()) + sum(
        report["other_instructions"].values()
    )
    assert (
        counted
        == len(program.program.instructions)
        == report["integers"]["instructions"]
    )


def test_batch_norms_went_into_convolutions_and_products_became_products(
    converted,
):
    _, report, program = converted
    kinds = {row["kind"]: row for row in report["kinds"]}
    assert report["origin"] == "mxnet"
    assert kinds["BatchNormalization"]["outcomes"] == {
        "fused": 11,
        "rewritten": 1,
    }  # the first one has nothing before it
    assert [
        item["instructions"].get("add")
        for item in report["operators"]
        if item["operator"] == "Add"
    ] == [
        1,
        1,
        1,
        1,
    ]
    assert kinds["Conv"]["count"] + 1 == sum(
        item.name == "conv2d" for item in program.program.instructions
    )
    assert (
        "conv2d" in kinds["Conv"]["instructions"]
        and "dense" in kinds["Gemm"]["instructions"]
    )


def test_the_command_says_the_statement_in_a_few_lines(converted):
    said, report, program = converted
    lines = said.splitlines()
    (statement,) = (
        line for line in lines if line.startswith("  integers only")
    )
    assert statement.endswith(report["integers"]["statement"])
    assert f"all {len(program.types)} values are integers" in statement
    assert len(lines) < 22


def test_the_text_names_every_operator(converted, tmp_path):
    _, report, _ = converted
    mrt(*WORDS, "-o", tmp_path / "p.cvm", "--report", tmp_path / "r.txt")
    text = (tmp_path / "r.txt").read_text()
    assert all(item["name"] in text for item in report["operators"])
    assert report["integers"]["statement"] in text


def test_a_report_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    places = (
        ("r.pdf", "expected a name that ends in .json, .txt"),
        ("r.html", "mrt report MODEL P.cvm --data D -o F.html writes a page"),
        ("p.txt", "is named for two outputs"),
    )
    for name, sentence in places:
        found = mrt(
            *WORDS,
            "-o",
            tmp_path / "p.txt",
            "--report",
            tmp_path / name,
            code=2,
        )
        assert sentence in found and not (tmp_path / "p.txt").exists()
