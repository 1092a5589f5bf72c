"""Runs the main job on real input, as commands that a reader can repeat.

They convert, evaluate, verify, run with a receipt, and replay. `make demo` runs it; its
files are in demo/.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "demo"
CONFIG = ROOT / "configs" / "resnet_digits8.toml"
TEST_DATA = ROOT / "calibration_data" / "digits8" / "test.npz"
PROGRAM = OUT / "resnet_digits8.cvm"


def show(*words: str | Path) -> None:
    """Run one command of ours, and show it with its output."""
    line = f"$ {' '.join(_as_typed(words))}"
    Console().print(line, style="bold", highlight=False, soft_wrap=True)
    print(output_of(*words))


def facts_of(*words: str | Path) -> dict[str, Any]:
    """Run a command that was shown before once more, for its facts as JSON."""
    facts: dict[str, Any] = json.loads(output_of(*words, "--json"))
    return facts


def output_of(*words: str | Path) -> str:
    """Run one command of ours, and return its output; any failure ends the demo."""
    done = subprocess.run(
        [sys.executable, "-m", *_as_typed(words)],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )
    sys.stderr.write(done.stderr)
    if done.returncode:
        sys.exit(f"demo: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def _as_typed(words: Sequence[str | Path]) -> list[str]:
    return [
        str(word.relative_to(ROOT)) if isinstance(word, Path) else word
        for word in words
    ]


def main() -> None:
    """Convert resnet_digits8 (trained in MXNet on the digits of UCI) at 8 bits and show what came of it."""
    OUT.mkdir(exist_ok=True)
    convert = ("--config", CONFIG, "--bits", "8", "-o", PROGRAM)
    evaluate = ("mrt", "evaluate", "--config", CONFIG, PROGRAM)
    verify = ("cvm", "verify", PROGRAM)
    samples = ("--input", TEST_DATA, "--real")
    receipt = OUT / "receipt.json"
    show("mrt", "convert", *convert)
    show(*evaluate)
    show(*verify)
    show("cvm", "run", PROGRAM, *samples, "--receipt", receipt)
    show("cvm", "replay", PROGRAM, receipt, *samples)
    report, proof = facts_of(*evaluate), facts_of(*verify)
    Console().print(_table(report, proof))
    print(f"program id {proof['program']}")


def _table(report: dict[str, Any], proof: dict[str, Any]) -> Table:
    table = Table(
        "resnet_digits8",
        "float",
        "8-bit integers",
        title=f"{report['samples']} held-out digits",
    )
    table.add_row(
        "top-1",
        f"{100 * report['float.top1']:.2f} %",
        f"{100 * report['integer.top1']:.2f} %",
    )
    table.add_row(
        "same answer as float", "", f"{100 * report['agreement']:.2f} %"
    )
    table.add_row("signal to noise", "", f"{report['snr_db']:.1f} dB")
    weights = (
        (ROOT / "calibration_data" / "digits8" / "resnet_digits8-0000.params")
        .stat()
        .st_size
    )
    table.add_row(
        "size", f"{weights:,} bytes", f"{PROGRAM.stat().st_size:,} bytes"
    )
    tightest = proof["tightest"]
    table.add_row(
        "tightest slack of the proof",
        "",
        f"{tightest['slack_hundredths'] / 100:.2f} bits",
    )
    table.add_row("cost of one sample", "", f"{proof['cost']:,}")
    return table


if __name__ == "__main__":
    main()
