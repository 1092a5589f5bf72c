"""What a program must give, written down: computed by the reference machine, digested as the specification spells it out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cvm.file import format as file_format
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from tests.determinism.programs import Item
from tests.support import golden

DIGESTS = Path(__file__).parent / "digests.json"
PREFIX = 8  # hex digits


@dataclass(frozen=True)
class Record:
    """Digests in hex. `values` has the first digits of that of each instruction's value, to find which one differs."""

    program: str
    trace: str
    outputs: Mapping[str, str]
    values: str

    def value(self, instruction: int) -> str:
        return self.values[PREFIX * instruction : PREFIX * (instruction + 1)]


def record(item: Item) -> Record:
    """Nothing of `cvm.runtime.trace` and nothing of the engine has a part in it."""
    leaves: list[bytes] = []
    outputs = run(
        validate(item.program),
        item.sample,
        observe=lambda _, value: leaves.append(golden.digest(value)),
    )
    return Record(
        file_format.program_id(item.program),
        golden.root(leaves).hex(),
        {name: golden.digest(value).hex() for name, value in outputs.items()},
        "".join(leaf.hex()[:PREFIX] for leaf in leaves),
    )


def load(path: Path = DIGESTS) -> dict[str, Record]:
    """By the programs' names."""
    return (
        {
            name: Record(**fields)
            for name, fields in json.loads(path.read_text()).items()
        }
        if path.exists()
        else {}
    )


def save(records: Mapping[str, Record], path: Path = DIGESTS) -> None:
    """A line for each program."""
    lines = (
        f"{json.dumps(name)}: {json.dumps(asdict(found))}"
        for name, found in records.items()
    )
    path.write_text(
        "{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n"
    )


def add_missing(items: list[Item], path: Path = DIGESTS) -> int:
    """Record the programs that have no record yet; what is there is never changed. Gives the number added."""
    known = load(path)
    added = {
        item.name: record(item) for item in items if item.name not in known
    }
    if added:
        save(known | added, path)
    return len(added)
