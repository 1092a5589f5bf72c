"""Calls of SPU's own library: to compile a function, to run one party, to turn shares into bytes, to count messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import spu.api
import spu.libspu as libspu
import spu.utils.frontend as frontend

from cvm.program import IntArray
from cvm.secure.protocols import ENGINE_VERSION, MpcProtocol

SECRET, PUBLIC = libspu.Visibility.VIS_SECRET, libspu.Visibility.VIS_PUBLIC
_COUNTS = re.compile(
    r"Link details: total send bytes (\d+), .*send actions (\d+)"
)
_LOG_TAIL = 2**16


@dataclass(frozen=True)
class Effort:
    """What one party did for one sample: seconds, bytes sent, and messages sent."""

    seconds: float
    sent_bytes: int
    sends: int


def compiled(
    function: Callable[..., Any],
    arguments: Sequence[IntArray],
    secret: Sequence[bool],
) -> Any:
    """SPU's executable of a function of jax; every party makes the same one from the same program."""
    names = [f"in{place}" for place in range(len(arguments))]
    seen = [SECRET if hidden else PUBLIC for hidden in secret]
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        function,
        tuple(arguments),
        {},
        names,
        seen,
        lambda outputs: [f"out{place}" for place in range(len(outputs))],
    )
    return executable


def configuration(protocol: MpcProtocol) -> Any:
    """The ring has 64 bits, in which every value and product of a proven program fits."""
    config = libspu.RuntimeConfig()
    config.protocol = getattr(libspu.ProtocolKind, protocol.name.upper())
    config.field = libspu.FieldType.FM64
    return config


def shares_of(
    array: IntArray, protocol: MpcProtocol, *, secret: bool
) -> list[Any]:
    """A share for each party; of what is public, the array itself."""
    io = spu.api.Io(protocol.parties, configuration(protocol))
    shares: list[Any] = io.make_shares(array, SECRET if secret else PUBLIC)
    return shares


def opened(shares: Sequence[Any], protocol: MpcProtocol) -> IntArray:
    """The integers that the shares of all parties are together."""
    io = spu.api.Io(protocol.parties, configuration(protocol))
    array: IntArray = io.reconstruct(list(shares))
    return array


def share_to_bytes(share: Any) -> list[bytes]:
    """What describes a share, and its parts."""
    return [share.meta, *share.share_chunks]


def share_from_bytes(parts: Sequence[bytes]) -> Any:
    """The share that `share_to_bytes` gave."""
    share = libspu.Share()
    share.meta, share.share_chunks = parts[0], list(parts[1:])
    return share


def memory_link(protocol: MpcProtocol, rank: int) -> Any:
    """A link within one process."""
    desc = libspu.link.Desc()
    for party in range(protocol.parties):
        desc.add_party(f"party{party}", f"thread{party}")
    return libspu.link.create_mem(desc, rank)


def network_link(peers: Sequence[str], rank: int, timeout: int) -> Any:
    """A link to the other parties, each at a host and port; waits `timeout` seconds for them."""
    desc = libspu.link.Desc()
    for party, peer in enumerate(peers):
        desc.add_party(f"party{party}", peer)
    desc.connect_retry_times = timeout
    desc.connect_retry_interval_ms = 1000
    desc.recv_timeout_ms = timeout * 1000
    desc.http_timeout_ms = timeout * 1000  # of a message; 20 s if left out
    return libspu.link.create_brpc(desc, rank)


class Party:
    """One party's runtime, kept from sample to sample."""

    def __init__(
        self,
        link: Any,
        protocol: MpcProtocol,
        executable: Any,
        log: Path | None,
    ) -> None:
        config = configuration(protocol)
        config.enable_pphlo_profile = config.enable_hal_profile = bool(log)
        self.link, self._log = link, log
        self._executable = executable
        self._runtime = spu.api.Runtime(link, config)

    def give(self, place: int, share: Any) -> None:
        """Set an argument."""
        self._runtime.set_var(self._executable.input_names[place], share)

    def run(self) -> tuple[list[Any], Effort]:
        """The shares of the outputs."""
        start = perf_counter()
        self._runtime.run(self._executable)
        seconds = perf_counter() - start
        names = self._executable.output_names
        shares = [self._runtime.get_var(name) for name in names]
        return shares, Effort(seconds, *_counts(self._log))


def keep_log(path: Path) -> None:
    """SPU writes its log, in which the messages are counted, to a file and nowhere else."""
    options = libspu.logging.LogOptions()
    options.enable_console_logger = False
    options.system_log_path = str(path)
    libspu.logging.setup_logging(options)


def _counts(log: Path | None) -> tuple[int, int]:
    """Bytes and messages that the last run sent; 0 where they are not counted."""
    if log is None or not log.is_file():
        return 0, 0
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LOG_TAIL))
        text = file.read().decode(errors="replace")
    matches = _COUNTS.findall(text)
    return (int(matches[-1][0]), int(matches[-1][1])) if matches else (0, 0)


def require_version() -> None:
    """Raise RuntimeError if the installed SPU has another version than the one that this was written for."""
    from importlib.metadata import version

    installed = version("spu")
    if installed != ENGINE_VERSION:
        raise RuntimeError(f"SPU {installed}; expected {ENGINE_VERSION}")
