"""Check a receipt without cvm: python verify.py receipt.json model.cvm.

Section 7 of cvm/SPEC.md has the rules. Exit code 0 if all agrees, else 1.
"""

import hashlib
import json
import sys
from pathlib import Path


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def compact(leaf: dict) -> bytes:
    return json.dumps(leaf, sort_keys=True, separators=(",", ":")).encode()


def merkle_root(level: list[bytes]) -> bytes:
    """Hash neighbours together; one without a partner moves up as it is."""
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [sha(b"\1" + b"".join(p)) if p[1:] else p[0] for p in pairs]
    return level[0]


def end_of_program(file: bytes) -> int:
    """Where the metadata begins: its mark, and a length that ends the file."""
    for at in range(0, len(file), 64):
        length = int.from_bytes(file[at + 8 : at + 16], "little")
        if file.startswith(b"CVMMETA\1", at) and at + 16 + length == len(file):
            return at
    return len(file)


receipt = json.loads(Path(sys.argv[1]).read_bytes())
file = Path(sys.argv[2]).read_bytes()
root, samples = receipt.pop("root"), receipt["samples"]
leaves = [receipt | {"samples": len(samples)}, *samples]
found = merkle_root([sha(b"\0" + compact(leaf)) for leaf in leaves])
end = end_of_program(file)
checks = [
    ("format", receipt["format"], "cvm-receipt-2"),
    ("root", root, found.hex()),
    ("program", receipt["program"], sha(file[:end]).hex()),
]
if "metadata" in receipt:
    checks.append(("metadata", receipt["metadata"], sha(file[end:]).hex()))
for what, stated, is_so in checks:
    print(what, stated, "agrees" if stated == is_so else f"but is {is_so}")
sys.exit(any(stated != is_so for _, stated, is_so in checks))
