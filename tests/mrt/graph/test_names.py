"""Fresh names: each is new, and finding many takes no quadratic time."""

import time

from mrt.graph.names import Names


def test_names_are_numbered_from_two_and_skip_those_taken():
    names = Names(["a", "a.2", "a.4"])
    assert [names.first_free("a") for _ in range(3)] == ["a.3", "a.5", "a.6"]
    assert [names.first_free("b") for _ in range(2)] == ["b", "b.2"]
    assert names.first_free("a.5") == "a.5.2"


def test_the_same_name_many_times_takes_no_quadratic_time():
    names = Names()
    started = time.process_time()
    for _ in range(50_000):
        names.first_free("a")
    assert time.process_time() - started < 2
