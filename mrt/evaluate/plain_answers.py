"""Whether float plainly says one class of a sample, so that another best one is another answer.

It does not where the best two scores are as good as equal. An output that is mostly so holds no classes: a wave, or
the frames of a recording, of which a Sigmoid makes many nearly 1.
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
LEAST_PLAIN = 0.5
"""Of the samples of a classifier, half or more have one class."""


def is_plain(scores: npt.NDArray[Any]) -> bool:
    """Whether one of a sample's scores is plainly the best."""
    falling = -np.sort(-scores.reshape(-1).astype(np.float64))
    best, second = falling[:2]
    near = falling[falling >= best - MOST_SPREAD]
    return not best - second < (best - near[-1]) / STEPS
