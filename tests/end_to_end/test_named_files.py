"""Files that a command names are looked at before anything slow is imported: absent, swapped, or of another kind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mrt.cli import cli
from tests.support.command import cvm, said
from tests.support.run_programs import doubler, save, save_array

DIGITS = Path(__file__).resolve().parents[2] / "calibration_data" / "digits8"
SYMBOL = DIGITS / "resnet_digits8-symbol.json"
TEST = DIGITS / "test.npz"


def refused(*words: object) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr.removeprefix("mrt: ").removesuffix("\n")


@pytest.fixture(name="here", autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(doubler(), Path())  # p.cvm
    return Path()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("convert", "no.onnx"), "no.onnx: No such file or directory"),
        (("show", "no.onnx"), "no.onnx: No such file or directory"),
        (
            ("evaluate", "no.onnx", "p.cvm"),
            "no.onnx: No such file or directory",
        ),
        (("evaluate", SYMBOL, "no.cvm"), "no.cvm: No such file or directory"),
        (
            ("convert", SYMBOL, "--params", "no"),
            "no: No such file or directory",
        ),
        (
            ("convert", SYMBOL, "--table", "no.json"),
            "no.json: No such file or directory",
        ),
        (
            ("convert", "--config", "no.toml"),
            "no.toml: cannot be read (No such file or directory)",
        ),
        (
            ("convert", SYMBOL, "--data", "no.npz"),
            "no.npz: No such file or directory; expected an .npz, a .npy or a folder of images",
        ),
        (
            ("init", SYMBOL, "no.npz"),
            "no.npz: No such file or directory; expected an .npz, a .npy or a folder of images",
        ),
    ],
)
def test_what_is_not_there_is_named_before_slow_imports(
    words: tuple[object, ...], message: str
) -> None:
    assert refused(*words) == message
    code = (
        "import sys\nfrom mrt.cli import cli\n"
        "try: cli()\nexcept SystemExit as end: assert end.code == 2\n"
        "assert 'onnx' not in sys.modules and 'onnxruntime' not in sys.modules"
    )
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(root), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    assert message in done.stderr


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_model_and_a_program_in_each_other_s_place_are_recognised(
    command: str,
) -> None:
    assert refused(command, "p.cvm", SYMBOL, "--data", TEST) == (
        f"p.cvm is the program and {SYMBOL} the model: swap them; mrt {command} MODEL P.cvm --data D"
    )


def test_a_program_is_no_model_and_no_data() -> None:
    assert refused("convert", "p.cvm").startswith(
        "p.cvm: is a program already (.cvm); give the model that it was made from"
    )
    assert refused("convert", SYMBOL, "--data", "p.cvm") == (
        "p.cvm: is a program (.cvm); expected an .npz, a .npy or a folder of images"
    )


def test_a_program_and_a_receipt_in_each_other_s_place_are_recognised(
    here: Path,
) -> None:
    save_array([[1, 2, 3]], here)
    made = cvm("run", "p.cvm", "--input", "x.npy", "--receipt", "r.json")
    assert made.exit_code == 0
    assert said(cvm("replay", "r.json", "p.cvm", "--input", "x.npy"), 2) == (
        "p.cvm: is a program, not a receipt; the program comes first: cvm replay P.cvm R.json"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("show", "pipe"),
        ("show", "pipe.onnx"),
        ("show", SYMBOL, "--data", "pipe.npz"),
        ("convert", "pipe"),
        ("convert", SYMBOL, "--data", "pipe.npz"),
        ("calibrate", SYMBOL, "--data", "pipe.npy", "-o", "t.json"),
        ("evaluate", SYMBOL, "pipe", "--data", TEST),
        ("evaluate", SYMBOL, "p.cvm", "--data", "pipe.npz"),
    ],
)
def test_a_pipe_is_refused_and_not_waited_for(
    words: tuple[object, ...],
) -> None:
    for name in ("pipe", "pipe.onnx", "pipe.npz", "pipe.npy"):
        os.mkfifo(name)
    (pipe,) = [str(word) for word in words if str(word).startswith("pipe")]
    assert refused(*words) == (
        f"{pipe}: not a regular file but a pipe or device; save its content as a file first"
    )


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("net.pt", "torch.onnx.export"),
        ("net.pth", "torch.onnx.export"),
        ("net.h5", "tf2onnx"),
        ("net.keras", "tf2onnx"),
        ("net.pb", "tf2onnx"),
        ("net.tflite", "tf2onnx"),
        ("net.pkl", "skl2onnx"),
        ("net.joblib", "skl2onnx"),
    ],
)
def test_files_of_other_frameworks_are_named_with_their_way_to_onnx(
    name: str, way: str
) -> None:
    Path(name).write_bytes(b"PK\x03\x04")
    message = refused("convert", name)
    assert message.startswith(f"{name}: ") and way in message
