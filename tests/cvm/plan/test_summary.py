"""How a step of the plan is written for people."""

import numpy as np
import pytest

from cvm.plan.fuse import fused
from cvm.plan.summary import summarize
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import check


def written(kernel, stride, groups):
    """A convolution of 4 channels to 8."""
    attributes = {
        "pad": (0,) * 4,
        "stride": stride,
        "dilation": (1, 1),
        "groups": groups,
        "input_zp": 0,
    }
    w = np.ones((8, *kernel, 4 // groups), np.int8)
    x = Input("x", TensorType("i8", (1, 9, 9, 4)), -128, 127)
    conv = Instruction("conv2d", (0, 1, 2), attributes)
    constants = (w, np.zeros(8, np.int32))
    form = check(Program((x,), constants, (conv,), (Output("y", 3),)))
    return summarize(fused(form))[-1].what


@pytest.mark.parametrize(
    ("kernel", "stride", "groups", "expected"),
    [
        ((3, 3), (1, 1), 1, "conv2d 3x3 4->8"),
        ((3, 3), (2, 2), 1, "conv2d 3x3/2 4->8"),
        ((1, 7), (1, 2), 1, "conv2d 1x7/1x2 4->8"),
        ((1, 7), (2, 1), 1, "conv2d 1x7/2x1 4->8"),
        ((3, 3), (1, 1), 2, "conv2d 3x3 4->8 in 2 groups"),
        ((3, 3), (1, 1), 4, "conv2d 3x3 4->8 depthwise"),
    ],
)
def test_a_convolution_has_its_kernel_its_strides_and_its_groups(
    kernel, stride, groups, expected
):
    assert written(kernel, stride, groups) == expected
