"""Measures a fresh process that loads a program and runs it once.

It reports the time of loading, and the most memory that the process ever held:

python -m benchmarks.footprint program.cvm integers.npz
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks.cache import ROOT
from benchmarks.measure import seconds

STATUS = Path("/proc/self/status")
LOADS = 5


@dataclass(frozen=True)
class Footprint:
    """The time and memory that a fresh process needs."""

    ran_on: str  # engine or reference
    load_s: float  # to decode and prove, with all modules imported: the median of a few
    load_and_run_s: float  # the first time
    peak_bytes: int  # the most memory up to then


def footprint(
    program: Path, integers: Mapping[str, npt.NDArray[np.integer]]
) -> Footprint:
    """Start the fresh process and return the figures that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "integers.npz"
        np.savez(arrays, **integers)  # type: ignore[arg-type]
        words = [
            sys.executable,
            "-m",
            "benchmarks.footprint",
            str(program),
            str(arrays),
        ]
        done = subprocess.run(
            words, cwd=ROOT, text=True, capture_output=True, check=True
        )
    return Footprint(**json.loads(done.stdout))


def main() -> None:
    """Print the figures as JSON.

    Memory is read before loading again, so that it is the memory of one load and one
    run.
    """
    import cvm
    from cvm.runtime import native

    path, arrays = sys.argv[1:]
    with np.load(arrays) as file:
        integers = dict(file)
    first = seconds(lambda: cvm.load(path).run(integers))
    peak = peak_bytes()
    loads = [seconds(lambda: cvm.load(path)) for _ in range(LOADS)]
    print(
        json.dumps(
            asdict(
                Footprint(
                    "engine" if native.available() else "reference",
                    median(loads),
                    first,
                    peak,
                )
            )
        )
    )


def peak_bytes() -> int:
    """Return the most resident memory of this process so far."""
    if STATUS.exists():
        (line,) = (
            line
            for line in STATUS.read_text().splitlines()
            if line.startswith("VmHWM:")
        )
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


if __name__ == "__main__":
    main()
