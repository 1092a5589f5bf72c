"""Boxes and the choice among them, by what MXNet 1.9.1 gave: ties, thresholds met exactly, backgrounds, both formats."""

import numpy as np
import pytest

from mrt.frontend.mxnet import OPERATORS
from tests.support.mxnet_rows import check_refusal, check_row, names, row

# Two equals in score that overlap by 3/4, another class, one apart, one of class -1, one without area.
BOXES = np.float32([[
    [0, 0.9, 0, 0, 4, 4], [0, 0.9, 0, 0, 4, 3], [1, 0.8, 0, 0, 4, 4], [0, 0.3, 6, 0, 9, 4], [-1, 0.95, 0, 0, 4, 4],
    [1, 0.1, 7, 1, 9, 3], [0, 0.7, 8, 8, 8, 8],
]])  # fmt: skip
WIDE = np.concatenate(
    [BOXES, np.arange(7, dtype=np.float32).reshape(1, 7, 1)], 2
)
TWO = np.concatenate([BOXES[:, :4], BOXES[:, 3:]])
PROB = np.float32(
    [
        [
            [0.1, 0.5, 0.2, 0, 0.9],
            [0.6, 0.3, 0.4, 0.5, 0.05],
            [0.3, 0.2, 0.4, 0.5, 0.05],
        ]
    ]
)
LOC = np.float32(
    [
        [
            0.1,
            -0.2,
            0.3,
            0,
            0,
            0,
            0,
            0,
            0.5,
            0.5,
            -1,
            1,
            0,
            0.1,
            0,
            0.2,
            0,
            0,
            0,
            0,
        ]
    ]
)
ANCHOR = np.float32(
    [
        [
            [0, 0, 0.4, 0.4],
            [0.1, 0.1, 0.5, 0.5],
            [0.5, 0.5, 0.9, 0.8],
            [0.5, 0.5, 0.8, 0.8],
            [0, 0, 1, 1],
        ]
    ]
)
D = np.float32([[[0.1, -0.2, 0.3, 0.4], [0, 1, -1, 2]]])
A = np.float32([[[1, 2, 3, 5], [0, 0, 4, 4]]])
L = np.float32([[0, 0, 4, 4], [2, 2, 2, 6], [5, 0, 3, 4]])
R = np.float32([[[1, 1, 5, 5], [0, 0, 4, 4]], [[2, 3, 4, 9], [8, 8, 9, 9]]])
IMG = np.arange(32, dtype=np.float32).reshape(2, 1, 4, 4) ** 2 / 10
ROI = np.float32([[0, 0, 0, 3, 3], [1, 1, 0.5, 2, 3.5], [0, 2, 2, 2, 2]])

