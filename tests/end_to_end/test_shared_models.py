"""Real models on real images, through the commands, at 8 bits: integer accuracy against float, as promised in the README."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mrt.cli import cli
from tests.support.peak_memory import PRINT_PEAK
from tests.support.shared_data import needs_shared

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = [pytest.mark.slow, needs_shared]

# samples, float top-1 as published with the models (to a point), images that integers may lose
SMALL = {
    "mxnet_mnist": (2000, 0.99, 6),
    "mxnet_fashion-mnist": (2000, 0.91, 6),
    "mnist_cntk": (2000, 0.989, 10),
    "cifar10_resnet20": (2000, 0.81, 10),
}
# 50 of the 500 images: agreement with float, as a floor under what was measured on all of them
LARGE = {
    "squeezenet1.1": 0.92,
    "mobilenetv2_torchvision": 0.86,
    "mobilenetv1_0.25_keras": 0.84,
}
# Powers of two only, 500 samples (50 for the large): a floor under the agreement measured
SHIFT = {
    "mxnet_mnist": 0.97,
    "mxnet_fashion-mnist": 0.9,
    "mnist_cntk": 0.97,
    "cifar10_resnet20": 0.9,
}


MEASURED = f"""
import sys
import time
from mrt.cli import cli
cli(sys.argv[1:], standalone_mode=False)
print(time.process_time())
{PRINT_PEAK}
"""


def measure(
    name: str, folder: Path, samples: int, *options: str
) -> dict[str, float]:
    config, program = str(ROOT / f"configs/{name}.toml"), str(folder / "p.cvm")
    for words in (
        ["convert", "--config", config, *options, "-o", program],
        [
            "evaluate",
            "--config",
            config,
            program,
            "--samples",
            str(samples),
            "--threads",
            "2",
            "--json",
        ],
    ):
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", SMALL)
def test_small_models_lose_no_more_images_than_promised(name, tmp_path):
    samples, published, may_lose = SMALL[name]
    report = measure(name, tmp_path, samples)
    assert report["samples"] == samples
    assert report["float.top1"] == pytest.approx(published, abs=0.012)
    assert (
        report["integer.top1"] * samples
        >= report["float.top1"] * samples - may_lose - 1e-6
    )


@pytest.mark.parametrize("name", LARGE)
def test_large_models_answer_as_in_float(name, tmp_path):
    report = measure(name, tmp_path, 50)
    assert report["samples"] == 50
    assert report["agreement"] >= LARGE[name]


@pytest.mark.parametrize("name", SHIFT)
def test_powers_of_two_still_answer_as_in_float(name, tmp_path):
    assert (
        measure(name, tmp_path, 500, "--scales", "shift")["agreement"]
        >= SHIFT[name]
    )


def test_squeezenet_with_100_images_converts_in_a_processor_minute_and_a_gigabyte(
    tmp_path,
):
    words = [
        "convert",
        "--config",
        str(ROOT / "configs/squeezenet1.1.toml"),
        "-o",
        str(tmp_path / "p.cvm"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *words],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, kib = done.stdout.split()[-2:]
    assert 0 < float(seconds) < 60
    assert 0 < int(kib) < 2**20
