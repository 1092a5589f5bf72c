"""Bits that nobody gives: 8, and more where a program with 8 is not good."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

import mrt
from cvm.errors import BadInput
from cvm.proof.validate import Proven
from mrt import automatic_bits, pipeline, quality
from mrt.advice import Remedy
from mrt.automatic_bits import take_auto
from mrt.cli import cli
from mrt.config import Config
from mrt.conversion import Conversion
from mrt.errors import BadOption
from mrt.evaluate.verdict import DOUBTFUL, GOOD, Verdict
from mrt.refine.options import RefineOptions

FAR = 100.0


def difference(path: Path, *, size: float) -> Path:
    """The difference of two values that are `size` times as great as what distinguishes them."""
    random = np.random.default_rng(0)
    constants = {
        "great": random.normal(size=(6, 5)).astype(np.float32) * size,
        "small": random.normal(size=(6, 5)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "great"], ["one"]),
        helper.make_node("MatMul", ["x", "small"], ["little"]),
        helper.make_node("Add", ["one", "little"], ["other"]),
        helper.make_node("Relu", ["one"], ["held_one"]),
        helper.make_node("Relu", ["other"], ["held_other"]),
        helper.make_node("Sub", ["held_other", "held_one"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "difference",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
        [
            numpy_helper.from_array(array, name)
            for name, array in constants.items()
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, path)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.npz"
    x = np.random.default_rng(1).normal(size=(48, 6)).astype(np.float32)
    np.savez(path, x=x)
    return path


def convert(model: Path, data: Path, *options: str) -> Result:
    given = ["convert", str(model), "--data", str(data), *options]
    result = CliRunner().invoke(cli, given)
    assert result.exit_code == 0, result.output
    return result


def test_more_bits_are_chosen_where_8_are_too_few(
    tmp_path: Path, data: Path
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    with_8 = convert(model, data, "--bits", "8")
    assert "what helps: --stream-bits 16" in with_8.output
    assert "was chosen" not in with_8.output
    chosen = convert(model, data)
    assert ": good" in chosen.output
    (note,) = [
        line for line in chosen.output.splitlines() if "was chosen" in line
    ]
    assert "--stream-bits 16 was chosen, since without it: agreement" in note
    assert note.endswith(
        "; the engine takes about as long (--bits 8 converts without it)"
    )
    given = convert(
        model,
        data,
        "--stream-bits",
        "16",
        "-o",
        str(tmp_path / "given.cvm"),
    )
    assert "was chosen" not in given.output
    assert (tmp_path / "far.cvm").read_bytes() == (
        tmp_path / "given.cvm"
    ).read_bytes()


def test_a_program_that_is_good_stays_as_it_is(
    tmp_path: Path, data: Path
) -> None:
    model = difference(tmp_path / "near.onnx", size=1.0)
    programs = []
    for number, options in enumerate(([], ["--bits", "auto"], ["--bits", "8"])):
        path = tmp_path / f"{number}.cvm"
        result = convert(model, data, *options, "-o", str(path))
        assert ": good" in result.output and "chosen" not in result.output
        programs.append(path.read_bytes())
    assert programs[0] == programs[1] == programs[2]


@pytest.mark.parametrize("options", [{}, {"bits": "auto"}])
def test_python_chooses_as_the_command_does(
    tmp_path: Path, data: Path, options: dict[str, str]
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    conversion = mrt.convert(model, data, **options).conversion
    assert conversion.config.quantization.activation_bits_of("y") == 16
    verdict = conversion.quality.verdict
    assert verdict is not None and verdict.is_good


def test_python_converts_once_where_bits_or_a_table_are_given(
    tmp_path: Path, data: Path
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    given = mrt.convert(model, data, bits=8)
    by_table = mrt.convert(model, table=given.table)
    for converted in (given, by_table):
        bits = converted.conversion.config.quantization
        assert bits.activation_bits_of("y") == 8
        assert not converted.conversion.chosen


def test_automatic_bits_need_samples(tmp_path: Path) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    result = CliRunner().invoke(cli, ["convert", str(model), "--bits", "auto"])
    assert result.exit_code == 2
    assert "--bits auto needs samples to measure on" in result.output
    assert not (tmp_path / "far.cvm").exists()


@pytest.mark.parametrize(
    "options, beside, named",
    [
        ({"weight_bits": 4}, {}, "weight-bits"),
        ({"activation_bits": 8}, {}, "activation-bits"),
        ({"sum_bits": 6}, {}, "sum-bits"),
        ({}, {"table": "t.json"}, "table"),
        ({}, {"target": "snr"}, "target"),
    ],
)
def test_two_that_decide_the_bits_are_refused(
    options: dict[str, Any], beside: dict[str, Any], named: str
) -> None:
    with pytest.raises(BadOption, match=f"--bits auto and --{named}: give one"):
        take_auto({"bits": "auto", **options}, **beside)


@pytest.mark.parametrize(
    "text", ["[quantization]\nweight_bits = 4\n", "[layers.y]\nbits = 4\n"]
)
def test_bits_of_a_config_are_refused_beside_auto(
    tmp_path: Path, data: Path, text: str
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    config = tmp_path / "c.toml"
    config.write_text(text)
    words = ["--data", str(data), "--bits", "auto", "--config", str(config)]
    result = CliRunner().invoke(cli, ["convert", str(model), *words])
    assert result.exit_code == 2
    assert "--bits auto and the bits of a --config" in result.output


AUTO_CONFIG = '[quantization]\nbits = "auto"\n'


def test_a_config_asks_for_automatic_bits_as_the_option_does(
    tmp_path: Path, data: Path
) -> None:
    """It was refused, with a list of the numbers."""
    model = difference(tmp_path / "far.onnx", size=FAR)
    config = tmp_path / "c.toml"
    config.write_text(AUTO_CONFIG)
    written = ("-o", str(tmp_path / "a.cvm"), "--write-config")
    asked = convert(
        model, data, "--bits", "auto", "-o", str(tmp_path / "b.cvm")
    )
    found = tmp_path / "found.toml"
    shown = convert(model, data, "--config", str(config), *written, str(found))
    assert "was chosen" in shown.output and "was chosen" in asked.output
    program = (tmp_path / "a.cvm").read_bytes()
    assert program == (tmp_path / "b.cvm").read_bytes()
    converted = mrt.convert(model, data, config=config)
    assert converted.conversion.data == program
    assert "auto" not in found.read_text()
    plain = convert(model, data, "--config", str(config), "--bits", "8")
    assert "was chosen" not in plain.output  # options win over the file


@pytest.mark.parametrize(
    ("more", "words", "said"),
    [
        ("", ["--table", "t.json"], " of the config and --table: give one"),
        ("", ["--target-snr", "30"], " of the config and --target: give one"),
        ("[layers.y]\nbits = 4\n", [], " of the config and the bits of a"),
    ],
)
def test_what_decides_the_bits_beside_a_config_that_asks_for_them(
    tmp_path: Path, data: Path, more: str, words: list[str], said: str
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    config, table = tmp_path / "c.toml", tmp_path / "t.json"
    config.write_text(f"{AUTO_CONFIG}{more}")
    table.write_text("{}")
    words = [str(table) if word == "t.json" else word for word in words]
    given = ["convert", model, "--data", data, "--config", config, *words]
    result = CliRunner().invoke(cli, list(map(str, given)))
    assert result.exit_code == 2
    assert f'[quantization] bits = "auto"{said}' in result.output


def test_auto_is_taken_out_of_the_options() -> None:
    options = {"bits": "auto", "samples": 8}
    assert take_auto(options)
    assert options == {"samples": 8}


def test_numbers_of_bits_are_left_where_they_are() -> None:
    options = {"bits": 8}
    assert not take_auto(options, table="t.json")
    assert options == {"bits": 8}


@pytest.mark.parametrize(
    "name",
    ["bits", "weight_bits", "activation_bits", "sum_bits", "refine", "config"],
)
def test_nothing_is_chosen_beside_what_concerns_it(name: str) -> None:
    assert take_auto({name: None, "samples": 8, "fold": True})
    assert not take_auto({name: "given"})


def test_nothing_is_chosen_beside_a_table_or_a_target() -> None:
    assert take_auto({}, table=None, target=None)
    assert not take_auto({}, table="t.json", target=None)


def test_a_second_program_that_is_no_better_is_left(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    convert(model, data, "--bits", "8", "-o", str(tmp_path / "8.cvm"))
    monkeypatch.setattr(automatic_bits, "is_better", lambda new, old: False)
    result = convert(model, data)
    assert "--stream-bits 16 was tried, refinement included" in result.output
    wanted = (tmp_path / "8.cvm").read_bytes()
    assert (tmp_path / "far.cvm").read_bytes() == wanted


def test_a_second_program_that_cannot_be_written_is_left(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(config: Config, options: dict[str, Any]) -> Config:
        raise BadInput("too wide")

    model = difference(tmp_path / "far.onnx", size=FAR)
    monkeypatch.setattr(automatic_bits, "with_options", refuses)
    result = convert(model, data)
    assert "--stream-bits 16 was not taken: too wide" in result.output
    assert ": useless" in result.output


def test_both_programs_are_judged_on_the_same_samples(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dear program is measured on fewer, of which another share may agree."""
    compared: list[tuple[int, int]] = []

    def note(new: Verdict, old: Verdict) -> bool:
        compared.append((new.samples, old.samples))
        return True

    seen: list[Proven] = []

    def few(program: Proven) -> int:
        """Ten samples for the first program, five for any other."""
        seen.append(program)
        return 10 if program is seen[0] else 5

    monkeypatch.setattr(quality, "affordable", few)
    monkeypatch.setattr(automatic_bits, "is_better", note)
    convert(difference(tmp_path / "far.onnx", size=FAR), data)
    assert compared == [(5, 5)]


