"""Memory is flat: ten times the samples, the same peak. Each run has a process of its own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.peak_memory import PRINT_PEAK

PROGRAM = (
    """
import sys
from pathlib import Path
import numpy as np, onnx, onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import open_samples
from mrt.table.table import CalibrationOptions

path, observer = Path(sys.argv[1]), sys.argv[2]
weights = np.random.default_rng(0).standard_normal((16, 3, 3, 3)).astype(np.float32)
info = helper.make_tensor_value_info
graph = helper.make_graph(
    [helper.make_node("Conv", ["x", "w"], ["sum"]), helper.make_node("Relu", ["sum"], ["y"])],
    "g",
    [info("x", TensorProto.FLOAT, [1, 3, 64, 64])],
    [info("y", TensorProto.FLOAT, [1, 16, 62, 62])],
    [numpy_helper.from_array(weights, "w")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
model = ir.from_proto(onnx.shape_inference.infer_shapes(model))
samples = open_samples(path, {"x": (1, 3, 64, 64)})
assert len(calibrate(model, samples, CalibrationOptions(observer), model_sha256="").ranges) == 3
print(len(samples))
"""
    + PRINT_PEAK
)
ALLOWED_GROWTH = 1.05


def peak(path: Path, observer: str, count: int) -> int:
    command = [sys.executable, "-c", PROGRAM, str(path), observer]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=300
    )
    seen, kilobytes = map(int, done.stdout.split())
    assert seen == count
    return kilobytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("observer", "compressed"),
    [("minmax", True), ("entropy", False), ("mse", False)],
)
def test_two_thousand_samples_take_no_more_memory_than_two_hundred(
    tmp_path: Path, observer: str, compressed: bool
) -> None:
    values = np.random.default_rng(1).standard_normal(
        (2000, 3, 64, 64), np.float32
    )  # 98 MB: loading it would show
    save = np.savez_compressed if compressed else np.savez
    save(tmp_path / "few.npz", x=values[:200])
    save(tmp_path / "many.npz", x=values)
    subsample = peak(tmp_path / "few.npz", observer, 200)
    many = peak(tmp_path / "many.npz", observer, 2000)
    assert many < subsample * ALLOWED_GROWTH, (
        f"{subsample} kB for 200 samples, {many} kB for 2000"
    )
