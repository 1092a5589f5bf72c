"""A conversion takes at most four times the weights and 1 GB, also where values are large or weights are read often."""

import subprocess
import sys

import numpy as np
import onnx
import pytest

from tests.support.peak_memory import PRINT_PEAK

SIZE, CHANNELS, BLOCKS = 512, 16, 16
LAYERS, HIDDEN, FEATURES, STEPS = 3, 768, 40, 80
MOST_KILOBYTES = 1_000_000
PROGRAM = f"""
import sys
from mrt.cli import cli

cli(["convert", *sys.argv[1:]], standalone_mode=False)
{PRINT_PEAK}
"""


def save_large_images(path):
    """A network of 40 kB whose values take 800 MB a sample."""
    rng = np.random.default_rng(0)
    node = onnx.helper.make_node
    shapes = {"w": (CHANNELS, 3, 1, 1)}
    nodes = [node("Conv", ["x", "w"], ["v0"])]
    for i in range(BLOCKS):
        shapes[f"w{i}"] = (CHANNELS, 1, 3, 3)
        nodes += [
            node("Conv", [f"v{i}", f"w{i}"], [f"c{i}"], group=CHANNELS, pads=[1] * 4),
            node("HardSwish", [f"c{i}"], [f"v{i + 1}"]),
        ]  # fmt: skip
    nodes.append(node("GlobalAveragePool", [f"v{BLOCKS}"], ["y"]))
    weights = [
        onnx.numpy_helper.from_array(
            rng.normal(0, 0.6, shape).astype(np.float32), name
        )
        for name, shape in shapes.items()
    ]
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [info("x", 1, [1, 3, SIZE, SIZE])],
        [info("y", 1, [1, CHANNELS, 1, 1])],
        weights,
    )
    opset = onnx.helper.make_opsetid("", 17)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[opset], ir_version=9), path
    )


def save_recurrence(path):
    """Three LSTM layers whose weights, 50 MB, are read in each of 80 steps."""
    rng, node = np.random.default_rng(0), onnx.helper.make_node
    nodes, weights = [], []
    for layer in range(LAYERS):
        inputs = FEATURES if layer == 0 else HIDDEN
        for name, shape in (
            (f"w{layer}", (1, 4 * HIDDEN, inputs)),
            (f"r{layer}", (1, 4 * HIDDEN, HIDDEN)),
        ):
            values = rng.normal(0, 0.03, shape).astype(np.float32)
            weights.append(onnx.numpy_helper.from_array(values, name))
        x = "x" if layer == 0 else f"v{layer - 1}"
        own = [x, f"w{layer}", f"r{layer}"]
        nodes += [
            node("LSTM", own, [f"y{layer}"], hidden_size=HIDDEN),
            node("Squeeze", [f"y{layer}", "one"], [f"v{layer}"]),
        ]
    one = onnx.numpy_helper.from_array(np.array([1]), "one")
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [info("x", 1, [STEPS, 1, FEATURES])],
        [info(f"v{LAYERS - 1}", 1, [STEPS, 1, HIDDEN])],
        [*weights, one],
    )
    opset = onnx.helper.make_opsetid("", 17)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[opset], ir_version=9), path
    )


@pytest.mark.slow
def test_steps_that_share_weights_do_not_multiply_them(tmp_path):
    """1.67 GB where each step had packed weights of its own."""
    save_recurrence(tmp_path / "m.onnx")
    x = np.random.default_rng(1).normal(size=(8, STEPS, 1, FEATURES))
    np.savez(tmp_path / "x.npz", x=x.astype(np.float32))
    files = ["m.onnx", "--data", "x.npz", "-o", "m.cvm"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    weights = (tmp_path / "m.onnx").stat().st_size / 1000
    assert int(done.stdout.split()[-1]) < MOST_KILOBYTES + 4 * weights


@pytest.mark.slow
def test_large_images_take_less_than_a_gigabyte(tmp_path):
    """4 bits are too few, so that the layers with most noise are looked for, too."""
    save_large_images(tmp_path / "m.onnx")
    images = np.random.default_rng(1).normal(size=(4, 3, SIZE, SIZE))
    np.savez(tmp_path / "x.npz", x=images.astype(np.float32))
    files = ["m.onnx", "--data", "x.npz", "-o", "m.cvm"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *files, "--weight-bits", "4"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    assert "most noise arises in" in done.stderr
    assert int(done.stdout.split()[-1]) < MOST_KILOBYTES