def test_json_has_what_was_chosen(tmp_path: Path, data: Path) -> None:
    for size, chosen in ((FAR, {"stream_bits": 16}), (1.0, {})):
        model = difference(tmp_path / "model.onnx", size=size)
        words = ["convert", str(model), "--data", str(data), "--json", "-q"]
        result = CliRunner().invoke(cli, words)
        assert json.loads(result.stdout)["chosen"] == chosen


def test_a_missed_limit_comes_with_what_was_chosen(
    tmp_path: Path, data: Path
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    words = ["--data", str(data), "--require", "snr=90"]
    result = CliRunner().invoke(cli, ["convert", str(model), *words])
    assert result.exit_code == 1 and not (tmp_path / "far.cvm").exists()
    assert "--stream-bits 16 was chosen already; nothing" in result.output


def test_stages_of_refinement_stay_where_they_were_given(
    tmp_path: Path, data: Path
) -> None:
    first = mrt.convert(
        difference(tmp_path / "far.onnx", size=FAR), data, bits=8
    ).conversion
    assert first.quality.advice is not None and first.quality.verdict
    stages = {"refine": "duplicates,scales,centres"}
    remedies = [Remedy(stages, first.quality.verdict, verdict_is_final=True)]
    advice = replace(first.quality.advice, remedies=remedies)
    found = replace(first, quality=replace(first.quality, advice=advice))
    config = first.config
    dearer = list(first.quality.advice.dearer)
    assert automatic_bits._untried(found, config) == [stages, *dearer]
    given = replace(config, refinement=RefineOptions.of(["fit"]))
    assert automatic_bits._untried(found, given) == dearer


def remedies_of(
    first: Conversion, words: dict[str, str]
) -> tuple[Conversion, dict[str, Remedy]]:
    """A conversion with advice of three remedies, each with such a verdict."""
    assert first.quality.advice is not None and first.quality.verdict
    remedies = {
        name: Remedy(
            options,
            replace(first.quality.verdict, word=words[name]),
            verdict_is_final="refine" in options,
        )
        for name, options in OPTIONS.items()
    }
    advice = replace(
        first.quality.advice, remedies=tuple(remedies.values()), dearer=()
    )
    return first.with_advice(advice), remedies


OPTIONS: dict[str, dict[str, Any]] = {
    "stages": {"refine": ["duplicates", "scales", "centres"]},
    "streams": {"stream_bits": 16},
    "values": {"activation_bits": 16},
}


def test_fewer_stages_are_tried_first_where_they_may_be_good(
    tmp_path: Path, data: Path
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    first = mrt.convert(model, data, bits=8).conversion
    for word, tried in ((GOOD, ["stages", "values"]), (DOUBTFUL, ["values"])):
        words = dict.fromkeys(OPTIONS, word)
        conversion, remedies = remedies_of(first, words)
        assert automatic_bits._untried(conversion, first.config) == [
            remedies[name].options for name in tried
        ]


def test_bits_are_tried_where_fewer_stages_did_not_help(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost nothing when the program runs, but a draft without refined weights may promise too much."""
    model = difference(tmp_path / "far.onnx", size=FAR)
    real = pipeline.convert

    def advised(config: Config, **options: Any) -> Conversion:
        conversion = real(config, **options)
        if conversion.quality.advice is None:
            return conversion
        words = dict.fromkeys(OPTIONS, GOOD)
        return remedies_of(conversion, words)[0]

    monkeypatch.setattr(pipeline, "convert", advised)
    result = convert(model, data)
    notes = [line for line in result.output.splitlines() if "note: --" in line]
    assert len(notes) == 2, result.output
    assert "--refine duplicates,scales,centres was tried" in notes[0]
    assert "--activation-bits 16 was chosen, since without it" in notes[1]
    assert ": good" in result.output


def test_advice_on_a_program_with_chosen_bits_keeps_them(
    tmp_path: Path, data: Path
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    first = mrt.convert(model, data, bits=8).conversion
    conversion, _ = remedies_of(first, dict.fromkeys(OPTIONS, GOOD))
    advised = automatic_bits._choosing(conversion, {"stream_bits": 16})
    assert advised.chosen == {"stream_bits": 16}
    assert advised.quality.advice is not None
    flags = [remedy.flags for remedy in advised.quality.advice.remedies]
    assert flags == [
        "--stream-bits 16 --refine duplicates,scales,centres",
        "--stream-bits 16",
        "--stream-bits 16 --activation-bits 16",
    ]
    (helping,) = [
        text for text in advised.remarks.warnings if "what helps" in text
    ]
    assert flags[0] in helping and flags[2] in helping


def test_advice_that_was_followed_in_vain_is_taken_back(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = difference(tmp_path / "far.onnx", size=FAR)
    monkeypatch.setattr(automatic_bits, "is_better", lambda new, old: False)
    result = convert(model, data)
    assert "--stream-bits 16 was tried" in result.output
    assert "what helps: --stream-bits 16" not in result.output


def refusing(
    monkeypatch: pytest.MonkeyPatch, *refused: dict[str, Any]
) -> list[dict[str, Any]]:
    """Let no program be made with these options; return the list to which those of each further conversion are added."""
    tried: list[dict[str, Any]] = []
    real = automatic_bits.with_options

    def refuse(config: Config, options: dict[str, Any]) -> Config:
        tried.append(options)
        if options in refused:
            raise BadInput("too wide")
        return real(config, options)

    monkeypatch.setattr(automatic_bits, "with_options", refuse)
    return tried


STREAMS: dict[str, Any] = {"stream_bits": 16}
VALUES: dict[str, Any] = {"activation_bits": 16}
WEIGHTS: dict[str, Any] = {"activation_bits": 16, "weight_bits": 15}


def test_dearer_bits_are_tried_where_the_first_are_refused(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = refusing(monkeypatch, STREAMS)
    result = convert(difference(tmp_path / "far.onnx", size=FAR), data)
    assert tried == [STREAMS, VALUES]
    notes = [line for line in result.output.splitlines() if "note: --" in line]
    assert len(notes) == 2, result.output
    assert "--stream-bits 16 was not taken: too wide" in notes[0]
    assert "--activation-bits 16 was chosen, since without it" in notes[1]
    assert ": good" in result.output


def test_each_dearer_choice_is_tried_once_and_noted(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = refusing(monkeypatch)
    monkeypatch.setattr(automatic_bits, "is_better", lambda new, old: False)
    result = convert(difference(tmp_path / "far.onnx", size=FAR), data)
    assert tried == [STREAMS, VALUES, WEIGHTS]
    assert result.output.count("and is no better") == 3
    (line,) = [
        text
        for text in result.output.splitlines()
        if "these were tried and help little or not: " in text
    ]
    flags = "--stream-bits 16; --activation-bits 16; --activation-bits 16 --weight-bits 15"
    assert line.endswith(flags)


def test_conversions_are_bounded_and_what_is_left_is_named(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = refusing(monkeypatch, STREAMS, VALUES)
    monkeypatch.setattr(automatic_bits, "MOST_TRIES", 2)
    result = convert(difference(tmp_path / "far.onnx", size=FAR), data)
    assert tried == [STREAMS, VALUES]
    left = "dearer, and not tried: --activation-bits 16 --weight-bits 15"
    assert left in result.output


def test_there_are_five_conversions_at_most(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = refusing(monkeypatch, STREAMS)
    endless = [STREAMS] * 9
    monkeypatch.setattr(automatic_bits, "_untried", lambda *_: endless)
    convert(difference(tmp_path / "far.onnx", size=FAR), data)
    assert len(tried) == 4  # behind the first
