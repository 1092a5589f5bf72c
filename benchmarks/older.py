"""Runs a benchmark as if this processor had AVX2, or AVX2 and AVX-VNNI, and no more: what older ones, or laptops, would do.

Libraries ask the instruction `cpuid` which kernels they may use. In copies of the
peers' packages every `cpuid` becomes `ud0`, which no processor executes, and
`cpuid_older.c` answers in its place. The packages themselves stay as they are.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import numpy as np

from benchmarks.cache import digest, made, versions

SOURCE = Path(__file__).with_name("cpuid_older.c")
# Variables that name the library of answers, and the instruction set.
ANSWERING, HELD_TO = "BENCHMARKS_CPUID", "BENCHMARKS_ISA"
TITLES = {"avx2": "AVX2", "avxvnni": "AVX2 and AVX-VNNI"}
FLAGS = {"avx2": ("avx2",), "avxvnni": ("avx2", "avx_vnni")}
CPUINFO = Path("/proc/cpuinfo")
CPUID, UD0 = b"\x0f\xa2", b"\x0f\xff"

# What runs a contender: numpy runs the reference.
PACKAGES = ("numpy", "onnxruntime", "openvino")
FOLDERS = (*PACKAGES, "numpy.libs")
UNUSED = shutil.ignore_patterns("*_gpu_plugin*", "*_npu_*", "__pycache__")

# The C library asks before anything else is loaded; it has a setting instead.
C_LIBRARY = "glibc.cpu.hwcaps=-AVX512F,-AVX512BW,-AVX512VL,-AVX512DQ,-AVX512CD"

# objdump's lines: size, address and place in the file of a section; a `cpuid`.
SECTION = re.compile(r" *\d+ \S+ +([0-9a-f]+)  ([0-9a-f]+)  [0-9a-f]+  (\w+)")
INSTRUCTION = re.compile(r" *([0-9a-f]+):\t0f a2 +\tcpuid")


def held() -> str | None:
    """Return the instruction set beyond which this process sees nothing of the processor, or None."""
    return os.environ.get(HELD_TO)


def hold(isa: str) -> None:
    """Start this process again, with the same arguments, in `environment`."""
    if held() is not None:
        return
    reason = impossible(isa)
    if reason is not None:
        raise click.ClickException(
            f"the contenders cannot be held to {TITLES[isa]}: {reason}"
        )
    os.execve(sys.executable, sys.orig_argv, os.environ | environment(isa))


def impossible(isa: str) -> str | None:
    """Return why another processor cannot be pretended here, or None."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return "it takes Linux on x86-64"
    for tool in ("cc", "objdump"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (apt install gcc binutils)"
    missing = set(FLAGS[isa]) - set(CPUINFO.read_text().split())
    if missing:
        return f"this processor has no {' and no '.join(sorted(missing))}"
    return None


def environment(isa: str) -> dict[str, str]:
    """Return what makes a process use the copies, and our engine this instruction set."""
    library = str(answers(isa))
    return {
        ANSWERING: library,
        HELD_TO: isa,
        "LD_PRELOAD": library,
        "PYTHONPATH": str(packages()),
        "GLIBC_TUNABLES": C_LIBRARY,
        "CVM_ISA": isa,
    }


def answers(isa: str) -> Path:
    """Return the compiled library of answers."""

    def make(folder: Path) -> None:
        words = ["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC"]
        if isa == "avxvnni":
            words.append("-DKEEP_AVX_VNNI")
        target = ["-o", str(folder / "cpuid.so")]
        subprocess.run([*words, str(SOURCE), *target], check=True)

    return made(f"older-answers-{isa}", digest(SOURCE), make) / "cpuid.so"


def packages() -> Path:
    """Return the folder of the copies."""
    site = Path(np.__file__).parent.parent
    present = [name for name in FOLDERS if (site / name).is_dir()]

    def make(folder: Path) -> None:
        for name in present:
            shutil.copytree(site / name, folder / name, ignore=UNUSED)
        for library in folder.rglob("*.so*"):
            redirect(library)

    installed = versions(*(name for name in PACKAGES if name in present))
    return made("older-packages", [installed, digest(Path(__file__))], make)


def redirect(program: Path) -> int:
    """Write `ud0` over every `cpuid` of a program or library, and return their number."""
    code = bytearray(program.read_bytes())
    places = _places(program) if CPUID in code else []
    for place in places:
        code[place : place + len(UD0)] = UD0
    if places:
        program.write_bytes(code)
    return len(places)


def _places(program: Path) -> list[int]:
    """Return where in the file `cpuid` stands.

    The same bytes within another instruction are left alone.
    """
    sections = [
        [int(number, 16) for number in match.groups()]
        for match in _found(SECTION, ["--headers", "--wide", str(program)])
    ]
    addresses = [
        int(match[1], 16)
        for match in _found(INSTRUCTION, ["--disassemble", str(program)])
    ]
    return [
        address - start + place
        for address in addresses
        for size, start, place in sections
        if start <= address < start + size
    ]


def _found(pattern: re.Pattern[str], words: list[str]) -> list[re.Match[str]]:
    """Return the lines of objdump that are of this form; it may print gigabytes."""
    with subprocess.Popen(
        ["objdump", *words], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        matches = [*filter(None, map(pattern.match, running.stdout))]
    if running.returncode:
        raise RuntimeError(f"objdump fails on {words[-1]}")
    return matches


def check() -> None:
    """Raise RuntimeError where this thread's registers hold what only AVX-512 leaves there."""
    if (
        held() is not None
        and ctypes.CDLL(os.environ[ANSWERING]).avx512_in_use()
    ):
        raise RuntimeError("AVX-512 was used, though the processor hides it")


def _chosen(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> None:
    if value is not None:
        hold(value)


option = click.option(
    "--isa",
    type=click.Choice(list(TITLES)),
    callback=_chosen,
    expose_value=False,
    help="Hold every contender to this instruction set, as on a processor that has no more.",
)
