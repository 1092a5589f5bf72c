"""Processes in the environment that has SPU, which is apart from ours because SPU needs an older numpy."""

from __future__ import annotations

import os
import subprocess
import weakref
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cvm
from cvm.errors import BadInput
from cvm.program import IntArray
from cvm.runtime.other_python import python_with
from cvm.secure.exchange import content_of, read_arrays

VARIABLE = "CVM_SPU_PYTHON"
FOLDER = ".venv-spu"
HOW_TO_GET_SPU = (
    f"`make privacy` installs it in {FOLDER}, or {VARIABLE} names a Python 3.11 in which "
    "cvm/secure/requirements.txt is installed"
)
PROCESS = "cvm.secure.process"
LAST_WORDS = 2000  # bytes of its standard error that are searched


def spu_python() -> Path:
    """The Python that has SPU; BadInput if there is none."""
    return python_with("SPU", VARIABLE, FOLDER, HOW_TO_GET_SPU)


class SpuProcess:
    """A process of `cvm.secure.process` and its folder. Both end with this object."""

    def __init__(self) -> None:
        self._python = spu_python()
        self._kept = ExitStack()
        weakref.finalize(self, self._kept.close)
        temporary = TemporaryDirectory(prefix="cvm-spu-")
        self.folder = Path(self._kept.enter_context(temporary))
        errors = (self.folder / "errors.txt").open("w+b")
        self._errors = self._kept.enter_context(errors)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; what it needs must be in the folder."""
        # Our package alone, not what is installed beside it: that is for another Python.
        library = self.folder / "library"
        library.mkdir()
        (library / "cvm").symlink_to(Path(cvm.__file__).parent.resolve())
        words = [str(self._python), "-P", "-m", PROCESS, str(self.folder)]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": str(library)},
        )
        self._kept.callback(_end, self._process)

    def tell(self, line: bytes) -> None:
        """Write a line to it."""
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def answer(self) -> dict[str, Any]:
        """The next answer of the process; BadInput with the reason if it has failed."""
        process = self._running()
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise self._ended()
        content = content_of(line)
        if not content:
            raise BadInput("spu: its process answered with something else")
        if "error" in content:
            raise BadInput(f"spu: {content['error']}")
        return content

    def taken(self, name: str) -> list[IntArray]:
        """The arrays of a file that the process wrote; the file is removed."""
        path = self.folder / name
        arrays = read_arrays(path)
        path.unlink()
        return arrays

    def close(self) -> None:
        """End it, and remove its folder."""
        self._kept.close()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the process was not started"
        return self._process

    def _ended(self) -> BadInput:
        """An error with the exit code and the last line of standard error."""
        code = self._running().wait()
        self._errors.seek(0)
        words = self._errors.read()[-LAST_WORDS:].decode(errors="replace")
        lines = [line for line in words.splitlines() if line.strip()]
        last = lines[-1].strip() if lines else "no reason given"
        return BadInput(f"spu: its process ended with code {code}: {last}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of the process, at which it ends, and wait for it."""
    for stream in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            if stream is not None:
                stream.close()
    process.wait()
