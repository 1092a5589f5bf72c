"""Environments of other Pythons with other versions of numpy, in build/conversion-*: what converts there is this source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.determinism.builds import Absent
from tests.determinism.programs import ROOT

# Python and numpy. The package asks for numpy 2; that 1.26 makes the same programs is seen here alone.
DEFAULT = "3.11:1.26,3.12:2.0,3.13:2"
WORDS = ("--quiet", "--disable-pip-version-check", "--only-binary", ":all:")


@dataclass(frozen=True)
class Environment:
    """A Python by its version, and the version of numpy in it."""

    python: str
    numpy: str

    @classmethod
    def parsed(cls, text: str) -> Environment:
        """3.12:2.0, say; ValueError for anything else."""
        found = re.fullmatch(r"(\d+\.\d+):(\d+(?:\.\d+)*)", text)
        if found is None:
            raise ValueError(f"'{text}' is no Python:numpy, such as 3.12:2.0")
        return cls(*found.groups())

    @property
    def name(self) -> str:
        return f"Python {self.python}, numpy {self.numpy}"

    def interpreter(self) -> Path:
        """Its Python; installed if it is not yet. Absent without that Python, or without packages for it."""
        folder = ROOT / "build" / f"conversion-{self.python}-{self.numpy}"
        python, stamp = folder / "bin" / "python", folder / "installed"
        wanted = "\n".join(self._requirements())
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return python
        base = self._base()
        shutil.rmtree(folder, ignore_errors=True)
        self._run(base, "-m", "venv", str(folder))
        self._run(python, "-m", "pip", "install", *WORDS, *wanted.splitlines())
        stamp.write_text(wanted, encoding="utf-8")
        return python

    def _requirements(self) -> list[str]:
        """What the package needs, with this numpy."""
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        needed = tomllib.loads(text)["project"]["dependencies"]
        others = [one for one in needed if not one.startswith("numpy")]
        return [f"numpy=={self.numpy}.*", *others]

    def _base(self) -> Path:
        for path in self._candidates():
            version = "import sys; print('%d.%d' % sys.version_info[:2])"
            done = subprocess.run(
                [path, "-c", version],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.stdout.strip() == self.python:
                return path
        raise Absent(f"Python {self.python}")

    def _candidates(self) -> Iterator[Path]:
        """One on the path, and those of pyenv, whose own on the path may be switched off."""
        found = shutil.which(f"python{self.python}")
        if found:
            yield Path(found)
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
        yield from sorted(pyenv.glob(f"versions/{self.python}.*/bin/python"))

    def _run(self, *words: str | Path) -> None:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:]
            raise Absent(f"packages for {self.name}: {' '.join(last)}")
