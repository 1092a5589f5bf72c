"""Digests of values, their Merkle root, and the trace: one digest per instruction, in order. `cvm/SPEC.md`, "Trace"."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cvm.file import document
from cvm.program import DTYPE_CODES, IntArray, dtype_name

TRACE_FORMAT = "cvm-trace-1"


@dataclass(frozen=True)
class SampleTrace:
    """The digests of one sample's instruction values, and the root as computed from them or as a file states it."""

    digests: tuple[bytes, ...]
    root: bytes

    @staticmethod
    def of(digests: Sequence[bytes]) -> SampleTrace:
        """A trace with its true root."""
        return SampleTrace(tuple(digests), merkle_root(digests))


@dataclass(frozen=True)
class Trace:
    """The traces of all samples of one run; `first_value` is the value number of the first instruction's result."""

    program_id: str
    first_value: int
    samples: tuple[SampleTrace, ...]


@dataclass(frozen=True)
class Difference:
    """The place where two traces differ: an instruction, counted from 0, or a `reason` for the entire trace."""

    reason: str
    sample: int | None = None
    instruction: int | None = None
    expected: str = ""
    found: str = ""


def digest(array: IntArray) -> bytes:
    """SHA-256 over dtype code, rank, dimensions (u64) and row-major elements, all little-endian on every machine."""
    header = bytes([DTYPE_CODES[dtype_name(array)], array.ndim])
    header += b"".join(
        dimension.to_bytes(8, "little") for dimension in array.shape
    )
    content = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    state = hashlib.sha256(header)
    state.update(content.reshape(-1).view(np.uint8).data)
    return state.digest()


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962: leaves hashed after 0x00, pairs after 0x01, an unpaired node promoted; no leaves: SHA-256 of b""."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    level = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves]
    while len(level) > 1:
        paired = [
            hashlib.sha256(b"\x01" + a + b).digest()
            for a, b in zip(level[::2], level[1::2], strict=False)
        ]
        level = paired + level[len(paired) * 2 :]
    return level[0]


def observer(digests: list[bytes]) -> Callable[[int, IntArray], None]:
    """A callback for the interpreter that appends the digest of each instruction's value."""
    return lambda _number, value: digests.append(digest(value))


def first_difference(expected: Trace, actual: Trace) -> Difference | None:
    """The first sample, and in it the first instruction, in which two traces differ; None if they are equal."""
    for what in ("program_id", "first_value"):
        if getattr(expected, what) != getattr(actual, what):
            return Difference(
                what,
                expected=str(getattr(expected, what)),
                found=str(getattr(actual, what)),
            )
    for number, (expected_sample, found_sample) in enumerate(
        zip(expected.samples, actual.samples, strict=False)
    ):
        difference = sample_difference(expected_sample, found_sample, number)
        if difference:
            return difference
    if len(expected.samples) != len(actual.samples):
        return Difference(
            "number of samples",
            expected=str(len(expected.samples)),
            found=str(len(actual.samples)),
        )
    return None


def sample_difference(
    expected: SampleTrace, actual: SampleTrace, sample: int
) -> Difference | None:
    """The first instruction in which the traces of one sample differ, or their lengths or stated roots."""
    for instruction, (expected_digest, found_digest) in enumerate(
        zip(expected.digests, actual.digests, strict=False)
    ):
        if expected_digest != found_digest:
            return Difference(
                "digest",
                sample,
                instruction,
                expected_digest.hex(),
                found_digest.hex(),
            )
    lengths = len(expected.digests), len(actual.digests)
    if lengths[0] != lengths[1]:
        return Difference(
            "number of instructions",
            sample,
            None,
            str(lengths[0]),
            str(lengths[1]),
        )
    if expected.root != actual.root:
        return Difference(
            "root", sample, None, expected.root.hex(), actual.root.hex()
        )
    return None


def describe(difference: Difference, first_value: int) -> str:
    """Where, in words."""
    if difference.sample is None:
        return difference.reason
    if difference.instruction is None:
        return f"sample {difference.sample}, {difference.reason}"
    value = first_value + difference.instruction
    return f"sample {difference.sample}, instruction {difference.instruction} (%{value})"


def to_json(trace: Trace) -> str:
    """The one text of a trace."""
    samples = [
        {
            "digests": [digest.hex() for digest in sample.digests],
            "root": sample.root.hex(),
        }
        for sample in trace.samples
    ]
    return document.dump(
        {
            "format": TRACE_FORMAT,
            "program": trace.program_id,
            "first_value": trace.first_value,
            "samples": samples,
        }
    )


def from_json(data: bytes, name: str) -> Trace:
    """Read what `to_json` wrote; BadInput naming `name` and the place for anything else. Roots are kept as stated."""
    reader = document.DocumentReader(data, name)
    required: dict[str, document.Read] = {
        "program": reader.digest,
        "first_value": reader.count,
        "samples": lambda where: reader.items(where, partial(_sample, reader)),
    }
    top = reader.document([TRACE_FORMAT], required, {})
    return Trace(
        top["program"].hex(), top["first_value"], tuple(top["samples"])
    )


def _sample(reader: document.DocumentReader, where: str) -> SampleTrace:
    required: dict[str, document.Read] = {
        "digests": lambda place: reader.items(place, reader.digest),
        "root": reader.digest,
    }
    fields = reader.fields(where, required, {})
    if not fields["digests"]:
        raise reader.fault(
            f"{where}.digests",
            "is empty; a program has at least one instruction",
        )
    return SampleTrace(tuple(fields["digests"]), fields["root"])
