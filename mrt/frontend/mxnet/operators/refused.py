"""MXNet operators that are refused, with the reason.

No ONNX operator of a static shape is equal to any of them.
"""

from __future__ import annotations

from collections.abc import Mapping

_NO_ONNX = "ONNX has no operator for this function"
_DYNAMIC = "how large its result is depends on the numbers that it reads"
_RANDOM = "its result is random"
_SCATTER = "indices named twice leave its result undefined"

REFUSED: dict[str, str] = {
    **dict.fromkeys(("erfinv", "gamma", "gammaln", "digamma", "khatri_rao", "_linalg_khatri_rao"), _NO_ONNX),
    **dict.fromkeys(
        ("_linalg_potrf", "_linalg_potri", "_linalg_trsm", "_linalg_gelqf", "_linalg_syevd", "_linalg_inverse",
         "_linalg_det", "_linalg_slogdet", "_linalg_sumlogdiag"), "ONNX has no operator that factors matrices",
    ),
    **dict.fromkeys(("_contrib_boolean_mask", "_contrib_getnnz", "_histogram"), _DYNAMIC),
    **dict.fromkeys(("scatter_nd", "_scatter_set_nd", "_contrib_index_copy"), _SCATTER),
    **dict.fromkeys(
        ("_random_uniform", "_random_normal", "_random_gamma", "_random_exponential", "_random_poisson",
         "_random_negative_binomial", "_random_generalized_negative_binomial", "_random_randint",
         "_random_uniform_like", "_random_normal_like", "_sample_uniform", "_sample_normal", "_sample_gamma",
         "_sample_multinomial", "_shuffle", "uniform", "normal", "shuffle"), _RANDOM,
    ),
    **dict.fromkeys(("_contrib_MultiBoxTarget", "_contrib_mrcnn_mask_target"), "it makes targets, for training only"),
    **dict.fromkeys(
        ("_contrib_Proposal", "_contrib_MultiProposal", "_contrib_bipartite_matching", "_contrib_box_encode",
         "ROIPooling", "_contrib_PSROIPooling", "_contrib_RROIAlign"), "no ONNX operator rounds and orders as it does",
    ),
    **dict.fromkeys(
        ("CTCLoss", "ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss", "IdentityAttachKLSparseReg",
         "softmax_cross_entropy"), "it is a loss, for training only: cut it off and name the output in front of it",
    ),
    **dict.fromkeys(
        ("SpatialTransformer", "GridGenerator", "BilinearSampler", "_contrib_DeformableConvolution",
         "_contrib_ModulatedDeformableConvolution", "_contrib_DeformablePSROIPooling"),
        "where it reads its input depends on computed numbers",
    ),
    **dict.fromkeys(("Correlation", "im2col", "col2im", "_contrib_count_sketch", "_contrib_fft", "_contrib_ifft"),
                    _NO_ONNX),
    **dict.fromkeys(("_foreach", "_while_loop", "_cond"), "it runs a graph of its own"),
}  # fmt: skip


def why_refused(operator: str, attributes: Mapping[str, str]) -> str:
    """Return why an operator has no handler; Custom is defined by Python code of the user."""
    if operator == "Custom":
        kind = attributes.get("op_type", "")[:100]
        return f"unsupported operator: op_type={kind!r} is code of its own, which is not in the file"
    return "unsupported operator" + (
        f": {REFUSED[operator]}" if operator in REFUSED else ""
    )
