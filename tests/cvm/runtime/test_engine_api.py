"""`cvm.load` and what it gives, on the reference and on the engine."""

import hashlib
import pickle
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cvm
import cvm.proof.validate
from cvm.errors import BadInput, Unproven
from cvm.program import (
    Input,
    Instruction,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate
from cvm.runtime import native
from cvm.runtime.executable import Executable
from cvm.runtime.machine import Native, Reference
from cvm.runtime.native import Engine
from cvm.runtime.ports import Port
from tests.support.command import cvm as cvm_command
from tests.support.run_programs import (
    MEANINGS,
    doubler,
    pair,
    save,
    save_array,
)

needs_engine = pytest.mark.skipif(
    not native.available(), reason="the engine is not built here"
)
ENGINES = ["reference", pytest.param("native", marks=needs_engine)]


def load(program: Program, folder: Path, **options: Any) -> Executable:
    return cvm.load(save(program, folder), **options)


def wide(rows: int, columns: int, steps: int = 3) -> Program:
    """y: x i32[rows,columns], doubled and clamped to -1000..1000 again and again."""
    x = Input("x", TensorType("i32", (rows, columns)), -1000, 1000)
    made: list[Instruction] = []
    for step in range(0, 2 * steps, 2):
        made += [
            Instruction("add", (step, step)),
            Instruction("clamp", (step + 1,), {"min": -1000, "max": 1000}),
        ]
    return Program((x,), (), tuple(made), (Output("y", 2 * steps),))


def expected(x: npt.NDArray[Any], steps: int = 3) -> npt.NDArray[Any]:
    return np.clip(x.astype(np.int64) * 2**steps, -1000, 1000)


def some(rows: int, columns: int, seed: int = 0) -> npt.NDArray[np.int32]:
    return np.random.default_rng(seed).integers(
        -1000, 1001, (rows, columns), np.int32
    )


# --- what goes in and comes out


def test_ports_say_name_dtype_shape_interval_and_scale(tmp_path: Path) -> None:
    program = load(doubler(metadata=MEANINGS), tmp_path)
    assert program.inputs == (Port("x", "i32", (1, 3), (-1000, 1000), 0.5, 0),)
    assert program.outputs == (
        Port("y", "i32", (1, 3), (-2000, 2000), 0.25, 1),
    )


def test_ports_have_no_scale_where_the_program_states_none(
    tmp_path: Path,
) -> None:
    program = load(pair(), tmp_path)
    assert [
        (port.name, port.shape, port.scale, port.zero_point)
        for port in program.inputs
    ] == [
        ("a", (1, 2), None, None),
        ("b", (2, 2), None, None),
    ]
    assert program.outputs[0] == Port(
        "total", "i32", (2, 2), (-3, 309), None, None
    )
    assert load(doubler(metadata=Metadata()), tmp_path).inputs[0].scale is None


@pytest.mark.parametrize("engine", ENGINES)
def test_reals_go_in_and_come_out_by_the_scales(
    tmp_path: Path, engine: str
) -> None:
    # 0.25 / 0.5 + 0.5 = 1.0 -> 1; -0.25 -> 0; 1e9 -> 1000. Doubled: 2, 0, 2000. Back: (q - 1) * 0.25
    program = load(doubler(metadata=MEANINGS), tmp_path, engine=engine)
    reals = {"x": np.asarray([[0.25, -0.25, 1e9]])}
    with pytest.warns(
        cvm.errors.ClippedInput,
        match=r"'x': 1 of 3 values \(33 %\) lie outside -500..500",
    ):
        integers = program.quantize(reals)
    with pytest.raises(
        cvm.errors.BadInput, match=r"1 of 3 .* outside -500..500"
    ):
        program.quantize(reals, strict=True)
    assert integers["x"].tolist() == [[1, 0, 1000]]
    assert program.dequantize(program.run(integers))["y"].tolist() == [
        [0.25, -0.25, 499.75]
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_receipt_made_in_python_is_that_of_the_command(
    tmp_path: Path, engine: str
) -> None:
    program = load(doubler(metadata=MEANINGS), tmp_path, engine=engine)
    reals = np.asarray([[0.5, -3.0, 1e9], [1.0, 2.0, 3.0]])
    save_array(reals, tmp_path, dtype="f8")
    words = ("run", tmp_path / "p.cvm", "--input", tmp_path / "x.npy")
    for options, flags in (({}, ()), ({"trace": True}, ("--trace",))):
        files = [str(tmp_path / "t.json")] if flags else []
        made = ("--receipt", tmp_path / "r.json", "--real", *flags, *files)
        assert cvm_command(*words, *made).exit_code == 0
        found = program.receipt(reals, real=True, **options)
        assert found.save(tmp_path / "mine.json") == tmp_path / "mine.json"
        expected_text = (tmp_path / "r.json").read_bytes()
        assert (tmp_path / "mine.json").read_bytes() == expected_text
        assert [sample.clipped for sample in found.samples] == [1, 0]


def test_a_replay_in_python_names_what_differs(tmp_path: Path) -> None:
    program = load(doubler(metadata=MEANINGS), tmp_path)
    reals = np.asarray([[0.5, -3.0, 1e9], [1.0, 2.0, 3.0]])
    stated = program.receipt(reals, real=True)
    assert program.replay(stated, reals, real=True) is None
    path = stated.save(tmp_path / "r.json")
    integers = {"x": np.asarray([[1, -6, 1000], [2, 4, 6]])}
    assert program.replay(path, integers, threads=2) is None
    integers["x"][1, 2] = 7
    found = program.replay(str(path), integers)
    assert found is not None
    assert found.what == "sample 1, input 'x'"
    # Clipped all the same, to the same integer: only the count differs.
    reals[1, 0] = 2e9
    stated = program.receipt(reals, real=True)
    reals[1, 0] = 500.0
    found = program.replay(stated, reals, real=True)
    assert found is not None
    assert (found.what, found.expected, found.found) == (
        "sample 1, number of clipped values",
        "1",
        "0",
    )


# --- which machine


def test_auto_is_native_where_the_engine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load(doubler(), tmp_path).machine.name == (
        "native" if native.available() else "reference"
    )
    assert (
        load(doubler(), tmp_path, engine="reference").machine.name
        == "reference"
    )
    monkeypatch.setattr("cvm.runtime.native.available", lambda: False)
    assert isinstance(load(doubler(), tmp_path).machine, Reference)


def test_an_engine_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cvm.runtime.native.available", lambda: False)
    with pytest.raises(
        BadInput,
        match=r"^the native engine is not installed; to get it, pip install",
    ):
        load(doubler(), tmp_path, engine="native")
    with pytest.raises(
        BadInput,
        match=r"^engine 'fast': expected one of auto, reference, native, xla$",
    ):
        load(doubler(), tmp_path, engine="fast")


@needs_engine
def test_an_instruction_set_that_is_not_there_is_refused_with_those_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CVM_ISA", "sse9")
    with pytest.raises(
        BadInput, match=r"^CVM_ISA=sse9: this machine and build have portable\b"
    ):
        load(doubler(), tmp_path)
    assert load(doubler(), tmp_path, engine="reference").run(
        {"x": np.ones((1, 3), int)}
    )["y"].tolist() == [[2, 2, 2]]


def test_checked_runs_stay_on_the_reference() -> None:
    form = cvm.proof.validate.check(doubler(high=2**31 - 1))
    assert cvm.run(form, {"x": np.asarray([[1, 2, 3]])}, checked=True)[
        "y"
    ].tolist() == [[2, 4, 6]]
    with pytest.raises(
        BadInput, match=r"^only the reference runs without a proof"
    ):
        cvm.run(
            validate(doubler()),
            {"x": np.asarray([[1, 2, 3]])},
            checked=True,
            engine="native",
        )


@needs_engine
def test_what_the_engine_refuses_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = load(doubler(), tmp_path)
    monkeypatch.setattr(
        "cvm.runtime.native.step_tuple",
        lambda *_: (9999, [], [], (3, 0, 4, (1,), 1), {}, []),
    )
    with pytest.raises(
        BadInput,
        match=r"^the engine cannot take this program: step 0: unknown opcode; the reference can$",
    ):
        program.run({"x": np.ones((1, 3), int)})


# --- limits


def test_a_program_over_its_limits_is_refused_with_both_figures(
    tmp_path: Path,
) -> None:
    program = doubler(
        high=2**31 - 1
    )  # not provable: limits are told before the proof
    with pytest.raises(
        BadInput, match=r"^one sample costs 48; allowed are 47$"
    ):
        load(program, tmp_path, max_cost=47)
    with pytest.raises(
        BadInput,
        match=r"^the bytes that one sample's values hold at once are 24; allowed are 23$",
    ):
        load(program, tmp_path, max_memory=23)
    with pytest.raises(Unproven):
        load(program, tmp_path, max_cost=48, max_memory=24)


# --- samples and threads


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("threads", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_any_number_of_threads_and_samples_gives_the_same(
    tmp_path: Path, engine: str, threads: int, count: int
) -> None:
    x = some(count, 1001)
    found = load(wide(1, 1001), tmp_path, engine=engine).run(
        {"x": x}, threads=threads
    )["y"]
    assert np.array_equal(found, expected(x))


def test_no_threads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^threads 0: expected at least 1$"):
        load(doubler(), tmp_path).run({"x": np.ones((1, 3), int)}, threads=0)


@needs_engine
@pytest.mark.parametrize(
    ("samples", "threads", "inside"),
    [(1, 4, 4), (3, 4, 4), (4, 4, 1), (9, 2, 1), (5, 1, 1)],
)
def test_many_samples_are_spread_over_threads_and_few_share_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    samples: int,
    threads: int,
    inside: int,
) -> None:
    program, asked = load(wide(1, 10), tmp_path), []
    run = Engine.run

    def noting(self: Engine, sample: Any, *, threads: int = 1) -> Any:
        asked.append(threads)
        return run(self, sample, threads=threads)

    monkeypatch.setattr(Engine, "run", noting)
    program.run({"x": some(samples, 10)}, threads=threads)
    assert asked == [inside] * samples


@needs_engine
def test_a_plan_is_made_once_however_many_threads_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, program = [], load(wide(1, 10), tmp_path)
    initialise = Engine.__init__

    def noting(self: Engine, *arguments: Any, **options: Any) -> None:
        made.append(1)
        time.sleep(0.05)  # time for all others to come and ask
        initialise(self, *arguments, **options)

    monkeypatch.setattr(Engine, "__init__", noting)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: program.run({"x": some(1, 10)}), range(16)))
    assert len(made) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_many_python_threads_at_once_get_their_own_answers(
    tmp_path: Path, engine: str
) -> None:
    program = load(wide(7, 999), tmp_path, engine=engine)

    def right(seed: int) -> bool:
        x = some(7, 999, seed)
        return np.array_equal(
            program.run({"x": x}, threads=1 + seed % 3)["y"], expected(x)
        )

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(right, range(200)))


