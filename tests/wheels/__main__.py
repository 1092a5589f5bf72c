"""`python -m tests.wheels dist PYTHON...`: each Python installs its wheel in a clean environment and uses it.

No compiler is within its reach: PATH is empty, and pip takes wheels only. `make wheels` runs it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cvm

ROOT = Path(__file__).resolve().parent.parent.parent
BARE = {"HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT"}


def bare_environment(nowhere: Path) -> dict[str, str]:
    """What pip needs to find its index, and nothing that leads to a compiler or to these sources."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in BARE or name.startswith(("PIP_", "SSL_"))
    }
    return {**kept, "PATH": str(nowhere)}


def check(python: str, wheels: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = bare_environment(folder)
        place = folder / "venv"
        run([python, "-m", "venv", str(place)], environment, folder)
        own = place / ("Scripts" if os.name == "nt" else "bin") / "python"
        pip = [str(own), "-m", "pip", "install", "--quiet"]
        pip += ["--disable-pip-version-check", "--only-binary", ":all:"]
        pip += ["--find-links", str(wheels), f"mrt-cvm=={cvm.__version__}"]
        # Ours from the folder alone, whatever an index has; then what it depends on.
        run([*pip, "--no-index", "--no-deps"], environment, folder)
        run(pip, environment, folder)
        script = ROOT / "tests" / "wheels" / "use_installed.py"
        run([str(own), str(script), str(ROOT)], environment, folder)


def run(command: list[str], environment: dict[str, str], folder: Path) -> None:
    subprocess.run(command, check=True, env=environment, cwd=folder)


if __name__ == "__main__":
    for path in sys.argv[2:]:
        check(path, Path(sys.argv[1]).resolve())
