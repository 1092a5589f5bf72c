"""Which machine runs a program: the reference, XLA if asked, or the engine where it is there and the program is proven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from cvm.errors import BadInput
from cvm.program import IntArray
from cvm.proof.validate import Proven, WellFormed
from cvm.reference import interpreter
from cvm.reference.interpreter import ValueCallback
from cvm.runtime import native
from cvm.runtime.native import Engine

CHOICES = ("auto", "reference", "native", "xla")
HOW_TO_GET_THE_ENGINE = (
    "to get it, pip install with a C++20 compiler, or a wheel"
)
HOW_TO_GET_JAX = "to get it, pip install 'mrt-cvm[xla]'"
Sample = Mapping[
    str, IntArray
]  # arrays of the declared dtypes and shapes, inside their intervals


class Machine(Protocol):
    """Runs samples of one program, from any number of Python threads at once."""

    @property
    def name(self) -> str:
        """reference, native or xla."""

    @property
    def shares_a_sample(self) -> bool:
        """Whether several threads can work on one sample."""

    def prepare(self, *, traced: bool) -> None:
        """Do the work of the first run now, so that errors appear before anything runs."""

    def run(
        self,
        sample: Sample,
        *,
        observe: ValueCallback | None = None,
        threads: int = 1,
    ) -> dict[str, IntArray]:
        """Outputs by name; `observe` is called with every instruction's value, in order."""


@dataclass(frozen=True)
class Reference:
    """The interpreter that is right by definition. One sample runs on one thread."""

    form: WellFormed
    checked: bool = False
    name: str = "reference"
    shares_a_sample: bool = False

    def prepare(self, *, traced: bool) -> None:
        """Nothing to do."""

    def run(
        self,
        sample: Sample,
        *,
        observe: ValueCallback | None = None,
        threads: int = 1,
    ) -> dict[str, IntArray]:
        """`threads` changes nothing."""
        return interpreter.run(
            self.form, sample, checked=self.checked, observe=observe
        )


@dataclass(frozen=True)
class Native:
    """The engine. A plan is made once, when it is first needed: one for speed, one that shows every value."""

    form: Proven
    name: str = "native"
    shares_a_sample: bool = True
    _engines: dict[bool, Engine] = field(
        default_factory=dict, repr=False, compare=False
    )  # by whether it is traced
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def prepare(self, *, traced: bool) -> None:
        """Make the plan."""
        self.engine(traced=traced)

    def engine(self, *, traced: bool = False) -> Engine:
        """The program, planned and packed."""
        with self._lock:
            if traced not in self._engines:
                self._engines[traced] = _engine(self.form, traced)
            return self._engines[traced]

    def run(
        self,
        sample: Sample,
        *,
        observe: ValueCallback | None = None,
        threads: int = 1,
    ) -> dict[str, IntArray]:
        """All threads work on this sample."""
        if observe is None:
            return self.engine().run(sample, threads=threads)
        return self.engine(traced=True).observe(
            sample, observe, threads=threads
        )


def _engine(form: Proven, traced: bool) -> Engine:
    try:
        return Engine(form, traceable=traced)
    except ValueError as problem:
        raise BadInput(
            f"the engine cannot take this program: {str(problem).removeprefix('engine: ')}; the reference can"
        ) from None


def choose(
    form: WellFormed, choice: str = "auto", *, checked: bool = False
) -> Machine:
    """The machine for a program; BadInput if the choice cannot be met."""
    require(choice, checked=checked)
    if choice == "reference" or checked or not isinstance(form, Proven):
        return Reference(form, checked)
    if choice == "xla":
        return _xla(form)
    if not native.available():
        return Reference(form, checked)
    native.chosen_isa()  # CVM_ISA is judged before anything runs
    return Native(form)


def require(choice: str, *, checked: bool) -> None:
    """BadInput for a choice that cannot be met, whatever the program."""
    if choice not in CHOICES:
        raise BadInput(
            f"engine {choice!r}: expected one of {', '.join(CHOICES)}"
        )
    if choice in ("native", "xla") and checked:
        raise BadInput(
            f"only the reference runs without a proof: leave 'checked' or the {choice} engine away"
        )
    if choice == "native" and not native.available():
        raise BadInput(
            f"the native engine is not installed; {HOW_TO_GET_THE_ENGINE}"
        )


def _xla(form: Proven) -> Machine:
    """Imported here: jax takes a second to load, and few have it."""
    try:
        from cvm.xla.machine import Xla
    except ImportError:
        raise BadInput(f"jax is not installed; {HOW_TO_GET_JAX}") from None
    return Xla(form)


def lacks_engine(machine: Machine) -> bool:
    """Whether a program runs on the reference only because there is no engine."""
    return (
        isinstance(machine, Reference)
        and not machine.checked
        and not native.available()
    )
