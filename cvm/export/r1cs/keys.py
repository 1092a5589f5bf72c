"""Verification keys, as snarkjs writes them: whether somebody has contributed to the setup."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cvm.errors import BadInput
from cvm.file.disk import read_bounded

MOST_BYTES = 2**28
GENERATOR = ["1", "2"]  # of the curve's first group


def require_contributions(path: Path) -> None:
    """Raise `BadInput` for a key whose secret numbers are all 1: wrong outputs have proofs by it."""
    try:
        key: Any = json.loads(read_bounded(path, MOST_BYTES))
        alpha, gamma, delta = (
            key[name] for name in ("vk_alpha_1", "vk_gamma_2", "vk_delta_2")
        )
    except (ValueError, RecursionError, KeyError, TypeError):
        raise BadInput(
            f"{path}: not a verification key of Groth16, as `snarkjs zkey export verificationkey` writes it"
        ) from None
    for missing, command in (
        (alpha[:2] == GENERATOR, "snarkjs powersoftau contribute"),
        (delta == gamma, "snarkjs zkey contribute"),
    ):
        if missing:
            raise BadInput(
                f"{path}: nobody contributed to the setup of this key, so anybody can forge proofs; run `{command}`"
            )
