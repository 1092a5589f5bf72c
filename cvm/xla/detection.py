"""Non-maximum suppression: one loop over the candidates, each compared with all that are before it."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from cvm.xla.arrays import Operand
from cvm.xla.reduction import argsort


def nms(
    boxes: Operand,
    scores: Operand,
    classes: Operand,
    *,
    keep: int,
    candidates: int,
    least_score: int,
    overlap: tuple[int, int],
    inclusive: bool,
    gaps: bool,
) -> Array:
    """The indices of the kept boxes, best first; N where there is none."""
    count = scores.shape[1]
    order = argsort(scores, descending=True)[:, :candidates]
    chosen, score, class_ = (
        jnp.take_along_axis(values, index, axis=1)
        for values, index in (
            (jnp.asarray(boxes), order[:, :, None]),
            (jnp.asarray(scores), order),
            (jnp.broadcast_to(classes, scores.shape), order),
        )
    )
    suppress = partial(_kept, overlap=overlap, inclusive=inclusive)
    kept = jax.vmap(suppress)(
        chosen.astype(np.int64), score >= least_score, class_
    )
    if gaps:
        return jnp.where(kept, order, count)
    first = argsort(jnp.where(kept, 0, 1), descending=False)[:, :keep]
    indices = jnp.where(kept, order, count)
    return jnp.take_along_axis(indices, first, axis=1)


def _kept(
    boxes: Array,
    is_candidate: Array,
    classes: Array,
    *,
    overlap: tuple[int, int],
    inclusive: bool,
) -> Array:
    """Which of the boxes, in this order, overlap none that is kept before them."""
    p, q = overlap
    places = jnp.arange(len(boxes))
    size = _area(boxes[:, :2], boxes[:, 2:])

    def step(place: Array, kept: Array) -> Array:
        box = boxes[place]
        corner = jnp.maximum(box[:2], boxes[:, :2])
        opposite = jnp.minimum(box[2:], boxes[:, 2:])
        intersection = _area(corner, opposite)
        union = size[place] + size - intersection
        excess = intersection * q - union * p
        too_much = excess >= 0 if inclusive else excess > 0
        rival = kept & (places < place) & (classes == classes[place])
        beaten = jnp.any(rival & too_much & (union > 0))
        result: Array = kept.at[place].set(is_candidate[place] & ~beaten)
        return result

    none = jnp.zeros_like(is_candidate)
    kept: Array = lax.fori_loop(0, len(boxes), step, none)
    return kept


def _area(corner: Operand, opposite: Operand) -> Operand:
    """In 64 bits: coordinates lie in 16, by proof."""
    sides = jnp.maximum(opposite - corner, 0)
    return sides[..., 0] * sides[..., 1]
