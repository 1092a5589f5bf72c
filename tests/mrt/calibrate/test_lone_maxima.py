"""Which value is far greater in one sample than in any other."""

import numpy as np
import pytest
from click.testing import CliRunner

from mrt.calibrate.lone_maxima import LoneMaxima
from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.cli import cli
from tests.support.graphs import build, node


def seen(values: dict[str, list[float]]) -> LoneMaxima:
    """Of each value, its numbers, one a sample."""
    maxima = LoneMaxima()
    add(maxima, values)
    return maxima


def add(maxima: LoneMaxima, values: dict[str, list[float]]) -> None:
    for name, numbers in values.items():
        for index, number in enumerate(numbers):
            array = np.array([[0.0, number]], np.float32)
            maxima.observe(index, {}, name, ObservedTensor(array, array))


@pytest.mark.parametrize(
    "numbers, is_lone",
    [
        ([1, 3, 2, 6], False),
        ([1, 3, 2, 6.1], True),
        ([1, -6.1, 2, 3], True),  # below 0
        ([6.1, -6.1, 2, 3], False),
        ([0, 0, 1, 0], True),
        ([0, 0, 0, 0], False),
        ([1, 3, float("nan"), 2], False),
        ([float("inf"), 3, 2, 2], False),
    ],
)
def test_a_value_is_alone_where_it_is_more_than_twice_as_great(
    numbers, is_lone
):
    assert seen({"a": numbers}).worst(["a"]) == ("a" if is_lone else None)


def test_the_worst_of_the_values_that_matter_is_named():
    maxima = seen({"a": [1, 3], "b": [1, 9], "c": [0, 1], "d": [1, 1]})
    assert maxima.worst("abcd") == "c"
    assert maxima.worst("abd") == "b"
    assert maxima.worst(["d", "not seen"]) is None


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_blocks_of_samples_are_as_good_as_all(order):
    blocks = [{"a": [1.0, 2.0], "b": [2.0]}, {"a": [9.0], "b": [8.0, 8.0]}]
    whole = LoneMaxima()
    for place in order:
        block = whole.for_block()
        add(block, blocks[place])
        whole.merge(block)
    assert whole.worst("ab") == "a"
    assert whole.worst("b") is None


@pytest.mark.parametrize("factor, is_noted", [(1.0, False), (40.0, True)])
def test_a_conversion_notes_what_rests_on_one_sample(
    tmp_path, factor, is_noted
):
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(6, 5)).astype(np.float32)}
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "y")]
    model, data = tmp_path / "m.onnx", tmp_path / "d.npz"
    model.write_bytes(build(nodes, {"x": (1, 6)}, weights).SerializeToString())
    x = rng.uniform(1, 2, (32, 1, 6)).astype(np.float32)
    x[7] *= factor
    np.savez(data, x=x)
    words = ["convert", str(model), "--data", str(data)]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert ": good" in result.output
    note = "24 samples are few to calibrate on: 'y' is more than 2 times as"
    assert (note in result.output) == is_noted, result.output
