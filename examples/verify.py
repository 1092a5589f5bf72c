"""Check a receipt without cvm: python verify.py receipt.json model.cvm.

The rules are sections 6 and 7 of cvm/SPEC.md.
"""

import hashlib
import json
import sys
from pathlib import Path

receipt = json.loads(Path(sys.argv[1]).read_bytes())
file = Path(sys.argv[2]).read_bytes()


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


# A leaf for the header, with the number of samples, and one for each sample.
header = receipt | {"samples": len(receipt["samples"])}
header = {k: header[k] for k in header if k not in ("root", "backend")}
hashes = []
for leaf in (header, *receipt["samples"]):
    text = json.dumps(leaf, sort_keys=True, separators=(",", ":"))
    hashes.append(sha(b"\0" + text.encode()))

# The root: neighbours are hashed together; one without a partner moves up.
while len(hashes) > 1:
    pairs = [hashes[at : at + 2] for at in range(0, len(hashes), 2)]
    hashes = [sha(b"\1" + b"".join(p)) if p[1:] else p[0] for p in pairs]

# The metadata begins with its mark and a length that ends the file.
end = len(file)
for at in range(0, len(file) - 15, 64):
    length = len(file) - at - 16
    if file.startswith(b"CVMMETA\1" + length.to_bytes(8, "little"), at):
        end = min(at, end)

found = {"format": "cvm-receipt-2", "root": hashes[0].hex()}
found["program"] = sha(file[:end]).hex()
if "metadata" in receipt:
    found["metadata"] = sha(file[end:]).hex()
for name, value in found.items():
    remark = "agrees" if receipt[name] == value else f"but is {value}"
    print(name, receipt[name], remark)
sys.exit(any(receipt[name] != value for name, value in found.items()))
