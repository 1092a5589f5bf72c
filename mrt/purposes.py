"""What a program is for: options that suit it, where none are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvm.lower import lower
from cvm.lower.fitting import fit_of
from cvm.proof.validate import Proven

PURPOSES: Mapping[str, Mapping[str, Any]] = {
    # Sums of products fit the 16 bits of a look-up; rounding by shifts drops bits that a table would have to tell apart.
    "fhe": {
        "weight_bits": 3,
        "activation_bits": 4,
        "scales": "shift",
        "sum_bits": 6,
    },
}


def with_purpose(
    purpose: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options, with those of the purpose where none are given; `bits` stands for both precisions."""
    if purpose is None:
        return dict(options)
    has_bits = options.get("bits") is not None
    chosen = dict(options)
    for name, value in PURPOSES[purpose].items():
        by_both = has_bits and name in ("weight_bits", "activation_bits")
        if options.get(name) is None and not by_both:
            chosen[name] = value
    return chosen


def fitting_line(form: Proven) -> str:
    """How a program fits homomorphic encryption."""
    return f"for fhe: {fit_of(lower(form)).line()}"