# --- in place, and without the interpreter's lock


@needs_engine
def test_the_engine_reads_contiguous_inputs_in_place(tmp_path: Path) -> None:
    program = load(wide(1, 5000), tmp_path)
    assert isinstance(program.machine, Native)
    engine, seen = program.machine.engine(), []
    core = engine.core

    def noting(inputs: list[Any], outputs: list[Any], threads: int) -> None:
        seen.append(inputs[0])
        core.run(inputs, outputs, threads)

    engine.core = SimpleNamespace(run=noting)
    x = some(3, 5000)
    program.run({"x": x})
    assert [np.shares_memory(array, x) for array in seen] == [True] * 3
    assert [array.ctypes.data - x.ctypes.data for array in seen] == [
        0,
        20_000,
        40_000,
    ]
    program.run({"x": x.astype(np.int64)})  # another dtype has to be copied
    assert not np.shares_memory(seen[-1], x)


@needs_engine
def test_running_allocates_the_outputs_only(tmp_path: Path) -> None:
    x = some(1, 2_000_000)
    program = load(wide(1, 2_000_000), tmp_path)
    program.run({"x": x})
    tracemalloc.start()
    program.run({"x": x})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (
        8_000_000 <= peak < 16_100_000
    )  # the engine's output and the joined one; a copied input is 8 MB more


