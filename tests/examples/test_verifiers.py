"""The verifiers of `examples/` agree with what `cvm run --receipt` writes, and notice each thing that was changed.

They share no code with `cvm`, so that this also tests sections 6 and 7 of the specification.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from tests.support.command import cvm
from tests.support.run_programs import save

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
VERIFIERS = {
    "python": (sys.executable, EXAMPLES / "verify.py"),
    "node": ("node", EXAMPLES / "verify.js"),
    "bash": ("bash", EXAMPLES / "verify.sh"),
}
NEEDED = {"python": [], "node": ["node"], "bash": ["bash", "jq", "xxd"]}
# Sorted by code point, where UTF-16 has another order; and what JSON writes in other ways.
NAMES = ("z", "\uff5e~", "\U0001f600", 'a"\\/\x7f\n', "\u00e9")


@pytest.fixture(params=VERIFIERS)
def verifier(request: pytest.FixtureRequest) -> tuple[str | Path, ...]:
    missing = [tool for tool in NEEDED[request.param] if not shutil.which(tool)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    return VERIFIERS[request.param]


def program_of_names() -> Program:
    """One sum for each name, so that all stand among inputs and outputs."""
    row = TensorType("i32", (1, 3))
    count = len(NAMES)
    return Program(
        tuple(Input(name, row, -9, 9) for name in NAMES),
        (),
        tuple(Instruction("add", (place, place)) for place in range(count)),
        tuple(Output(name, count + place) for place, name in enumerate(NAMES)),
        Metadata(
            inputs={name: Meaning(0.5, 0) for name in NAMES},
            outputs={name: Meaning(0.5, 0) for name in NAMES},
        ),
    )


def write_run(folder: Path, samples: int, *options: str) -> tuple[Path, Path]:
    """A receipt of so many samples, and its program."""
    program = save(program_of_names(), folder)
    rng = np.random.default_rng(samples)
    dtype = np.float32 if "--real" in options else np.int8
    arrays = {
        name: rng.integers(-9, 10, (samples, 3)).astype(dtype) for name in NAMES
    }
    np.savez(folder / "x.npz", **arrays)
    receipt = folder / "receipt.json"
    words = ("--input", folder / "x.npz", "--receipt", receipt, *options)
    result = cvm("run", program, *words)
    assert result.exit_code == 0, result.output
    return receipt, Path(program)


def run(
    verifier: tuple[str | Path, ...], *arguments: Path
) -> subprocess.CompletedProcess[str]:
    command = [*map(str, verifier), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("samples", "options"),
    [
        (1, ()),
        (2, ("--real",)),
        (3, ("--trace",)),
        (6, ("--real",)),
        (7, ()),
    ],
)
def test_a_true_receipt_agrees(verifier, samples, options, tmp_path):
    if "--trace" in options:
        options = ("--trace", str(tmp_path / "trace.json"))
    done = run(verifier, *write_run(tmp_path, samples, *options))
    assert (done.returncode, done.stderr) == (0, "")
    found = [line.split()[::2] for line in done.stdout.splitlines()]
    names = ["format", "root", "program"]
    names += ["metadata"] if "--real" in options else []
    assert found == [[name, "agrees"] for name in names]


def test_what_a_back_end_states_is_outside_the_root(verifier, tmp_path):
    receipt, program = write_run(tmp_path, 2)
    content = json.loads(receipt.read_text())
    content["backend"] = {"name": "spu", "version": "0.9.5"}
    receipt.write_text(json.dumps(content))
    done = run(verifier, receipt, program)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_a_program_without_metadata_agrees(verifier, tmp_path):
    receipt, _ = write_run(tmp_path, 2)
    bare = program_of_names()
    bare = Program(bare.inputs, (), bare.instructions, bare.outputs, None)
    done = run(verifier, receipt, Path(save(bare, tmp_path, "bare.cvm")))
    assert done.returncode == 0, done.stdout


def set_digit(text: str) -> str:
    """The last digit is another one."""
    return text[:-1] + ("0" if text[-1] == "1" else "1")


def other_root(content: dict[str, Any]) -> None:
    content["root"] = set_digit(content["root"])


def other_program(content: dict[str, Any]) -> None:
    content["program"] = set_digit(content["program"])


def other_metadata(content: dict[str, Any]) -> None:
    content["metadata"] = set_digit(content["metadata"])


def no_metadata(content: dict[str, Any]) -> None:
    del content["metadata"]


def other_weights(content: dict[str, Any]) -> None:
    content["cost_weights"] += 1


def other_version(content: dict[str, Any]) -> None:
    content["format"] = "cvm-receipt-1"


def other_output(content: dict[str, Any]) -> None:
    outputs = content["samples"][2]["outputs"]
    outputs["z"] = set_digit(outputs["z"])


def outputs_exchanged(content: dict[str, Any]) -> None:
    samples = content["samples"]
    samples[0]["outputs"], samples[1]["outputs"] = (
        samples[1]["outputs"],
        samples[0]["outputs"],
    )


def other_name(content: dict[str, Any]) -> None:
    inputs = content["samples"][0]["inputs"]
    inputs["y"] = inputs.pop("z")


def other_cost(content: dict[str, Any]) -> None:
    content["samples"][1]["cost"] -= 1


def not_clipped(content: dict[str, Any]) -> None:
    del content["samples"][0]["clipped"]


def sample_left_out(content: dict[str, Any]) -> None:
    del content["samples"][-1]


def sample_twice(content: dict[str, Any]) -> None:
    content["samples"].append(content["samples"][-1])


def samples_in_another_order(content: dict[str, Any]) -> None:
    content["samples"].reverse()


FORGERIES = (
    *(other_root, other_program, other_metadata, no_metadata),
    *(other_weights, other_version, other_output, outputs_exchanged),
    *(other_name, other_cost, not_clipped, sample_left_out),
    *(sample_twice, samples_in_another_order),
)


@pytest.fixture(scope="module")
def true_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_run(tmp_path_factory.mktemp("true"), 3, "--real")


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forged_receipt_is_noticed(
    forge: Callable[[dict[str, Any]], None], verifier, true_run, tmp_path
):
    receipt, program = true_run
    content = json.loads(receipt.read_bytes())
    forge(content)
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(content, indent=1, sort_keys=True))
    done = run(verifier, forged, program)
    assert done.returncode == 1, done.stdout + done.stderr
    assert " but is " in done.stdout


def flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("place", "what"), [(7, "program"), (40, "program"), (-1, "metadata")]
)
def test_a_bit_of_the_program_file_is_noticed(
    place, what, verifier, true_run, tmp_path
):
    receipt, program = true_run
    data = program.read_bytes()
    other = tmp_path / "other.cvm"
    other.write_bytes(flip(data, place % len(data)))
    done = run(verifier, receipt, other)
    assert done.returncode == 1
    wrong = [line for line in done.stdout.splitlines() if " but is " in line]
    assert [line.split()[0] for line in wrong] == [what]


def test_a_file_that_is_no_receipt_never_passes(verifier, true_run):
    _, program = true_run
    assert run(verifier, program, program).returncode != 0


def test_white_space_and_order_of_keys_do_not_count(
    verifier, true_run, tmp_path
):
    receipt, program = true_run
    content = json.loads(receipt.read_bytes())
    turned = {key: content[key] for key in reversed(content)}
    other = tmp_path / "other.json"
    other.write_text(json.dumps(turned, ensure_ascii=False), encoding="utf-8")
    done = run(verifier, other, program)
    assert done.returncode == 0, done.stdout + done.stderr


def lines_of_code(path: Path) -> int:
    """The lines that are neither empty, nor a comment, nor the first sentences of a Python file."""
    text = re.sub(r'^""".*?"""$', "", path.read_text(), flags=re.M | re.S)
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and line[:1] not in "#/" for line in lines)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("verify.*")))
def test_who_must_trust_a_verifier_reads_twenty_lines(path):
    assert 10 < lines_of_code(path) <= 20
    longest = max(map(len, path.read_text().splitlines()))
    assert longest <= 132


def test_a_number_that_javascript_and_jq_round_never_passes(
    verifier, true_run, tmp_path
):
    """2^53 + 1 would be hashed as 2^53, for which this root was made."""
    receipt, program = true_run
    content = json.loads(receipt.read_bytes())
    forged = tmp_path / "forged.json"
    content["samples"][0]["cost"] = 2**53
    forged.write_text(json.dumps(content))
    done = run(VERIFIERS["python"], forged, program)
    content["root"] = re.search("but is (.*)", done.stdout)[1]
    content["samples"][0]["cost"] += 1
    forged.write_text(json.dumps(content))
    assert run(verifier, forged, program).returncode != 0


def test_the_readme_runs_each_of_them(true_run, tmp_path):
    """Its lines but the first, which makes the receipt; `python` is this one."""
    receipt, program = true_run
    shutil.copy(receipt, tmp_path / "receipt.json")
    shutil.copy(program, tmp_path / "model.cvm")
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^(?:python|node|bash) .*", text, re.MULTILINE)
    assert len(lines) == len(VERIFIERS)
    for line in lines:
        tool, *rest = line.split()
        words = [sys.executable if tool == "python" else tool, *rest]
        if all(map(shutil.which, NEEDED[tool])):
            subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
