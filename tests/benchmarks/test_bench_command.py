import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.bench import main

ROOT = Path(__file__).resolve().parents[2]


def test_without_the_data_it_names_what_is_absent_and_stops(tmp_path):
    words = [
        sys.executable,
        "-m",
        "benchmarks.bench",
        "--models",
        "squeezenet1.1,mobilenetv2",
    ]
    environment = {**os.environ, "MRT_SHARED": str(tmp_path), "COLUMNS": "400"}
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert (
        f"left out: squeezenet1.1: {tmp_path}/data/onnx/squeezenet1.1_fp32.onnx is absent"
        in done.stdout
    )
    assert "left out: mobilenetv2: " in done.stdout
    assert (
        done.stderr
        == "Error: none of the models is here, so there is nothing to measure\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--models", "alexnet"),
            "'alexnet' is none of resnet50_v1, squeezenet1.1, mobilenetv2",
        ),
        (
            ("--contenders", "engine,tvm"),
            "'tvm' is none of engine, engine-fast-on-avx2, reference",
        ),
        (
            ("--threads", "1,0"),
            "'1,0': expected numbers of threads such as 1,2",
        ),
    ],
)
def test_a_wrong_choice_is_refused_by_name(words, sentence):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert sentence in " ".join(done.output.split())
