"""Names that operators have in mx.sym.sparse, mx.npx and mx.np, with the same meaning."""

from __future__ import annotations

_SPARSE = (
    "stop_gradient", "ElementWiseSum", "add_n", "Embedding", "elemwise_add", "elemwise_sub", "elemwise_mul",
    "elemwise_div", "_contrib_round_ste", "_contrib_sign_ste", "clip", "abs", "arccos", "arccosh", "arcsin", "arcsinh",
    "arctan", "arctanh", "broadcast_add", "broadcast_plus", "broadcast_sub", "broadcast_minus", "broadcast_mul",
    "broadcast_div", "cbrt", "ceil", "cos", "cosh", "degrees", "dot", "exp", "expm1", "fix", "floor", "log", "log10",
    "log1p", "log2", "make_loss", "mean", "negative", "norm", "radians", "relu", "rint", "round", "rsqrt", "sigmoid",
    "sign", "sin", "sinh", "sqrt", "square", "sum", "tan", "tanh", "trunc", "where", "zeros_like",
    "LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput",
)  # fmt: skip
_NPX = {
    "activation": "Activation", "arange_like": "_contrib_arange_like", "batch_dot": "batch_dot",
    "batch_flatten": "Flatten", "batch_norm": "BatchNorm", "cast": "Cast", "convolution": "Convolution",
    "deconvolution": "Deconvolution", "dropout": "Dropout", "embedding": "Embedding", "erf": "erf",
    "fully_connected": "FullyConnected", "gather_nd": "gather_nd", "layer_norm": "LayerNorm",
    "leaky_relu": "LeakyReLU", "log_softmax": "log_softmax", "multibox_detection": "_contrib_MultiBoxDetection",
    "multibox_prior": "_contrib_MultiBoxPrior", "one_hot": "one_hot", "pick": "pick", "pooling": "Pooling",
    "reshape_like": "reshape_like", "rnn": "RNN", "sequence_mask": "SequenceMask", "shape_array": "shape_array",
    "slice": "slice", "smooth_l1": "smooth_l1", "softmax": "softmax", "topk": "topk",
}  # fmt: skip
_NPI = {
    "argsort": "argsort", "cast": "Cast", "clip": "clip", "copyto": "_copyto", "expand_dims": "expand_dims",
    "full": "_full", "gather_nd": "gather_nd", "hypot_scalar": "_hypot_scalar", "linspace": "_linspace",
    "maximum": "broadcast_maximum", "maximum_scalar": "_maximum_scalar", "minimum": "broadcast_minimum",
    "minimum_scalar": "_minimum_scalar", "rnn_param_concat": "_rnn_param_concat", "slice": "slice", "sort": "sort",
    "split": "_split_v2", "swapaxes": "SwapAxis", "take": "take", "tile": "tile",
}  # fmt: skip

OTHER_NAMES: dict[str, str] = {
    **{f"_sparse_{name}": name for name in _SPARSE},
    **{f"_npx_{name}": alias for name, alias in _NPX.items()},
    **{f"_npi_{name}": alias for name, alias in _NPI.items()},
    "_np_repeat": "repeat",
}


def known_name(name: str) -> str:
    """Return the name under which an operator is registered here."""
    return OTHER_NAMES.get(name, name)
