"""Lists the passes in order, and repeats them until nothing changes."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from mrt.graph.infer_shapes import infer_shapes
from mrt.rewrite import canonical
from mrt.rewrite.constants.fold_booleans import fold_booleans
from mrt.rewrite.constants.fold_constants import fold_constants
from mrt.rewrite.constants.fold_file_grids import fold_file_grids
from mrt.rewrite.constants.fold_functions import fold_functions
from mrt.rewrite.constants.fold_products_with_zero import (
    fold_products_with_zero,
)
from mrt.rewrite.constants.fold_row_operators import fold_row_operators
from mrt.rewrite.constants.fold_topk import fold_topk
from mrt.rewrite.constants.lift_constants import lift_constants
from mrt.rewrite.constants.nonzero_unique import fold_nonzero_unique
from mrt.rewrite.constants.unchosen_quotients import divide_where_chosen
from mrt.rewrite.default_attributes import write_default_attributes
from mrt.rewrite.elementwise.arctangent import lower_arctangent
from mrt.rewrite.elementwise.binary import canonicalize_binary
from mrt.rewrite.elementwise.bitwise import lower_bitwise
from mrt.rewrite.elementwise.clip import canonicalize_clip
from mrt.rewrite.elementwise.comparison import canonicalize_comparison
from mrt.rewrite.elementwise.computed_operands import lower_computed_operands
from mrt.rewrite.elementwise.div import lower_div
from mrt.rewrite.elementwise.float_quotients import divide_as_integers
from mrt.rewrite.elementwise.floor_division import canonicalize_floor_division
from mrt.rewrite.elementwise.is_nan import lower_is_nan
from mrt.rewrite.elementwise.leaky_relu import lower_leaky_relu
from mrt.rewrite.elementwise.mod import lower_mod
from mrt.rewrite.elementwise.pow import lower_pow
from mrt.rewrite.elementwise.reciprocal import canonicalize_reciprocal
from mrt.rewrite.elementwise.remainders import take_remainders
from mrt.rewrite.elementwise.sign_infinities import sign_infinities
from mrt.rewrite.elementwise.signed_shift import join_signed_shifts
from mrt.rewrite.elementwise.squared_roots import fold_squared_roots
from mrt.rewrite.elementwise.widen_types import widen_types
from mrt.rewrite.image.col2im import lower_col2im
from mrt.rewrite.image.grid_sample import lower_grid_sample
from mrt.rewrite.image.pad_pictures import pad_pictures
from mrt.rewrite.image.resize import lower_resize
from mrt.rewrite.image.resize_by_integers import lower_resize_by_integers
from mrt.rewrite.linear.conv1d import lower_conv1d
from mrt.rewrite.linear.conv3d import lower_conv3d
from mrt.rewrite.linear.conv_bias import add_conv_bias
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from mrt.rewrite.linear.dilated_conv_transpose import (
    lower_dilated_conv_transpose,
)
from mrt.rewrite.linear.einsum import lower_einsum
from mrt.rewrite.linear.fold_reversed_channels import fold_reversed_channels
from mrt.rewrite.linear.fold_space_to_depth import fold_space_to_depth
from mrt.rewrite.linear.fuse_affine_after import fuse_affine_after
from mrt.rewrite.linear.fuse_affine_before import fuse_affine_before
from mrt.rewrite.linear.fuse_affine_before_gemms import (
    fuse_affine_before_gemms,
)
from mrt.rewrite.linear.fuse_pad import fuse_pad
from mrt.rewrite.linear.gemm import canonicalize_gemm
from mrt.rewrite.linear.matmul import lower_matmul
from mrt.rewrite.linear.running_sums import subtract_running_sums
from mrt.rewrite.lookup.argmax_of_softmax import take_argmax_before_softmax
from mrt.rewrite.lookup.argmax_topk import canonicalize_argmax_topk
from mrt.rewrite.lookup.computed_scatter import lower_computed_scatter
from mrt.rewrite.lookup.extreme_scatter import (
    lower_extreme_scatter,
    lower_scatter_without_self,
)
from mrt.rewrite.lookup.gather import lower_gather
from mrt.rewrite.lookup.hardmax_compress import lower_hardmax_compress
from mrt.rewrite.lookup.non_max_suppression import lower_non_max_suppression
from mrt.rewrite.lookup.onehot_scatter import lower_onehot_scatter
from mrt.rewrite.lookup.summing_scatter import lower_summing_scatter
from mrt.rewrite.lookup.tabulate_positions import tabulate_positions
from mrt.rewrite.lookup.trilu_cumsum import lower_trilu_cumsum
from mrt.rewrite.movement.depth_to_space import lower_depth_to_space
from mrt.rewrite.movement.expand import lower_expand
from mrt.rewrite.movement.merge_transposes import merge_transposes
from mrt.rewrite.movement.pad import canonicalize_pad
from mrt.rewrite.movement.pad_modes import lower_pad_modes
from mrt.rewrite.movement.pull_slices import pull_slices
from mrt.rewrite.movement.pull_transposes import pull_transposes
from mrt.rewrite.movement.remove_empty_operands import remove_empty_operands
from mrt.rewrite.movement.remove_identities import remove_identities
from mrt.rewrite.movement.remove_reshape_pairs import remove_reshape_pairs
from mrt.rewrite.movement.reshape import canonicalize_reshape
from mrt.rewrite.movement.split import lower_split
from mrt.rewrite.movement.transpose_concat_slice import (
    canonicalize_transpose_concat_slice,
)
from mrt.rewrite.movement.turn_flat_images import turn_flat_images
from mrt.rewrite.normalization.add_masks_last import add_masks_last
from mrt.rewrite.normalization.batch_normalization import (
    lower_batch_normalization,
)
from mrt.rewrite.normalization.fuse_normalization import fuse_normalization
from mrt.rewrite.normalization.fuse_normalization_affine import (
    fuse_normalization_affine,
)
from mrt.rewrite.normalization.fuse_rms_normalization import (
    fuse_rms_normalization,
)
from mrt.rewrite.normalization.infinite_masks import replace_infinite_masks
from mrt.rewrite.normalization.masked_rows import rewrite_masked_rows
from mrt.rewrite.normalization.normalization import canonicalize_normalization
from mrt.rewrite.normalization.softmax import lower_softmax
from mrt.rewrite.note_inputs import note_inputs
from mrt.rewrite.pooling.average_pool import lower_average_pool
from mrt.rewrite.pooling.dilated_and_lp_pool import lower_dilated_and_lp_pool
from mrt.rewrite.pooling.global_pool import lower_global_pool
from mrt.rewrite.pooling.max_pool import lower_max_pool
from mrt.rewrite.pooling.max_unpool import lower_max_unpool
from mrt.rewrite.recurrent.lstm_gru_rnn import lower_lstm_gru_rnn
from mrt.rewrite.reduction.reduce import canonicalize_reduce
from mrt.rewrite.reduction.reduce_log_sum_exp import lower_reduce_log_sum_exp
from mrt.rewrite.reduction.reduce_prod import lower_reduce_prod
from mrt.rewrite.signal.dft import lower_dft
from mrt.rewrite.signal.window_functions import fold_window_functions
from mrt.rewrite.tables.scale_columns import scale_columns

Pass = Callable[[ir.Model], int]

# Each stage is repeated until nothing changes, then the next one; then all stages
# again. So fusions meet every operator in its canonical form, and a BatchNormalization
# is lowered only when no fusion has removed it.
STAGES: tuple[tuple[Pass, ...], ...] = (
    # sign_infinities sees the IsInf that lower_is_nan lowers.
    # lower_is_nan comes before what takes IsNaN, or a value that may be NaN, for known.
    (
        lift_constants,
        sign_infinities,
        lower_is_nan,
        fold_constants,
        fold_nonzero_unique,
        remove_identities,
        join_signed_shifts,
    ),
    (
        # What is known before the model runs, and operators that do nothing. fold_constants
        # takes IsNaN for false, which lower_is_nan has looked at in the first stage.
        fold_constants,
        fold_nonzero_unique,
        rewrite_masked_rows,
        fold_booleans,
        fold_file_grids,
        fold_functions,
        fold_row_operators,
        fold_topk,
        fold_window_functions,
        remove_empty_operands,
        remove_identities,
        widen_types,
        # Movement, comparisons and choices.
        canonicalize_reshape,
        canonicalize_transpose_concat_slice,
        canonicalize_pad,
        canonicalize_comparison,
        canonicalize_argmax_topk,
        take_argmax_before_softmax,
        lower_split,
        fold_products_with_zero,
        divide_where_chosen,
        fold_space_to_depth,
        pull_slices,
        lower_depth_to_space,
        lower_non_max_suppression,
        # Look-ups, products by other names, and resizing. Of two scatters of one, the outer
        # one is lower_scatter_without_self's, before lower_extreme_scatter takes the inner one.
        lower_scatter_without_self,
        lower_onehot_scatter,
        lower_summing_scatter,
        lower_extreme_scatter,
        lower_computed_scatter,
        lower_hardmax_compress,
        lower_einsum,
        lower_dft,
        lower_pad_modes,
        lower_trilu_cumsum,
        tabulate_positions,
        lower_gather,
        lower_resize_by_integers,
        lower_resize,
        lower_grid_sample,
        lower_expand,
        lower_col2im,
        lower_computed_operands,
        canonicalize_conv_pool_attributes,
        lower_max_unpool,
        lower_dilated_conv_transpose,
        # Element by element.
        canonicalize_binary,
        canonicalize_clip,
        lower_bitwise,
        divide_as_integers,  # before lower_div, which multiplies by 1 / n
        canonicalize_floor_division,
        take_remainders,  # before lower_mod, which computes those of floats in floats
        lower_mod,
        lower_arctangent,
        lower_div,
        lower_pow,
        canonicalize_reciprocal,
        fold_squared_roots,
        # Masks, reductions and normalizations.
        add_masks_last,
        replace_infinite_masks,
        lower_global_pool,
        canonicalize_reduce,
        lower_reduce_log_sum_exp,
        lower_reduce_prod,
        canonicalize_normalization,
        fuse_normalization,
        fuse_rms_normalization,
        fuse_normalization_affine,
        # Pools, activations and the order of axes.
        lower_max_pool,
        lower_dilated_and_lp_pool,
        lower_average_pool,
        lower_leaky_relu,
        lower_softmax,
        remove_reshape_pairs,
        pull_transposes,
        turn_flat_images,
        merge_transposes,
        # Layers with constant weights, and what these absorb. subtract_running_sums reads a
        # Gemm as canonicalize_gemm leaves it: transB=1, alpha and beta 1.
        canonicalize_gemm,
        lower_matmul,
        add_conv_bias,
        fuse_pad,
        fold_reversed_channels,
        pad_pictures,
        fuse_affine_after,
        fuse_affine_before,
        fuse_affine_before_gemms,
        subtract_running_sums,
    ),
    (lower_batch_normalization, lower_conv1d, lower_conv3d, lower_lstm_gru_rnn),
)

# Far more rounds than any model needs; more means that two passes undo each other.
MOST_ROUNDS = 1000


def rewrite(model: ir.Model) -> None:
    """Bring a float model to the form of `mrt.rewrite.canonical`, in place.

    Raise Unsupported for a model that has no such form.
    """
    infer_shapes(model)
    _repeat(lambda: sum(_run_stage(stage, model) for stage in STAGES))
    write_default_attributes(model)
    canonical.check(model)
    note_inputs(model)
    # Last, since it reads the notes; of a canonical graph it makes one, by a product behind
    # an input and other numbers in constants.
    _apply(scale_columns, model)


def _run_stage(stage: tuple[Pass, ...], model: ir.Model) -> int:
    return _repeat(lambda: sum(_apply(one_pass, model) for one_pass in stage))


def _repeat(round_of_passes: Callable[[], int]) -> int:
    """Run passes until nothing changes; return the number of changes."""
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
