"""The place of one party among those of a run over a network."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cvm.errors import BadInput
from cvm.secure.protocols import MpcProtocol

_PEER = re.compile(r"[A-Za-z0-9.\-]{1,253}:[0-9]{1,5}\Z")


@dataclass(frozen=True)
class Seat:
    """`rank` is this party's place in `peers`, which holds the host and port of each.

    `client` has the inputs and learns the outputs; `weights_from` has the weights, where they are secret.
    The others are waited for `timeout` seconds.
    """

    rank: int
    peers: tuple[str, ...]
    client: int = 0
    weights_from: int = 0
    timeout: int = 300

    def require_suited(
        self, protocol: MpcProtocol, *, hide_weights: bool
    ) -> None:
        """BadInput unless there are as many peers as the protocol has parties, and it hides what it must."""
        if len(self.peers) != protocol.parties:
            raise BadInput(
                f"{len(self.peers)} peers; {protocol.name} has {protocol.parties} parties"
            )
        for peer in self.peers:
            if not _PEER.match(peer):
                raise BadInput(f"peer {peer!r}: expected host:port")
        for name, rank in (
            ("rank", self.rank),
            ("client", self.client),
            ("weights-from", self.weights_from if hide_weights else 0),
        ):
            if not 0 <= rank < protocol.parties:
                raise BadInput(
                    f"--{name} {rank}: {protocol.name} has the parties 0..{protocol.parties - 1}"
                )
        owners = {self.client, self.weights_from if hide_weights else 0}
        if protocol.name == "semi2k" and owners != {0}:
            raise BadInput(
                "semi2k hides nothing from party 0, its dealer: "
                "inputs and secret weights must be that party's own, or choose aby3"
            )
