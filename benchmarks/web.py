"""Milliseconds a sample of programs as WebAssembly under node, with vectors and without: python -m benchmarks.web P.cvm ..."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import click

from cvm.export.web.folder import write
from cvm.file import format as file_format
from cvm.proof.cost import cost
from cvm.proof.validate import Proven, validate

COST_AT_ONCE = 2e7  # of the runs between two looks at the clock
SCRIPT = """\
import { load } from "./index.js";
const program = await load();
const sample = program.testSample();
const times = Array.from({ length: 9 }, () => {
  const start = performance.now();
  for (let k = 0; k < %d; k++) program.runSample(sample);
  return (performance.now() - start) / %d;
});
if (!program.selfTest()) throw new Error("the self-test failed");
console.log(Math.min(...times));
"""


def milliseconds(form: Proven, *, vectors: bool) -> float:
    """The best of nine."""
    count = max(1, int(COST_AT_ONCE // cost(form).total))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in write(form, "timed", vectors=vectors).files.items():
            Path(folder, name).write_text(text, encoding="ascii")
        Path(folder, "time.js").write_text(SCRIPT % (count, count))
        done = subprocess.run(
            ["node", "time.js"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    return float(done.stdout)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=Path)
def main(paths: tuple[Path, ...]) -> None:
    """Print one line a program."""
    for path in paths:
        form = validate(file_format.read(path))
        plain, fast = (milliseconds(form, vectors=v) for v in (False, True))
        print(f"{path.name}: plain {plain:.3f} ms, with vectors {fast:.3f} ms")


if __name__ == "__main__":
    main()
