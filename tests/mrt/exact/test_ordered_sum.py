import numpy as np

from mrt.exact.ordered_sum import row_sums


def test_rows_are_added_one_number_after_another():
    """In pairs, or from behind, the small numbers would not have been lost beside the great one."""
    rows = np.array(
        [[2.0**60, *[1.0] * 1000, -(2.0**60)], [1.0] * 1001 + [0.5]]
    )
    assert row_sums(rows).tolist() == [0.0, 1001.5]
    assert row_sums(rows.reshape(2, 2, 501)).shape == (2, 2)


def test_of_nothing_the_sum_is_0():
    assert row_sums(np.zeros((3, 0))).tolist() == [0, 0, 0]
