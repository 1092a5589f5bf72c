"""All parties of a run in one process, one thread each: for tests, and to measure before there are three machines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cvm.program import IntArray
from cvm.secure import spu_link
from cvm.secure.compiled import SpuProgram
from cvm.secure.protocols import MpcProtocol
from cvm.secure.spu_link import Effort, Party


class SimulatedParties:
    """The parties, connected by memory. They keep the weights, or their shares, from sample to sample."""

    def __init__(
        self, compiled: SpuProgram, protocol: MpcProtocol, log: Path
    ) -> None:
        self._compiled, self._protocol = compiled, protocol
        self._pool = ThreadPoolExecutor(protocol.parties)

        def party(rank: int) -> Party:
            link = spu_link.memory_link(protocol, rank)
            seen = log if rank == 0 else None
            return Party(link, protocol, compiled.executable, seen)

        ranks = range(protocol.parties)
        self._parties = list(self._pool.map(party, ranks))
        first = len(compiled.program.inputs)
        for place, value in enumerate(compiled.weights, first):
            self._share(place, compiled.weight(value), compiled.hides_weights)

    def run(self, inputs: list[IntArray]) -> tuple[list[IntArray], Effort]:
        """The outputs, and what the first party did."""
        for place, array in enumerate(inputs):
            self._share(place, array, True)
        found = list(self._pool.map(Party.run, self._parties))
        shares = zip(*(outputs for outputs, _ in found), strict=True)
        outputs = [spu_link.opened(one, self._protocol) for one in shares]
        return outputs, found[0][1]

    def _share(self, place: int, array: IntArray, secret: bool) -> None:
        shares = spu_link.shares_of(array, self._protocol, secret=secret)
        for party, share in zip(self._parties, shares, strict=True):
            party.give(place, share)
