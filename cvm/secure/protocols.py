"""The protocols: how many parties take part, and whom each must trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cvm.errors import BadInput

ENGINE_VERSION = "0.9.5"  # of SPU


@dataclass(frozen=True)
class MpcProtocol:
    """One protocol. All are semi-honest: nothing is hidden from parties that leave the protocol.

    `error_probability` is how likely an output differs from the program's.
    """

    name: str
    parties: int
    trust: str
    error_probability: str = "0"


PROTOCOLS: Mapping[str, MpcProtocol] = {
    protocol.name: protocol
    for protocol in (
        MpcProtocol("aby3", 3, "no two of the three parties collude"),
        MpcProtocol(
            "semi2k",
            3,
            "the first party is a trusted dealer, from whom nothing is hidden",
        ),
        MpcProtocol("cheetah", 2, "the two parties do not collude"),
    )
}


def protocol_of(name: str) -> MpcProtocol:
    """The protocol of this name; BadInput if there is none."""
    if name not in PROTOCOLS:
        listed = ", ".join(PROTOCOLS)
        raise BadInput(f"protocol {name!r}: expected one of {listed}")
    return PROTOCOLS[name]
