"""For which float value each instruction was written: for the report, no part of the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cvm.program import Program
from mrt.quantize.builder import Handle, ProgramBuilder


class SourceMap:
    """Notes, while rules write, the handles that appear; in the end, the numbers that they have in the program."""

    def __init__(self) -> None:
        self._of_handle: dict[Handle, str] = {}
        self.of_number: dict[int, str] = {}

    @contextmanager
    def noting(self, builder: ProgramBuilder, name: str) -> Iterator[None]:
        """What appears meanwhile was made for the float value `name`."""
        start = len(builder.types)
        yield
        self._of_handle.update(dict.fromkeys(range(start, len(builder.types)), name))

    def finish(self, program: Program, live: list[Handle]) -> None:
        """`live` are the handles of the program's instructions in order.

        The narrow form of a float value was written for that one, whoever asked for it first; so was the rescale whose
        only purpose is the clamp behind it.
        """
        said = program.metadata.values if program.metadata is not None else {}
        first = program.first_instruction
        for number, handle in enumerate(live, first):
            stands_for = said[number].source if number in said else ""
            self.of_number[number] = stands_for or self._of_handle.get(handle, "")
        for number, item in enumerate(program.instructions, first):
            maker = item.operands[0] - first
            if (
                item.name == "clamp"
                and maker >= 0
                and program.instructions[maker].name == "rescale"
            ):
                self.of_number[item.operands[0]] = self.of_number[number]
