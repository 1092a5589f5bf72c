"""Receipts: digests of a program, its inputs and its outputs, for anyone to replay (`cvm/SPEC.md`, "Receipt")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from cvm.file import document
from cvm.file.disk import read_bounded, text_writer, write_all
from cvm.program import IntArray
from cvm.proof.cost import WEIGHTS_VERSION
from cvm.runtime.backends import BackendStatement
from cvm.runtime.execution import Result
from cvm.runtime.trace import digest, merkle_root

VERSION = 2  # of the receipts that are written; those of version 1 are read
FORMATS = {1: "cvm-receipt-1", 2: "cvm-receipt-2"}


@dataclass(frozen=True)
class SampleReceipt:
    """Digests of one sample's integer inputs and outputs by name, its cost, and its trace's root if one was made.

    `clipped` counts the real values that were clipped, where the inputs were real.
    """

    inputs: Mapping[str, bytes]
    outputs: Mapping[str, bytes]
    cost: int
    trace: bytes | None = None
    clipped: int | None = None

    def content(self) -> dict[str, Any]:
        """As JSON; its compact form is the sample's leaf in the Merkle tree."""
        content: dict[str, Any] = {
            "inputs": {
                name: value.hex() for name, value in self.inputs.items()
            },
            "outputs": {
                name: value.hex() for name, value in self.outputs.items()
            },
            "cost": self.cost,
        }
        if self.trace is not None:
            content["trace"] = self.trace.hex()
        if self.clipped is not None:
            content["clipped"] = self.clipped
        return content


@dataclass(frozen=True)
class Receipt:
    """One run. `metadata` is its digest if real values went through it; `root` is as computed or as stated.

    In version 1 the root covers the samples only, in version 2 all that the receipt holds but `backend`, which
    another engine leaves as it is.
    """

    program_id: str
    metadata: str | None
    weights: int
    samples: tuple[SampleReceipt, ...]
    root: bytes
    version: int = VERSION
    backend: BackendStatement | None = None

    @staticmethod
    def of(
        program_id: str,
        metadata: str | None,
        samples: Sequence[SampleReceipt],
        backend: BackendStatement | None = None,
    ) -> Receipt:
        """A receipt with its true root, at this machine's cost weights."""
        unrooted = Receipt(
            program_id,
            metadata,
            WEIGHTS_VERSION,
            tuple(samples),
            b"",
            backend=backend,
        )
        return replace(unrooted, root=unrooted.true_root())

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the receipt's file, whole or not at all; returns its path."""
        destination = Path(path)
        write_all({destination: text_writer(to_json(self))})
        return destination

    def header(self) -> dict[str, Any]:
        """As JSON, what the root covers besides the samples."""
        header = {
            "format": FORMATS[self.version],
            "program": self.program_id,
            "cost_weights": self.weights,
        }
        if self.metadata is not None:
            header["metadata"] = self.metadata
        return header

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
    inputs: Mapping[str, IntArray],
    result: Result,
    cost: int,
    clipped: int | None = None,
) -> SampleReceipt:
    """The entry of one sample in the receipt."""
    root = merkle_root(result.digests) if result.digests else None
    return SampleReceipt(
        digests_of(inputs), digests_of(result.outputs), cost, root, clipped
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
    """The first difference that shows before anything runs; `metadata` as `metadata_to_compare` gives it."""
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
    number: int, expected: SampleReceipt, actual: SampleReceipt
) -> Mismatch | None:
    """The first input, output, number of clipped values, cost or trace root of a sample that differs."""
    return (
        digests_mismatch(
            f"sample {number}, input", expected.inputs, actual.inputs
        )
        or digests_mismatch(
            f"sample {number}, output", expected.outputs, actual.outputs
        )
        or _number_mismatch(number, expected, actual)
        or _trace_mismatch(number, expected, actual)
    )


def digests_mismatch(
    what: str, expected: Mapping[str, bytes], actual: Mapping[str, bytes]
) -> Mismatch | None:
    """The first name, in order of the program's names and then of the receipt's, whose digests differ."""
    for name in [*actual, *sorted(expected.keys() - actual.keys())]:
        expected_digest, actual_digest = expected.get(name), actual.get(name)
        if expected_digest != actual_digest:
            return Mismatch(
                f"{what} '{name}'",
                expected_digest.hex() if expected_digest else "nothing",
                actual_digest.hex() if actual_digest else "nothing",
            )
    return None


