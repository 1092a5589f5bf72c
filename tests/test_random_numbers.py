"""Tests that share a generator draw the same numbers in any order."""

import numpy as np
import pytest

RNG = np.random.default_rng(1)
FIRST = np.random.default_rng(1).random()


@pytest.fixture(scope="module")
def drawn_once():
    return RNG.random()


@pytest.mark.parametrize("turn", range(3))
def test_each_test_draws_from_the_start(turn):
    assert RNG.random() == FIRST


@pytest.mark.parametrize("turn", range(2))
def test_what_a_wider_fixture_draws_is_drawn_apart(turn, drawn_once):
    assert drawn_once == RNG.random() == FIRST