ROWS = [
    row("_contrib_box_nms", [BOXES], [[[-1, 0.95, 0, 0, 4, 4], [0, 0.7, 8, 8, 8, 8], [0, 0.3, 6, 0, 9, 4], [1, 0.1, 7,
        1, 9, 3], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1]]]),
    row("_contrib_box_nms", [BOXES], [[[-1, 0.95, 0, 0, 4, 4], [0, 0.9, 0, 0, 4, 3], [0, 0.7, 8, 8, 8, 8], [0, 0.3, 6,
        0, 9, 4], [1, 0.1, 7, 1, 9, 3], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1]]], overlap_thresh="0.75"),
    row("_contrib_box_nms", [BOXES], [[[0, 0.9, 0, 0, 4, 4], [1, 0.8, 0, 0, 4, 4], [0, 0.7, 8, 8, 8, 8], [0, 0.3, 6,
        0, 9, 4], [1, 0.1, 7, 1, 9, 3], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1]]], overlap_thresh="0.7",
        id_index="0"),
    row("_contrib_box_nms", [BOXES], [[[-1, 0.95, 0, 0, 4, 4], [0, 0.9, 0, 0, 4, 4], [-1, -1, -1, -1, -1, -1], [-1,
        -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1]]],
        overlap_thresh="0.7", id_index="0", background_id="1", topk="3", valid_thresh="0.3"),
    row("_contrib_box_nms", [BOXES], [[[-1, 0.95, 0, 0, 4, 4], [1, 0.1, 7, 1, 9, 3], [-1, -1, -1, -1, -1, -1], [-1,
        -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1]]],
        overlap_thresh="0.7", id_index="0", background_id="0", force_suppress="True"),
    row("_contrib_box_nms", [BOXES], [[[0, 0.9, 0, 0, 4, 4], [0, 0.9, 0, 0, 4, 3], [1, 0.8, 0, 0, 4, 4], [0, 0.3, 6,
        0, 9, 4], [-1, 0.95, 0, 0, 4, 4], [1, 0.1, 7, 1, 9, 3], [0, 0.7, 8, 8, 8, 8]]], topk="0"),
    row("_contrib_box_nms", [BOXES], [[[-1, 0.95, -2, -2, 2, 2], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1],
        [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1]]],
        topk="2", in_format="center", out_format="corner"),
    row("_contrib_box_nms", [BOXES], [[[-1, 0.95, 2, 2, 4, 4], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1],
        [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1]]],
        in_format="corner", out_format="center", valid_thresh="0.75"),
    row("_contrib_box_nms", [WIDE], [[[1, 0.8, 0, 0, 4, 4, 2], [1, 0.1, 7, 1, 9, 3, 5], [0, 0.9, 0, 0, 4, 4, 0], [0,
        0.9, 0, 0, 4, 3, 1], [0, 0.3, 6, 0, 9, 4, 3], [0, 0.7, 8, 8, 8, 8, 6], [-1, -1, -1, -1, -1, -1, -1]]],
        coord_start="3", score_index="0", id_index="1", overlap_thresh="0.1", valid_thresh="-0.5"),
    row("_contrib_box_nms", [TWO], [[[0, 0.9, 0, 0, 4, 4], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1,
        -1, -1, -1, -1, -1]], [[0, 0.7, 8, 8, 8, 8], [0, 0.3, 6, 0, 9, 4], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1,
        -1, -1]]], id_index="0", topk="2"),
    row("_contrib_box_nms", [BOXES[0]], [[0, 0.9, 0, 0, 4, 4], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1],
        [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1]],
        id_index="0", topk="2"),
    row("_contrib_MultiBoxDetection", [PROB, LOC, ANCHOR], [[[0, 0.6, 0, 0, 0.416367, 0.392], [0, 0.5, 0.5, 0.496878,
        0.8, 0.809122], [-1, 0.4, 0.556254, 0.48179, 0.883746, 0.84821], [0, 0.3, 0.1, 0.1, 0.5, 0.5], [0, 0.05, 0, 0,
        1, 1]]]),
    row("_contrib_MultiBoxDetection", [PROB, LOC, ANCHOR], [[[0, 0.6, -0.008367, -0.008, 0.416367, 0.392], [0, 0.5,
        0.5, 0.496878, 0.8, 0.809122], [-1, 0.4, 0.556254, 0.48179, 0.883746, 0.84821], [-1, 0.3, 0.1, 0.1, 0.5, 0.5],
        [-1, -1, -1, -1, -1, -1]]], nms_threshold="0.3", threshold="0.1", clip="False"),
    row("_contrib_MultiBoxDetection", [PROB, LOC, ANCHOR], [[[0, 0.6, 0.001909, 0, 0.414091, 0.384], [0, 0.5, 0.5,
        0.50297, 0.8, 0.80903], [-1, 0.4, 0.559033, 0.514224, 0.920967, 0.845776], [-1, 0.5, 0.5, 0.50297, 0.8,
        0.80903], [-1, 0.05, 0, 0, 1, 1]]], nms_threshold="0.1", force_suppress="True", nms_topk="3",
        variances="(0.2, 0.2, 0.1, 0.1)", background_id="1"),
    row("_contrib_MultiBoxDetection", [PROB, LOC, ANCHOR], [[[0, 0.6, 0, 0, 0.416367, 0.392], [0, 0.3, 0.1, 0.1, 0.5,
        0.5], [0, 0.4, 0.556254, 0.48179, 0.883746, 0.84821], [0, 0.5, 0.5, 0.496878, 0.8, 0.809122], [-1, -1, -1, -1,
        -1, -1]]], nms_threshold="-1", threshold="0.3"),
    row("_contrib_box_decode", [D, A], [[[-0.724788, -2.729562, 3.324788, 4.729562], [-0.735759, -10.778112, 0.735759,
        18.778112]]]),
    row("_contrib_box_decode", [D, A], [[[0.858166, 1.722244, 3.181834, 5.037756], [0.786939, 0.100282, 3.213061,
        5.499718]]], std0="0.1", std1="0.2", std2="0.5", std3="0.25", clip="0.3", format="corner"),
    row("_contrib_box_iou", [L, R], [[[0.391304, 1], [0.076923, 0]], [[0, 0], [0, 0]], [[0, 0], [0, 0]]]),
    row("_contrib_box_iou", [L, R], [[[0.426087, 1], [0.155556, 0]], [[0.321429, 0.12], [0.333333, 0]], [[0, 0],
        [0.037838, 0]]], format="center"),
    row("_contrib_MultiBoxPrior", [IMG[:1,:,:2,:1]], [[[-0.5, -0.25, 1.5, 0.75], [-0.5, 0.25, 1.5, 1.25]]]),
    row("_contrib_MultiBoxPrior", [IMG[:1,:,:1,:2]], [[[0.073223, 0.323223, 0.426777, 0.676777], [0.161612, 0.411612,
        0.338388, 0.588388], [0.161612, 0.146447, 0.338388, 0.853553], [0.573223, 0.323223, 0.926777, 0.676777],
        [0.661612, 0.411612, 0.838388, 0.588388], [0.661612, 0.146447, 0.838388, 0.853553]]], sizes="(0.5, 0.25)",
        ratios="(2, 0.5)", clip="True"),
    row("_contrib_MultiBoxPrior", [IMG[:1,:,:1,:2]], [[[0.125, -0.25, 0.375, 0.25], [0.375, -0.25, 0.625, 0.25]]],
        sizes="(0.5,)", steps="(0.5, 0.25)", offsets="(0, 1)"),
    row("_contrib_ROIAlign", [IMG, ROI], [[[[2.616667], [11.616666]]], [[[51.150002], [80.175003]]], [[[13.55],
        [18.549999]]]], pooled_size="(2, 1)", spatial_scale="1.0"),
]  # fmt: skip

