"""Residual streams: which values they are, and that they can be finer than the rest."""

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from click.testing import CliRunner

import cvm
from mrt.cli import cli
from mrt.errors import BadOption
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.quantize.residual_streams import stream_values, with_stream_bits
from tests.support.float_models import FloatModel, convert, f32, snr_db

STREAM = ["begin", "first_clipped", "second"]


def network() -> FloatModel:
    """Two blocks on a stream, one with a Relu behind its sum; a bias and an output are no part of it."""
    rng = np.random.default_rng(9)
    model = FloatModel(x=(1, 4, 8, 8))

    def layer(x: str, name: str, size: float = 1.0) -> str:
        weights = rng.normal(size=(4, 4, 3, 3)) * size / 6
        return model.conv(
            x, weights, rng.normal(size=4), pads=(1, 1, 1, 1), name=name
        )

    begin = layer("x", "begin")
    inner = model.add("Relu", layer(begin, "inner"), name="inner_clipped")
    first = model.add(
        "Relu",
        model.add("Add", begin, layer(inner, "one", 0.3), name="first"),
        name="first_clipped",
    )
    second = model.add("Add", layer(first, "two", 0.3), first, name="second")
    shifted = model.add(
        "Add",
        layer(second, "three"),
        f32(rng.normal(size=(1, 4, 1, 1))),
        name="shifted",
    )
    model.add("Add", shifted, layer(second, "four"), name="out")
    return model


def graph() -> ir.Model:
    return ir.from_proto(network().proto("out"))


def test_they_are_what_blocks_add_to_and_pass_on():
    assert stream_values(graph()) == [*STREAM, "out"]


def test_they_get_bits_unless_they_have_their_own():
    own = {
        "begin": LayerBits(activation_bits=6),
        "second": LayerBits(weight_bits=4),
    }
    found = with_stream_bits(
        graph(), QuantizeOptions(stream_bits=16, layers=own)
    )
    assert {
        name: found.activation_bits_of(name)
        for name in (*STREAM, "inner_clipped")
    } == {
        "begin": 6,
        "first_clipped": 16,
        "second": 16,
        "inner_clipped": 8,
    }
    assert found.weight_bits_of("second") == 4
    assert found.stream_bits is None
    plain = QuantizeOptions()
    assert with_stream_bits(graph(), plain) is plain
    assert "stream_bits" not in plain.key()


def test_a_program_holds_them_in_16_bits_and_is_nearer_to_float():
    options = QuantizeOptions(
        weight_bits=15,
        stream_bits=16,
        layers={"x": LayerBits(activation_bits=16)},
    )
    wide = with_stream_bits(graph(), options)
    narrow = QuantizeOptions(weight_bits=15, layers=options.layers)
    for chosen, bits in ((wide, "i16"), (narrow, "i8")):
        program = convert(network(), "out", options=chosen)
        held = {
            item.source: number
            for number, item in program.metadata.values.items()
        }
        types = {
            name: cvm.proof.validate.validate(program).types[held[name]].dtype
            for name in (*STREAM, "inner_clipped")
        }
        assert types == {**dict.fromkeys(STREAM, bits), "inner_clipped": "i8"}
    assert (
        snr_db(network(), "out", options=wide)["out"]
        > snr_db(network(), "out", options=narrow)["out"] + 2
    )


def test_bits_that_there_are_none_of_are_refused():
    with pytest.raises(BadOption, match="stream_bits = 12: expected one of 2"):
        QuantizeOptions(stream_bits=12)


def test_the_command_and_the_config_know_them(tmp_path: Path):
    (tmp_path / "m.onnx").write_bytes(
        network().proto("out").SerializeToString()
    )
    np.savez(
        tmp_path / "d.npz",
        x=np.random.default_rng(1)
        .normal(size=(20, 4, 8, 8))
        .astype(np.float32),
    )
    config = '[model]\npath = "m.onnx"\n[calibration]\ndata = "d.npz"\n[quantization]\nstream_bits = {}\n'
    programs = {}
    for name, bits, words in (
        ("plain", "8", ()),
        ("file", "16", ()),
        ("command", "8", ("--stream-bits", "16")),
    ):
        (tmp_path / "c.toml").write_text(config.format(bits))
        result = CliRunner().invoke(
            cli,
            [
                "convert",
                "--config",
                str(tmp_path / "c.toml"),
                *words,
                "-o",
                str(tmp_path / "p.cvm"),
            ],
        )
        assert result.exit_code == 0, result.output
        programs[name] = (tmp_path / "p.cvm").read_bytes()
    assert programs["command"] == programs["file"] != programs["plain"]
    (tmp_path / "c.toml").write_text(config.format("12"))
    result = CliRunner().invoke(
        cli,
        [
            "convert",
            "--config",
            str(tmp_path / "c.toml"),
            "-o",
            str(tmp_path / "q.cvm"),
        ],
    )
    assert (result.exit_code, (tmp_path / "q.cvm").exists()) == (2, False)
    assert "stream_bits" in result.stderr


def test_a_sum_that_is_an_output_is_a_stream_itself():
    """Its clip is another value; a sum that nothing clips is one, too."""
    model = FloatModel(x=(1, 4), z=(1, 4))
    total = model.add("Add", "x", "z", name="sum")
    model.add("Relu", total, name="clipped")
    for outputs, expected in (
        (["sum", "clipped"], "sum"),
        (["clipped"], "clipped"),
    ):
        graph = ir.from_proto(model.proto(*outputs))
        assert stream_values(graph) == [expected]
