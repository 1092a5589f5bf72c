"""What `make` says where an installation cannot succeed: the thing, and what to do, in one sentence."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent.parent / ".ci" / "install.py"


@pytest.fixture(scope="module")
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_old_python_is_refused_with_one_that_will_do(install):
    said = install.refusal_of_python((3, 10, 13), {"python3.12"}.__contains__)
    assert said == (
        "Python 3.10.13 is too old, mrt and cvm need 3.11 or newer; make PYTHON=python3.12"
    )


def test_an_old_python_is_refused_where_it_is_alone(install):
    said = install.refusal_of_python((3, 10, 13), lambda _: False)
    assert "install one, then make PYTHON=python3.12" in said


def test_this_python_will_do(install):
    assert install.refusal_of_python(sys.version_info, None) is None


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "ERROR: Could not find a version that satisfies the requirement x\n",
            "no package index that has what is needed can be reached",
        ),
        ("OSError: [Errno 28] No space left on device\n", "the disk is full"),
        (
            "ninja: build stopped\nerror: metadata-generation-failed\n  hint\n",
            "pip failed: error: metadata-generation-failed",
        ),
        ("", "pip failed: no reason given"),
    ],
)
def test_pip_is_put_in_one_sentence(install, log, said):
    reason = install.reason_of_pip(log, Path(".venv"))
    assert reason.startswith(said)
    assert reason.endswith("pip's own words are in .venv/install.log")


def run(*arguments: object, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def test_without_an_index_one_sentence_says_so(tmp_path):
    folder = tmp_path / "venv"
    code, out, said = run(folder, "installing", "six", PIP_NO_INDEX="1", PIP_FIND_LINKS="")  # fmt: skip
    assert (code, out) == (1, "setup: installing\n")
    assert said.count("\n") == 1
    assert "setup: no package index" in said
    assert "No matching distribution" in (folder / "install.log").read_text()
    # What was begun is used again.
    code, out, _ = run(folder, "going on", "pip", PIP_NO_INDEX="1")
    assert code == 0
    assert out.splitlines()[-1].startswith("setup: done in ")
