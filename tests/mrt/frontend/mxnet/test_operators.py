"""One row per MXNet operator: attributes as a file has them, numbers in, numbers expected from MXNet's meaning."""

import math
from pathlib import Path

import numpy as np
import pytest

from mrt.frontend.mxnet import OPERATORS
from tests.support.mxnet_rows import check_refusal, check_row, names, row

RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((2, 4, 7, 6)).astype(np.float32)
Y = RANDOM.standard_normal((2, 4, 7, 6)).astype(np.float32)
POSITIVE = np.abs(X) + 0.5
MATRIX = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
SQUARE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
SIGNS = np.array([[-2, -0.5, 0, 1]], np.float32)
CHANNELS = np.array([1, 2, 3, 4], np.float32)


def convolve(x, weight, *, stride=(1, 1), pad=(0, 0), dilate=(1, 1), groups=1):
    """By the definition, in float64."""
    x = np.pad(
        x.astype(np.float64), ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2)
    )
    filters, per_group, height, width = weight.shape
    rows = (x.shape[2] - dilate[0] * (height - 1) - 1) // stride[0] + 1
    columns = (x.shape[3] - dilate[1] * (width - 1) - 1) // stride[1] + 1
    y = np.zeros((x.shape[0], filters, rows, columns))
    for f, i, j in np.ndindex(filters, rows, columns):
        first = f // (filters // groups) * per_group
        top, left = i * stride[0], j * stride[1]
        window = x[:, first : first + per_group]
        window = window[
            :,
            :,
            top : top + dilate[0] * height : dilate[0],
            left : left + dilate[1] * width : dilate[1],
        ]
        y[:, f, i, j] = (window[:, :, :height, :width] * weight[f]).sum(
            (1, 2, 3)
        )
    return y


def deconvolve(x, weight, *, stride, pad, adj, groups=1):
    """The transpose of convolve: every input spreads its kernel."""
    n, channels, height, width = x.shape
    _, per_group, kh, kw = weight.shape
    rows = stride * (height - 1) + kh + adj
    columns = stride * (width - 1) + kw + adj
    y = np.zeros((n, per_group * groups, rows, columns))
    for c, i, j in np.ndindex(channels, height, width):
        first = c // (channels // groups) * per_group
        spread = x[:, c, i, j][:, None, None, None] * weight[c][None]
        y[
            :,
            first : first + per_group,
            i * stride : i * stride + kh,
            j * stride : j * stride + kw,
        ] += spread
    return y[:, :, pad : rows - pad, pad : columns - pad]


def softmax(x, axis):
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normalize(x, gamma, beta, mean, variance, eps, axis=1):
    shape = [1] * x.ndim
    shape[axis] = -1
    gamma, beta, mean, variance = (
        np.asarray(v, np.float64).reshape(shape)
        for v in (gamma, beta, mean, variance)
    )
    return (x - mean) / np.sqrt(variance + eps) * gamma + beta


W33 = RANDOM.standard_normal((6, 4, 3, 3)).astype(np.float32)
W_GROUPS = RANDOM.standard_normal((6, 2, 3, 2)).astype(np.float32)
W_ONE = RANDOM.standard_normal((5, 4, 3)).astype(np.float32)
W_BACK = RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32)
BIAS = np.arange(6, dtype=np.float32)
W_DENSE = RANDOM.standard_normal((5, 168)).astype(np.float32)
W_LAST = RANDOM.standard_normal((5, 6)).astype(np.float32)
STATISTICS = [CHANNELS, CHANNELS[::-1].copy(), CHANNELS / 10, CHANNELS / 100]
STATISTICS_6 = [
    np.arange(1, 7, dtype=np.float32) * factor for factor in (1, 2, 0.1, 0.01)
]

VALID = {"kernel": "(3,3)", "stride": "(2,2)"}
FULL = {**VALID, "pooling_convention": "full"}

