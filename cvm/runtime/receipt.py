"""Receipts: digests of a program, its inputs and its outputs, for anyone to replay (`cvm/SPEC.md`, "Receipt")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cvm.file import document
from cvm.program import IntArray
from cvm.proof.cost import WEIGHTS_VERSION
from cvm.runtime.execution import Result
from cvm.runtime.trace import digest, merkle_root

RECEIPT_FORMAT = "cvm-receipt-1"


@dataclass(frozen=True)
class SampleReceipt:
    """Digests of one sample's integer inputs and outputs by name, its cost, and its trace's root if one was made."""

    inputs: Mapping[str, bytes]
    outputs: Mapping[str, bytes]
    cost: int
    trace: bytes | None = None

    def content(self) -> dict[str, Any]:
        """As JSON; its compact form is the sample's leaf in the Merkle tree."""
        found: dict[str, Any] = {
            "inputs": {
                name: value.hex() for name, value in self.inputs.items()
            },
            "outputs": {
                name: value.hex() for name, value in self.outputs.items()
            },
            "cost": self.cost,
        }
        return (
            found
            if self.trace is None
            else {**found, "trace": self.trace.hex()}
        )


@dataclass(frozen=True)
class Receipt:
    """One run. `metadata` is its digest if real values went through it; `root` is as computed or as stated."""

    program_id: str
    metadata: str | None
    weights: int
    samples: tuple[SampleReceipt, ...]
    root: bytes

    @staticmethod
    def of(
        program_id: str, metadata: str | None, samples: Sequence[SampleReceipt]
    ) -> Receipt:
        """A receipt with its true root, at this machine's cost weights."""
        return Receipt(
            program_id,
            metadata,
            WEIGHTS_VERSION,
            tuple(samples),
            samples_root(samples),
        )


@dataclass(frozen=True)
class Mismatch:
    """The first entry in which a run and a receipt differ, in words, with the value of each."""

    what: str
    expected: str
    found: str


def samples_root(samples: Sequence[SampleReceipt]) -> bytes:
    """The Merkle root over the samples."""
    return merkle_root(
        [document.dump_compact(sample.content()) for sample in samples]
    )


def digests_of(arrays: Mapping[str, IntArray]) -> dict[str, bytes]:
    """The digest of each array."""
    return {name: digest(array) for name, array in arrays.items()}


def of_sample(
    inputs: Mapping[str, IntArray], result: Result, cost: int
) -> SampleReceipt:
    """The entry of one sample in the receipt."""
    root = merkle_root(result.digests) if result.digests else None
    return SampleReceipt(
        digests_of(inputs), digests_of(result.outputs), cost, root
    )


def run_mismatch(
    receipt: Receipt, *, program_id: str, metadata: str | None, samples: int
) -> Mismatch | None:
    """The differences that show before anything runs. `metadata` is None unless this run converts real values."""
    if receipt.program_id != program_id:
        return Mismatch("the program", receipt.program_id, program_id)
    if receipt.metadata and metadata and receipt.metadata != metadata:
        return Mismatch("the metadata", receipt.metadata, metadata)
    if receipt.weights != WEIGHTS_VERSION:
        return Mismatch(
            "the version of the cost weights",
            str(receipt.weights),
            str(WEIGHTS_VERSION),
        )
    if len(receipt.samples) != samples:
        return Mismatch(
            "the number of samples", str(len(receipt.samples)), str(samples)
        )
    return None


def sample_mismatch(
    number: int, expected: SampleReceipt, found: SampleReceipt
) -> Mismatch | None:
    """The first input, output, cost or trace root of a sample that differs."""
    return (
        digests_mismatch(
            f"sample {number}, input", expected.inputs, found.inputs
        )
        or digests_mismatch(
            f"sample {number}, output", expected.outputs, found.outputs
        )
        or _cost_or_trace_mismatch(number, expected, found)
    )


def digests_mismatch(
    what: str, expected: Mapping[str, bytes], found: Mapping[str, bytes]
) -> Mismatch | None:
    """The first name, in order of the program's names and then of the receipt's, whose digests differ."""
    for name in [*found, *sorted(expected.keys() - found.keys())]:
        one, other = expected.get(name), found.get(name)
        if one != other:
            return Mismatch(
                f"{what} '{name}'",
                one.hex() if one else "nothing",
                other.hex() if other else "nothing",
            )
    return None


def _cost_or_trace_mismatch(
    number: int, expected: SampleReceipt, found: SampleReceipt
) -> Mismatch | None:
    if expected.cost != found.cost:
        return Mismatch(
            f"sample {number}, cost", str(expected.cost), str(found.cost)
        )
    if expected.trace and found.trace and expected.trace != found.trace:
        return Mismatch(
            f"sample {number}, root of the trace",
            expected.trace.hex(),
            found.trace.hex(),
        )
    return None


def root_mismatch(receipt: Receipt) -> Mismatch | None:
    """Whether the receipt's root is that of its own samples."""
    computed = samples_root(receipt.samples)
    if receipt.root == computed:
        return None
    return Mismatch(
        "the root over the samples", receipt.root.hex(), computed.hex()
    )


def to_json(receipt: Receipt) -> str:
    """The one text of a receipt."""
    content = {
        "format": RECEIPT_FORMAT,
        "program": receipt.program_id,
        "cost_weights": receipt.weights,
        "samples": [sample.content() for sample in receipt.samples],
        "root": receipt.root.hex(),
    }
    return document.dump(
        content
        if receipt.metadata is None
        else {**content, "metadata": receipt.metadata}
    )


def from_json(data: bytes, name: str) -> Receipt:
    """Read what `to_json` wrote; BadInput naming `name` and the place for anything else. The root is kept as stated."""
    required = ("program", "cost_weights", "samples", "root")
    top = document.parse_as(
        RECEIPT_FORMAT, data, name, required=required, optional=("metadata",)
    )
    samples = document.items(top["samples"], name, "samples")
    return Receipt(
        document.digest(top["program"], name, "program").hex(),
        document.digest(top["metadata"], name, "metadata").hex()
        if "metadata" in top
        else None,
        document.count(top["cost_weights"], name, "cost_weights"),
        tuple(
            _sample_from_json(item, name, f"samples[{number}]")
            for number, item in enumerate(samples)
        ),
        document.digest(top["root"], name, "root"),
    )


def _sample_from_json(content: Any, name: str, where: str) -> SampleReceipt:
    sample = document.fields(
        content,
        name,
        where,
        required=("inputs", "outputs", "cost"),
        optional=("trace",),
    )
    return SampleReceipt(
        document.digests_by_name(sample["inputs"], name, f"{where}.inputs"),
        document.digests_by_name(sample["outputs"], name, f"{where}.outputs"),
        document.count(sample["cost"], name, f"{where}.cost"),
        document.digest(sample["trace"], name, f"{where}.trace")
        if "trace" in sample
        else None,
    )
