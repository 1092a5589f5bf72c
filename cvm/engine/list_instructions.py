"""Writes instructions.h from cvm/instructions.toml: `python list_instructions.py instructions.toml instructions.h`."""

import sys
import tomllib
from pathlib import Path

HEADER = """// Generated from cvm/instructions.toml: X(name, opcode), one line per instruction.
// A stage works element by element and may be fused; a step is everything else.
#pragma once
"""


def main(source: Path, target: Path) -> None:
    """Sort the rows into the two lists."""
    rows = tomllib.loads(source.read_text(encoding="utf-8"))
    stages = {name for name, row in rows.items() if row.get("stage", False)}
    text = HEADER
    for macro, names in (
        ("CVM_STAGES", stages),
        ("CVM_STEPS", rows.keys() - stages),
    ):
        lines = [
            f"  X({name}, {row['opcode']})"
            for name, row in rows.items()
            if name in names
        ]
        text += f"#define {macro}(X) \\\n" + " \\\n".join(lines) + "\n"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


main(Path(sys.argv[1]), Path(sys.argv[2]))
