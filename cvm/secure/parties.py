"""All parties of a run in one process, one thread each: for tests, and to measure before there are three machines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cvm.program import IntArray
from cvm.secure import spu_link
from cvm.secure.compiled import SpuProgram
from cvm.secure.exchange import Places
from cvm.secure.protocols import MpcProtocol
from cvm.secure.spu_link import Effort, Party


class SimulatedParties:
    """The parties, connected by memory. They keep the weights, or their shares, from sample to sample."""

    def __init__(
        self,
        compiled: SpuProgram,
        protocol: MpcProtocol,
        log: Path,
        carried: Places = (),
    ) -> None:
        self._carried = carried
        self._shares: list[list[Any]] = []  # of each party, of the outputs
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
        effort = self.take(inputs)
        return self.open(), effort

    def take(self, inputs: list[IntArray]) -> Effort:
        """Run a sample, and keep the outputs as shares. Shares that are carried replace inputs of the sample."""
        onward = dict(self._carried) if self._shares else {}
        for place, array in enumerate(inputs):
            if place not in onward:
                self._share(place, array, True)
                continue
            for party, shares in zip(self._parties, self._shares, strict=True):
                party.give(place, shares[onward[place]])
        results = list(self._pool.map(Party.run, self._parties))
        self._shares = [outputs for outputs, _ in results]
        return results[0][1]

    def open(self) -> list[IntArray]:
        """The outputs of the last sample; nothing of it is carried to the next."""
        shares, self._shares = self._shares, []
        return [
            spu_link.opened(output_shares, self._protocol)
            for output_shares in zip(*shares, strict=True)
        ]

    def _share(self, place: int, array: IntArray, secret: bool) -> None:
        shares = spu_link.shares_of(array, self._protocol, secret=secret)
        for party, share in zip(self._parties, shares, strict=True):
            party.give(place, share)
