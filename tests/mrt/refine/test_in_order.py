"""Work shared out among threads: in order, and only a little ahead."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mrt.refine.in_order import AHEAD, in_order


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_results_come_in_the_order_of_the_items(threads):
    def slow_at_first(item):
        time.sleep(0.02 / (1 + item))
        return item * item

    with ThreadPoolExecutor(threads) as pool:
        assert list(in_order(pool, slow_at_first, range(20))) == [item * item for item in range(20)]


def test_few_items_are_taken_ahead():
    taken = []

    def items():
        for item in range(100):
            taken.append(item)
            yield item

    with ThreadPoolExecutor(2) as pool:
        results = in_order(pool, abs, items())
        assert next(results) == 0
        assert len(taken) == AHEAD + 1


def test_what_goes_wrong_is_raised_where_the_result_is_used():
    with ThreadPoolExecutor(2) as pool, pytest.raises(ZeroDivisionError):
        list(in_order(pool, lambda item: 1 // item, [1, 0]))
