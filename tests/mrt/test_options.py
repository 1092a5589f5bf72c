"""Options are declared once: the command line, TOML, provenance and the documents follow the declaration."""

import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from mrt.cli import cli
from mrt.config import load_config
from mrt.options import Option, options_of, provenance_of
from mrt.quantize.options import QuantizeOptions
from mrt.refine.options import STAGES
from mrt.table.table import CalibrationOptions

README = Path(__file__).resolve().parents[2] / "configs" / "README.md"
DECLARED = [
    *((option, "quantization") for option in options_of(QuantizeOptions)),
    *((option, "calibration") for option in options_of(CalibrationOptions)),
]
by_option = pytest.mark.parametrize(
    ("option", "table"), DECLARED, ids=[option.name for option, _ in DECLARED]
)


def example() -> str:
    """The TOML of the documents that shows every key."""
    return re.search(r"```toml\n(.*?)```", README.read_text(), re.DOTALL)[1]


def line_of(name: str, table: str) -> str:
    section = example().split(f"[{table}]")[1].split("\n[")[0]
    lines = [
        line for line in section.splitlines() if line.startswith(f"{name} =")
    ]
    assert len(lines) == 1, (
        f"configs/README.md: [{table}] has no line for {name}"
    )
    return lines[0]


@by_option
def test_the_documents_have_every_option_with_its_default_and_its_values(
    option, table
):
    line = line_of(option.name, table)
    shown = tomllib.loads(line)[option.name]
    if option.default is not None:
        assert shown == option.default
    assert shown in option.allowed
    if isinstance(option.allowed[0], str):
        assert " | ".join(option.allowed) in line


def test_the_documents_have_every_refining_stage():
    assert [line_of(stage, "refinement").split()[2] for stage in STAGES] == [
        "true"
    ] * 6


def other(option: Option) -> object:
    return next(value for value in option.allowed if value != option.default)


@by_option
def test_a_config_sets_every_option_and_refuses_other_values(
    option, table, tmp_path
):
    file, value = tmp_path / "c.toml", other(option)
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    file.write_text(f"[{table}]\n{option.name} = {text}\n")
    config = load_config(file)
    settings = (
        config.quantization if table == "quantization" else config.calibration
    )
    assert getattr(settings, option.name) == value
    file.write_text(f"[{table}]\n{option.name} = 'nonsense'\n")
    with pytest.raises(
        Exception, match=rf"\[{table}\] {option.name} = 'nonsense'"
    ):
        load_config(file)


@by_option
def test_the_command_has_the_options_that_are_declared_for_it(option, table):
    text = CliRunner().invoke(cli, ["convert", "--help"]).output
    assert (f"{option.flag} " in text) == option.on_command_line


def test_provenance_keeps_its_words():
    """They are part of a program's bytes."""
    plain = {
        "weight_bits": "8",
        "activation_bits": "8",
        "scales": "real",
        "scheme": "symmetric",
        "bias_correction": "true",
    }
    assert list(provenance_of(QuantizeOptions()).items()) == list(plain.items())
    changed = QuantizeOptions(per_channel=False, unsigned=False, stream_bits=16)
    assert provenance_of(changed) == {
        **plain,
        "per_channel": "false",
        "unsigned": "false",
    }
