"""The files of a release say the same: versions, platforms, workflows, and what the Makefile has."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import cvm

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: str):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_citation_has_the_version_and_the_licence():
    citation = read("CITATION.cff")
    assert citation["version"] == cvm.__version__
    assert citation["license"] == PROJECT["project"]["license"]


def test_the_changelog_has_this_version_or_what_comes_first():
    """Newest first; a version has a date."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles[0] == "Unreleased"
    for title in titles[1:]:
        assert re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d{2}-\d{2}", title)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_asks_for_no_more_rights_than_it_needs(path):
    content = read(str(path))
    assert content["permissions"] == {"contents": "read"}
    for job in content["jobs"].values():
        assert job["steps"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step


def test_the_workflows_call_targets_that_the_makefile_has():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    called = {
        name
        for path in WORKFLOWS
        for name in re.findall(r"run: make ([a-z-]+)", path.read_text())
    }
    assert called >= {"lint", "types", "docs"}
    assert called <= targets


def test_every_python_that_is_promised_is_tested_and_has_a_wheel():
    promised = {
        match[1]
        for text in PROJECT["project"]["classifiers"]
        if (match := re.search(r"Python :: (3\.\d+)$", text))
    }
    rows = read(".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]
    assert {row["python"] for row in rows["matrix"]["include"]} == promised
    built = PROJECT["tool"]["cibuildwheel"]["build"]
    stable = PROJECT["tool"]["scikit-build"]["wheel"]["py-api"]
    oldest = min(promised, key=lambda one: int(one[2:]))
    assert built == [f"cp{oldest.replace('.', '')}-*", f"{stable}-*"]
    assert PROJECT["project"]["requires-python"] == f">={oldest}"
