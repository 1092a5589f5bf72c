"""Program files that must have the same digests for ever.

The digests are computed here without `cvm.runtime.trace`. `python -m
tests.support.golden` adds files for each family of instructions that has none; it never
changes existing files.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cvm.file import format as file_format
from cvm.instructions import INSTRUCTIONS
from cvm.program import DTYPES, IntArray, Program
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from tests.support.cvm_programs import program_of, random_program

FOLDER = Path(__file__).parents[1] / "cvm" / "golden"
INDEX = FOLDER / "golden.json"
SAMPLES = 3
SEEDS = (1, 2, 3)
WEIGHTED = ("conv2d", "conv2d_transpose", "dense")
ADDED = ("interpolate",)  # after the files of their families
LAYOUTS = {
    "|b1": (0, "?"),
    "|i1": (1, "b"),
    "|u1": (2, "B"),
    "<i2": (3, "h"),
    "<i4": (4, "i"),
}


def inputs_of(program: Program, sample: int) -> dict[str, IntArray]:
    """Return the least integers for sample 0, else a fixed sequence from the interval."""
    arrays = {}
    for place, item in enumerate(program.inputs):
        steps = range(place, place + item.type.elements)
        values = [
            item.lo
            + sample
            * (step * 2654435761 + 97)
            % 2**32
            % (item.hi - item.lo + 1)
            for step in steps
        ]
        arrays[item.name] = np.array(values, DTYPES[item.type.dtype]).reshape(
            item.type.shape
        )
    return arrays


def digest(array: IntArray) -> bytes:
    """Return the specification's SHA-256 of dtype code, rank, dimensions and elements."""
    code, letter = LAYOUTS[array.dtype.newbyteorder("<").str]
    head = struct.pack(f"<BB{array.ndim}Q", code, array.ndim, *array.shape)
    return hashlib.sha256(
        head + struct.pack(f"<{array.size}{letter}", *array.ravel().tolist())
    ).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the Merkle tree hash that RFC 6962 section 2.1 defines.

    It splits at the largest power of two below the count.
    """
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return hashlib.sha256(
        b"\x01" + root(leaves[:half]) + root(leaves[half:])
    ).digest()


def record(program: Program) -> dict[str, Any]:
    """Return the entry of golden.json for one file."""
    return {
        "program": file_format.program_id(program),
        "metadata": file_format.metadata_digest(program),
        "samples": [
            _record_sample(program, sample) for sample in range(SAMPLES)
        ],
    }


def with_weights_of_4_bits(program: Program) -> Program:
    """Return the program with its weights in a sixteenth of their size, and packed."""
    weights = {
        item.operands[1] - program.first_constant
        for item in program.instructions
        if item.name in WEIGHTED
    }
    constants = tuple(
        array >> 4 if index in weights else array
        for index, array in enumerate(program.constants)
    )
    return replace(program, constants=constants, packed=frozenset(weights))


def _record_sample(program: Program, sample: int) -> dict[str, Any]:
    digests: list[bytes] = []
    outputs = run(
        validate(program),
        inputs_of(program, sample),
        observe=lambda _, value: digests.append(digest(value)),
    )
    return {
        "outputs": {
            name: digest(value).hex() for name, value in outputs.items()
        },
        "trace": root(digests).hex(),
    }


def main() -> None:
    families: dict[str, tuple[str, ...]] = {}
    for name, spec in INSTRUCTIONS.items():
        families[spec.family] = (*families.get(spec.family, ()), name)
    families |= {name: (name,) for name in ADDED}
    programs = {
        f"{name}-{seed}": program_of(names, seed)
        for name, names in families.items()
        for seed in SEEDS
    }
    programs |= {
        f"chain-{seed}": random_program(seed, steps=30) for seed in SEEDS
    }
    programs |= {  # format version 2: constants of 4 bits
        f"packed-{seed}": with_weights_of_4_bits(program_of(WEIGHTED, seed))
        for seed in SEEDS
    }
    FOLDER.mkdir(exist_ok=True)
    index = json.loads(INDEX.read_text()) if INDEX.exists() else {}
    for name, program in programs.items():
        if name not in index:
            file_format.write(program, FOLDER / f"{name}.cvm")
            index[name] = record(program)
    INDEX.write_text(json.dumps(index, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
