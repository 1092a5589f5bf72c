"""C to WebAssembly, by starting clang and wasm-ld."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from cvm.errors import BadInput

VECTORS = "-msimd128"
COMPILE = (
    "--target=wasm32",
    "-std=c99",
    "-O3",
    "-ffreestanding",
    "-nostdlib",
    "-mbulk-memory",
)
LINK = ("--no-entry", "--stack-first", "--strip-all")
EXPORTED = ("cvm_input", "cvm_output", "cvm_run")
INSTALL = "Debian and Ubuntu: apt install clang lld; macOS: brew install llvm lld; Windows: winget install LLVM.LLVM"
NEWEST, OLDEST = 30, 11  # versions that a program's name may end with


@dataclass(frozen=True)
class Compiler:
    """The two programs, by path."""

    clang: str
    linker: str

    @classmethod
    def find(cls) -> Compiler:
        """The programs on the path, a plain name before a numbered one; BadInput that names what to install."""
        paths = {name: _program(name) for name in ("clang", "wasm-ld")}
        missing = [name for name, path in paths.items() if path is None]
        if missing:
            raise BadInput(
                f"the target web needs {' and '.join(missing)}, to compile to WebAssembly; {INSTALL}"
            )
        return cls(paths["clang"] or "", paths["wasm-ld"] or "")

    def build(self, files: Mapping[str, str], *, vectors: bool = True) -> bytes:
        """The module compiled from sources by name; BadInput if they do not compile."""
        sources = [name for name in files if name.endswith(".c")]
        flags = (*COMPILE, VECTORS) if vectors else COMPILE
        with TemporaryDirectory(prefix="cvm-web-") as folder:
            for name, text in files.items():
                Path(folder, name).write_text(text, encoding="ascii")
            objects = []
            for name in sources:
                objects.append(f"{name}.o")
                _run(
                    folder, [self.clang, *flags, "-c", name, "-o", objects[-1]]
                )
            exported = [f"--export={name}" for name in EXPORTED]
            _run(
                folder,
                [self.linker, *LINK, *exported, *objects, "-o", "made.wasm"],
            )
            return Path(folder, "made.wasm").read_bytes()


def command(name: str) -> str:
    """The shell command that does the same with the sources of a package."""
    link = [f"-Wl,{word}" for word in LINK]
    link += [f"-Wl,--export={word}" for word in EXPORTED]
    words = ["clang", *COMPILE, VECTORS, *link, f"{name}.c", "glue.c"]
    return " ".join([*words, "-o", f"{name}.wasm"])


def _program(name: str) -> str | None:
    names = [name, *(f"{name}-{n}" for n in range(NEWEST, OLDEST - 1, -1))]
    return next(filter(None, map(shutil.which, names)), None)


def _run(folder: str, words: list[str]) -> None:
    completed = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False
    )
    if completed.returncode:
        faults = re.findall(r"error: .*", completed.stderr)
        reason = faults[0] if faults else completed.stderr.strip()[:300]
        raise BadInput(
            f"{words[0]} failed, and nothing was written: {reason}; a clang without WebAssembly? {INSTALL}"
        )
