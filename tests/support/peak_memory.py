"""What a measured process prints of its own memory.

Not the rusage of a child: on Linux that begins with the size of its parent.
"""

PRINT_PEAK = """
from pathlib import Path
lines = Path("/proc/self/status").read_text().splitlines()
(peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
print(peak)
"""  # in kB
