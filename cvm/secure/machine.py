"""SPU as a machine: all parties in one process of the environment that has SPU, given samples one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from cvm.errors import BadInput
from cvm.file import format as file_format
from cvm.program import DTYPES, IntArray, Program
from cvm.proof.validate import Proven
from cvm.reference.interpreter import ValueCallback
from cvm.runtime.accumulation import Carried
from cvm.runtime.backends import (
    BackendEffort,
    BackendOptions,
    BackendStatement,
    require_untraced,
)
from cvm.secure import exchange
from cvm.secure.environment import SpuProcess, spu_python
from cvm.secure.protocols import ENGINE_VERSION, MpcProtocol, protocol_of
from cvm.secure.refusals import require_runnable
from cvm.secure.seat import Seat
from cvm.secure.weights import bounds_of, hidden_weights, without_weights


@dataclass(frozen=True)
class SecureRun:
    """How a program is to be run: all parties in one process, or this one at its seat."""

    protocol: MpcProtocol
    options: BackendOptions
    seat: Seat | None = None
    carried: exchange.Places = ()

    def job(self, program: Program) -> exchange.Job:
        """The job of the process, with the terms that all parties must share."""
        hides = self.options.hide_weights
        shown = without_weights(program) if hides else program
        terms: dict[str, Any] = {
            "program": file_format.program_id(shown),
            "protocol": self.protocol.name,
            "secret_weights": hides,
        }
        if self.carried:
            terms["carried"] = [list(pair) for pair in self.carried]
        if self.seat is not None:
            terms["client"] = self.seat.client
            terms["weights_from"] = self.seat.weights_from
        program_id = file_format.program_id(program)
        name = self.protocol.name
        return exchange.Job(
            name, hides, self.seat, terms, program_id, self.carried
        )


@dataclass
class Spu:
    """The process starts when the first sample comes, or before."""

    form: Proven
    secure_run: SecureRun
    name: str = "spu"
    shares_a_sample: bool = True
    _process: SpuProcess | None = field(default=None, repr=False)
    _compile_seconds: float = 0.0
    _program_id: str | None = None
    _efforts: list[dict[str, Any]] = field(default_factory=list, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def statement(self) -> BackendStatement:
        """For the receipt."""
        protocol = self.secure_run.protocol
        return BackendStatement(
            self.name, ENGINE_VERSION, protocol.name, protocol.error_probability
        )

    @property
    def program_id(self) -> str | None:
        """The id of the program that runs: of that with the weights, if another party has these."""
        return self._program_id

    @property
    def effort(self) -> BackendEffort:
        """What the first party did for each sample so far."""
        columns = {
            name: tuple(effort[name] for effort in self._efforts)
            for name in ("seconds", "sent_bytes", "sends")
        }
        return BackendEffort(self._compile_seconds, **columns)

    def prepare(self, *, traced: bool) -> None:
        """Start the process, which compiles the program."""
        require_untraced("spu", traced=traced)
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
            raise BadInput("the back end spu hides every value between")
        number = self._sent(sample)
        process = self._started()
        return self._named(process.taken(f"{number}.out.npz"))

    def accumulate(
        self, samples: Iterable[Mapping[str, IntArray]]
    ) -> dict[str, IntArray]:
        """Run samples whose outputs go on as shares; only the last ones are opened."""
        carried = Carried.of(self.form)
        if self._process is not None:
            raise BadInput(
                "this machine has run samples, whose outputs it would go on with; open another one to accumulate"
            )
        self.secure_run = replace(self.secure_run, carried=carried.places)
        start = carried.start()
        for sample in samples:
            self._sent({**sample, **start})
        process = self._started()
        process.tell(exchange.OPEN)
        process.answer()
        return self._named(process.taken("open.out.npz"))

    def _sent(self, sample: Mapping[str, IntArray]) -> int:
        """Send one sample to the process, which runs it; return its number."""
        program = self.form.program
        arrays = [sample[input_.name] for input_ in program.inputs]
        with self._lock:
            process = self._started()
            number = len(self._efforts)
            path = process.folder / f"{number}.in.npz"
            exchange.write_arrays(path, arrays)
            process.tell(b"%d\n" % number)
            self._efforts.append(process.answer())
            path.unlink()
        return number

    def _started(self) -> SpuProcess:
        if self._process is None:
            process = start_process(self.secure_run, self.form)
            ready = process.answer()
            self._compile_seconds = float(ready["compile_seconds"])
            self._program_id = ready["program"]
            self._process = process
        return self._process

    def _named(self, arrays: list[IntArray]) -> dict[str, IntArray]:
        """The outputs by name, if they have the types that the program gives them."""
        outputs_by_name = {}
        outputs = self.form.program.outputs
        for output, array in zip(outputs, arrays, strict=True):
            type_ = self.form.types[output.value]
            outputs_by_name[output.name] = array.reshape(type_.shape)
            if array.dtype != DTYPES[type_.dtype]:
                raise BadInput(
                    f"spu: output '{output.name}' is {array.dtype}; expected {type_}"
                )
        return outputs_by_name


def start_process(secure_run: SecureRun, form: Proven) -> SpuProcess:
    """A process that is about to compile the program."""
    process = SpuProcess()
    file_format.write(form.program, process.folder / exchange.PROGRAM)
    exchange.write_job(process.folder, secure_run.job(form.program))
    process.start()
    return process


def open_machine(form: Proven, options: BackendOptions) -> Spu:
    """The machine, with all parties in one process; the entry point of this back end."""
    return open_run(SecureRun(protocol_of(options.protocol), options), form)


def open_run(secure_run: SecureRun, form: Proven) -> Spu:
    """The machine; BadInput if the program, the seat or the environment does not suit."""
    hide_weights = secure_run.options.hide_weights
    if secure_run.seat is not None:
        secure_run.seat.require_suited(
            secure_run.protocol, hide_weights=hide_weights
        )
    hidden = hidden_weights(form.program) if hide_weights else ()
    require_runnable(form, bounds_of(form, hidden))
    spu_python()
    return Spu(form, secure_run)


def serve(secure_run: SecureRun, form: Proven) -> dict[str, Any]:
    """Take part without inputs, until the client has no more samples; how many there were, and what each took."""
    open_run(secure_run, form)
    process = start_process(secure_run, form)
    try:
        process.answer()
        return process.answer()
    finally:
        process.close()
