"""Concrete as a machine: a client that encrypts and a server that computes, each a process, with files between them.

The folder is the one that `cvm export --to concrete` writes; it is gone when the machine is, with its keys.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import perf_counter

from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.concrete.environment import concrete_python, ran
from cvm.export.concrete.folder import write
from cvm.file import disk, npy
from cvm.file import format as file_format
from cvm.program import DTYPES, IntArray
from cvm.proof.validate import Proven
from cvm.reference.interpreter import ValueCallback
from cvm.runtime.arrays import ArrayFile
from cvm.runtime.backends import (
    BackendEffort,
    BackendOptions,
    BackendStatement,
    require_untraced,
)

ENGINE_VERSION = "2.11.0"  # of concrete-python
ENCRYPTED, SIMULATED = "tfhe", "tfhe, simulated"
ERROR_BITS = 40  # an output differs with 2^-40


@dataclass
class Concrete:
    """Circuit and keys are made when the first sample comes, or before. A simulation has neither, and hides nothing."""

    form: Proven
    artifact: Artifact
    simulated: bool = False
    name: str = "concrete"
    shares_a_sample: bool = True
    _folder: Path | None = field(default=None, repr=False)
    _compile_seconds: float = 0.0
    _efforts: list[tuple[float, int]] = field(default_factory=list, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def statement(self) -> BackendStatement:
        """For the receipt."""
        protocol = SIMULATED if self.simulated else ENCRYPTED
        probability = f"2^-{ERROR_BITS}"
        return BackendStatement(
            self.name, ENGINE_VERSION, protocol, probability
        )

    @property
    def program_id(self) -> str:
        """The id of the program, of which the server has the weights."""
        return file_format.program_id(self.form.program)

    @property
    def effort(self) -> BackendEffort:
        """Seconds of the server for each sample, and the bytes of what the client sends; keys are counted as compiling."""
        seconds, sent = zip(*self._efforts, strict=True)
        sends = (0 if self.simulated else 1,) * len(seconds)
        return BackendEffort(self._compile_seconds, seconds, sent, sends)

    def prepare(self, *, traced: bool) -> None:
        """Compile, and make keys."""
        require_untraced("concrete", traced=traced)
        with self._lock:
            self._started()

    def run(
        self,
        sample: Mapping[str, IntArray],
        *,
        observe: ValueCallback | None = None,
        threads: int = 1,
    ) -> dict[str, IntArray]:
        """Samples run one after another, whatever the threads. Values inside the program cannot be observed."""
        if observe is not None:
            raise BadInput("the back end concrete hides every value between")
        with self._lock:
            folder = self._started()
            x, y = folder / "x.npz", folder / "y.npz"
            with x.open("wb") as file:
                npy.write_npz(file, sample)
            arguments = ("--input", str(x), "--output", str(y))
            self._efforts.append(self._computed(folder, arguments))
            names = tuple(output.name for output in self.form.program.outputs)
            return self._checked(dict(ArrayFile(y, names)))

    def _computed(
        self, folder: Path, arguments: tuple[str, ...]
    ) -> tuple[float, int]:
        """Run the commands that write the outputs; return the server's seconds and the bytes sent."""
        if self.simulated:
            start = perf_counter()
            ran(folder, "simulate", *arguments)
            return perf_counter() - start, 0
        ran(folder, "client", "encrypt", *arguments)
        printed = ran(folder, "server", "run")
        ran(folder, "client", "decrypt", *arguments)
        sent = (folder / "server" / "input.bin").stat().st_size
        return float(json.loads(printed.splitlines()[-1])["seconds"]), sent

    def _started(self) -> Path:
        if self._folder is None:
            temporary = TemporaryDirectory(prefix="cvm-concrete-")
            weakref.finalize(self, temporary.cleanup)
            folder = Path(temporary.name) / "program"
            disk.write_folder(folder, self.artifact.contents)
            start = perf_counter()
            if not self.simulated:
                ran(folder, "compile", "--p-error", str(2.0**-ERROR_BITS))
                ran(folder, "client", "keygen")
            self._compile_seconds = perf_counter() - start
            self._folder = folder
        return self._folder

    def _checked(self, outputs: dict[str, IntArray]) -> dict[str, IntArray]:
        """The outputs, if they have the types that the program gives them."""
        for output in self.form.program.outputs:
            type_, array = self.form.types[output.value], outputs[output.name]
            if (array.dtype, array.shape) != (DTYPES[type_.dtype], type_.shape):
                raise BadInput(
                    f"concrete: output '{output.name}' is {array.dtype}{list(array.shape)}; expected {type_}"
                )
        return outputs


def open_machine(form: Proven, options: BackendOptions) -> Concrete:
    """The entry point: the machine; BadInput if the program or the options do not suit, or Concrete is not there."""
    if options.protocol:
        raise BadInput(
            f"--protocol {options.protocol}: the back end concrete has one scheme; leave it away"
        )
    if options.hide_weights:
        raise BadInput(
            "--secret-weights: the server of the back end concrete has the weights; leave it away"
        )
    artifact = write(form, "program")
    concrete_python()
    return Concrete(form, artifact, options.simulate)
