"""The same elements in other places."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from cvm.xla.arrays import Operand


def reshape(x: Operand, *, shape: tuple[int, ...]) -> Array:
    """In row-major order."""
    return jnp.reshape(x, shape)


def transpose(x: Operand, *, perm: tuple[int, ...]) -> Array:
    """Axis i of the result is axis `perm[i]` of x."""
    return jnp.transpose(x, perm)


def concat(*parts: Operand, axis: int) -> Array:
    """One after the other."""
    return jnp.concatenate(parts, axis)


def slice_(
    x: Operand, *, start: tuple[int, ...], size: tuple[int, ...]
) -> Array:
    """`size[i]` elements from `start[i]` on."""
    stops = np.add(start, size)
    return lax.slice(jnp.asarray(x), start, tuple(map(int, stops)))


def pad(x: Operand, *, pads: tuple[int, ...], value: int) -> Array:
    """Elements of `value` before and after."""
    edges = [
        (before, after, 0)
        for before, after in zip(pads[::2], pads[1::2], strict=True)
    ]
    return lax.pad(jnp.asarray(x), jnp.asarray(value, x.dtype), edges)


def tile(x: Operand, *, multiples: tuple[int, ...]) -> Array:
    """x repeated along each axis."""
    return jnp.tile(x, multiples)


def reverse(x: Operand, *, axis: int) -> Array:
    """The last element first."""
    return lax.rev(jnp.asarray(x), (axis,))
