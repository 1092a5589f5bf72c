"""The public signals of a proof: program id, which items are public, then of each output and input the elements or a commitment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cvm.errors import BadInput
from cvm.export.r1cs.disclosure import (
    ID_WORDS,
    WORD_BITS,
    Disclosure,
    words_for,
)
from cvm.export.r1cs.field import PRIME
from cvm.export.r1cs.opening import as_hex
from cvm.file.disk import read_bounded
from cvm.program import DTYPE_RANGES, DTYPES, IntArray, TensorType
from cvm.proof.validate import WellFormed

MOST_BYTES = 2**26
DIGITS = 77  # of the prime


def read(path: Path) -> list[int]:
    """The signals of a public.json, as snarkjs writes it: a list of texts of decimal digits."""
    data = read_bounded(path, MOST_BYTES)
    try:
        signals = json.loads(data)
    except (ValueError, RecursionError):
        signals = None
    if not isinstance(signals, list):
        raise BadInput(f"{path}: not a list of numbers, as snarkjs writes it")
    numbers = []
    for place, signal in enumerate(signals, 1):
        plain = (
            isinstance(signal, str) and signal.isascii() and signal.isdigit()
        )
        if not plain or len(signal) > DIGITS or int(signal) >= PRIME:
            raise BadInput(
                f"{path}: signal {place} is no number below the prime"
            )
        numbers.append(int(signal))
    return numbers


def program_of(signals: list[int]) -> str:
    """The program id that the first signals hold; empty if they hold none."""
    words = signals[:ID_WORDS]
    if len(words) < ID_WORDS or max(words) >= 2**32:
        return ""
    return b"".join(word.to_bytes(4, "big") for word in words).hex()


@dataclass(frozen=True)
class Disclosed:
    """What a proof shows: arrays that are public, and commitments of the others, by name."""

    inputs: Mapping[str, IntArray]
    outputs: Mapping[str, IntArray]
    commitments: Mapping[str, Mapping[str, str]]  # of "inputs", "outputs"


NOTHING = Disclosed({}, {}, {})


def disclosed(form: WellFormed, signals: list[int]) -> Disclosed:
    """The content of the signals after the program id; BadInput if their number is wrong, or one is no integer of its dtype."""
    program = form.program
    count = words_for(len(program.inputs) + len(program.outputs))
    words = signals[ID_WORDS : ID_WORDS + count]
    if max(words, default=0) >= 2**WORD_BITS:
        raise BadInput("a signal is no word of 32 bits")
    shown = Disclosure.of_words(program, words)
    inputs = [(input_.name, input_.type) for input_ in program.inputs]
    outputs = [
        (output.name, form.types[output.value]) for output in program.outputs
    ]
    expected = ID_WORDS + count
    for (_, type_), public in zip(
        [*outputs, *inputs], [*shown.outputs, *shown.inputs], strict=True
    ):
        expected += type_.elements if public else 1
    if len(signals) != expected:
        raise BadInput(
            f"{len(signals)} public signals; by what they say of inputs and outputs, this program has {expected}"
        )
    reader = _SignalReader(signals[ID_WORDS + count :])
    output_arrays, of_outputs = reader.items(outputs, shown.outputs, "output")
    input_arrays, of_inputs = reader.items(inputs, shown.inputs, "input")
    bound = {"inputs": of_inputs, "outputs": of_outputs}
    return Disclosed(input_arrays, output_arrays, bound)


@dataclass
class _SignalReader:
    """Public signals, taken from the first on."""

    signals: list[int]

    def items(
        self,
        items: Sequence[tuple[str, TensorType]],
        shown: Sequence[bool],
        what: str,
    ) -> tuple[dict[str, IntArray], dict[str, str]]:
        """The arrays that are shown, and the commitments of the others."""
        arrays, bound = {}, {}
        for (name, type_), public in zip(items, shown, strict=True):
            if public:
                arrays[name] = self._array(type_, f"{what} {name!r}")
            else:
                bound[name] = as_hex(self._take(1)[0])
        return arrays, bound

    def _take(self, count: int) -> list[int]:
        signals = self.signals[:count]
        del self.signals[:count]
        return signals

    def _array(self, type_: TensorType, where: str) -> IntArray:
        signals = self._take(type_.elements)
        numbers = [x - PRIME if x > PRIME // 2 else x for x in signals]
        low, high = DTYPE_RANGES[type_.dtype]
        if not all(low <= number <= high for number in numbers):
            raise BadInput(f"{where}: a signal is no {type_.dtype}")
        array = np.array(numbers, DTYPES[type_.dtype])
        return array.reshape(type_.shape)
