"""Back ends: other people's engines that run a proven program, each in an environment of its own, found as entry points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from cvm.errors import BadInput
from cvm.proof.validate import Proven
from cvm.runtime.machine import Machine

GROUP = "cvm.backends"
OWN = (
    EntryPoint("spu", "cvm.secure.machine:open_machine", GROUP),
    EntryPoint("concrete", "cvm.export.concrete.machine:open_machine", GROUP),
)


@dataclass(frozen=True)
class BackendStatement:
    """Which back end computed the outputs of a receipt. A replay does not depend on it.

    `error_probability` is how likely an output differs from the program's, as text: `0` where none can.
    """

    name: str
    version: str
    protocol: str
    error_probability: str

    def content(self) -> dict[str, str]:
        """As JSON holds it."""
        return asdict(self)


@dataclass(frozen=True)
class BackendEffort:
    """What a back end took: seconds to compile; for each sample seconds, and bytes and messages that one party sent."""

    compile_seconds: float
    seconds: tuple[float, ...]
    sent_bytes: tuple[int, ...]
    sends: tuple[int, ...]


@dataclass(frozen=True)
class BackendOptions:
    """What people may choose of a back end; an empty protocol is its usual one."""

    protocol: str = ""
    hide_weights: bool = False
    simulate: bool = False


def require_untraced(name: str, *, traced: bool) -> None:
    """BadInput where a trace is asked of a back end that hides values."""
    if traced:
        raise BadInput(
            f"a trace shows every value, which the back end {name} hides; leave --trace away"
        )


class BackendMachine(Machine, Protocol):
    """A machine that states which engine it is, and what its runs took so far."""

    @property
    def statement(self) -> BackendStatement:
        """For the receipt."""

    @property
    def program_id(self) -> str | None:
        """The id of the program that ran, which another party may have computed; None before a run."""

    @property
    def effort(self) -> BackendEffort:
        """For people."""


Opener = Callable[[Proven, BackendOptions], BackendMachine]


def names() -> list[str]:
    """The back ends that are known here, installed or not."""
    return sorted({entry_point.name for entry_point in _known()})


def open_backend(
    name: str, options: BackendOptions, form: Proven
) -> BackendMachine:
    """The machine of a back end for a program; BadInput if there is none, or if it refuses the program."""
    for entry_point in _known():
        if entry_point.name == name:
            opener: Opener = entry_point.load()
            return opener(form, options)
    raise BadInput(
        f"back end {name!r}: expected one of {', '.join(names())}; "
        f"others are found as entry points of the group {GROUP}"
    )


def _known() -> Sequence[EntryPoint]:
    return [*OWN, *entry_points(group=GROUP)]
