"""Constants of sums: 16 bits where many are stored, and where such steps are fine enough."""

import numpy as np
import pytest

from mrt.quantize.large_constants import MANY, emit_large
from tests.mrt.quantize.test_context import context

FINEST = 8 / 127 / 256
"""2^-8 of a step of 8 bits, of a sum that was measured from -8 to 8."""


def emitted(integers, scale):
    """The constant that is stored, and what the sum reads: both ends and whether it is computed."""
    net = context()
    found = emit_large(net, np.asarray(integers, np.int64), scale, "one")
    proven = net.builder.bounds[found]
    stored = [type_.dtype for type_ in net.builder.types]
    return stored[0], (proven.min, proven.max), len(stored) > 1


def many(*ends):
    return np.resize(ends, (1, MANY, 1))


@pytest.mark.parametrize(
    ("ends", "read"),
    [
        ((-30000, 32767), (-30000, 32767)),
        ((-100001, 65534), (-100000, 65536)),  # in fours: -25000, 16384
        ((8, 32767 * 4), (8, 32767 * 4)),
        ((0, 2070642), (0, 2070656)),  # in 64ths: 32353.78, rounded to 32354
    ],
)
def test_many_are_stored_in_16_bits(ends, read):
    assert emitted(many(*ends), FINEST / 64) == ("i16", read, True)


def test_steps_that_a_result_might_show_are_not_taken():
    ends = (-32768 * 64, 7)
    assert emitted(many(*ends), FINEST / 64) == ("i32", ends, False)
    assert emitted(many(-40000, 7), FINEST) == ("i32", (-40000, 7), False)


def test_few_stay_as_they_are():
    few = many(-3, 70000)[:, 1:]
    assert emitted(few, FINEST / 64) == ("i32", (-3, 70000), False)