@needs_engine
def test_other_python_threads_go_on_during_a_run(tmp_path: Path) -> None:
    """Python is told never to take its lock away from a thread: others move only if the engine gives it up.

    It runs until they did, since on a busy machine they may wait for a processor, too.
    """
    program = load(wide(1, 4_000_000, steps=20), tmp_path)
    assert isinstance(program.machine, Native)
    engine, sample = program.machine.engine(), {"x": some(1, 4_000_000)}
    engine.run(sample)
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)  # gives the lock back to whoever waits for it

    interval = sys.getswitchinterval()
    counter = threading.Thread(target=count)
    try:
        sys.setswitchinterval(100)
        counter.start()
        before = counted[0]
        runs = 0
        while counted[0] <= before + 10 and runs < 100:
            engine.run(sample)
            runs += 1
        after = counted[0]
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        counter.join()
    assert after > before + 10


# --- errors


@pytest.mark.parametrize("engine", ENGINES)
def test_wrong_arrays_are_refused_in_a_sentence(
    tmp_path: Path, engine: str
) -> None:
    program = load(doubler(), tmp_path, engine=engine)
    for array, sentence in (
        (
            np.zeros((1, 4), np.int32),
            r"input 'x': shape \[1, 4\]; expected \[1,3\] or, for N samples, \[N,3\]",
        ),
        (
            np.full((1, 3), 1001),
            r"input 'x', sample 0, index \[0, 0\]: value 1001 is outside -1000..1000",
        ),
        (
            np.zeros((1, 3)),
            "input 'x': holds float64; expected i32 integers; .*",
        ),
    ):
        with pytest.raises(BadInput, match=f"^{sentence}$"):
            program.run({"x": array})
    with pytest.raises(BadInput, match=r"^no array for input 'x'$"):
        program.run({})