def _number_mismatch(
    number: int, expected: SampleReceipt, actual: SampleReceipt
) -> Mismatch | None:
    comparable = expected.clipped is not None and actual.clipped is not None
    if comparable and expected.clipped != actual.clipped:
        return Mismatch(
            f"sample {number}, number of clipped values",
            str(expected.clipped),
            str(actual.clipped),
        )
    if expected.cost != actual.cost:
        return Mismatch(
            f"sample {number}, cost", str(expected.cost), str(actual.cost)
        )
    return None


def _trace_mismatch(
    number: int, expected: SampleReceipt, actual: SampleReceipt
) -> Mismatch | None:
    if expected.trace and actual.trace and expected.trace != actual.trace:
        return Mismatch(
            f"sample {number}, root of the trace",
            expected.trace.hex(),
            actual.trace.hex(),
        )
    return None


def not_compared(
    receipt: Receipt, *, real: bool, metadata: str | None
) -> list[str]:
    """The entries of the receipt that a replay does not compare, with the reasons; `metadata` as `run_mismatch` takes it."""
    reasons = []
    if receipt.backend is not None:
        backend = receipt.backend
        stated = f"{backend.name} {backend.version}, {backend.protocol}"
        reasons.append(f"the back end ({stated}), which a replay does not run")
    if not real and any(x.clipped is not None for x in receipt.samples):
        reasons.append("the clipped values, which only --real counts")
    if receipt.metadata and metadata is None:
        reasons.append("the metadata, which only --real reads")
    return reasons


def root_mismatch(receipt: Receipt) -> Mismatch | None:
    """Whether the receipt's root is that of what it holds."""
    computed = receipt.true_root()
    if receipt.root == computed:
        return None
    return Mismatch("the root", receipt.root.hex(), computed.hex())


def to_json(receipt: Receipt) -> str:
    """The one text of a receipt."""
    content = {
        **receipt.header(),
        "samples": [sample.content() for sample in receipt.samples],
        "root": receipt.root.hex(),
    }
    if receipt.backend is not None:
        content["backend"] = receipt.backend.content()
    return document.dump(content)


def load(path: Path) -> Receipt:
    """Read a receipt's file; BadInput with the reason if it is none."""
    return from_json(read_bounded(path, document.MAX_BYTES), str(path))


def from_json(data: bytes, name: str) -> Receipt:
    """Read what `to_json` wrote; BadInput naming `name` and the place for anything else. The root is kept as stated."""
    reader = document.DocumentReader(data, name)
    required: dict[str, document.Read] = {
        "program": reader.digest,
        "cost_weights": reader.count,
        "samples": lambda where: reader.items(where, partial(_sample, reader)),
        "root": reader.digest,
    }
    optional: dict[str, document.Read] = {
        "metadata": reader.digest,
        "backend": partial(_backend, reader),
    }
    top = reader.document([*FORMATS.values()], required, optional)
    version = [*FORMATS.values()].index(top["format"]) + 1
    samples = tuple(top["samples"])
    _require_equal_keys(reader, samples, version)
    if version == 1 and "backend" in top:
        raise reader.fault("", "has the unknown key 'backend'")
    metadata = top.get("metadata")
    return Receipt(
        top["program"].hex(),
        metadata and metadata.hex(),
        top["cost_weights"],
        samples,
        top["root"],
        version,
        top.get("backend"),
    )


def _backend(reader: document.DocumentReader, where: str) -> BackendStatement:
    keys = [field.name for field in fields(BackendStatement)]
    required = dict.fromkeys(keys, reader.text)
    return BackendStatement(**reader.fields(where, required, {}))


def _require_equal_keys(
    reader: document.DocumentReader,
    samples: Sequence[SampleReceipt],
    version: int,
) -> None:
    """BadInput for a sample without what others have, which was taken away, since a run gives it to all or to none."""
    traced = [sample.trace is not None for sample in samples]
    counted = [sample.clipped is not None for sample in samples]
    if version == 1:
        if any(counted):
            where = f"samples[{counted.index(True)}]"
            raise reader.fault(where, "has the unknown key 'clipped'")
        return
    for key, present in (("trace", traced), ("clipped", counted)):
        if len(set(present)) == 2:
            raise reader.fault(
                f"samples[{present.index(False)}]",
                f"lacks '{key}', which other samples have",
            )


def _sample(reader: document.DocumentReader, where: str) -> SampleReceipt:
    required: dict[str, document.Read] = {
        "inputs": reader.digests_by_name,
        "outputs": reader.digests_by_name,
        "cost": reader.count,
    }
    optional: dict[str, document.Read] = {
        "trace": reader.digest,
        "clipped": reader.count,
    }
    return SampleReceipt(**reader.fields(where, required, optional))
