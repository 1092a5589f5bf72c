"""SPU as a machine: all parties in one process of the environment that has SPU, told of samples one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from cvm.errors import BadInput
from cvm.file import disk
from cvm.file import format as file_format
from cvm.program import DTYPES, IntArray
from cvm.proof.validate import Proven
from cvm.reference.interpreter import ValueCallback
from cvm.runtime.backends import (
    BackendEffort,
    BackendOptions,
    BackendStatement,
)
from cvm.secure import exchange
from cvm.secure.environment import SpuProcess, spu_python
from cvm.secure.protocols import ENGINE_VERSION, MpcProtocol, protocol_of
from cvm.secure.refusals import require_runnable
from cvm.secure.weights import bounds_of, hidden_weights


@dataclass
class Spu:
    """The process starts when the first sample comes, or before."""

    form: Proven
    protocol: MpcProtocol
    hide_weights: bool
    name: str = "spu"
    shares_a_sample: bool = True
    _process: SpuProcess | None = field(default=None, repr=False)
    _compile_seconds: float = 0.0
    _efforts: list[dict[str, Any]] = field(default_factory=list, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def statement(self) -> BackendStatement:
        """For the receipt."""
        protocol = self.protocol
        return BackendStatement(
            self.name, ENGINE_VERSION, protocol.name, protocol.error_probability
        )

    @property
    def effort(self) -> BackendEffort:
        """What the first party did for each sample so far."""
        columns = {
            name: tuple(one[name] for one in self._efforts)
            for name in ("seconds", "sent_bytes", "sends")
        }
        return BackendEffort(self._compile_seconds, **columns)

    def prepare(self, *, traced: bool) -> None:
        """Start the process, which compiles the program."""
        if traced:
            raise BadInput(
                "a trace shows every value, which the back end spu hides; leave --trace away"
            )
        with self._lock:
            self._started()

    def run(
        self,
        sample: Mapping[str, IntArray],
        *,
        observe: ValueCallback | None = None,
        threads: int = 1,
    ) -> dict[str, IntArray]:
        """Samples run one after another, whatever the threads. No value between can be observed."""
        if observe is not None:
            raise BadInput("the back end spu hides every value between")
        program = self.form.program
        arrays = [sample[item.name] for item in program.inputs]
        with self._lock:
            process = self._started()
            number = len(self._efforts)
            into, out = (
                process.folder / f"{number}.{way}.npz" for way in ("in", "out")
            )
            exchange.write_arrays(into, arrays)
            process.tell(b"%d\n" % number)
            self._efforts.append(process.answer())
            found = exchange.read_arrays(out)
            into.unlink()
            out.unlink()
        return self._named(found)

    def _started(self) -> SpuProcess:
        if self._process is None:
            process = SpuProcess()
            write_job(process, self.form, self.protocol, self.hide_weights)
            process.start()
            ready = process.answer()
            self._compile_seconds = float(ready["compile_seconds"])
            self._process = process
        return self._process

    def _named(self, arrays: list[IntArray]) -> dict[str, IntArray]:
        """The outputs by name, if they have the types that the program gives them."""
        found = {}
        outputs = self.form.program.outputs
        for item, array in zip(outputs, arrays, strict=True):
            type_ = self.form.types[item.value]
            found[item.name] = array.reshape(type_.shape)
            if array.dtype != DTYPES[type_.dtype]:
                raise BadInput(
                    f"spu: output '{item.name}' is {array.dtype}; expected {type_}"
                )
        return found


def write_job(
    process: SpuProcess, form: Proven, protocol: MpcProtocol, hide_weights: bool
) -> None:
    """What the process needs, in its folder."""
    file_format.write(form.program, process.folder / exchange.PROGRAM)
    job = {"protocol": protocol.name, "hide_weights": hide_weights}
    text = exchange.line_of(job).decode()
    disk.write_all({process.folder / exchange.JOB: disk.text_writer(text)})


def open_machine(form: Proven, options: BackendOptions) -> Spu:
    """The machine; BadInput if a program, a protocol or the environment does not suit."""
    protocol = protocol_of(options.protocol)
    hidden = hidden_weights(form.program) if options.hide_weights else ()
    require_runnable(form, bounds_of(form, hidden))
    spu_python()
    return Spu(form, protocol, options.hide_weights)