ROWS = [
    row("Convolution", X, convolve(X, W33) + BIAS[:, None, None], [W33, BIAS], kernel="(3, 3)", num_filter="6"),
    row(
        "Convolution", X, convolve(X, W_GROUPS, stride=(2, 1), pad=(1, 2), dilate=(2, 1), groups=2), [W_GROUPS],
        kernel="(3, 2)", num_filter="6", stride="(2, 1)", pad="[1L, 2L]", dilate="(2,1,)", num_group="2", no_bias="1",
        workspace="1024", cudnn_tune="off", cudnn_off="0", layout="NCHW",
    ),
    row(
        "Convolution", X[:, :, :, 0], convolve(X[:, :, None, :, 0], W_ONE[:, :, None])[:, :, 0], [W_ONE],
        kernel="3", num_filter="5", no_bias="True", layout="None",
    ),
    row("Convolution_v1", X, convolve(X, W33, stride=(2, 2)), [W33], **VALID, num_filter="6", no_bias="True"),
    row(
        "Deconvolution", X, deconvolve(X, W_BACK, stride=2, pad=1, adj=1), [W_BACK],
        kernel="(3,3)", num_filter="3", stride="(2,2)", pad="(1,1)", adj="(1,1)",
    ),
    row(
        "Deconvolution", X, deconvolve(X, W_BACK, stride=2, pad=1, adj=1), [W_BACK],
        kernel="(3,3)", num_filter="3", stride="(2,2)", target_shape="(14, 12)",
    ),
    row(
        "Deconvolution", X, deconvolve(X, W_BACK, stride=1, pad=0, adj=0, groups=2) + BIAS[:, None, None],
        [W_BACK, BIAS], kernel="(3,3)", num_filter="6", num_group="2", no_bias="False",
    ),
    row("FullyConnected", X, X.reshape(2, -1) @ W_DENSE.T + BIAS[:5], [W_DENSE, BIAS[:5]], num_hidden="5"),
    row("FullyConnected", MATRIX, [[7], [16]], [np.ones((1, 3), np.float32), np.ones(1, np.float32)], num_hidden="1"),
    row("FullyConnected", X, X @ W_LAST.T, [W_LAST], num_hidden="5", flatten="False", no_bias="True"),
    row("BatchNorm", X, normalize(X, np.ones(4), *STATISTICS[1:], 1e-3), STATISTICS),
    row(
        "BatchNorm", X, normalize(X, *STATISTICS, 1e-5), STATISTICS,
        fix_gamma="False", eps="1e-05", use_global_stats="True",
    ),
    row("BatchNorm", X, normalize(X, np.ones(6), *STATISTICS_6[1:], 1e-3, axis=3), STATISTICS_6, axis="-1"),
    row("BatchNorm_v1", X, normalize(X, *STATISTICS, 1e-3), STATISTICS, fix_gamma="false"),
    # kernel 3, stride 2: 'full' has a second window, of which only two elements exist.
    row("Pooling", SQUARE, [[[[11]]]], kernel="(3,3)", stride="(2,2)"),
    row("Pooling", SQUARE, [[[[11, 12], [15, 16]]]], **FULL),
    row("Pooling", SQUARE, [[[[6, 7.5], [12, 13.5]]]], **FULL, pool_type="avg"),
    row("Pooling", SQUARE, [[[[54, 45], [72, 54]]]], **FULL, pool_type="sum"),
    # padded by 1 and 'full': a third window, whose padding counts but whose part beyond it does not.
    row(
        "Pooling", SQUARE, [[[[14 / 9, 30 / 9, 2], [57 / 9, 11, 6], [4.5, 7.5, 4]]]],
        **FULL, pad="(1,1)", pool_type="avg",
    ),
    row(
        "Pooling", SQUARE, [[[[3.5, 5, 6], [9.5, 11, 12], [13.5, 15, 16]]]],
        **FULL, pad="(1,1)", pool_type="avg", count_include_pad="False",
    ),
    row("Pooling", SQUARE, [[[[14 / 9, 30 / 9], [57 / 9, 11]]]], **VALID, pad="(1,1)", pool_type="avg"),
    row("Pooling", SQUARE, [[[[6, 8], [14, 16]]]], kernel="(2,2)", stride="(2,2)", pool_type="max", layout="NCHW"),
    row("Pooling", SQUARE, [[[[3.5, 4.5, 5.5], [7.5, 8.5, 9.5], [11.5, 12.5, 13.5]]]], kernel="(2,2)", pool_type="avg"),
    row("Pooling", SQUARE[:, :, 0], [[[1.5, 3.5]]], kernel="(2,)", stride="(2,)", pool_type="avg"),
    row("Pooling", SQUARE, [[[[8.5]]]], kernel="(2,2)", pad="(1,1)", pool_type="avg", global_pool="True"),
    row("Pooling", SQUARE, [[[[16]]]], global_pool="True"),
    row("Pooling", SQUARE, [[[[136]]]], pool_type="sum", global_pool="True"),
    row("Pooling_v1", SQUARE, [[[[6, 5], [8, 6]]]], **FULL, pool_type="avg"),
    row("_contrib_AdaptiveAvgPooling2D", SQUARE, [[[[8.5]]]], output_size="1"),
    row("_contrib_AdaptiveAvgPooling2D", SQUARE, [[[[3.5, 5.5], [11.5, 13.5]]]], output_size="(2,2)"),
    row("Activation", SIGNS, [[0, 0, 0, 1]], act_type="relu"),
    row("Activation", SIGNS, 1 / (1 + np.exp(-SIGNS)), act_type="sigmoid"),
    row("Activation", SIGNS, np.tanh(SIGNS), act_type="tanh"),
    row("Activation", SIGNS, np.log1p(np.exp(SIGNS)), act_type="softrelu"),
    row("Activation", SIGNS, [[-2 / 3, -1 / 3, 0, 0.5]], act_type="softsign"),
    row("LeakyReLU", SIGNS, [[-0.5, -0.125, 0, 1]]),
    row("LeakyReLU", SIGNS, [[-0.2, -0.05, 0, 1]], act_type="leaky", slope="0.1"),
    row("LeakyReLU", SIGNS, [[math.expm1(-2) / 4, math.expm1(-0.5) / 4, 0, 1]], act_type="elu"),
    row("LeakyReLU", SIGNS, [[-1.5201665, -0.6917580, 0, 1.0507010]], act_type="selu"),
    row("LeakyReLU", SIGNS, [[-0.0455003, -0.1542688, 0, 0.8413447]], act_type="gelu"),
    row("LeakyReLU", SIGNS, [[-0.459, -0.11475, 0, 1]], act_type="rrelu"),
    row("LeakyReLU", -POSITIVE, -POSITIVE * CHANNELS[:, None, None], [CHANNELS], act_type="prelu"),
    row("LeakyReLU", SIGNS, [[-2, -1, 0, 1]], [CHANNELS], act_type="prelu"),
    row("LeakyReLU", SIGNS, [[-1, -0.25, 0, 1]], [np.array([0.5], np.float32)], act_type="prelu"),
    row("Dropout", MATRIX, MATRIX, p="0.5", mode="training", axes="()", cudnn_off="False"),
    row("Flatten", X, X.reshape(2, 168)),
    row("Concat", [X, Y[:, :1]], np.concatenate([X, Y[:, :1]], 1), num_args="2"),
    row("Concat", [X, Y], np.concatenate([X, Y], 3), num_args="2", dim="-1"),
    row("elemwise_add", [X, Y], X + Y),
    row("elemwise_sub", [X, Y], X - Y),
    row("elemwise_mul", [X, Y], X * Y),
    row("elemwise_div", [X, POSITIVE], X / POSITIVE),
    row("_maximum", [X, Y], np.maximum(X, Y)),
    row("_minimum", [X, Y], np.minimum(X, Y)),
    row("_power", [POSITIVE, X], POSITIVE**X),
    row("broadcast_add", [MATRIX, MATRIX[:1]], [[2, 4, 6], [5, 7, 9]]),
    row("broadcast_add", [MATRIX], [[2, 4, 6], [5, 7, 9]], [MATRIX[0]]),
    row("broadcast_sub", [MATRIX, MATRIX[:1]], [[0, 0, 0], [3, 3, 3]]),
    row("broadcast_mul", [MATRIX, MATRIX[:, :1]], [[1, 2, 3], [16, 20, 24]]),
    row("broadcast_div", [MATRIX, MATRIX[1:, :1]], MATRIX / 4),
    row("broadcast_maximum", [MATRIX, MATRIX[1:, :1]], [[4, 4, 4], [4, 5, 6]]),
    row("broadcast_minimum", [MATRIX, MATRIX[1:, :1]], [[1, 2, 3], [4, 4, 4]]),
    row("broadcast_power", [MATRIX, MATRIX[:1]], [[1, 4, 27], [4, 25, 216]]),
    row("_plus_scalar", MATRIX, MATRIX + 1.5, scalar="1.5", is_int="False"),
    row("_minus_scalar", MATRIX, MATRIX - 1.5, scalar="1.5"),
    row("_rminus_scalar", MATRIX, 1.5 - MATRIX, scalar="1.5"),
    row("_mul_scalar", MATRIX, MATRIX * -2, scalar="-2"),
    row("_div_scalar", MATRIX, MATRIX / 4, scalar="4.0"),
    row("_rdiv_scalar", MATRIX, 12 / MATRIX, scalar="12"),
    row("_power_scalar", MATRIX, MATRIX**2, scalar="2"),
    row("_rpower_scalar", MATRIX, 2**MATRIX, scalar="2"),
    row("_maximum_scalar", MATRIX, [[3.5, 3.5, 3.5], [4, 5, 6]], scalar="3.5"),
    row("_minimum_scalar", MATRIX, [[1, 2, 3], [3.5, 3.5, 3.5]], scalar="35e-1"),
    row("clip", MATRIX, [[2, 2, 3], [4, 5, 5]], a_min="2", a_max="5.0"),
    row("clip", MATRIX, [[1, 2, 3], [4, 5, 5]], a_min="-inf", a_max="5"),
    row("relu", SIGNS, [[0, 0, 0, 1]]),
    row("sigmoid", SIGNS, 1 / (1 + np.exp(-SIGNS))),
    row("tanh", SIGNS, np.tanh(SIGNS)),
    row("exp", SIGNS, np.exp(SIGNS)),
    row("log", POSITIVE, np.log(POSITIVE)),
    row("sqrt", MATRIX**2, MATRIX),
    row("rsqrt", MATRIX**2, 1 / MATRIX),
    row("square", MATRIX, MATRIX**2),
    row("reciprocal", MATRIX, 1 / MATRIX),
    row("abs", SIGNS, [[2, 0.5, 0, 1]]),
    row("negative", SIGNS, [[2, 0.5, 0, -1]]),
    row("erf", SIGNS, [[-0.9953223, -0.5204999, 0, 0.8427008]]),
    row("floor", SIGNS, [[-2, -1, 0, 1]]),
    row("ceil", SIGNS, [[-2, 0, 0, 1]]),
    row("sign", SIGNS, [[-1, -1, 0, 1]]),
    row("softsign", SIGNS, [[-2 / 3, -1 / 3, 0, 0.5]]),
    row("hard_sigmoid", SIGNS, [[0.1, 0.4, 0.5, 0.7]]),
    row("softmax", X, softmax(X, -1)),
    row("softmax", X, softmax(X / 2, 1), axis="1", temperature="2.0"),
    row("log_softmax", X, np.log(softmax(X, 1)), axis="1", temperature="None"),
    row("softmin", X, softmax(-X, -1)),
    row("SoftmaxActivation", X, softmax(X, -1)),
    row("SoftmaxActivation", X, softmax(X, 1), mode="channel"),
    row("SoftmaxOutput", MATRIX, softmax(MATRIX, 1), labels=1, grad_scale="1", ignore_label="-1"),
    row("SoftmaxOutput", X, softmax(X, 1), labels=1, multi_output="True", use_ignore="True"),
    row("SoftmaxOutput", X, softmax(X, -1), labels=1, preserve_shape="True"),
    row("LinearRegressionOutput", MATRIX, MATRIX, labels=1),
    row("LogisticRegressionOutput", SIGNS, 1 / (1 + np.exp(-SIGNS)), labels=1, grad_scale="0.5"),
    row("MakeLoss", MATRIX, MATRIX, grad_scale="1.0"),
    row("transpose", X, X.transpose(3, 2, 1, 0)),
    row("transpose", X, X.transpose(0, 2, 3, 1), axes="(0, 2, 3, 1)"),
    row("Reshape", X, X.reshape(2, 168), shape="(0, -1)"),
    row("Reshape", X, X.reshape(2, 4, 42), shape="(0, 0, -3)"),
    row("Reshape", X, X.reshape(2, 2, 2, 7, 6), shape="(0, -4, 2, -1, -2)"),
    row("Reshape", X, X.reshape(8, 7, 6), shape="(-3, -2)"),
    row("Reshape", X, X.reshape(1, 2, 4, 7, 6), shape="(-4, 1, 2, -2)"),
    row("Reshape", X, X.reshape(56, 6), shape="(-1, 0)", reverse="True"),
    row("Reshape", X, X.reshape(84, 4), shape="(-1, 4)"),
    row("Reshape", X, X.reshape(2, 28, 6), shape="(0, -3, -1)"),
    row("Reshape", X, X.reshape(8, 42), shape="(-1, -3)", reverse="True"),
    row("Reshape", X, X.reshape(2, 168), target_shape="(2, 0)"),
    row("Reshape", X, X.reshape(2, 168), target_shape="(0, 0)", keep_highest="True"),
    row("expand_dims", MATRIX, MATRIX[:, :, None], axis="-1"),
    row("squeeze", MATRIX[:, :1], [1, 4]),
    row("squeeze", MATRIX[:1, :1], [1], axis="None"),
    row("squeeze", MATRIX[None, :, :1], [[1, 4]], axis="(-1,)"),
    row("SwapAxis", X, X.swapaxes(1, 3), dim1="1", dim2="3"),
    row("SwapAxis", X, X),
    row("mean", X, X.mean((0, 2, 3)), axis="1", exclude="True"),
    row("mean", X, X.mean((1, 3), keepdims=True), axis="(1, -1)", keepdims="True"),
    row("mean", MATRIX, [3.5], axis="(0, 1)"),
    row("mean", MATRIX, MATRIX, axis="(0, 1)", exclude="True"),
    row("sum", MATRIX, [21]),
    row("sum", MATRIX, [6, 15], axis="(1,)"),
    row("max", MATRIX, [6], axis="()"),
    row("max", MATRIX, [4, 5, 6], axis="0"),
    row("min", MATRIX, [[1]], keepdims="True"),
    row("prod", MATRIX, [6, 120], axis="1"),
    row("Pad", X, np.pad(X, ((0, 0), (0, 0), (1, 2), (3, 0)), constant_values=-1.5),
        mode="constant", pad_width="(0, 0, 0, 0, 1, 2, 3, 0)", constant_value="-1.5"),
    row("Pad", X, np.pad(X, ((0, 0), (0, 0), (1, 2), (3, 0)), "edge"), mode="edge", pad_width="(0,0,0,0,1,2,3,0)"),
    row("Pad", X, np.pad(X, ((0, 0), (0, 0), (1, 2), (3, 0)), "reflect"),
        mode="reflect", pad_width="(0,0,0,0,1,2,3,0)"),
    row("slice", X, X[0:1, 1:-1:2], begin="(0, 1)", end="(1, -1)", step="(None, 2)"),
    row("slice", X, X[:, 3::-1, :, 1:9], begin="(None, 3, None, 1)", end="(None, None, None, 9)", step="(1, -1, 1, 1)"),
    row("slice_axis", X, X[:, :, -3:], axis="2", begin="-3", end="None"),
    row("SliceChannel", X, X[:, :2], num_outputs="2"),
    row("SliceChannel", MATRIX, [1, 4], num_outputs="3", axis="-1", squeeze_axis="True"),
    row("UpSampling", SQUARE[:, :, :2, :2], [[[[1, 1, 2, 2], [1, 1, 2, 2], [5, 5, 6, 6], [5, 5, 6, 6]]]],
        scale="2", sample_type="nearest", num_args="1"),
    row("add_n", [MATRIX, MATRIX, MATRIX], MATRIX * 3, num_args="3"),
    row("add_n", MATRIX, MATRIX, num_args="1"),
    row("identity", MATRIX, MATRIX),
    row("Cast", MATRIX, MATRIX, dtype="float32"),
]  # fmt: skip

