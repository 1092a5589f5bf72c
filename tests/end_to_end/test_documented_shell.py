"""The lines of shell in the documents that are no commands of ours run, too: make, cp, python and completion."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = [
    *(ROOT / f"{n}.md" for n in ("README", "CONTRIBUTING", "SECURITY")),
    *(ROOT / folder / "README.md" for folder in ("configs", "examples")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
VERIFIER = re.compile(
    r"(python|node|bash) (examples/verify\.\w+) receipt\.json model\.cvm"
)
SELF_TESTS = {  # tests/cvm/export runs them
    "make -C model_c test",
    "make -C model_cuda test-on-cpu",
    "node model_web/test.js",
    "python model_onnx/test.py",
    "python model_concrete/run.py simulate --clear",
    "python model_concrete/run.py simulate",
    "python model_concrete/run.py compile",
    "python model_concrete/run.py client keygen",
    "python model_concrete/run.py client encrypt --input x.npz",
    "python model_concrete/run.py server run",
    "python model_concrete/run.py client decrypt --input x.npz --output y.npz",
    "python model_stablehlo/test.py",
    ".venv-tosa/bin/python model_tosa/test.py",
}
EXAMPLES = re.compile(  # tests/cvm/engine/test_libcvm.py compiles and runs them
    r"(cc|rustc) .* -o run|\./run model\.plan sample\.bin >answer\.bin"
)
COMPLETION = re.compile(
    r"_(MRT|CVM)_COMPLETE=(\w+)_source (mrt|cvm) > (~/[\w.-]+)"
)


def other_lines() -> list[str]:
    found = []
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for body in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
            for line in body.splitlines():
                line = re.split(r"\s+#", line)[0].strip()
                if line and not line.startswith(("mrt ", "cvm ")):
                    found.append(line)
    return found


def test_every_line_is_one_that_is_tested():
    """By a name of the Makefile, here, or where the verifiers and tutorials are."""
    lines = other_lines()
    assert len(lines) > 6
    for line in lines:
        if line in SELF_TESTS or EXAMPLES.fullmatch(line):
            continue
        if line.startswith("make "):
            assert line.split()[1] in TARGETS, line
        elif line.startswith("cp "):
            (pattern, _) = line.split()[1:]
            assert list(ROOT.glob(pattern)), line
        elif match := VERIFIER.fullmatch(line):
            assert (ROOT / match[2]).is_file()
        else:
            assert COMPLETION.match(line) or ".bashrc" in line, line


def test_the_makefile_is_asked_only_for_what_it_has():
    """In the sentences, too."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"`make ([a-z-]+)", text):
            assert name in TARGETS, (path, name)


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize("program", ["mrt", "cvm"])
def test_completion_as_documented_knows_the_commands(program, tmp_path):
    """The line of the page is run, what it writes is loaded, and Tab is pressed."""
    (line,) = [
        line
        for line in other_lines()
        if (match := COMPLETION.match(line)) and match[3] == program
    ]
    command = tmp_path / program
    command.write_text(
        f'#!{sys.executable}\nimport sys; sys.argv[0] = "{program}"\n'
        f"from {program}.__main__ import main\nmain()\n"
    )
    command.chmod(0o755)
    script = (
        f"{line}\n. ~/.{program}-complete.bash\n"
        f"COMP_WORDS=({program} co) COMP_CWORD=1\n"
        f"_{program}_completion {program}\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    expected = {"mrt": {"compare", "convert"}, "cvm": {"commit", "cost"}}
    assert set(done.stdout.split()) == expected[program], done.stderr
