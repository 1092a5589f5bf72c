"""Whether the best two of a sample's scores tie in float, so that another best one is no other answer.

An output of which most samples are ties holds no classes: a wave, or the frames of a recording, of which a Sigmoid makes
many nearly 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

STEPS = 256
"""Of the spread of the scores: those which less lies between are one number to 8 bits."""
MOST_SPREAD = 32.0
"""Below the best: a logit that is less has no share. So masks do not count as spread, and logits that are an eighth apart, which
is 53 to 47, are never as good as equal."""
MOST_TIES = 0.5
"""Of the samples of a classifier, at most half are ties."""


def is_tie(scores: npt.NDArray[Any]) -> bool:
    """Whether the best two of a sample's scores are as good as equal; not where all are, which have no spread to compare with."""
    falling = -np.sort(-scores.reshape(-1).astype(np.float64))
    best, second = falling[:2]
    near = falling[falling >= best - MOST_SPREAD]
    return bool(best - second < (best - near[-1]) / STEPS)
