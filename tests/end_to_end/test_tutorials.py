"""Each tutorial works from top to bottom, on the files that it says, and prints what it shows.

Numbers and digests are those of one processor, and may be others here; the words are the same.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import cvm.cli
import mrt.cli

ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "calibration_data" / "digits8"
TUTORIALS = ("onnx", "mxnet", "audit")
PROGRAMS = {"mrt": mrt.cli.cli, "cvm": cvm.cli.cli}
NEGATIVE = {"cvm diff model.cvm other.cvm": 1}
ELSEWHERE = ("images/", "--epoch", "theirs.json", "--opset")
FLAWED = "python examples/verify.py forged.json model.cvm"


def steps(text: str) -> list[tuple[str, list[str]]]:
    """Each command of the blocks of code, with the lines that are shown below it."""
    found: list[tuple[str, list[str]]] = []
    for language, body in re.findall(
        r"^```(\w*)\n(.*?)^```", text, re.M | re.S
    ):
        for line in body.splitlines():
            if line.startswith("$ ") or language == "sh":
                found.append((line.removeprefix("$ "), []))
            elif body.startswith("$ "):
                found[-1][1].append(line)
    return found


def run(command: str, folder: Path) -> str:
    """What the command prints; the files of the next ones lie in the folder."""
    words = shlex.split(command)
    if command == "cp calibration_data/digits8/* .":
        shutil.copytree(DIGITS, folder, dirs_exist_ok=True)
        return ""
    if words[0] == "python":
        words = [sys.executable, str(ROOT / words[1]), *words[2:]]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == (command == FLAWED), done.stderr
        return done.stdout
    if "--expect" in words:
        words[-1] = cvm_output("digest", "model.cvm").split()[1]
    result = CliRunner().invoke(PROGRAMS[words[0]], words[1:])
    assert result.exit_code == NEGATIVE.get(command, 0), result.output
    return result.output


def cvm_output(*words: str) -> str:
    return CliRunner().invoke(cvm.cli.cli, words).output


def forge(folder: Path) -> None:
    """What the auditor is handed: a program and a receipt, changed."""
    data = bytearray((folder / "model.cvm").read_bytes())
    data[20_000] ^= 1
    (folder / "other.cvm").write_bytes(data)
    receipt = json.loads((folder / "receipt.json").read_bytes())
    outputs = receipt["samples"][7]["outputs"]
    outputs["res_dense0_fwd"] = outputs["res_dense0_fwd"][::-1]
    (folder / "forged.json").write_text(json.dumps(receipt))


def without_numbers(line: str) -> str:
    """The words of a line, whatever its numbers, digests and columns are."""
    line = re.sub(r"\b[0-9a-f]{64}\b", "#", line)
    return " ".join(re.sub(r"-?\d[\d,.]*(e[+-]?\d+)?", "#", line).split())


@pytest.mark.parametrize("name", TUTORIALS)
def test_the_tutorial_works(name, tmp_path, monkeypatch):
    text = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    ran = 0
    for command, shown in steps(text):
        if not command.startswith(("mrt ", "cvm ", "python ", "cp ")):
            continue
        if any(word in command for word in ELSEWHERE):
            continue
        printed = run(command, tmp_path)
        ran += 1
        lines = {without_numbers(line) for line in printed.splitlines()}
        expected = [without_numbers(line) for line in shown]
        assert {line for line in expected if line != "..."} <= lines, command
        if (tmp_path / "receipt.json").exists():
            forge(tmp_path)
    assert ran >= 5


def test_the_programs_of_two_tutorials_are_one(tmp_path, monkeypatch):
    """As it is said there: from MXNet, or from the ONNX file that it exports."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DIGITS, tmp_path, dirs_exist_ok=True)
    symbol = "resnet_digits8-symbol.json"
    run(f"mrt export {symbol} --data test.npz -o model.onnx", tmp_path)
    for model, program in ((symbol, "a.cvm"), ("model.onnx", "b.cvm")):
        words = f"{model} --data calibration.npz --refine none -o {program}"
        run(f"mrt convert {words}", tmp_path)
    assert (
        cvm_output("digest", "a.cvm").split()[1]
        == (cvm_output("digest", "b.cvm").split()[1])
    )


def test_the_python_of_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DIGITS, tmp_path, dirs_exist_ok=True)
    symbol = "resnet_digits8-symbol.json"
    run(f"mrt convert {symbol} --data calibration.npz --refine none -o model.cvm", tmp_path)  # fmt: skip
    text = (ROOT / "docs" / "tutorials" / "onnx.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    capsys.readouterr()
    exec(code, {})
    assert capsys.readouterr().out == "[7 9 4 7 0]\n"
