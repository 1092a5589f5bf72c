"""A loaded program as an object of Python: what it is, and what can be done with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy.typing as npt

from cvm.errors import ClippedInput
from cvm.file import format as file_format
from cvm.program import IntArray
from cvm.proof.cost import cost
from cvm.proof.validate import Proven, validate
from cvm.runtime import boundary, generation, machine, record
from cvm.runtime import receipt as receipts
from cvm.runtime import replay as replays
from cvm.runtime.arguments import at_least_1, named_arrays, tokens_of
from cvm.runtime.boundary import RealArray
from cvm.runtime.decoder import Decoder
from cvm.runtime.execution import run_on
from cvm.runtime.generation import Generation
from cvm.runtime.machine import Machine
from cvm.runtime.ports import Port, inputs_of, outputs_of
from cvm.runtime.receipt import Mismatch, Receipt

Arrays = Mapping[str, npt.NDArray[Any]] | npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Executable(Proven):
    """A proven program, ready to run, from several Python threads at once if need be."""

    machine: Machine = field(repr=False, compare=False)

    @staticmethod
    def of(proven: Proven, engine: str = "auto") -> Executable:
        """The program on the machine that `engine` names."""
        return Executable(
            proven.program,
            proven.types,
            proven.intervals,
            proven.rescales,
            machine.choose(proven, engine),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pass the program to another process as the bytes of its file, which are proven there."""
        return _proven_again, (
            file_format.encode(self.program),
            self.machine.name,
        )

    @cached_property
    def id(self) -> str:
        """The program id: SHA-256, in hexadecimal, of the file up to its metadata."""
        return file_format.program_id(self.program)

    @cached_property
    def cost(self) -> int:
        """The cost of one sample, the same number on every machine (SPEC section 5)."""
        return cost(self).total

    def verify(self) -> None:
        """Prove once more, from the program alone, that no input can make any value overflow.

        Raises a subclass of `cvm.errors.CvmError` with the reason, if it is not so.
        """
        validate(self.program)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Name, dtype, shape, interval, scale and zero point of each input."""
        return inputs_of(self)

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The same of each output."""
        return outputs_of(self)

    def run(self, arrays: Arrays, *, threads: int = 1) -> dict[str, IntArray]:
        """Integers by input name, one sample or many, to integers by output name.

        The array of an only input may stand alone.

        Many samples are spread over the threads; one sample is shared among them, if the engine runs it.
        """
        return run_on(self, self.machine, self._by_name(arrays), threads)

    def quantize(
        self,
        arrays: Arrays,
        *,
        strict: bool = False,
    ) -> dict[str, IntArray]:
        """Real numbers by input name to the integers that `run` takes, by the program's scales.

        Values outside the range of the calibration are clipped, with a warning of the
        category `cvm.errors.ClippedInput`; with `strict` they are refused by BadInput.
        """
        named = self._by_name(arrays)
        quantized = boundary.quantize_and_count(self.program, named)
        if strict:
            quantized.require_unclipped()
        for clipping in quantized.clipped:
            warnings.warn(str(clipping), ClippedInput, stacklevel=2)
        return quantized.integers

    def dequantize(self, arrays: Arrays) -> dict[str, RealArray]:
        """The integers that `run` gave to real numbers, by the program's scales.

        The array of an only output may stand alone.
        """
        named = named_arrays(self.program.outputs, arrays, "output")
        return boundary.dequantize(self.program, named)

    def receipt(
        self,
        arrays: Arrays,
        *,
        real: bool = False,
        trace: bool = False,
        threads: int = 1,
    ) -> Receipt:
        """Run and return the digests of inputs and outputs, for anyone to replay (SPEC section 7).

        `real` takes real numbers, by the program's scales. With `trace` the digests of every
        instruction's value are bound too.
        """
        job = self._job(arrays, real=real, threads=threads)
        samples = [
            job.sample_receipt(number, result)
            for number, result in enumerate(job.results(traced=trace))
        ]
        return Receipt.of(job.program_id, job.metadata, samples)

    def replay(
        self,
        stated: Receipt | str | PathLike[str],
        arrays: Arrays,
        *,
        real: bool = False,
        threads: int = 1,
    ) -> Mismatch | None:
        """Run again and compare with a receipt or its file: the first thing that differs, or None."""
        if not isinstance(stated, Receipt):
            stated = receipts.load(Path(stated))
        job = self._job(arrays, real=real, threads=threads)
        return replays.first_mismatch(job, stated, None)

    def generate(
        self,
        prompt: Sequence[int],
        count: int,
        *,
        stop: int | None = None,
        receipt: bool = False,
        threads: int = 1,
        **roles: str | None,
    ) -> Generation:
        """The `count` tokens that follow a prompt, or fewer, up to and with the token `stop` (SPEC section 7).

        Each step runs the program once; the token with the greatest logit is next, among equals the lowest.
        `roles` name an input as `token`, `position` or `mask`, and an output as `logits`, where their
        names do not show.
        """
        return generation.generate(
            Decoder.of(self, roles),
            self.machine,
            tokens_of(prompt),
            at_least_1(count, "count"),
            stop=stop,
            threads=threads,
            receipt=receipt,
        )

    def _job(
        self, arrays: Arrays, *, real: bool, threads: int
    ) -> record.RecordingJob:
        return record.job_on(
            self,
            self.machine,
            self._by_name(arrays),
            real=real,
            strict=False,
            threads=at_least_1(threads, "threads"),
        )

    def _by_name(self, arrays: Arrays) -> Mapping[str, npt.NDArray[Any]]:
        return named_arrays(self.program.inputs, arrays, "input")

    def __repr__(self) -> str:
        return (
            f"<cvm program {self.id[:12]}...: {_listed(self.inputs)} -> {_listed(self.outputs)}; "
            f"{len(self.program.instructions)} instructions, proven, {self.machine.name}>"
        )


def _listed(ports: Iterable[Port]) -> str:
    return ", ".join(
        f"{port.name} {port.dtype}{list(port.shape)}" for port in ports
    )


def _proven_again(data: bytes, engine: str) -> Executable:
    return Executable.of(validate(file_format.decode(data)), engine)
