"""A state that is a slice of a greater value does not give that value its narrow format."""

import re

import numpy as np
import onnx_ir as ir
import pytest
from click.testing import CliRunner

from mrt.cli import cli
from tests.support.graphs import graph_of, node

STATE = slice(0, 8)


def sliced(folder, others):
    """The state is the first half of z = k * tanh(x + past twice); y is a Relu of the other half, greater by `others`."""
    nodes = [
        node("Concat", "past past", "twice", axis=1),
        node("Add", "x twice", "sum"),
        node("Tanh", "sum", "t"),
        node("Mul", "t k", "z"),
        node("Slice", "z zero eight one", "present"),
        node("Slice", "z eight sixteen one", "rest"),
        node("Relu", "rest", "y"),
    ]
    k = np.full((1, 16), 0.5 * others, np.float32)
    k[:, STATE] = 0.5
    numbers = {"zero": 0, "one": 1, "eight": 8, "sixteen": 16}
    weights = {name: np.array([number]) for name, number in numbers.items()}
    shapes = {"x": (1, 16), "past": (1, 8)}
    model = graph_of(nodes, shapes, {"k": k, **weights}, outputs="present y")
    ir.save(model, folder / "m.onnx")
    random = np.random.default_rng(7)
    x = random.normal(size=(64, 1, 16)).astype(np.float32)
    past = random.uniform(-0.5, 0.5, (64, 1, 8)).astype(np.float32)
    np.savez(folder / "samples.npz", x=x, past=past)


@pytest.mark.parametrize("others", [1, 100])
def test_the_rest_of_what_a_state_is_sliced_from_is_not_clipped(
    tmp_path, others
):
    sliced(tmp_path, others)
    words = [tmp_path / "m.onnx", "--data", tmp_path / "samples.npz"]
    words += ["--state", "past=present", "-o", tmp_path / "m.cvm"]
    done = CliRunner().invoke(cli, ["convert", *map(str, words)])
    assert done.exit_code == 0, done.output
    found = re.search(r"SNR (-?[\d.]+) dB", done.output)
    assert found and float(found[1]) > 25, done.output
