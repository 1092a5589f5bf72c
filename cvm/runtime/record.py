"""One run, prepared and recorded: from a program file and an input file to outputs, receipt and trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy.typing as npt

from cvm.cluster import Cluster
from cvm.errors import BadInput
from cvm.file import format as file_format
from cvm.program import IntArray, Program
from cvm.proof.cost import Allowance, cost
from cvm.proof.validate import Proven, WellFormed, check, validate
from cvm.runtime import boundary, execution
from cvm.runtime import receipt as receipts
from cvm.runtime.arrays import ArrayFile
from cvm.runtime.backends import BackendMachine
from cvm.runtime.execution import Result
from cvm.runtime.machine import Machine, choose, require
from cvm.runtime.pictures import Pictures, are_pictures
from cvm.runtime.receipt import Receipt, SampleReceipt
from cvm.runtime.spread import ClusterRun
from cvm.runtime.trace import SampleTrace, Trace

SampleProgress = Callable[
    [Iterable[Result], int], Iterable[Result]
]  # the results, and how many there will be


@dataclass(frozen=True)
class RecordingJob:
    """A program, the samples to run it on, and how. `metadata` is its digest if real values go through it."""

    form: WellFormed
    machine: Machine
    program_id: str
    metadata: str | None
    samples: list[dict[str, IntArray]]
    clipping: tuple[boundary.Clipping, ...]  # empty for integer inputs
    batch: bool
    threads: int
    progress: SampleProgress
    notes: tuple[str, ...] = ()  # what people should know of the inputs
    pictures: tuple[str, ...] = ()  # the files of the samples, if they are such
    remote: ClusterRun | None = None  # the cluster that runs the samples
    backend: BackendMachine | None = None  # the machine, if it is a back end's

    @property
    def clipped(self) -> tuple[int, ...] | None:
        """The number of values clipped in each sample; None for integer inputs."""
        counts = [clipping.counts for clipping in self.clipping]
        return tuple(map(sum, zip(*counts, strict=True))) if counts else None

    def sample_receipt(self, number: int, result: Result) -> SampleReceipt:
        """The entry of a sample in the receipt."""
        clipped = self.clipped[number] if self.clipped else None
        return receipts.of_sample(
            self.samples[number], result, self._price, clipped
        )

    @cached_property
    def _price(self) -> int:
        return cost(self.form).total

    @property
    def first_value(self) -> int:
        """The number of the first instruction's value."""
        return self.form.program.first_instruction

    def results(self, *, traced: bool) -> Iterator[Result]:
        """Run the samples, in order, each once."""
        if self.remote is not None:
            results = self.remote.run_samples(
                self.form.program, self.samples, traced=traced
            )
        else:
            self.machine.prepare(traced=traced)
            results = execution.run_samples(
                self.machine, self.samples, traced=traced, threads=self.threads
            )
        yield from self.progress(results, len(self.samples))


@dataclass(frozen=True)
class Backend:
    """A back end by name, and what makes its machine for a proven program."""

    name: str
    opener: Callable[[Proven], BackendMachine]

    def require_alone(self, engine: str, *, checked: bool) -> None:
        """BadInput if an engine, or a run without a proof, was chosen, too."""
        if checked:
            raise BadInput(
                f"the back end {self.name} runs proven programs only: leave --checked away"
            )
        if engine != "auto":
            raise BadInput(
                f"the engine {engine} or the back end {self.name}: choose one"
            )

    def open(self, form: WellFormed) -> BackendMachine:
        """Its machine for a proven program."""
        assert isinstance(form, Proven)
        return self.opener(form)


@dataclass(frozen=True)
class Record:
    """The outputs of a run (real numbers if the inputs were), and its receipt and trace if requested."""

    outputs: dict[str, npt.NDArray[Any]]
    receipt: Receipt | None
    trace: Trace | None