ALIASES = {
    "Softmax": "SoftmaxOutput", "MAERegressionOutput": "LinearRegressionOutput", "_copy": "identity",
    "BlockGrad": "identity", "stop_gradient": "identity", "make_loss": "identity", "cast": "Cast",
    "_sparse_FullyConnected": "FullyConnected", "flatten": "Flatten", "reshape": "Reshape",
    "concat": "Concat", "swapaxes": "SwapAxis", "pad": "Pad",
    "crop": "slice", "split": "SliceChannel", "ElementWiseSum": "add_n", "sum_axis": "sum", "max_axis": "max",
    "min_axis": "min", "broadcast_plus": "broadcast_add", "broadcast_minus": "broadcast_sub",
    "_add": "elemwise_add", "_plus": "elemwise_add", "_Plus": "elemwise_add", "_grad_add": "elemwise_add",
    "_sub": "elemwise_sub", "_minus": "elemwise_sub", "_Minus": "elemwise_sub",
    "_mul": "elemwise_mul", "_Mul": "elemwise_mul", "_div": "elemwise_div", "_Div": "elemwise_div",
    "_Maximum": "_maximum", "_Minimum": "_minimum", "_Power": "_power",
    "_PlusScalar": "_plus_scalar", "_MinusScalar": "_minus_scalar", "_RMinusScalar": "_rminus_scalar",
    "_MulScalar": "_mul_scalar", "_DivScalar": "_div_scalar", "_RDivScalar": "_rdiv_scalar",
    "_PowerScalar": "_power_scalar", "_RPowerScalar": "_rpower_scalar",
    "_MaximumScalar": "_maximum_scalar", "_MinimumScalar": "_minimum_scalar",
}  # fmt: skip


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_an_operator_means_what_it_means_in_mxnet(case, tmp_path):
    check_row(tmp_path, case)


