"""A program in the place of another one, with what is known of its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cvm.program import Program
from mrt.quantize.builder import Handle, ProgramBuilder


@dataclass(frozen=True)
class Folded:
    """A folded program, and for each of its instructions an old one that it stands for."""

    program: Program
    sources: Mapping[int, int]

    @property
    def count(self) -> int:
        """The number of its instructions."""
        return len(self.program.instructions)

    def of(self, earlier: Folded) -> Folded:
        """Return this fold with the program that `earlier` was folded from as its source."""
        sources = {
            new: earlier.sources[old] for new, old in self.sources.items()
        }
        return Folded(self.program, sources)


def with_metadata(
    builder: ProgramBuilder, sources: Mapping[Handle, int], old: Program
) -> Folded:
    """The program that was built, with the metadata of the old one, and the meanings of those values that have any.

    It packs constants in 4 bits if the old one does.
    """
    program = builder.finish({}, packs=bool(old.packed))
    assert program.metadata is not None
    metadata = old.metadata and replace(
        old.metadata, values=program.metadata.values
    )
    written = enumerate(builder.written, program.first_instruction)
    numbers = {number: sources[handle] for number, handle in written}
    return Folded(replace(program, metadata=metadata), numbers)
