"""Uses mrt and cvm as they are installed: python use_installed.py FOLDER_OF_THE_REPOSITORY, from any other folder.

The main job on the bundled model: convert, evaluate, prove, run on the native engine with a
receipt, check that receipt without cvm, replay. Any failure is a traceback.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(sys.argv[1]).resolve()
DIGITS = SOURCES / "calibration_data" / "digits8"
TEST = ("--input", DIGITS / "test.npz", "--real")
PARTS = "import cvm._engine, mrt._compiled, cvm; print(cvm.__file__)"


def run(*words: object) -> str:
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, check=True, stdout=-1, text=True).stdout


def main() -> None:
    imported = Path(run("-c", PARTS).strip())
    assert not imported.is_relative_to(SOURCES / "cvm"), imported
    model = DIGITS / "resnet_digits8-symbol.json"
    run("-m", "mrt", "convert", model, "--data", DIGITS / "calibration.npz", "-o", "p.cvm")  # fmt: skip
    gate = ("--fail-below", "agreement=0.99")
    run("-m", "mrt", "evaluate", model, "p.cvm", "--data", DIGITS / "test.npz", *gate)  # fmt: skip
    run("-m", "cvm", "verify", "p.cvm")
    run("-m", "cvm", "run", "p.cvm", *TEST, "--engine", "native", "--receipt", "r.json")  # fmt: skip
    run(SOURCES / "examples" / "verify.py", "r.json", "p.cvm")
    run("-m", "cvm", "replay", "p.cvm", "r.json", *TEST)
    print(f"{imported.parent.parent}: used on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
