"""The float value for which each instruction was written: for reports only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cvm.program import Program
from mrt.quantize.builder import Handle, ProgramBuilder


class SourceMap:
    """The float value of each handle and, once the program is finished, of each instruction.

    `measured` are the float values whose measured ranges the program depends on.
    `rounded` are the layers whose weights were rounded beside the file's own integers.
    """

    def __init__(self) -> None:
        self._of_handle: dict[Handle, str] = {}
        self.of_number: dict[int, str] = {}
        self.measured: frozenset[str] = frozenset()
        self.rounded: list[str] = []

    @contextmanager
    def noting(self, builder: ProgramBuilder, name: str) -> Iterator[None]:
        """Assign the handles created inside the context to the float value `name`."""
        start = len(builder.types)
        yield
        self._of_handle.update(
            dict.fromkeys(range(start, len(builder.types)), name)
        )

    def finish(self, program: Program, live: list[Handle]) -> None:
        """Number the instructions; `live` are their handles in order.

        The requantized form of a float value belongs to that value, whichever reader
        needed it first; so does the rescale in front of its clamp.
        """
        meanings = (
            program.metadata.values if program.metadata is not None else {}
        )
        first = program.first_instruction
        for number, handle in enumerate(live, first):
            stands_for = meanings[number].source if number in meanings else ""
            self.of_number[number] = stands_for or self._of_handle.get(
                handle, ""
            )
        for number, instruction in enumerate(program.instructions, first):
            maker = instruction.operands[0] - first
            if (
                instruction.name == "clamp"
                and maker >= 0
                and program.instructions[maker].name == "rescale"
            ):
                self.of_number[instruction.operands[0]] = self.of_number[number]
