"""A float model with two of many channels whose errors have far more weight than the others'."""

import numpy as np

from tests.support.float_models import FloatModel

CHANNELS, NOISY = 46, [7, 30]


def noisy_network(last: str = "Relu") -> FloatModel:
    """Return the model; its noisy channels are those of `first`, which `mixed` reads.

    With their duplicates the channels would fill blocks of 8.
    """
    rng = np.random.default_rng(6)
    noisiness = np.ones(CHANNELS)
    noisiness[NOISY] = 12, 8
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
        rng.normal(size=(9, CHANNELS, 1, 1)) * noisiness[:, None, None],
        rng.normal(size=9),
        name="mixed",
    )
    model.add(last, y, name="out")
    return model
