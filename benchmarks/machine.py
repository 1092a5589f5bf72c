"""Describes the machine of the figures: processor, instruction sets, package versions."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from benchmarks import older

# The flags, as Linux names them, that decide how fast bytes are multiplied.
ISA_FLAGS = (
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx_vnni",
    "avx512_vnni",
    "amx_int8",
    "asimddp",
    "i8mm",
)
CPUINFO = older.CPUINFO
PACKAGES = ("mrt-cvm", "numpy", "onnxruntime", "openvino", "nncf")


@cache
def isa_flags() -> tuple[str, ...]:
    """Return the flags of ISA_FLAGS that this processor has; none where the system lists none.

    One that is held to an older instruction set has no more.
    """
    held = older.held()
    if held is not None:
        return older.FLAGS[held]
    listed = set(_field("flags").split()) | set(_field("Features").split())
    return tuple(flag for flag in ISA_FLAGS if flag in listed)


def describe() -> dict[str, str | int]:
    """Return the whole description, by name, in the order to print it."""
    return {
        "processor": _field("model name")
        or platform.processor()
        or platform.machine(),
        "instruction sets": (" ".join(isa_flags()) or "unknown")
        + (" (held to it)" if older.held() is not None else ""),
        "cores": os.cpu_count() or 0,
        "system": platform.system(),
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _field(name: str) -> str:
    """Return the first line of /proc/cpuinfo with that name."""
    if not CPUINFO.exists():
        return ""
    for line in CPUINFO.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
