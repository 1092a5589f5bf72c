"""Float graph to simpler float graph; each pass keeps the meaning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from mrt.errors import BadOption
from mrt.rewrite import canonical
from mrt.rewrite.add_masks_last import add_masks_last
from mrt.rewrite.fold_constants import fold_constants
from mrt.rewrite.fold_functions import fold_functions
from mrt.rewrite.fold_products_with_zero import fold_products_with_zero
from mrt.rewrite.fold_rows import fold_rows
from mrt.rewrite.fold_searches import fold_searches
from mrt.rewrite.fold_truths import fold_truths
from mrt.rewrite.fold_turned_channels import fold_turned_channels
from mrt.rewrite.fold_windows import fold_windows
from mrt.rewrite.fuse_affine_behind import fuse_affine_behind
from mrt.rewrite.fuse_affine_in_front import fuse_affine_in_front
from mrt.rewrite.fuse_normalization import fuse_normalization
from mrt.rewrite.fuse_normalization_affine import fuse_normalization_affine
from mrt.rewrite.fuse_pads import fuse_pads
from mrt.rewrite.infer_shapes import infer_shapes
from mrt.rewrite.lift_constants import lift_constants
from mrt.rewrite.lower_average_pool import lower_average_pool
from mrt.rewrite.lower_batch_norm import lower_batch_norm
from mrt.rewrite.lower_bits import lower_bits
from mrt.rewrite.lower_columns import lower_columns
from mrt.rewrite.lower_computed import lower_computed
from mrt.rewrite.lower_depth_to_space import lower_depth_to_space
from mrt.rewrite.lower_dilations import lower_dilations
from mrt.rewrite.lower_division import lower_division
from mrt.rewrite.lower_einsum import lower_einsum
from mrt.rewrite.lower_expand import lower_expand
from mrt.rewrite.lower_fourier import lower_fourier
from mrt.rewrite.lower_gather import lower_gather
from mrt.rewrite.lower_global_pools import lower_global_pools
from mrt.rewrite.lower_interpolation import lower_interpolation
from mrt.rewrite.lower_leaky_relu import lower_leaky_relu
from mrt.rewrite.lower_log_sum_exp import lower_log_sum_exp
from mrt.rewrite.lower_lookups import lower_lookups
from mrt.rewrite.lower_matmul import lower_matmul
from mrt.rewrite.lower_max_pool import lower_max_pool
from mrt.rewrite.lower_modulus import lower_modulus
from mrt.rewrite.lower_one_dimensional import lower_one_dimensional
from mrt.rewrite.lower_paddings import lower_paddings
from mrt.rewrite.lower_powers import lower_powers
from mrt.rewrite.lower_products import lower_products
from mrt.rewrite.lower_recurrent import lower_recurrent
from mrt.rewrite.lower_resize import lower_resize
from mrt.rewrite.lower_sampling import lower_sampling
from mrt.rewrite.lower_selections import lower_selections
from mrt.rewrite.lower_softmax import lower_softmax
from mrt.rewrite.lower_split import lower_split
from mrt.rewrite.lower_suppression import lower_suppression
from mrt.rewrite.lower_triangles import lower_triangles
from mrt.rewrite.lower_unpooling import lower_unpooling
from mrt.rewrite.lower_volumes import lower_volumes
from mrt.rewrite.lower_wide_pools import lower_wide_pools
from mrt.rewrite.merge_transposes import merge_transposes
from mrt.rewrite.note_inputs import note_inputs
from mrt.rewrite.pad_pictures import pad_pictures
from mrt.rewrite.pull_slices import pull_slices
from mrt.rewrite.pull_transposes import pull_transposes
from mrt.rewrite.remove_empties import remove_empties
from mrt.rewrite.remove_identities import remove_identities
from mrt.rewrite.remove_reshape_pairs import remove_reshape_pairs
from mrt.rewrite.widen_types import widen_types
from mrt.rewrite.write_biases import write_biases
from mrt.rewrite.write_binaries import write_binaries
from mrt.rewrite.write_clips import write_clips
from mrt.rewrite.write_comparisons import write_comparisons
from mrt.rewrite.write_defaults import write_defaults
from mrt.rewrite.write_gemm import write_gemm
from mrt.rewrite.write_masks import write_masks
from mrt.rewrite.write_movements import write_movements
from mrt.rewrite.write_normalizations import write_normalizations
from mrt.rewrite.write_orders import write_orders
from mrt.rewrite.write_pads import write_pads
from mrt.rewrite.write_quotients import write_quotients
from mrt.rewrite.write_reductions import write_reductions
from mrt.rewrite.write_reshapes import write_reshapes
from mrt.rewrite.write_shut_rows import write_shut_rows
from mrt.rewrite.write_windows import write_windows

Pass = Callable[[ir.Model], int]

# Each stage is repeated until nothing changes, then the next begins, and all again: fusions see every operator in its
# written form, and a BatchNormalization is lowered only when no fusion took it.
STAGES: tuple[tuple[Pass, ...], ...] = (
    (lift_constants, fold_constants, fold_searches, remove_identities),
    (
        fold_constants,
        fold_searches,
        write_shut_rows,
        fold_truths,
        fold_functions,
        fold_rows,
        fold_windows,
        remove_empties,
        remove_identities,
        widen_types,
        write_reshapes,
        write_movements,
        write_pads,
        write_comparisons,
        write_orders,
        lower_split,
        fold_products_with_zero,
        pull_slices,
        lower_depth_to_space,
        lower_suppression,
        lower_lookups,
        lower_selections,
        lower_einsum,
        lower_fourier,
        lower_paddings,
        lower_triangles,
        lower_gather,
        lower_resize,
        lower_interpolation,
        lower_sampling,
        lower_expand,
        lower_columns,
        lower_computed,
        write_windows,
        lower_unpooling,
        lower_dilations,
        write_binaries,
        write_clips,
        lower_bits,
        lower_modulus,
        lower_division,
        lower_powers,
        write_quotients,
        add_masks_last,
        write_masks,
        lower_global_pools,
        write_reductions,
        lower_log_sum_exp,
        lower_products,
        write_normalizations,
        fuse_normalization,
        fuse_normalization_affine,
        lower_max_pool,
        lower_wide_pools,
        lower_average_pool,
        lower_leaky_relu,
        lower_softmax,
        remove_reshape_pairs,
        pull_transposes,
        merge_transposes,
        write_gemm,
        lower_matmul,
        write_biases,
        fuse_pads,
        fold_turned_channels,
        pad_pictures,
        fuse_affine_behind,
        fuse_affine_in_front,
    ),
    (lower_batch_norm, lower_one_dimensional, lower_volumes, lower_recurrent),
)

# Far more rounds than any model needs; more means that two passes undo each other.
MOST_ROUNDS = 1000

MOST_BYTES = (1 << 31) - (1 << 24)  # of weights in one protobuf, with room for the rest


def rewrite(model: ir.Model) -> None:
    """Bring a float model to the form of `mrt.rewrite.canonical`, in place; raise Unsupported for what has none."""
    infer_shapes(model)
    _repeat(lambda: sum(_run_stage(stage, model) for stage in STAGES))
    write_defaults(model)
    canonical.check(model)
    note_inputs(model)


def save(model: ir.Model, path: Path) -> None:
    """Write a rewritten model as one .onnx file, whole or not at all."""
    if (
        size := sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value)
    ) > MOST_BYTES:
        raise BadOption(f"{path}: {size} bytes of weights; one .onnx file holds at most {MOST_BYTES}")
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        unfinished.write_bytes(ir.to_proto(model).SerializeToString(deterministic=True))
        onnx.checker.check_model(unfinished, full_check=True)  # the file: fewer copies of the weights than of an object
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _run_stage(stage: tuple[Pass, ...], model: ir.Model) -> int:
    return _repeat(lambda: sum(_apply(one_pass, model) for one_pass in stage))


def _repeat(round_of_passes: Callable[[], int]) -> int:
    """Run until nothing changes; the number of changes in all."""
    total = 0
    for _ in range(MOST_ROUNDS):
        changes = round_of_passes()
        total += changes
        if not changes:
            return total
    raise RuntimeError("two rewrites undo each other")


def _apply(one_pass: Pass, model: ir.Model) -> int:
    count = one_pass(model)
    if count:
        RemoveUnusedNodesPass()(model)
        infer_shapes(model)
    return count
