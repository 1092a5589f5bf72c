"""The public signals of a proof: the program id as eight words, then the elements of each output."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from cvm.errors import BadInput
from cvm.export.r1cs.circuit import WORDS
from cvm.export.r1cs.files import PRIME
from cvm.file.disk import read_bounded
from cvm.program import DTYPE_RANGES, DTYPES, IntArray
from cvm.proof.validate import WellFormed

MOST_BYTES = 2**26
DIGITS = 77  # of the prime


def read(path: Path) -> list[int]:
    """The signals of a public.json, as snarkjs writes it: a list of texts of decimal digits."""
    data = read_bounded(path, MOST_BYTES)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise BadInput(f"{path}: not a list of numbers, as snarkjs writes it")
    numbers = []
    for place, item in enumerate(found, 1):
        plain = isinstance(item, str) and item.isascii() and item.isdigit()
        if not plain or len(item) > DIGITS or int(item) >= PRIME:
            raise BadInput(
                f"{path}: signal {place} is no number below the prime"
            )
        numbers.append(int(item))
    return numbers


def program_of(signals: list[int]) -> str:
    """The program id that the first signals hold; empty if they hold none."""
    words = signals[:WORDS]
    if len(words) < WORDS or max(words) >= 2**32:
        return ""
    return b"".join(word.to_bytes(4, "big") for word in words).hex()


def outputs_of(form: WellFormed, signals: list[int]) -> dict[str, IntArray]:
    """The outputs by name; BadInput if there are too few or too many signals, or one is no integer of its dtype."""
    count = sum(form.types[o.value].elements for o in form.program.outputs)
    if len(signals) != WORDS + count:
        raise BadInput(
            f"{len(signals)} public signals; this program has {WORDS + count}: its id in {WORDS}, and {count} outputs"
        )
    found, first = {}, WORDS
    for item in form.program.outputs:
        type_ = form.types[item.value]
        here = signals[first : first + type_.elements]
        numbers = [x - PRIME if x > PRIME // 2 else x for x in here]
        low, high = DTYPE_RANGES[type_.dtype]
        if not all(low <= number <= high for number in numbers):
            raise BadInput(
                f"output {item.name!r}: a signal is no {type_.dtype}"
            )
        array = np.array(numbers, DTYPES[type_.dtype])
        found[item.name] = array.reshape(type_.shape)
        first += type_.elements
    return found
