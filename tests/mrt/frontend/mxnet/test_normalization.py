"""Normalisation layers and activations with slopes, with the numbers that MXNet 1.9.1 gave for each row."""

import numpy as np
import pytest

from mrt.errors import BadModel
from tests.support.mxnet_rows import (
    check_refusal,
    check_row,
    import_row,
    names,
    row,
)


def numbers(*shape):
    """Integers from -5 to 5 in no order: -5, 2, -2, 5, 1, -3, 4, 0, -4, 3, -1, and again."""
    return (
        (np.arange(np.prod(shape, dtype=int)) * 7 % 11 - 5)
        .astype(np.float32)
        .reshape(shape)
    )


def variances(size):
    """Positive numbers."""
    return np.abs(numbers(size)) + 1


FOUR = [numbers(4), numbers(4), numbers(4), variances(4)]

ROWS = [
    row("BatchNorm", numbers(1, 4, 1, 2), np.reshape([-5, -19.2768, -2.611123, 5.458343, -5.458343, -0.8472192,
        2.960458, -5.197712], (1, 4, 1, 2)), FOUR, fix_gamma="0",
        eps="0.01"),
    row("_contrib_SyncBatchNorm", numbers(1, 4, 1, 2), np.reshape([-5, -19.2875, -2.618033, 5.463525, -5.463524,
        -0.8454914, 2.958929, -5.205357], (1, 4, 1, 2)), FOUR,
        fix_gamma="0", key="a", ndev="2", use_global_stats="1"),
    row("BatchNorm", numbers(1, 4, 1, 2), np.reshape([-5, -2.14464, -0.3055615, 3.729171, -0.2708288, -2.57639,
        4.592092, 2.960458], (1, 4, 1, 2)), FOUR, fix_gamma="1",
        eps="0.01"),
    row("_contrib_SyncBatchNorm", numbers(1, 4, 1, 2), np.reshape([-5, -2.1425, -0.3090165, 3.731762, -0.2682377,
        -2.577254, 4.591785, 2.958929], (1, 4, 1, 2)), FOUR,
        fix_gamma="1", key="a", ndev="2", use_global_stats="1"),
    row("BatchNorm", numbers(1, 4, 1, 2), np.reshape([-5, -2.1425, -0.3090165, 3.731762, -0.2682376, -2.577254,
        4.591786, 2.958929], (1, 4, 1, 2)), FOUR),
    row("BatchNorm", numbers(1, 1, 2, 4), np.reshape([-5, 2, -2, 5, -17.24643, -3.772541, -8.92705, -5.205357], (1, 1,
        2, 4)), FOUR, axis="-1", fix_gamma="0"),
    row("BatchNorm", numbers(4), [-5, 2, -2, 5], FOUR, axis="0",
        fix_gamma="0"),
    row("BatchNorm_v1", numbers(2, 4), np.reshape([-5, 2, -2, 5, -17.24643, -3.772541, -8.92705, -5.205357], (2, 4)),
        FOUR, fix_gamma="0"),
    row("_contrib_BatchNormWithReLU", numbers(1, 4, 1, 2), np.reshape([0, 0, 0, 5.463525, 0, 0, 2.958929, 0], (1, 4,
        1, 2)), FOUR, fix_gamma="0", axis="1"),
    row("InstanceNorm", numbers(1, 2, 3, 2), np.reshape([1.96495, -8.482475, -2.512518, -12.95994, -6.989985,
        -1.020029, 4.723815, 2.302646, -0.1185226, 4.118523, 1.697354, -0.7238147], (1, 2, 3, 2)), [numbers(2),
        numbers(2)]),
    row("InstanceNorm", numbers(1, 2, 4), np.reshape([1.454972, -7.581989, -2.418011, -11.45497, 2.3849, -0.6943014,
        4.694302, 1.6151], (1, 2, 4)), [numbers(2), numbers(2)], eps="0.5"),
    row("GroupNorm", numbers(1, 4, 2), np.reshape([1.565319, -7.626128, -2.373872, -11.56532, 2.4, -0.7999978,
        4.799998, 1.6], (1, 4, 2)), [numbers(2), numbers(2)], num_groups="2"),
    row("GroupNorm", numbers(1, 4, 1, 2), np.reshape([2.937254, -7.645751, -1.59832, -12.18132, -6.133893,
        -0.08646202, -10.66947, -4.622036], (1, 4, 1, 2)), [numbers(1), numbers(1)], eps="0.5"),
    row("LayerNorm", numbers(2, 4), np.reshape([1.56532, 3.050451, -0.9495488, 11.56532, -5.999999, -0.7999978,
        -4.799998, 4.000001], (2, 4)), [numbers(4), numbers(4)]),
    row("LayerNorm", numbers(1, 3, 1, 2), np.reshape([0.8834839, -5.98773, 2, 4.173005, -4.353394, 0.5680971], (1, 3,
        1, 2)), [numbers(3), numbers(3)], axis="1", eps="0.5"),
    row("LRN", numbers(1, 4, 1, 2), np.reshape([-2.971941, 1.188776, -1.188761, 2.971606, 0.5944476, -1.783053,
        2.377909, 0], (1, 4, 1, 2)), nsize="3"),
    row("LRN", numbers(1, 4, 1, 2), np.reshape([-1.889822, 0.6819943, -0.6262243, 1.704986, 0.3131121, -1.022991,
        1.754116, 0], (1, 4, 1, 2)), nsize="5", alpha="1", beta="0.5", knorm="1"),
    row("L2Normalization", numbers(1, 3, 2, 2), np.reshape([-0.4295368, 0.1718147, -0.1718147, 0.4295368, 0.08590735,
        -0.2577221, 0.3436294, 0, -0.3436294, 0.2577221, -0.08590735, -0.4295368], (1, 3, 2, 2)), mode="instance",
        eps="0.5"),
    row("L2Normalization", numbers(1, 3, 2, 2), np.reshape([-0.766965, 0.421637, -0.4313311, 0.7035975, 0.153393,
        -0.6324555, 0.8626622, 0, -0.613572, 0.6324555, -0.2156655, -0.7035975], (1, 3, 2, 2)), mode="channel",
        eps="0.5"),
    row("L2Normalization", numbers(1, 3, 2, 2), np.reshape([-0.6537205, 0.2614882, -0.2614882, 0.6537205, 0.1942572,
        -0.5827715, 0.7770287, 0, -0.5573864, 0.4180398, -0.1393466, -0.696733], (1, 3, 2, 2)), mode="spatial",
        eps="0.5"),
    row("L2Normalization", numbers(2, 3), np.reshape([-0.8703883, 0.3481553, -0.3481553, 0.8451542, 0.1690308,
        -0.5070925], (2, 3))),
    row("LeakyReLU", numbers(1, 5), np.reshape([-1.25, 2, -0.5, 5, 1], (1, 5)), act_type="leaky"),
    row("LeakyReLU", numbers(1, 5), np.reshape([-0.2483155, 2, -0.2161662, 5, 1], (1, 5)), act_type="elu"),
    row("LeakyReLU", numbers(1, 5), np.reshape([-1.746253, 2.101402, -1.520167, 5.253505, 1.050701], (1, 5)),
        act_type="selu"),
    row("LeakyReLU", numbers(1, 5), np.reshape([-1.490116e-06, 1.9545, -0.0455001, 4.999999, 0.8413447], (1, 5)),
        act_type="gelu"),
    row("LeakyReLU", numbers(1, 5), np.reshape([-1.1475, 2, -0.459, 5, 1], (1, 5)), act_type="rrelu"),
    row("LeakyReLU", numbers(1, 5), np.reshape([-1.5, 2, -0.6, 5, 1], (1, 5)), act_type="rrelu", lower_bound="0.2",
        upper_bound="0.4"),
    row("LeakyReLU", numbers(1, 5), np.reshape([-1.986524, 2, -1.729329, 5, 1], (1, 5)), act_type="elu", slope="2"),
    row("LeakyReLU", numbers(1, 3, 2), np.reshape([25, 2, -4, 5, 1, 6], (1, 3, 2)), [numbers(3)], act_type="prelu"),
    row("LeakyReLU", numbers(1, 3, 2), np.reshape([25, 2, 10, 5, 1, 15], (1, 3, 2)), [numbers(1)], act_type="prelu"),
    row("LeakyReLU", numbers(3), [25, 2, 4], [numbers(3)], act_type="prelu"),
    row("CuDNNBatchNorm", numbers(1, 4), [[-5, 2, -2, 5]], [numbers(4) * 0 + 1, numbers(4), numbers(4), variances(4)]),
]  # fmt: skip

