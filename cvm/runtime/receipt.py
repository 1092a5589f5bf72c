"""Receipts: digests of a program, its inputs and its outputs, for anyone to replay (`cvm/SPEC.md`, "Receipt")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cvm.file import document
from cvm.program import IntArray
from cvm.proof.cost import WEIGHTS_VERSION
from cvm.runtime.execution import Result
from cvm.runtime.trace import digest, merkle_root

VERSION = 2  # of the receipts that are written; those of version 1 are read
FORMATS = {1: "cvm-receipt-1", 2: "cvm-receipt-2"}


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
    """One run. `metadata` is its digest if real values went through it; `root` is as computed or as stated.

    In version 1 the root covers the samples only, in version 2 all that the receipt holds.
    """

    program_id: str
    metadata: str | None
    weights: int
    samples: tuple[SampleReceipt, ...]
    root: bytes
    version: int = VERSION

    @staticmethod
    def of(
        program_id: str, metadata: str | None, samples: Sequence[SampleReceipt]
    ) -> Receipt:
        """A receipt with its true root, at this machine's cost weights."""
        unrooted = Receipt(
            program_id, metadata, WEIGHTS_VERSION, tuple(samples), b""
        )
        return replace(unrooted, root=unrooted.true_root())

    def header(self) -> dict[str, Any]:
        """As JSON, all but the samples and the root."""
        found = {
            "format": FORMATS[self.version],
            "program": self.program_id,
            "cost_weights": self.weights,
        }
        if self.metadata is not None:
            found["metadata"] = self.metadata
        return found

    def true_root(self) -> bytes:
        """The Merkle root over the header, with the number of samples, and the samples."""
        leaves = [sample.content() for sample in self.samples]
        if self.version > 1:
            leaves.insert(0, {**self.header(), "samples": len(leaves)})
        return merkle_root([document.dump_compact(leaf) for leaf in leaves])


@dataclass(frozen=True)
class Mismatch:
    """The first entry in which a run and a receipt differ, in words, with the value of each."""

    what: str
    expected: str
    found: str


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


def metadata_to_compare(
    receipt: Receipt, *, used: str | None, own: str | None
) -> str | None:
    """The digest that a receipt's must be: of the metadata that this run `used`, in version 2 of the program's `own`.

    None if there is nothing to compare: in version 1 where the run converts no real values.
    """
    return used if receipt.version == 1 else own or "none"


def run_mismatch(
    receipt: Receipt, *, program_id: str, metadata: str | None, samples: int
) -> Mismatch | None:
    """The differences that show before anything runs; `metadata` as `metadata_to_compare` gives it."""
    if receipt.program_id != program_id:
        return Mismatch("the program", receipt.program_id, program_id)
    stated = receipt.metadata
    if stated and metadata and stated != metadata:
        return Mismatch("the metadata", stated, metadata)
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
    """Whether the receipt's root is that of what it holds."""
    computed = receipt.true_root()
    if receipt.root == computed:
        return None
    return Mismatch("the root", receipt.root.hex(), computed.hex())


def to_json(receipt: Receipt) -> str:
    """The one text of a receipt."""
    samples = [sample.content() for sample in receipt.samples]
    return document.dump(
        {**receipt.header(), "samples": samples, "root": receipt.root.hex()}
    )


def from_json(data: bytes, name: str) -> Receipt:
    """Read what `to_json` wrote; BadInput naming `name` and the place for anything else. The root is kept as stated."""
    required = ("program", "cost_weights", "samples", "root")
    top = document.parse_as(
        [*FORMATS.values()],
        data,
        name,
        required=required,
        optional=("metadata",),
    )
    version = [*FORMATS.values()].index(top["format"]) + 1
    listed = document.items(top["samples"], name, "samples")
    samples = tuple(
        _sample_from_json(item, name, f"samples[{number}]")
        for number, item in enumerate(listed)
    )
    if version > 1:
        _require_all_traced_or_none(samples, name)
    return Receipt(
        document.digest(top["program"], name, "program").hex(),
        document.digest(top["metadata"], name, "metadata").hex()
        if "metadata" in top
        else None,
        document.count(top["cost_weights"], name, "cost_weights"),
        samples,
        document.digest(top["root"], name, "root"),
        version,
    )


def _require_all_traced_or_none(
    samples: Sequence[SampleReceipt], name: str
) -> None:
    """A run traces all of its samples or none, so some roots without the others have been taken away."""
    traced = [sample.trace is not None for sample in samples]
    document.expect(
        all(traced) or not any(traced),
        name,
        f"samples[{traced.index(False) if False in traced else 0}]",
        "lacks 'trace', which other samples have",
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
