"""Writes (x - mean) / sqrt(variance + epsilon) over some axes as one operator."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch


def add_normalized(
    patch: Patch,
    x: ir.Value,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    epsilon: float,
) -> ir.Value:
    """Add the nodes that normalize x over `axes`; return the result.

    InstanceNormalization over the spatial axes of an image, LayerNormalization over the
    last axes; over other axes a LayerNormalization between Transposes.
    """
    rank = len(shape)
    kept = tuple(axis for axis in range(rank) if axis not in axes)
    if len(axes) > 1 and axes == tuple(range(2, rank)):
        return patch.add(
            "InstanceNormalization",
            x,
            *_ones_and_zeros(patch, (shape[1],)),
            epsilon=epsilon,
        )
    if axes == tuple(range(len(kept), rank)):
        return _layer_norm(patch, x, shape, len(kept), epsilon)
    perm = (*kept, *axes)
    transposed = patch.add("Transpose", x, perm=perm)
    value = _layer_norm(
        patch,
        transposed,
        tuple(shape[axis] for axis in perm),
        len(kept),
        epsilon,
    )
    return patch.add(
        "Transpose", value, perm=tuple(perm.index(axis) for axis in range(rank))
    )


def _layer_norm(
    patch: Patch, x: ir.Value, shape: tuple[int, ...], axis: int, epsilon: float
) -> ir.Value:
    parts = _ones_and_zeros(patch, shape[axis:])
    return patch.add(
        "LayerNormalization",
        x,
        *parts,
        axis=axis,
        epsilon=epsilon,
        stash_type=1,
    )


def _ones_and_zeros(
    patch: Patch, shape: tuple[int, ...]
) -> tuple[ir.Value, ir.Value]:
    return (
        patch.constant(np.ones(shape, np.float32), "scale"),
        patch.constant(np.zeros(shape, np.float32), "shift"),
    )
