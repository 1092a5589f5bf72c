"""libcvm on every program: a plan file is written, opened through the C functions and run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cvm.proof.validate import validate
from tests.determinism.programs import Item
from tests.determinism.records import Record
from tests.determinism.worker import THREADS, Problems
from tests.support import golden
from tests.support.libcvm import Library, Refused, plan_bytes


def problems(
    folder: Path, items: list[Item], known: Mapping[str, Record]
) -> Problems:
    """Every output that is not the recorded one: program, threads, sentence."""
    library = Library(folder / "libcvm.so")
    return [
        (item.name, threads, sentence)
        for item in items
        for threads, sentence in _wrong(library, item, known[item.name])
    ]


def _wrong(
    library: Library, item: Item, expected: Record
) -> Iterator[tuple[int, str]]:
    try:
        plan = library.open_bytes(plan_bytes(validate(item.program)))
    except Refused as refusal:
        yield from ((threads, str(refusal)) for threads in THREADS)
        return
    for threads in THREADS:
        for name, value in plan.run(item.sample, threads).items():
            if golden.digest(value).hex() != expected.outputs.get(name):
                yield threads, f"libcvm: output {name} differs"
    plan.free()
