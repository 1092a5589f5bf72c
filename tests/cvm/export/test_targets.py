"""The places outside `cvm/export` that name every target: the command, the schema of --json, the documents."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cvm.commands.export import export
from cvm.export import targets
from cvm.export.targets import TARGETS
from cvm.file import disk
from cvm.proof.validate import validate
from tests.cvm.export.test_c_source import convolution
from tests.support.command import cvm

ROOT = Path(__file__).resolve().parents[3]


def test_the_command_offers_the_targets_of_the_registry():
    (option,) = [item for item in export.params if item.name == "target"]
    assert set(option.type.choices) == set(TARGETS)


def test_the_schema_of_json_has_the_targets_of_the_registry():
    path = ROOT / "docs" / "schemas" / "cvm-export-1.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert set(schema["properties"]["target"]["enum"]) == set(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_has_a_page_in_the_contents_of_the_documents(target):
    page = f"how_to/{target}.md"
    assert (ROOT / "docs" / page).exists()
    assert page in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert f" --to {target} " in text


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_has_a_folder(target):
    assert (ROOT / "cvm" / "export" / target / "__init__.py").exists()


@pytest.mark.parametrize(
    ("target", "module", "package"),
    [
        ("onnx", "onnxruntime", "onnxruntime"),
        ("stablehlo", "jax", "jax"),
        ("tosa", "tosa_reference_model", "tosa-tools"),
        ("mlir", "iree", "iree-base-compiler iree-base-runtime"),
    ],
)
def test_a_self_test_says_which_package_it_lacks(
    tmp_path, target, module, package
):
    artifact = targets.export(validate(convolution()), target, "p")
    disk.write_folder(tmp_path / "out", artifact.contents)
    hidden = f"import runpy, sys; sys.modules[{module!r}] = None; runpy.run_path('test.py')"
    done = subprocess.run(
        [sys.executable, "-c", hidden],
        cwd=tmp_path / "out",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"; pip install {package}")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_the_help_says_what_a_target_needs_and_names_its_page(target):
    lines = cvm("export", "--help").stdout.splitlines()
    (line,) = [line for line in lines if re.match(rf"    {target} +[^ ]", line)]
    page = line.rpartition(": ")[2]
    text = (ROOT / "docs" / "how_to" / page).read_text("utf-8")
    assert f"--to {target}" in text
