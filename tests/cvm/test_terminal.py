"""Names out of files neither command the terminal nor forge a line, whichever command prints them."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cvm.cli import cli
from cvm.errors import printable
from cvm.file import format as file_format
from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)

ROOT = Path(__file__).resolve().parents[2]
EVIL = "\x1b[2J\u202e\r\nmatch: 2 samples, root 0"
SPELLED = r"\x1b[2J\u202e\r\nmatch: 2 samples, root 0"


def evil_program() -> Program:
    """Every text of it is evil."""
    meaning = Meaning(1.0, 0, EVIL)
    metadata = Metadata(
        {EVIL: meaning}, {EVIL: meaning}, {1: meaning}, (EVIL,), {EVIL: EVIL}
    )
    steps = (
        Instruction("reverse", (0,), {"axis": 1}),
        Instruction("reduce_max", (1,), {"axis": 1}),
    )
    x = Input(EVIL, TensorType("i32", (1, 3)), 0, 9)
    return Program((x,), (), steps, (Output(EVIL, 2),), metadata)


def shown(*words: object) -> str:
    """What a command prints, as on a terminal: elsewhere click takes escapes away."""
    result = CliRunner().invoke(cli, [str(word) for word in words], color=True)
    return f"{result.stdout}{result.stderr}"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file_format.write(evil_program(), "p.cvm")
    np.save("x.npy", np.array([[1, 2, 3]], np.int32))
    np.save("outside.npy", np.array([[1, 2, 99]], np.int32))
    run = ("run", "p.cvm", "--input", "x.npy")
    shown(*run, "-o", "y.npz", "--receipt", "r.json", "--trace", "t.json")
    change("r.json", "no_output.json", "samples", 0, "outputs")
    change("t.json", "other.json", "samples", 0, "digests", 0)
    change("r.json", "unknown.json", EVIL)
    Path("t.json").rename(f"{EVIL}.json")
    return tmp_path


def change(source: str, target: str, *place: object) -> None:
    """A copy of a JSON file with something else at one place."""
    content = json.loads(Path(source).read_text())
    node = content
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = {} if place[-1] == "outputs" else "0" * 64
    Path(target).write_text(json.dumps(content))


REPLAY = ("replay", "p.cvm")
X = ("--input", "x.npy")


@pytest.mark.parametrize(
    "words",
    [
        ("show", "p.cvm"),
        ("show", "--plan", "p.cvm"),
        ("run", "p.cvm", *X),
        ("run", "p.cvm", "--input", "outside.npy"),
        (*REPLAY, "no_output.json", *X),
        (*REPLAY, "r.json", *X, "--trace", "other.json"),
        (*REPLAY, "unknown.json", *X),
        ("trace", "diff", "other.json", f"{EVIL}.json"),
        ("verify", EVIL),
        ("verify", "p.cvm", EVIL),
    ],
    ids=" ".join,
)
def test_a_name_is_spelled_out(words: tuple[str, ...], here: Path) -> None:
    text = shown(*words)
    assert SPELLED in text
    assert not {"\x1b", "\r", "\u202e"} & set(text)
    assert "\nmatch" not in text


def test_columns_are_in_line_after_names_are_spelled_out(here: Path) -> None:
    lines = shown("trace", "diff", "other.json", f"{EVIL}.json").splitlines()
    ends = {len(line) for line in lines[1:]}
    assert len(lines) == 3 and len(ends) == 1


def test_a_line_for_the_terminal() -> None:
    assert printable("a\tb\nc\u2028\ud800 \xe9 \u4e2d") == (
        r"a\tb\nc\u2028\ud800 \xe9 \u4e2d".replace(r"\xe9", "\xe9").replace(
            r"\u4e2d", "\u4e2d"
        )
    )


def test_commands_print_by_the_two_functions_that_spell_names_out() -> None:
    """Besides them `echo` stands nowhere, so no name can take another way."""
    found = []
    files = [*(ROOT / "cvm").rglob("*.py"), *(ROOT / "mrt").rglob("*.py")]
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                inside = [
                    ast.unparse(item)
                    for item in ast.walk(node)
                    if isinstance(item, (ast.Name, ast.Attribute))
                ]
                if any(text in ("click.echo", "print") for text in inside):
                    found.append(node.name)
    assert found == ["print_lines", "print_json"]
