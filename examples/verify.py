"""Check a receipt without cvm, by sections 6 and 7 of cvm/SPEC.md: python verify.py receipt.json model.cvm."""

import json
import sys
from hashlib import sha256
from pathlib import Path

receipt = json.loads(Path(sys.argv[1]).read_bytes())
file = Path(sys.argv[2]).read_bytes()

# A leaf for the header, with the number of samples in their place, and one for each sample.
header = {key: value for key, value in receipt.items() if key not in ("root", "backend")}
leaves = [header | {"samples": len(receipt["samples"])}, *receipt["samples"]]
texts = (json.dumps(leaf, sort_keys=True, separators=(",", ":")) for leaf in leaves)
hashes = [sha256(b"\0" + text.encode()).digest() for text in texts]

# The root: neighbours are hashed together; one without a partner moves up as it is.
while len(hashes) > 1:
    pairs = [hashes[at : at + 2] for at in range(0, len(hashes), 2)]
    hashes = [sha256(b"\1" + b"".join(pair)).digest() if pair[1:] else pair[0] for pair in pairs]

# The program ends where the metadata begins: with its mark, and a length that ends the file.
starts = (at for at in range(0, len(file), 64) if file.startswith(b"CVMMETA\1", at))
end = next((at for at in starts if at + 16 + int.from_bytes(file[at + 8 : at + 16], "little") == len(file)), len(file))

found = {"format": "cvm-receipt-2", "root": hashes[0].hex(), "program": sha256(file[:end]).hexdigest()}
found |= {"metadata": sha256(file[end:]).hexdigest()} if "metadata" in receipt else {}
for name, value in found.items():
    print(name, receipt[name], "agrees" if receipt[name] == value else f"but is {value}")
sys.exit(any(receipt[name] != value for name, value in found.items()))
