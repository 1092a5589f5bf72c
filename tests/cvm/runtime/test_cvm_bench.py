"""`cvm bench`: figures that add up, on programs whose work is known."""

import json
from pathlib import Path

import numpy as np
import pytest

from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.runtime import bench, listing, native
from cvm.runtime.bench import Measurement, StepTime
from tests.support.command import cvm, said
from tests.support.run_programs import doubler, pair, save

needs_engine = pytest.mark.skipif(
    not native.available(), reason="the engine is not built here"
)


def dense() -> Program:
    """y = x w + b: x i8[2,64] and w i8[16,64], 2 * 16 * 64 = 2048 multiply-accumulates."""
    x = Input("x", TensorType("i8", (2, 64)), -5, 5)
    constants = (np.ones((16, 64), np.int8), np.zeros(16, np.int32))
    return Program(
        (x,),
        constants,
        (Instruction("dense", (0, 1, 2), {"input_zp": 0}),),
        (Output("y", 3),),
    )


@needs_engine
def test_json_has_the_promised_keys_and_the_shares_add_up(
    tmp_path: Path,
) -> None:
    program = save(doubler(), tmp_path)
    found = json.loads(
        cvm(
            "bench", program, "--json", "--threads", 2, "--repetitions", 7
        ).stdout
    )
    assert list(found)[:7] == [
        "format",
        "median_ms",
        "p90_ms",
        "gmacs",
        "peak_share",
        "isa",
        "threads",
    ]
    assert (found["isa"], found["threads"], found["repetitions"]) == (
        native.chosen_isa(),
        2,
        7,
    )
    assert (
        found["multiply_accumulates"],
        found["gmacs"],
        found["peak_share"],
    ) == (
        0,
        0,
        None,
    )
    assert 0 < found["median_ms"] <= found["p90_ms"]
    assert [step["instructions"] for step in found["steps"]] == [["add"]]
    assert sum(step["share"] for step in found["steps"]) == pytest.approx(1)


@needs_engine
def test_the_slowest_steps_come_first_and_all_instructions_are_covered_once() -> (
    None
):
    x = Input("x", TensorType("i32", (100, 200)), -9, 9)
    names = ("abs", "reverse", "abs", "reverse")
    steps = tuple(
        Instruction(name, (n,), {"axis": 0} if name == "reverse" else {})
        for n, name in enumerate(names)
    )
    measured = bench.measure(
        validate(Program((x,), (), steps, (Output("y", 4),))), repetitions=3
    )
    times = [step.median_ms for step in measured.steps]
    assert times == sorted(times, reverse=True)
    assert sorted(
        name for step in measured.steps for name in step.instructions
    ) == sorted(names)


@needs_engine
def test_speed_is_work_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "cvm.runtime.native.peak", lambda threads: 1000.0 * threads
    )
    measured = bench.measure(validate(dense()), threads=2, repetitions=5)
    assert measured.multiply_accumulates == 2048
    assert measured.gmacs == pytest.approx(2048 / measured.median_ms / 1e6)
    assert measured.peak_share == pytest.approx(measured.gmacs / 2000)


@needs_engine
def test_without_a_number_runs_go_on_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench, "SECONDS", 0.0)
    assert bench.measure(validate(doubler())).repetitions == bench.AT_LEAST
    monkeypatch.setattr(bench, "SECONDS", 60.0)
    monkeypatch.setattr(bench, "AT_MOST", 25)
    assert bench.measure(validate(doubler())).repetitions == 25


@needs_engine
def test_an_instruction_set_may_be_chosen_and_a_wrong_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = save(doubler(), tmp_path)
    for isa in native.isas():
        monkeypatch.setenv("CVM_ISA", isa)
        assert (
            json.loads(
                cvm("bench", program, "--json", "--repetitions", 1).stdout
            )["isa"]
            == isa
        )
    monkeypatch.setenv("CVM_ISA", "mmx")
    assert (
        said(cvm("bench", program), 2)
        == f"CVM_ISA=mmx: this machine and build have {', '.join(native.isas())}"
    )


def test_without_an_engine_there_is_nothing_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cvm.runtime.native.available", lambda: False)
    assert said(cvm("bench", save(doubler(), tmp_path)), 2) == (
        "the native engine is not installed; to get it, pip install with a C++20 compiler, or a wheel"
    )


def test_random_inputs_are_the_same_every_time_and_inside_their_intervals() -> (
    None
):
    one, other = bench.random_sample(pair()), bench.random_sample(pair())
    for item in pair().inputs:
        assert np.array_equal(one[item.name], other[item.name])
        assert one[item.name].dtype == np.int32
        assert one[item.name].shape == item.type.shape
        assert (
            item.lo <= one[item.name].min() and one[item.name].max() <= item.hi
        )


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, 1), (2, 2), (10, 9), (11, 10), (100, 90), (101, 91)],
)
def test_nine_in_ten_runs_are_no_slower_than_the_90th_percentile(
    count: int, expected: int
) -> None:
    times = [float(number) for number in range(count, 0, -1)]
    assert bench.percentile(times, 90) == expected


def test_the_text_says_it_in_columns() -> None:
    steps = (
        StepTime(1, ("conv2d", "rescale"), 7, 1.5, 0.75, "bytes", "registers"),
        StepTime(0, (), 0, 0.5, 0.25, "", ""),
    )
    found = Measurement(
        2.0, 2.5, 3.21, 0.786, "avx2", 1, 30, 6_420_000, 4096, steps
    )
    assert listing.measurement(found) == [
        "latency      2.000 ms median, 2.500 ms p90, of 30 runs",
        "speed        3.21 giga-MAC/s of 6,420,000 MACs",
        "of the peak  78.6%",
        "ran on       avx2, 1 thread",
        "arena        4,096 bytes",
        "",
        "value  slowest steps   products  epilogue      ms  share",
        "%7     conv2d+rescale  bytes     registers  1.500  75.0%",
        "%0     copy                                 0.500  25.0%",
    ]
