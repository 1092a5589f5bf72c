import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.instructions import Step, by_kind, digest, report, steps_of

ROOT = Path(__file__).resolve().parents[2]
LINES = [
    "transpose\t1x8x8x3\t0\t\t",
    "conv2d\t1x8x8x16\t27648\tbytes\tregisters",
    "conv2d\t1x8x8x16\t147456\tbytes\tregisters",
]
COUNTS = "999\n111\n222\n333\n\n50\n400\n3456\n18432\n"  # the first run, what comes between, the second


def test_steps_have_the_counts_of_the_second_run() -> None:
    assert steps_of(LINES, COUNTS) == [
        Step("transpose", "1x8x8x3", 0, 400),
        Step("conv2d, bytes, registers", "1x8x8x16", 27648, 3456),
        Step("conv2d, bytes, registers", "1x8x8x16", 147456, 18432),
    ]


def test_steps_of_one_kind_are_summed_and_the_costliest_comes_first() -> None:
    assert by_kind(steps_of(LINES, COUNTS)) == [
        Step("conv2d, bytes, registers", "2 steps", 175104, 21888),
        Step("transpose", "1 steps", 0, 400),
    ]


def test_the_least_is_that_of_the_best_product_that_a_set_has() -> None:
    steps = steps_of(LINES, COUNTS)
    assert report("net", "dotprod", steps, each=False).splitlines()[-3:] == [
        "| conv2d, bytes, registers | 2 steps | 0.02 | 2.00 |",
        "| transpose | 1 steps | 0.00 | - |",
        "| all | 3 steps | 0.02 | 2.04 |",
    ]
    assert report("net", "i8mm", steps, each=True).splitlines()[5:7] == [
        "| transpose | 1x8x8x3 | 0.00 | - |",
        "| conv2d, bytes, registers | 1x8x8x16 | 0.00 | 4.00 |",
    ]


def test_the_digest_is_fnv_1a() -> None:
    # The values of the function's authors.
    assert digest(b"") == "cbf29ce484222325"
    assert digest(b"a") == "af63dc4c8601ec8c"
    assert digest(b"foobar") == "85944171f73967e8"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--models", "alexnet"),
            "Error: 'alexnet' is no model here: resnet50_v1, squeezenet1.1, mobilenetv2, yolox_nano, minilm\n",
        ),
        (
            ("--isas", "sve"),
            "Error: 'sve' is no instruction set here: portable, neon, dotprod, i8mm\n",
        ),
        (
            (),
            "Error: qemu-aarch64 is not installed: Debian's qemu-user has it; the static one takes no plugins\n",
        ),
    ],
)
def test_what_is_missing_is_named_in_one_sentence(
    tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.instructions", *words],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path)},
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, sentence)
