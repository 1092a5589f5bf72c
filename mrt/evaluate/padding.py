"""Finds which tokens are no padding: a mask among the inputs is 1 there.

What an encoder computes for padding means nothing, and no reader uses it. Attention leaves it out, so that nothing
holds it in place: a program may be far from float there, and as good as float everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cvm.program.decoder import NAMES

Array = npt.NDArray[Any]


def real_tokens(
    sample: Mapping[str, Array], output: Array
) -> npt.NDArray[np.bool_] | None:
    """Return where an output [N,L,C] of tokens is none of padding, as [N,L,1]; None where all of it counts.

    The mask is an input [N,L] with a usual name, 1 where there is a token and 0 where there is padding.
    """
    masks = [sample[name] for name in NAMES["mask"] if name in sample]
    for mask in masks:
        if output.ndim == 3 and mask.shape == output.shape[:2]:
            real = mask == 1
            is_padded = 0 < np.count_nonzero(real) < real.size
            if is_padded and np.all(real | (mask == 0)):
                return np.asarray(real[..., np.newaxis], np.bool_)
    return None
