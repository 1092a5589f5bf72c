import pytest

from benchmarks.measure import Turn, alternate, order


def test_every_round_has_everyone_once():
    names = ["a", "b", "c", "d"]
    assert all(sorted(order(names, number)) == names for number in range(9))


def test_rounds_begin_further_on_and_every_second_runs_backwards():
    assert order("abc", 0) == ["a", "b", "c"]
    assert order("abc", 1) == ["c", "b", "a"]
    assert order("abc", 2) == ["b", "c", "a"]
    assert order("abc", 3) == ["a", "c", "b"]


def test_nobody_always_follows_the_same_neighbour():
    pairs = {
        pair
        for number in range(8)
        for pair in zip(
            order("abcd", number), order("abcd", number)[1:], strict=False
        )
    }
    assert all(
        len({before for before, name in pairs if name == wanted}) >= 2
        for wanted in "abcd"
    )


def test_turns_alternate_and_readings_keep_their_names():
    taken = []

    def turn(name, most=5):
        return Turn(lambda: taken.append(name) or float(len(taken)), most)

    readings = alternate({"ours": turn("ours"), "theirs": turn("theirs")}, 2)
    assert taken == ["ours", "theirs", "theirs", "ours"]
    assert readings == {"ours": [1.0, 4.0], "theirs": [2.0, 3.0]}


def test_a_slow_contender_takes_part_in_the_first_rounds_only():
    readings = alternate(
        {"slow": Turn(lambda: 9.0, 2), "fast": Turn(lambda: 1.0, 5)}, 5
    )
    assert readings == {"slow": [9.0] * 2, "fast": [1.0] * 5}


def test_collection_of_garbage_resumes_after_a_failure():
    import gc

    def fail() -> float:
        assert not gc.isenabled()
        raise OSError

    with pytest.raises(OSError):
        alternate({"bad": Turn(fail, 1)}, 1)
    assert gc.isenabled()
