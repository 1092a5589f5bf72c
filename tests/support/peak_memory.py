"""The greatest memory that a process has had, which it reads of itself.

Not the rusage of a child: on Linux that begins with the size of its parent.
"""

import inspect
from pathlib import Path


def peak_kilobytes() -> int:
    """Return the most that this process has had in memory, in kB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak)


PRINT_PEAK = f"""
from pathlib import Path
{inspect.getsource(peak_kilobytes)}
print(peak_kilobytes())
"""
