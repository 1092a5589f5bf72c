"""What a proof shows of a run: each input and output is public, or bound by a commitment and hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvm.errors import BadInput
from cvm.program import IntArray, Program

NOTHING = "none"
INPUT, OUTPUT = "input", "output"
WORD_BITS = 32
ID_WORDS = 8  # of a program id


@dataclass(frozen=True)
class Disclosure:
    """Which inputs and outputs are public, in the program's order."""

    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]

    @classmethod
    def chosen(cls, program: Program, names: Sequence[str]) -> Disclosure:
        """Make these names public; without names the outputs. BadInput for a name that does not exist, or that has two meanings."""
        inputs = [port.name for port in program.inputs]
        outputs = [port.name for port in program.outputs]
        if not names or list(names) == [NOTHING]:
            none = (False,) * len(inputs)
            return cls(none, (not names,) * len(outputs))
        shown = [_meant(name, inputs, outputs) for name in names]
        return cls(
            tuple((INPUT, name) in shown for name in inputs),
            tuple((OUTPUT, name) in shown for name in outputs),
        )

    @classmethod
    def of_words(cls, program: Program, words: Sequence[int]) -> Disclosure:
        """The disclosure in the public signals; BadInput if they make public what does not exist."""
        count = len(program.outputs)
        total = count + len(program.inputs)
        bits = sum(word << (WORD_BITS * at) for at, word in enumerate(words))
        if bits >> total:
            raise BadInput(
                "the signals make more inputs and outputs public than the program has"
            )
        every = tuple(bool(bits >> place & 1) for place in range(total))
        return cls(every[count:], every[:count])

    @property
    def words(self) -> IntArray:
        """A bit for each, outputs first, the lowest bit first, in words of 32 bits."""
        every = [*self.outputs, *self.inputs]
        bits = sum(1 << place for place, shown in enumerate(every) if shown)
        return np.array(
            [
                bits >> (WORD_BITS * at) & (2**WORD_BITS - 1)
                for at in range(words_for(len(every)))
            ],
            np.int64,
        )


def _meant(
    name: str, inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[str, str]:
    """The input or output that a name stands for; a prefix may choose one: `input:x`, `output:x`."""
    candidates = [
        *((INPUT, x) for x in inputs),
        *((OUTPUT, x) for x in outputs),
    ]
    matches = [
        candidate
        for candidate in candidates
        if name in (candidate[1], ":".join(candidate))
    ]
    if not matches:
        raise BadInput(
            f"--public {name}: the program has {', '.join(sorted({*inputs, *outputs}))}; "
            f"{NOTHING}, alone, makes nothing public"
        )
    if len(matches) > 1:
        choices = " or ".join(":".join(candidate) for candidate in matches)
        raise BadInput(
            f"--public {name}: it may stand for {choices}; say which"
        )
    return matches[0]


def words_for(count: int) -> int:
    """How many words of 32 bits hold a bit for each of so many."""
    return -(-count // WORD_BITS)
