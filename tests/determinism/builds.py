"""The engine built by each compiler, into build/determinism-<name>."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.determinism.programs import ROOT

SOURCES = ROOT / "cvm" / "engine"
NAMES = {"gcc": r"g\+\+(-\d+)?", "clang": r"clang\+\+(-\d+)?"}
EMULATED = "emulated"
EMULATED_BY = {
    "avxvnni": "-DCVM_EMULATE_AVXVNNI=ON",
    "avx512vnni": "-DCVM_EMULATE_AVX512=ON",
}
SIMDE = (
    Path("/usr/include/simde/x86/avx512.h"),
    Path("/usr/local/include/simde/x86/avx512.h"),
)


class Absent(Exception):
    """What a build needs and this machine does not have."""


class Failed(Exception):
    """A build that should have worked; what it printed last."""


@dataclass(frozen=True)
class Build:
    """A built engine; `every`: it is so slow that it runs only one program of so many."""

    name: str
    path: Path | None  # None: the one that is installed
    isas: tuple[str, ...]
    every: int = 1


def present() -> Build:
    """The engine that every command of ours finds: what `pip install` built, or what CVM_ENGINE names."""
    return Build(
        "CVM_ENGINE" if "CVM_ENGINE" in os.environ else "installed",
        None,
        _isas(None),
    )


def compiled(name: str) -> Build:
    """gcc or clang; Absent without that compiler."""
    path = _built(name, _compiler(name))
    return Build(name, path, _isas(path))


def emulated(isas: Sequence[str]) -> Build:
    """The kernels of instruction sets that this processor lacks."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise Absent("x86-64 processor")
    headers = any(header.exists() for header in SIMDE)
    possible = [isa for isa in isas if isa != "avx512vnni" or headers]
    if not possible:
        raise Absent("headers of SIMDe (Debian: libsimde-dev)")
    options = (EMULATED_BY[isa] for isa in possible)
    path = _built(EMULATED, _compiler("gcc"), *options)
    return Build(EMULATED, path, tuple(possible), every=8)


def library() -> Path:
    """The folder with libcvm, shared and static."""
    return configured("libcvm", _compiler("gcc"), "-DCVM_LIBRARY=ON")


def sanitized_library() -> Path:
    """The folder with plan_bytes: libcvm under sanitizers, and a program that changes plan files."""
    options = ("-DCVM_LIBRARY=ON", "-DCVM_FUZZ=ON", "-DCMAKE_CXX_FLAGS=-O1")
    return configured(
        "libcvm-sanitized",
        _compiler("gcc"),
        *options,
        build_type="None",
        target="plan_bytes",
    )


def _compiler(name: str) -> Path:
    """The one with the plain name, or else the newest numbered one."""
    folders = [
        Path(folder) for folder in os.get_exec_path() if Path(folder).is_dir()
    ]
    found = {
        path.name: path
        for folder in folders
        for path in folder.iterdir()
        if re.fullmatch(NAMES[name], path.name)
    }
    if not found:
        raise Absent(f"C++ compiler of {name}")
    return found[max(found, key=lambda own: int(own.partition("-")[2] or 1000))]


def _built(name: str, compiler: Path, *options: str) -> Path:
    folder = configured(f"determinism-{name}", compiler, *options)
    return next(folder.glob("_engine.*"))


def configured(
    name: str,
    compiler: Path,
    *options: str,
    build_type: str = "Release",
    target: str = "all",
) -> Path:
    """A folder in `build` with what these options build; Absent without cmake."""
    folder = ROOT / "build" / name
    path = os.pathsep.join(
        (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
    )
    cmake = shutil.which("cmake", path=path)
    ninja = shutil.which("ninja", path=path)
    if cmake is None:
        raise Absent("cmake")
    with_ninja = (
        []
        if ninja is None
        else ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    )
    settings = [
        f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DCMAKE_BUILD_TYPE={build_type}",
    ]
    _run(
        cmake,
        "-S",
        str(SOURCES),
        "-B",
        str(folder),
        *with_ninja,
        *settings,
        *options,
    )
    processes = str(os.cpu_count() or 1)
    targets = ("--target", target, "--parallel", processes)
    _run(cmake, "--build", str(folder), *targets)
    return folder


def _run(*words: str, **environment: str) -> str:
    done = subprocess.run(
        words,
        text=True,
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=os.environ | environment,
    )
    if done.returncode:
        raise Failed(
            f"{' '.join(words)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


def _isas(path: Path | None) -> tuple[str, ...]:
    named = {} if path is None else {"CVM_ENGINE": str(path)}
    return tuple(
        _run(
            sys.executable,
            "-c",
            "from cvm.runtime import native; print(*native.isas())",
            **named,
        ).split()
    )
