"""What the inputs of a decoder are for, and what they hold step by step: states, a token, its position, a mask.

A program runs one step: it takes a token and the states that the step before gave. Which output is which input's
state stands in the provenance (`cvm/SPEC.md`, "Generation"); the other inputs are known by their usual names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from cvm.program.program import IntArray, Program

STATE = (
    "state:"  # + an input's name: the provenance entry that names its output
)
NAMES = {
    "token": ("input_ids", "token", "tokens", "token_ids", "idx"),
    "position": (
        "position_ids",
        "position",
        "positions",
        "pos",
        "cache_position",
    ),
    "mask": ("attention_mask", "mask"),
    "logits": ("logits", "output", "scores"),
}
"""The usual names of what a decoder takes besides its states, and of what it gives."""
_PAST = re.compile(r"past(_key_values)?(?=[._])")


@dataclass(frozen=True)
class Roles:
    """The names of the inputs that are no states, and of the output whose greatest entry is the next token."""

    token: str
    position: str | None
    mask: str | None
    logits: str


def usual_states(
    inputs: Collection[str], outputs: Collection[str]
) -> dict[str, str]:
    """The outputs that are states, by input, where both have their usual names: present.0.key for past.0.key."""
    states: dict[str, str] = {}
    for name in inputs:
        for word in ("present", "present_key_values"):
            present = _PAST.sub(word, name, count=1)
            if present != name and present in outputs:
                states[name] = present
    return states


def states_of(program: Program) -> dict[str, str]:
    """The outputs that are states, by input, as the provenance names them."""
    provenance = program.metadata.provenance if program.metadata else {}
    return {
        key.removeprefix(STATE): text
        for key, text in provenance.items()
        if key.startswith(STATE)
    }


def states_provenance(states: Mapping[str, str]) -> dict[str, str]:
    """The entries of the provenance for such states."""
    return {f"{STATE}{name}": states[name] for name in sorted(states)}


def find_name(
    role: str, names: Collection[str], given: str | None = None
) -> str | None:
    """The name that has a role: the given one, else the first usual one that there is."""
    usual = (given,) if given else NAMES[role]
    return next((name for name in usual if name in names), None)


def position_at(step: int, shape: tuple[int, ...]) -> IntArray:
    """The position of the token that a step reads."""
    return np.full(shape, step, np.int64)


def mask_at(step: int, shape: tuple[int, ...]) -> IntArray:
    """The places in use: of the last axis, the last ones, one for each token so far."""
    mask = np.zeros(shape, np.int64)
    mask[..., max(shape[-1] - step - 1, 0) :] = 1
    return mask
