"""The shared families of operators agree with the canonical graph."""

import pytest

from mrt.graph import operators
from mrt.rewrite import canonical_operators

FAMILIES = sorted(name for name in vars(operators) if name.isupper())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_canonical_operators_only(family: str) -> None:
    # Identity disappears at the end of rewriting; passes before that still meet it.
    names = set(getattr(operators, family)) - {"Identity"}
    assert names <= set(canonical_operators.CANONICAL_OPERATORS)


def test_movement_and_lookups_accept_integers_and_booleans() -> None:
    assert (
        operators.MOVEMENT | operators.LOOKUPS
        <= canonical_operators.MOVE_ANYTHING
    )