def test_every_operator_has_a_row_here_or_in_a_file_beside():
    tests = "".join(
        path.read_text() for path in Path(__file__).parent.glob("test_*.py")
    )
    assert [
        name for name in sorted(OPERATORS) if f'"{name}"' not in tests
    ] == []
    assert set(ALIASES.values()) <= {case.operator for case in ROWS}


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_the_same_operator(alias):
    assert OPERATORS[alias].handler is OPERATORS[ALIASES[alias]].handler


REFUSALS = [
    (row("Dropout", MATRIX, MATRIX, mode="always"), "mode='always': not supported; supported: training"),
    (row("SoftmaxOutput", X, X, labels=1), "unless exactly one of multi_output and preserve_shape is set"),
    (row("SoftmaxOutput", X, X, labels=1, multi_output="1", preserve_shape="1"), "which axis is meant depends"),
    (row("Pooling", SQUARE, X, kernel="(2,2)", stride="(3,3)", pad="(1,1)", pooling_convention="full"),
     "a window lies wholly in the padding"),
    (row("Pooling", SQUARE, X, kernel="(2,2)", pad="(2,2)"), "a window lies wholly in the padding"),
    (row("Pooling", SQUARE, X, kernel="(5,5)"), "kernel=(5, 5) exceeds the padded input"),
    (row("Pooling", SQUARE, X, kernel="(2,2)", pool_type="lp", p_value="3"), "p_value=3: supported: 1, 2"),
    (row("Pooling", SQUARE, X, kernel="(2,2)", pooling_convention="same"), "pooling_convention='same': not supported"),
    (row("Pooling", SQUARE, X, kernel="(2,2)", stride="(2,)"), "stride=(2,) does not fit kernel=(2, 2)"),
    (row("Pooling", SQUARE, X, kernel="(2,2)", stride="(0,1)"), "stride=(0, 1): expected at least 1 each"),
    (row("Pooling", SQUARE, X, kernel="(2,2)", layout="NCW"), "layout=NCW for 2 spatial axes; expected NCHW or NHWC"),
    (row("Convolution", X, X, [W33], kernel="(3,3)", num_filter="6", no_bias="1", layout="NCW"), "expected NCHW"),
    (row("Convolution", X, X, [W33], kernel="(3,3)", num_filter="6", no_bias="1", num_group="3"),
     "num_group=3 does not divide 4 input channels"),
    (row("Convolution", X, X, [W33], kernel="(3,3)", num_filter="7", no_bias="1", num_group="2"),
     "num_group=2 does not divide num_filter=7"),
    (row("Deconvolution", X, X, [W33], kernel="(3,3)", num_filter="7", num_group="2"),
     "num_group=2 does not divide num_filter=7"),
    (row("Convolution", X, X, [W33], kernel="(0,3)", num_filter="6", no_bias="1"), "expected 1 to 3 positive numbers"),
    (row("Convolution", X, X, [W33], kernel="(3,3)", num_filter="0", no_bias="1"), "expected a positive integer"),
    (row("Pooling_v1", SQUARE, X, kernel="(2,)"), "kernel=(2,): expected 2 numbers"),
    (row("_contrib_AdaptiveAvgPooling2D", SQUARE, X, output_size="(0,1)"), "expected 1 or 2 positive numbers"),
    (row("Reshape", X, X, shape="(-4, 2)"), "-4 in shape needs two numbers after it"),
    (row("Reshape", X, X, shape="(-4, -1, -1, -2)"), "-4 in shape needs two numbers after it"),
    (row("Convolution", X, X, [W33], kernel="(3,3)", num_filter="6"), "2 inputs; expected 3 (data, weight, bias)"),
    (row("Convolution", X, X, [W33, BIAS], kernel="(3.0,3)", num_filter="6"), "kernel='(3.0,3)': expected an integer"),
    (row("Convolution", X, X, [W33, BIAS], num_filter="6"), "attribute 'kernel' is missing"),
    (row("Convolution", X, X, [W33, BIAS], kernel="(3,3)", num_filter="6", foo="1"), "unknown attribute 'foo'"),
    (row("Convolution", X, X, [W33, BIAS], kernel="(3,3,3)", num_filter="6"), "has 4 dimensions; expected 5"),
    (row("Deconvolution", X, X, [W_BACK], kernel="(3,3)", num_filter="3", target_shape="(20,20)"),
     "target_shape=(20, 20) is larger than the full result (9, 8)"),
    (row("BatchNorm", X, X, STATISTICS, output_mean_var="True"), "output_mean_var='True': not supported"),
    (row("BatchNorm", X, X, STATISTICS, axis="4"), "axis 4 is outside the 4 dimensions"),
    (row("elemwise_add", [MATRIX, MATRIX[:1]], X), "shapes (2, 3) and (1, 3) differ"),
    (row("add_n", [MATRIX, MATRIX[:1]], X, num_args="2"), "shapes [(1, 3), (2, 3)] differ"),
    (row("broadcast_add", [MATRIX, MATRIX[:, :2]], X), "shapes do not fit: (2, 3), (2, 2): "),
    (row("softmax", MATRIX, X, use_length="True"), "1 inputs; expected 2 (data, length)"),
    (row("softmin", MATRIX, X, use_length="True"), "use_length='True': not supported"),
    (row("softmax", MATRIX, X, temperature="0"), "temperature=0.0: expected a positive number"),
    (row("clip", MATRIX, X, a_min="3", a_max="2"), "a_min=3.0 is above a_max=2.0"),
    (row("_mul_scalar", MATRIX, X, scalar="1e39"), "expected a number that fits float32"),
    (row("_mul_scalar", MATRIX, X, scalar="nan"), "scalar='nan': expected a number"),
    (row("Cast", MATRIX, X, dtype="uint64"), "not supported; supported: float32"),
    (row("Reshape", X, X, shape="(5, -1)"), "cannot reshape (2, 4, 7, 6) to (5, 67)"),
    (row("Reshape", X, X, shape="(-1, -1)"), "-1 twice"),
    (row("Reshape", X, X, shape="(-4, 1, 2, -1)"), "after -2 or -4"),
    (row("Reshape", X, X, shape="(0, -4, 2, 2, -2)", reverse="True"), "names more dimensions than (6, 7, 4, 2) has"),
    (row("Reshape", X, X, shape="(-4, 3, -1, -2)"), "cannot split 2 into (3, -1)"),
    (row("Reshape", MATRIX, X, shape="(0, 0, 0)"), "names more dimensions than (2, 3) has"),
    (row("Reshape", MATRIX, X, shape="(-5,)"), "shape holds -5"),
    (row("Reshape", MATRIX, X), "attribute 'shape' is missing"),
    (row("transpose", MATRIX, X, axes="(0, 0)"), "axes=(0, 0) is no order of 2 dimensions"),
    (row("squeeze", MATRIX, X, axis="0"), "is not of size 1"),
    (row("mean", MATRIX, X, axis="(1, -1)"), "names an axis twice"),
    (row("Concat", [MATRIX, MATRIX], X, num_args="3"), "2 inputs; expected 3"),
    (row("Concat", [MATRIX, MATRIX], X, num_args="1000000000000"), "expected an integer from 1 to 10000"),
    (row("Pad", MATRIX, X, mode="constant", pad_width="(0, 0, -1, 0)"), "is negative"),
    (row("Pad", MATRIX, X, mode="edge", pad_width="(0, 0)"), "does not fit an input of shape (2, 3)"),
    (row("Pad", MATRIX, X, mode="reflect", pad_width="(0, 0, 0, 3)"), "reflects more than"),
    (row("Pad", MATRIX, X, mode="constant", pad_width="(0, 0, 0, 2000000000)"), "at most 16 positive dimensions, 2^28"),
    (row("slice", MATRIX, X, begin="(2,)", end="(3,)"), "a result of shape (0, 3)"),
    (row("slice", MATRIX, X, begin="(0,)", end="(1, 1)"), "begin, end and step of 1, 2 and 1 items"),
    (row("slice_axis", MATRIX, X, axis="1", begin="0", end="9"), "begin=0, end=9 on an axis of size 3"),
    (row("split", MATRIX, X, num_outputs="2"), "num_outputs=2 does not divide axis 1 of size 3"),
    (row("split", X, X, num_outputs="2", squeeze_axis="1"), "squeeze_axis=True on parts of size 2"),
    (row("Custom", MATRIX, X), "result (Custom): unsupported operator"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_a_use_outside_what_is_supported_is_refused_by_name(
    case, problem, tmp_path
):
    check_refusal(tmp_path, case, problem)