@needs_engine
def test_an_error_in_an_observer_comes_out_and_the_engine_lives_on() -> None:
    engine = Engine(validate(doubler()), traceable=True)
    sample = {"x": np.ones((1, 3), np.int32)}

    def fail(number: int, value: Any) -> None:
        raise KeyError("the observer's own")

    with pytest.raises(KeyError, match="the observer's own"):
        engine.observe(sample, fail)
    assert engine.run(sample)["y"].tolist() == [[2, 2, 2]]


# --- what a program is, without running it


def test_a_program_has_its_id_cost_and_a_short_text(tmp_path: Path) -> None:
    path = save(doubler(metadata=MEANINGS), tmp_path)
    program = cvm.load(path, engine="reference")
    data = Path(path).read_bytes()
    end = data.index(b"CVMMETA")
    assert program.id == hashlib.sha256(data[:end]).hexdigest()
    # three additions at 4 each, and three arrays of 12 bytes moved
    assert program.cost == 3 * 4 + 3 * 12
    assert repr(program) == (
        f"<cvm program {program.id[:12]}...: x i32[1, 3] -> y i32[1, 3]; 1 instructions, proven, reference>"
    )
    program.verify()


def test_an_only_input_needs_no_name(tmp_path: Path) -> None:
    program = load(doubler(metadata=MEANINGS), tmp_path)
    integers = program.quantize(np.array([[1.0, 2.0, 3.0]]))
    assert integers["x"].tolist() == [[2, 4, 6]]
    assert program.run(np.array([[2, 4, 6]]))["y"].tolist() == [[4, 8, 12]]
    two = load(pair(), tmp_path)
    with pytest.raises(
        BadInput, match="one array for 2 inputs; give arrays by name: "
    ):
        two.run(np.array([[2, 4, 6]]))


def test_a_missing_file_is_that_of_python(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"none\.cvm: No such file"
    ) as caught:
        cvm.load(tmp_path / "none.cvm")
    assert isinstance(caught.value, BadInput)


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_a_program_goes_to_another_process_as_its_file(
    engine: str, tmp_path: Path
) -> None:
    path = Path(save(doubler(), tmp_path))
    loaded = cvm.load(path, engine=engine)
    data = pickle.dumps(loaded)
    assert path.read_bytes() in data
    passed = pickle.loads(data)
    assert passed.machine.name == loaded.machine.name
    sample = {"x": np.array([[1, 2, 3]], np.int32)}
    np.testing.assert_array_equal(
        passed.run(sample)["y"], loaded.run(sample)["y"]
    )
