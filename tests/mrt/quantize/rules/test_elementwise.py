"""Sums and products with constants: at which scale, with which clip, by how many instructions."""

import math

import numpy as np
import pytest

from mrt.quantize.rules.elementwise import (
    FEWEST_FINER_BITS,
    FINER_BITS,
    HALF_RANGE,
    fine_scale,
)
from tests.mrt.quantize.test_context import context
from tests.support.float_models import FloatModel, convert, run_real

SHAPE = (2, 4)


@pytest.mark.parametrize("coarser", range(FINER_BITS - FEWEST_FINER_BITS))
def test_a_sum_has_the_finest_scale_that_leaves_half_of_i32(coarser):
    """One real more than fits takes the next scale, and so does one that would reach the half itself."""
    net = context()
    coarse = 8.0 / 127  # of the value's 8-bit form
    scale = math.ldexp(coarse, coarser - FINER_BITS)
    fits = math.nextafter(HALF_RANGE * scale, 0.0)
    assert fine_scale(net, "one", fits) == scale
    assert fine_scale(net, "one", HALF_RANGE * scale) == 2 * scale


@pytest.mark.parametrize("factor", [0.5, 3.0, -2.0])
def test_a_clip_before_a_constant_factor_moves_with_it(factor):
    model = FloatModel(x=SHAPE)
    clipped = model.add(
        "Clip",
        model.add("Add", "x", "x"),
        np.float32(0),
        np.float32(1.5),
    )
    model.add("Mul", clipped, np.float32(factor), name="y")
    program = convert(model, "y")
    far = np.full(SHAPE, 3.0, np.float32)
    found = run_real(program, {"x": far})["y"]
    assert found == pytest.approx(1.5 * factor, rel=0.02)


def test_factors_of_channels_cost_no_more_than_one_factor():
    """A sum with no clip pending is scaled as it is."""
    names = []
    for factor in (np.float32(2), np.float32([2, 3, 4, 5])):
        model = FloatModel(x=SHAPE, z=SHAPE)
        total = model.add("Add", "x", "z")
        model.add("Mul", total, factor, name="y")
        program = convert(model, "y")
        names.append([item.name for item in program.instructions])
    assert names[0] == names[1]
