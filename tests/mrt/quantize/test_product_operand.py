"""Integers in front of a layer are what the layer multiplies, wherever they lie."""

import numpy as np
import pytest

from tests.support.graphs import node
from tests.support.whole_models import model_of, through

WEIGHTS = np.random.default_rng(3).normal(size=(6, 2)).astype(np.float32)
NODES = [node("Cast", "t", "f", to=1), node("MatMul", "f w", "y")]


@pytest.mark.parametrize("least", [-1100, -200, 0, 100, 1990])
def test_integers_that_follow_each_other_are_exact(least, tmp_path):
    """Beyond 256 from 0 no zero point of i8 brings them to bytes."""
    places = np.random.default_rng(1).integers(0, 100, (48, 1, 6))
    feeds = [{"t": least + row} for row in places]
    model = model_of(NODES, feeds[0], {"w": WEIGHTS})
    answer = through(model, feeds, tmp_path, bits=8)
    assert answer.snr_db() > 30
    dense = [it for it in answer.program.instructions if it.name == "dense"]
    assert [abs(it.attributes["input_zp"]) <= 128 for it in dense] == [True]
