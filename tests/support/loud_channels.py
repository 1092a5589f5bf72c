"""A float model of which two of many channels weigh far more than the others, for what comes behind them."""

import numpy as np

from tests.support.float_models import FloatModel

CHANNELS, LOUD = 46, [7, 30]


def loud_network(last: str = "Relu") -> FloatModel:
    """They are those of `first`, which `mixed` reads, and would with their twins fill blocks of 8."""
    rng = np.random.default_rng(6)
    loudness = np.ones(CHANNELS)
    loudness[LOUD] = 12, 8
    model = FloatModel(x=(1, 3, 10, 10))
    y = model.conv(
        "x",
        rng.normal(size=(CHANNELS, 3, 3, 3)),
        4 + rng.normal(size=CHANNELS),
        name="spread",
    )
    y = model.add("Relu", y, name="first")
    y = model.conv(
        y,
        rng.normal(size=(9, CHANNELS, 1, 1)) * loudness[:, None, None],
        rng.normal(size=9),
        name="mixed",
    )
    model.add(last, y, name="out")
    return model
