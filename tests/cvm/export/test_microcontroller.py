"""Exported C on Cortex-M, emulated: the digits model prints its digest and fits the memory of a small board."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cvm.export import targets
from cvm.proof.validate import validate
from tests.determinism.programs import ROOT, all_items
from tests.support.c_programs import needs

BOARD = ROOT / "tests" / "support" / "microcontroller"
BOARDS = {"mps2-an385": "cortex-m3", "mps2-an500": "cortex-m7"}
DIGEST = "29e8479d4920600d0c1c123efaf90085975f26276b5994198dd0001799123357"


def has_newlib() -> bool:
    """Whether the compiler finds what passes a program's output to the emulator."""
    if shutil.which("arm-none-eabi-gcc") is None:
        return False
    words = ("arm-none-eabi-gcc", "--print-file-name=rdimon.specs")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()).is_absolute()


@pytest.mark.slow
@needs("arm-none-eabi-gcc")
@needs("qemu-system-arm")
@pytest.mark.skipif(
    not has_newlib(), reason="newlib for arm-none-eabi is not installed"
)
@pytest.mark.parametrize("board", BOARDS)
def test_the_digits_model_prints_its_digest(board: str, tmp_path: Path) -> None:
    write(tmp_path)
    compiled(tmp_path, BOARDS[board])
    semihosting = ("-semihosting-config", "enable=on,target=native")
    words = ["qemu-system-arm", "-M", board, "-nographic", *semihosting]
    done = subprocess.run(
        [*words, "-kernel", "program.elf"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["res_dense0_fwd", DIGEST, "match"]


@pytest.mark.slow
@needs("arm-none-eabi-gcc")
def test_it_needs_88_kilobytes_of_code_and_6_of_memory(tmp_path: Path) -> None:
    write(tmp_path)
    run(tmp_path, "arm-none-eabi-gcc", *flags("cortex-m3"), "-c", "digits.c")
    row = run(tmp_path, "arm-none-eabi-size", "digits.o").splitlines()[1]
    text, data, bss = map(int, row.split()[:3])
    print(f"code and constants {text}, data {data}, arena {bss}")
    assert text <= 88_000
    assert data + bss <= 6_000


def write(folder: Path) -> None:
    (item,) = all_items("models/resnet_digits8-8bit")
    files = targets.export(validate(item.program), "c", "digits").files
    for name, text in files.items():
        (folder / name).write_text(text)
    for path in BOARD.iterdir():
        shutil.copy(path, folder)


def flags(processor: str) -> tuple[str, ...]:
    return (f"-mcpu={processor}", "-mthumb", "-O2")


def compiled(folder: Path, processor: str) -> None:
    linked = ("--specs=rdimon.specs", "-nostartfiles", "-T", "mps2.ld")
    sources = ("start.c", "digits.c", "main.c")
    words = (*flags(processor), *linked, *sources, "-o", "program.elf")
    run(folder, "arm-none-eabi-gcc", *words)


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