def prepare(
    program_path: Path,
    input_path: Path,
    *,
    real: bool,
    strict: bool = False,
    checked: bool,
    engine: str,
    threads: int,
    allowance: Allowance,
    progress: SampleProgress,
    cluster: Cluster | None = None,
    backend: Backend | None = None,
) -> RecordingJob:
    """Read and check everything before anything runs. The proof is left out only if `checked`.

    A `backend` takes the place of the engine.
    """
    require(engine, checked=checked)
    if backend:
        backend.require_alone(engine, checked=checked)
    program = file_format.read(program_path)
    form = check(program) if checked else validate(program)
    allowance.require(form)
    if real:
        boundary.require_scales(program)
    opened = backend.open(form) if backend else None
    arrays = _open(input_path, program, real=real)
    job = job_on(
        form,
        opened or choose(form, engine, checked=checked),
        arrays,
        real=real,
        strict=strict,
        threads=threads,
        progress=progress,
    )
    job = replace(job, backend=opened)
    if isinstance(arrays, Pictures):
        job = replace(job, notes=arrays.notes, pictures=arrays.names)
    if cluster is None:
        return job
    return replace(job, remote=ClusterRun(cluster, engine, checked))


def job_on(
    form: WellFormed,
    machine: Machine,
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    real: bool,
    strict: bool,
    threads: int,
    progress: SampleProgress = lambda results, count: results,
) -> RecordingJob:
    """The job of running arrays on a machine.

    With `strict`, BadInput if a real value lies outside what the program's inputs can hold.
    """
    program = form.program
    if real:
        boundary.require_scales(program)
    quantized = boundary.read_inputs(program, arrays, real=real)
    if strict:
        quantized.require_unclipped()
    integers = quantized.integers
    return RecordingJob(
        form,
        machine,
        file_format.program_id(program),
        file_format.metadata_digest(program) if real else None,
        boundary.split_samples(program, integers),
        quantized.clipping,
        boundary.is_batch(program, integers),
        threads,
        progress,
    )


def samples_of(
    form: WellFormed, path: Path, *, real: bool
) -> list[dict[str, IntArray]]:
    """The samples of a file, as integers by input name."""
    if real:
        boundary.require_scales(form.program)
    arrays = _open(path, form.program, real=real)
    quantized = boundary.read_inputs(form.program, arrays, real=real)
    return boundary.split_samples(form.program, quantized.integers)


def _open(
    path: Path, program: Program, *, real: bool
) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays of a file, or the pixels of pictures, by input name."""
    if are_pictures(path, program):
        return Pictures(path, program)
    check = partial(boundary.require_suited, program, real=real)
    return ArrayFile(path, tuple(port.name for port in program.inputs), check)


def record(job: RecordingJob, *, receipt: bool, trace: bool) -> Record:
    """Run all samples. Only outputs and digests are kept."""
    noted: list[SampleReceipt] = []
    traces: list[SampleTrace] = []

    def outputs() -> Iterator[dict[str, IntArray]]:
        for number, result in enumerate(job.results(traced=trace)):
            if receipt:
                noted.append(job.sample_receipt(number, result))
            if trace:
                traces.append(SampleTrace.of(result.digests))
            yield result.outputs

    integers = boundary.join_outputs(
        job.form, outputs(), len(job.samples), batch=job.batch
    )
    return Record(
        boundary.dequantize(job.form.program, integers)
        if job.metadata
        else dict(integers),
        _receipt(job, noted) if receipt else None,
        Trace(job.program_id, job.first_value, tuple(traces))
        if trace
        else None,
    )


def _receipt(job: RecordingJob, noted: list[SampleReceipt]) -> Receipt:
    if job.backend is None:
        return Receipt.of(job.program_id, job.metadata, noted)
    program = job.backend.program_id or job.program_id
    return Receipt.of(program, job.metadata, noted, job.backend.statement)


def as_json(job: RecordingJob, made: Record, *, values: bool) -> dict[str, Any]:
    """The facts of a run for other programs; with `values`, every element of the outputs."""
    clipped = {clipping.name: clipping.count for clipping in job.clipping}
    outputs = {
        name: {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            **({"values": array.tolist()} if values else {}),
        }
        for name, array in made.outputs.items()
    }
    return {
        "program": job.program_id,
        "samples": len(job.samples),
        "clipped": clipped,
        "outputs": outputs,
        "root": made.receipt.root.hex() if made.receipt else None,
        "backend": _backend_facts(job),
    }


def _backend_facts(job: RecordingJob) -> dict[str, Any] | None:
    """Which back end ran, and what that took."""
    if job.backend is None:
        return None
    return {**job.backend.statement.content(), **asdict(job.backend.effort)}
