"""The GitHub action and the pre-commit hook pass the program that is pinned, and no other."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.command import cvm
from tests.support.run_programs import doubler, save

ROOT = Path(__file__).resolve().parent.parent.parent
OTHER = "0" * 64


def id_of(program: str) -> str:
    return cvm("digest", program).stdout.split()[1]


def read(name: str):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("right", [True, False])
def test_the_hook_passes_the_pinned_program_alone(right, tmp_path):
    program = save(doubler(), tmp_path)
    (hook,) = read(".pre-commit-hooks.yaml")
    name, *words = shlex.split(hook["entry"])
    assert name == "cvm"
    expected = id_of(program) if right else OTHER
    # pre-commit puts the hook's args in front of the files.
    done = cvm(*words, "--expect", expected, program)
    assert done.exit_code == (0 if right else 1), done.output


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize("right", [True, False])
def test_the_action_passes_the_pinned_program_alone(right, tmp_path):
    program = save(doubler(), tmp_path, "-p.cvm")
    expected = id_of(program)
    last = read("action.yml")["runs"]["steps"][-1]
    machine = tmp_path / "cvm"
    machine.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cvm "$@"\n')
    machine.chmod(0o755)
    environment = {
        "PROGRAM": "-p.cvm",
        "EXPECT": expected if right else OTHER,
        "CVM": str(machine),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    assert environment.keys() >= last["env"].keys()
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", last["run"]],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), **os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == (0 if right else 1), done.stdout + done.stderr
    assert (tmp_path / "output").read_text() == f"id={expected}\n"


def test_what_an_input_of_the_action_holds_is_never_part_of_a_script():
    for step in read("action.yml")["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