REFUSALS = [
    (row("_contrib_box_nms", BOXES, BOXES, coord_start="3"), "coord_start=3: rows of 6 numbers have no box there"),
    (row("_contrib_box_nms", BOXES, BOXES, score_index="6"), "score_index=6 of rows of 6 numbers"),
    (row("_contrib_box_nms", BOXES, BOXES, in_format="polar"), "in_format='polar': not supported"),
    (row("_contrib_box_decode", [L[None, :, :3], A], L), "shape"),
    (row("_contrib_box_iou", [L[:, :3], R], L), "expected four numbers each"),
    (row("_contrib_MultiBoxPrior", IMG, IMG, sizes="()"), "expected at least one of each"),
    (row("_contrib_MultiBoxPrior", IMG, IMG, steps="(0.5,)"), "expected two numbers each"),
    (row("_contrib_MultiBoxDetection", [PROB[:, :1], LOC, ANCHOR], PROB), "has no class beside the background"),
    (row("_contrib_ROIAlign", [IMG, ROI[:, 1:]], IMG, pooled_size="(2,2)", spatial_scale="1"), "expected five numbers"),
    (row("_contrib_ROIAlign", [IMG, ROI], IMG, pooled_size="(2,2)", spatial_scale="1", position_sensitive="1"),
     "position_sensitive='1': not supported"),
    (row("_contrib_MultiBoxTarget", IMG, IMG), "it makes targets, for training only"),
    (row("_contrib_Proposal", IMG, IMG), "no ONNX operator rounds and orders as it does"),
]  # fmt: skip


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_boxes_mean_what_they_mean_in_mxnet(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_what_cannot_be_meant_is_refused_by_name(case, problem, tmp_path):
    check_refusal(tmp_path, case, problem)


def test_both_names_of_box_nms_are_one_operator():
    assert (
        OPERATORS["_contrib_box_non_maximum_suppression"].handler
        is OPERATORS["_contrib_box_nms"].handler
    )
