import math
from decimal import Context, Decimal

import numpy as np
import pytest

from mrt.exact.logarithm import LN2_HIGH, LN2_LOW, logarithms

EXACT = Context(prec=40)


def numbers():
    generator = np.random.Generator(np.random.PCG64(1))
    near_one = 1 + generator.standard_normal(1000) * 0.1
    far = 2.0 ** generator.uniform(-1000, 1000, 1000)
    ends = [5e-324, 2.0**-1022, 0.5**0.5, np.nextafter(1, 0), 1.0, 1.7e308]
    return np.concatenate([near_one, far, ends])


def test_two_units_in_the_last_place():
    x = numbers()
    for number, found in zip(x.tolist(), logarithms(x).tolist(), strict=True):
        exact = float(EXACT.ln(Decimal(number)))
        assert abs(found - exact) <= 2 * math.ulp(exact)


def test_the_halves_of_ln_2():
    assert (LN2_HIGH + LN2_LOW).hex() == "0x1.62e42fefa39efp-1"
    assert (LN2_HIGH * 2**33).is_integer()  # its product by 11 bits is exact


@pytest.mark.parametrize(
    ("x", "bits"),
    [
        (1.0, "0x0.0p+0"),
        (2.0, "0x1.62e42fefa39efp-1"),
        (3.0, "0x1.193ea7aad030bp+0"),
        (0.1, "-0x1.26bb1bbb55515p+1"),
    ],
)
def test_known_bits(x, bits):
    assert logarithms(np.array([x])).tolist() == [float.fromhex(bits)]
