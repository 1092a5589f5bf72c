"""-q and -v, which every command takes, and `help`."""

import json
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import cvm.cli
import mrt.cli
from tests.support.run_programs import MEANINGS, doubler, save, save_array

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "resnet_digits8.toml"
PROGRAMS = {"cvm": cvm.cli.cli, "mrt": mrt.cli.cli}


def call(program: str, *words: object) -> Result:
    return CliRunner().invoke(PROGRAMS[program], [str(word) for word in words])


def commands(group: click.Group) -> list[click.Command]:
    found: list[click.Command] = []
    for command in group.commands.values():
        is_group = isinstance(command, click.Group)
        found += commands(command) if is_group else [command]
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_takes_both(program: str) -> None:
    for command in commands(PROGRAMS[program]):
        flags = [flag for item in command.params for flag in item.opts]
        for flag in ("-q", "--quiet", "-v", "--verbose"):
            assert flags.count(flag) == 1, command.name


def test_quiet_prints_warnings_and_the_answer_alone(tmp_path: Path) -> None:
    program = save(doubler(metadata=MEANINGS), tmp_path)
    x = save_array([[1.0, 2.0, 1e9]], tmp_path, dtype="f8")
    run = ("run", program, "--input", x, "--real", "-q")
    result = call("cvm", *run, "--engine", "reference")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("cvm: warning: input 'x': 1 of 3 values")
    result = call("cvm", *run, "--json")
    assert json.loads(result.stdout)["samples"] == 1
    for expected, code in ((doubler(), 0), (None, 1)):
        digest = call("cvm", "digest", program).stdout.split()[1]
        other = digest if expected else "0" * 64
        result = call("cvm", "verify", program, "-q", "--expect", other)
        assert (result.exit_code, result.output) == (code, "")


def test_quiet_conversion_prints_no_summary_and_no_notes(
    tmp_path: Path,
) -> None:
    words = ("convert", "--config", CONFIG, "-o", tmp_path / "p.cvm")
    result = call("mrt", *words, "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "p.cvm").exists()


def test_verbose_names_what_is_done_with_the_time(tmp_path: Path) -> None:
    words = ("convert", "--config", CONFIG, "-o", tmp_path / "p.cvm")
    result = call("mrt", *words, "-v")
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert lines and all(
        re.match(r"mrt: \d+\.\d s: \S", line) for line in lines
    )
    assert "wrote" in result.stdout
    program = save(doubler(), tmp_path)
    x = save_array([[1, 2, 3]], tmp_path)
    words = ("run", program, "--input", x, "-v", "--engine", "reference")
    assert call("cvm", *words).stderr == "cvm: reference, 1 sample\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_is_a_command_too(program: str) -> None:
    assert call(program, "help").output == call(program, "--help").output
    one = "run" if program == "cvm" else "convert"
    asked = call(program, "help", one)
    assert asked.exit_code == 0
    assert asked.output == call(program, one, "--help").output
    assert call(program, "help", "nonsense").exit_code == 2
