"""What the engine's sources must not say, so that every compiler can build them."""

from pathlib import Path

import cvm

KERNELS = Path(cvm.__file__).parent / "engine" / "kernels"


def test_kernels_call_no_builtin_of_one_compiler() -> None:
    sources = [path for path in KERNELS.iterdir() if path.suffix in (".h", ".cpp")]
    assert sources
    assert [
        path.name
        for path in sources
        if "__builtin_" in path.read_text(encoding="utf-8")
    ] == []
