"""Installs for the Makefile: python3 .ci/install.py FOLDER "what, and how long" PIP_ARGUMENTS...

It makes a virtual environment in FOLDER if there is none, says one line before and one after, and keeps pip's own words
in FOLDER/install.log. What is missing is said in one sentence. It runs on any Python 3, to refuse the old ones itself.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 11)
KNOWN = ("3.13", "3.12", "3.11")
NO_INDEX = (  # how pip says that it reaches no package index, or that this one lacks the package
    "No matching distribution found",
    "Could not find a version that satisfies",
    "NewConnectionError",
    "NameResolutionError",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "Max retries exceeded",
)


def refusal_of_python(version, found):
    """Why this Python cannot be used, and which of those `found` can; None if it can."""
    if tuple(version[:2]) >= OLDEST:
        return None
    said = ".".join(map(str, version[:3]))
    others = [f"python{one}" for one in KNOWN if found(f"python{one}")]
    way = f"make PYTHON={others[0]}" if others else "install one, then make PYTHON=python3.12"  # fmt: skip
    return f"Python {said} is too old, mrt and cvm need 3.11 or newer; {way}"


def runs(*command):
    """Whether this command is there and succeeds."""
    try:
        return not subprocess.call(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError:
        return False


def reason_of_pip(log, folder):
    """One sentence for a failure of pip's, from its own words."""
    where = f"pip's own words are in {folder}/install.log"
    if any(sign in log for sign in NO_INDEX):
        return (
            "no package index that has what is needed can be reached; with a network, or PIP_INDEX_URL set to an index, "
            f"or PIP_FIND_LINKS to a folder of wheels, it works; {where}"
        )
    if "No space left on device" in log:
        return f"the disk is full; {where}"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if "rror" in line), "no reason given")  # fmt: skip
    return f"pip failed: {last}; {where}"


def make_environment(folder):
    """A virtual environment there, whose pip runs; or one sentence."""
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    if made.returncode:
        shutil.rmtree(str(folder), ignore_errors=True)
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        sys.exit(
            f"setup: this Python makes no virtual environments; on Debian and Ubuntu: apt install python{version}-venv"
            if "ensurepip" in made.stdout
            else f"setup: no virtual environment in {folder}: {made.stdout.strip()}"
        )


def python_of(folder):
    """The Python of a virtual environment."""
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def main(folder, what, *arguments):
    """Install; the exit code is 0, or 1 with a sentence."""
    refusal = refusal_of_python(
        sys.version_info, lambda name: runs(name, "--version")
    )
    if refusal:
        sys.exit(f"setup: {refusal}")
    print(f"setup: {what}", flush=True)
    begun = time.monotonic()
    if not runs(str(python_of(folder)), "-m", "pip", "--version"):
        make_environment(folder)
    pip = [str(python_of(folder)), "-m", "pip", "install"]
    log = folder / "install.log"
    with log.open("w", encoding="utf-8") as words:
        done = subprocess.run(
            [*pip, "--disable-pip-version-check", *arguments],
            stdout=words,
            stderr=subprocess.STDOUT,
        )
    if done.returncode:
        text = log.read_text(encoding="utf-8", errors="replace")
        sys.exit(f"setup: {reason_of_pip(text, folder)}")
    print(f"setup: done in {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), *sys.argv[2:])
    except KeyboardInterrupt:
        sys.exit("setup: interrupted; the next call goes on")
