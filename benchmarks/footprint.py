"""A fresh process that loads a program and runs it once: how long loading takes, and the most memory it ever held.

python -m benchmarks.footprint program.cvm integers.npz
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.cache import ROOT
from benchmarks.measure import seconds

STATUS = Path("/proc/self/status")
LOADS = 5


def footprint(program: Path, integers: Mapping[str, npt.NDArray[np.integer]]) -> dict[str, float]:
    """`load_s` (decode and prove, modules imported, median), `load_and_run_s` and `peak_bytes` of a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "integers.npz"
        np.savez(arrays, **integers)  # type: ignore[arg-type]
        words = [sys.executable, "-m", "benchmarks.footprint", str(program), str(arrays)]
        done = subprocess.run(words, cwd=ROOT, text=True, capture_output=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Memory is read before loading again, so that it is what one load and one run take."""
    import cvm

    path, arrays = sys.argv[1:]
    with np.load(arrays) as file:
        integers = dict(file)
    first = seconds(lambda: cvm.load(path).run(integers))
    peak = peak_bytes()
    loads = [seconds(lambda: cvm.load(path)) for _ in range(LOADS)]
    print(json.dumps({"load_s": float(np.median(loads)), "load_and_run_s": first, "peak_bytes": peak}))


def peak_bytes() -> int:
    """The most resident memory of this process so far."""
    if STATUS.exists():
        (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
