"""One party among others, over a network: each holds its own shares and nothing else of what is secret.

All parties run this at once, with the same program, protocol and seats, which they compare first. The client has the
inputs and learns the outputs; the other parties learn how many samples there were.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cvm.program import IntArray
from cvm.secure import spu_link
from cvm.secure.compiled import SpuProgram
from cvm.secure.exchange import Places
from cvm.secure.protocols import MpcProtocol
from cvm.secure.seat import Seat
from cvm.secure.spu_link import Effort, Party

MOST_PARTS = 2**16  # of a share
MORE, OPEN, END = "more", "open", "end"


def agree(link: Any, terms: dict[str, Any]) -> None:
    """Raise RuntimeError if another party is about to run something else."""
    own_terms = json.dumps(terms, sort_keys=True)
    all_terms = link.all_gather(own_terms)
    if set(all_terms) != {own_terms}:
        link.stop_link()  # nobody leaves before all have everything
    for rank, other_terms in enumerate(all_terms):
        if other_terms != own_terms:
            their_terms = json.loads(other_terms)
            differences = ", ".join(
                f"{name} is {their_terms.get(name)!r} there and {value!r} here"
                for name, value in terms.items()
                if their_terms.get(name) != value
            )
            raise RuntimeError(
                f"party {rank} runs something else: {differences}"
            )


class NetworkParty:
    """The part of one party in a run. It gives and takes shares of the weights as it is made."""

    def __init__(
        self,
        compiled: SpuProgram,
        protocol: MpcProtocol,
        seat: Seat,
        link: Any,
        log: Path,
        carried: Places = (),
    ) -> None:
        self._carried = carried
        self._shares: list[Any] = []  # of the outputs
        self._compiled, self._protocol = compiled, protocol
        self._seat, self._link = seat, link
        self._party = Party(link, protocol, compiled.executable, log)
        self._inputs = len(compiled.program.inputs)
        for place, value in enumerate(compiled.weights, self._inputs):
            self._give_weight(place, compiled.weight(value))

    def run(self, inputs: list[IntArray]) -> tuple[list[IntArray], Effort]:
        """The client's part: a sample, and its outputs."""
        effort = self.take(inputs)
        return self._opened(), effort

    def take(self, inputs: list[IntArray]) -> Effort:
        """The client's part: a sample, whose outputs are carried on as shares, or opened next."""
        self._link.broadcast(MORE, self._seat.client)
        return self._one([*inputs])

    def open(self) -> list[IntArray]:
        """The client's part: the outputs of the last sample, where they were carried on."""
        self._link.broadcast(OPEN, self._seat.client)
        return self._opened()

    def finish(self) -> None:
        """The client has no more samples."""
        self._link.broadcast(END, self._seat.client)

    def serve(self) -> list[Effort]:
        """Another party's part, until the client has no more samples.

        What is carried on is opened once: a party refuses to open it again.
        """
        efforts = []
        while (word := self._link.broadcast("", self._seat.client)) != END:
            if word == MORE:
                efforts.append(self._one([None] * self._inputs))
            if word == OPEN or not self._carried:
                self._reveal()
        return efforts

    def _reveal(self) -> None:
        """Send the client the shares of the outputs, for good."""
        for share in self._shares:
            self._send(self._seat.client, share)
        self._shares = []

    def _opened(self) -> list[IntArray]:
        parties = range(self._protocol.parties)
        outputs = []
        for own_share in self._shares:
            shares = [
                own_share if rank == self._seat.rank else self._received(rank)
                for rank in parties
            ]
            outputs.append(spu_link.opened(shares, self._protocol))
        self._shares = []
        return outputs

    def _one(self, inputs: list[IntArray | None]) -> Effort:
        onward = dict(self._carried) if self._shares else {}
        for place, array in enumerate(inputs):
            if place in onward:
                share = self._shares[onward[place]]
            else:
                share = self._shared(array, self._seat.client)
            self._party.give(place, share)
        self._shares, effort = self._party.run()
        return effort

    def _give_weight(self, place: int, array: IntArray) -> None:
        if self._compiled.hides_weights:
            share = self._shared(array, self._seat.weights_from)
        else:
            shares = spu_link.shares_of(array, self._protocol, secret=False)
            share = shares[self._seat.rank]
        self._party.give(place, share)

    def _shared(self, array: IntArray | None, owner: int) -> Any:
        """The share here of an array, which its owner splits and sends."""
        if self._seat.rank != owner:
            return self._received(owner)
        assert array is not None
        shares = spu_link.shares_of(array, self._protocol, secret=True)
        for rank, share in enumerate(shares):
            if rank != owner:
                self._send(rank, share)
        return shares[owner]

    def _send(self, rank: int, share: Any) -> None:
        parts = spu_link.share_to_bytes(share)
        self._link.send(rank, str(len(parts)))
        for part in parts:
            self._link.send(rank, part)

    def _received(self, rank: int) -> Any:
        count = int(self._link.recv(rank))
        if not 0 < count <= MOST_PARTS:
            raise RuntimeError(
                f"party {rank} sends a share of {count} parts; at most {MOST_PARTS}"
            )
        parts = [self._link.recv(rank) for _ in range(count)]
        return spu_link.share_from_bytes(parts)
