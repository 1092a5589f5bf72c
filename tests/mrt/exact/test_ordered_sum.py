import numpy as np
import pytest

from mrt.exact.ordered_sum import row_sums, total


def test_rows_are_added_one_number_after_another():
    """In pairs, or from behind, the small numbers would not have been lost beside the great one."""
    rows = np.array(
        [[2.0**60, *[1.0] * 1000, -(2.0**60)], [1.0] * 1001 + [0.5]]
    )
    assert row_sums(rows).tolist() == [0.0, 1001.5]
    assert row_sums(rows.reshape(2, 2, 501)).shape == (2, 2)


def test_of_nothing_the_sum_is_0():
    assert row_sums(np.zeros((3, 0))).tolist() == [0, 0, 0]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 1001])
def test_each_number_of_a_total_is_added_once(count):
    assert total(np.arange(count, dtype=np.float64)) == count * (count - 1) // 2


def test_a_total_adds_its_second_half_to_its_first():
    """In the other order 1 and 2 are lost beside 2^60; float32 numbers are added in float64."""
    rows = np.array([[2.0**60, 1.0], [-(2.0**60), 2.0]])
    assert total(rows) == 3.0
    assert total(rows.T) == 0.0
    assert total(np.full(3, 1 / 3, np.float32)) == 3 * float(np.float32(1 / 3))
