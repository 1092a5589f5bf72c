"""libcvm on every program: a plan file is written, opened through the C functions and run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from cvm.program import Program
from cvm.proof.validate import validate
from tests.determinism import compare
from tests.determinism.programs import Item
from tests.determinism.records import Record
from tests.determinism.worker import THREADS, Problems
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
    def run(
        program: Program, sample: compare.Sample, threads: int
    ) -> compare.Sample:
        plan = library.open_bytes(plan_bytes(validate(program)))
        outputs = plan.run(sample, threads)
        plan.free()
        return outputs

    try:
        plan = library.open_bytes(plan_bytes(validate(item.program)))
    except Refused as refusal:
        yield from ((threads, str(refusal)) for threads in THREADS)
        return
    for threads in THREADS:
        again = partial(run, threads=threads)
        outputs = plan.run(item.sample, threads)
        problem = compare.explained("libcvm", outputs, again, item, expected)
        if problem is not None:
            yield threads, problem
    plan.free()