REFUSALS = [
    (
        row("BatchNorm", numbers(1, 4, 2), 0, FOUR, output_mean_var="True"),
        "output_mean_var='True': not supported",
    ),
    (
        row("_contrib_SyncBatchNorm", numbers(1, 4, 2), 0, FOUR, axis="1"),
        "unknown attribute 'axis'",
    ),
    (
        row("InstanceNorm", numbers(2, 4), 0, FOUR[:2]),
        "has 2 dimensions; expected at least 3",
    ),
    (
        row("GroupNorm", numbers(1, 4, 2), 0, FOUR[:2], num_groups="3"),
        "num_groups=3 does not divide 4 channels",
    ),
    (
        row("GroupNorm", numbers(2, 4), 0, FOUR[:2]),
        "has 2 dimensions; expected at least 3",
    ),
    (
        row("GroupNorm", numbers(1, 4, 2), 0, FOUR[:2], output_mean_var="1"),
        "output_mean_var='1': not supported",
    ),
    (
        row("LayerNorm", numbers(1, 4), 0, FOUR[:2], output_mean_var="1"),
        "output_mean_var='1': not supported",
    ),
    (
        row("LayerNorm", numbers(1, 4), 0, FOUR[:2], axis="2"),
        "axis 2 is outside the 2 dimensions",
    ),
    (
        row("LRN", numbers(1, 4, 1, 2), 0, nsize="4"),
        "nsize=4: expected an odd number",
    ),
    (
        row("LRN", numbers(1, 4, 2), 0, nsize="3"),
        "has 3 dimensions; expected 4",
    ),
    (row("LRN", numbers(1, 4, 1, 2), 0), "attribute 'nsize' is missing"),
    (
        row("L2Normalization", numbers(2, 4), 0, mode="channel"),
        "has 2 dimensions; expected at least 3",
    ),
    (
        row("L2Normalization", numbers(2, 4, 1), 0, mode="batch"),
        "supported: channel, instance, spatial",
    ),
]


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_a_layer_normalises_as_in_mxnet(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_what_mxnet_refuses_or_onnx_cannot_say_is_refused(
    case, problem, tmp_path
):
    check_refusal(tmp_path, case, problem)


@pytest.mark.parametrize("groups", [2, 4])
def test_group_norm_has_one_gamma_for_each_group_and_not_for_each_channel(
    groups, tmp_path
):
    per_channel = (
        [numbers(4), numbers(4)] if groups == 2 else [numbers(8), numbers(8)]
    )
    case = row(
        "GroupNorm",
        numbers(1, len(per_channel[0]), 2),
        0,
        per_channel,
        num_groups=str(groups),
    )
    with pytest.raises(
        BadModel,
        match=rf"p0: shape \({2 * groups},\); expected shape \({groups},\)",
    ):
        import_row(tmp_path, case)
