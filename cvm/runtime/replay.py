"""Runs a job again and finds the first thing in which it differs from a receipt, and from a trace if there is one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cvm.file import format as file_format
from cvm.runtime import receipt as receipts
from cvm.runtime import trace as traces
from cvm.runtime.execution import Result
from cvm.runtime.receipt import Mismatch, Receipt
from cvm.runtime.record import RecordingJob
from cvm.runtime.trace import SampleTrace, Trace


def first_mismatch(
    job: RecordingJob, receipt: Receipt, trace: Trace | None
) -> Mismatch | None:
    """None if every digest, cost and root agrees. Differences that need no run are found first."""
    return (
        receipts.run_mismatch(
            receipt,
            program_id=job.program_id,
            metadata=_metadata(job, receipt),
            samples=len(job.samples),
        )
        or (_trace_header_mismatch(job, trace) if trace else None)
        or _inputs_mismatch(job, receipt)
        or _results_mismatch(job, receipt, trace)
        or receipts.root_mismatch(receipt)
    )


def not_compared(job: RecordingJob, receipt: Receipt) -> list[str]:
    """The entries of the receipt that this replay does not compare."""
    return receipts.not_compared(
        receipt, real=bool(job.clipping), metadata=_metadata(job, receipt)
    )


def _metadata(job: RecordingJob, receipt: Receipt) -> str | None:
    digest = file_format.metadata_digest(job.form.program)
    return receipts.metadata_to_compare(receipt, used=job.metadata, own=digest)


def _trace_header_mismatch(job: RecordingJob, trace: Trace) -> Mismatch | None:
    for what, expected, actual in (
        ("the program of the trace", trace.program_id, job.program_id),
        (
            "the number of samples in the trace",
            str(len(trace.samples)),
            str(len(job.samples)),
        ),
        (
            "the trace's first_value",
            str(trace.first_value),
            str(job.first_value),
        ),
    ):
        if expected != actual:
            return Mismatch(what, expected, actual)
    return None


def _inputs_mismatch(job: RecordingJob, receipt: Receipt) -> Mismatch | None:
    for number, (sample, expected) in enumerate(
        zip(job.samples, receipt.samples, strict=True)
    ):
        digests = receipts.digests_of(sample)
        mismatch = receipts.digests_mismatch(
            f"sample {number}, input", expected.inputs, digests
        )
        if mismatch:
            return mismatch
    return None


def _results_mismatch(
    job: RecordingJob, receipt: Receipt, trace: Trace | None
) -> Mismatch | None:
    traced = trace is not None or any(
        sample.trace for sample in receipt.samples
    )
    for number, result in enumerate(job.results(traced=traced)):
        actual = job.sample_receipt(number, result)
        mismatch = (
            _trace_mismatch(job, trace, number, result) if trace else None
        )
        mismatch = mismatch or receipts.sample_mismatch(
            number, receipt.samples[number], actual
        )
        if mismatch:
            return mismatch
    return None


def _trace_mismatch(
    job: RecordingJob, trace: Trace, number: int, result: Result
) -> Mismatch | None:
    """The first instruction of a sample whose value has another digest than in the trace."""
    difference = traces.sample_difference(
        trace.samples[number], SampleTrace.of(result.digests), number
    )
    if difference is None:
        return None
    what = (
        difference.reason
        if difference.instruction is None
        else _instruction(job, difference.instruction)
    )
    return Mismatch(
        f"sample {number}, {what} in the trace",
        difference.expected,
        difference.found,
    )


def _instruction(job: RecordingJob, index: int) -> str:
    """The instruction's number, its value and, if the metadata names it, the float tensor that it represents."""
    program, value = job.form.program, job.first_value + index
    source = (
        program.metadata.values[value].source
        if program.metadata and value in program.metadata.values
        else ""
    )
    return f"instruction {index} (%{value} = {program.instructions[index].name}{', ' + source if source else ''})"


def as_json(
    job: RecordingJob, receipt: Receipt, mismatch: Mismatch | None
) -> dict[str, Any]:
    """The answer for other programs."""
    return {
        "match": mismatch is None,
        "program": job.program_id,
        "samples": len(job.samples),
        "root": receipt.root.hex(),
        "mismatch": None if mismatch is None else asdict(mismatch),
    }
