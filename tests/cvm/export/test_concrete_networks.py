"""Whole networks in Concrete's simulation, with parameters for the default probability of an error: equal, and still accurate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cvm as machine
from benchmarks.private_models import MODELS
from tests.support.concrete_programs import concrete_python, ran, written

ROOT = Path(__file__).resolve().parents[3]
# Networks by their digits, 360 of which judge, and by how many of these onnxruntime's float answer has right.
NETWORKS = {
    "resnet_digits8": ("digits8", 0.9917),
    "lenet_digits28": ("digits28", 0.9861),
}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "name, options, lost",
    [
        ("resnet_digits8", ("--for", "fhe"), 0.01),
        ("resnet_digits8", ("--for", "fhe", "--bits", "3"), 0.02),
        ("lenet_digits28", ("--for", "fhe"), 0.01),
    ],
)
def test_a_network_is_simulated(name, options, lost, tmp_path):
    (model,) = (model for model in MODELS if model.name == name)
    form = machine.load(model.converted(tmp_path, *options))
    folder = written(form, tmp_path / "out")
    found = ran(folder, "simulate", python=concrete_python())
    assert found.endswith("match\n")
    digits, right_in_float = NETWORKS[name]
    with np.load(ROOT / "calibration_data" / digits / "test.npz") as stored:
        samples, labels = stored["data"], stored["y"]
    right = [
        np.argmax(*form.run(form.quantize({"data": sample[None]})).values())
        == label
        for sample, label in zip(samples, labels, strict=True)
    ]
    assert np.mean(right) >= right_in_float - lost
