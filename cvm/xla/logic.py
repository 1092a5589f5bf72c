"""Comparisons, booleans, choice."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from cvm.xla.arrays import Operand


def equal(x: Operand, y: Operand) -> Array:
    """x = y."""
    return jnp.equal(x, y)


def greater(x: Operand, y: Operand) -> Array:
    """x > y."""
    return jnp.greater(x, y)


def greater_equal(x: Operand, y: Operand) -> Array:
    """x >= y."""
    return jnp.greater_equal(x, y)


def logical_and(x: Operand, y: Operand) -> Array:
    """True where both are."""
    return jnp.logical_and(x, y)


def logical_or(x: Operand, y: Operand) -> Array:
    """True where one is, or both are."""
    return jnp.logical_or(x, y)


def logical_not(x: Operand) -> Array:
    """True where x is false."""
    return jnp.logical_not(x)


def select(condition: Operand, x: Operand, y: Operand) -> Array:
    """x where the condition holds, y elsewhere."""
    return jnp.where(condition, x, y)
