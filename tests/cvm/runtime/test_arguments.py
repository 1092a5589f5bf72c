"""What a Python user gives to a program that was loaded: lists and arrays alone, and wrong objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvm
from cvm.errors import BadInput
from cvm.runtime.executable import Executable
from tests.support.run_programs import MEANINGS, doubler, pair, save


@pytest.fixture(name="program")
def _program(tmp_path: Path) -> Executable:
    return cvm.load(
        save(doubler(metadata=MEANINGS), tmp_path), engine="reference"
    )


def test_lists_are_arrays(program: Executable) -> None:
    assert program.run({"x": [[2, 4, 6]]})["y"].tolist() == [[4, 8, 12]]
    assert program.run([[2, 4, 6]])["y"].tolist() == [[4, 8, 12]]
    assert program.quantize([[1.0, 2, 3]])["x"].tolist() == [[2, 4, 6]]
    assert program.dequantize({"y": [[1, 2, -3]]})["y"].tolist() == [
        [0, 0.25, -1]
    ]
    assert cvm.run(program, {"x": [[2, 4, 6]]})["y"].tolist() == [[4, 8, 12]]


def test_an_only_output_needs_no_name(program: Executable) -> None:
    (reals,) = program.dequantize(np.array([[1, 2, -3]])).values()
    assert reals.tolist() == [[0, 0.25, -1]]


REFUSED: list[tuple[str, Any, str]] = [
    ("run", {"x": [[1]]}, r"input 'x': shape \[1, 1\]; expected \[1,3\]"),
    ("run", {"x": None}, "input 'x': holds object; expected i32 integers"),
    ("run", 3, r"input 'x': shape \[\]; expected"),
    (
        "run",
        {"x": [[1.5, 2, 3]]},
        r"input 'x': holds float64; expected i32 integers; program\.quantize\(\.\.\.\) makes",
    ),
    (
        "run",
        {"x": [[1], [1, 2]]},
        r"input 'x': \[\[1\], \[1, 2\]\] is no array; expected an array of numbers, or lists",
    ),
    ("run", {"z": 1}, "no array for input 'x'"),
    ("quantize", {"x": "hello"}, "input 'x': holds <U5; expected real numbers"),
    ("quantize", {}, "no array for input 'x'"),
    ("dequantize", {"nosuch": [1]}, "no array for output 'y'; expected what"),
    ("dequantize", "hello", "output 'y': holds <U5; expected the integers"),
    ("dequantize", [[0.5]], "output 'y': holds float64; expected the integers"),
    ("receipt", "hello", "input 'x': holds <U5; expected i32 integers"),
]


@pytest.mark.parametrize(("method", "given", "message"), REFUSED)
def test_wrong_objects_are_refused_in_a_sentence(
    program: Executable, method: str, given: Any, message: str
) -> None:
    with pytest.raises(BadInput, match=f"^{message}"):
        getattr(program, method)(given)


@pytest.mark.parametrize("threads", ["2", 1.5, None])
@pytest.mark.parametrize("method", ["run", "receipt"])
def test_threads_are_an_integer(
    program: Executable, method: str, threads: Any
) -> None:
    with pytest.raises(
        BadInput,
        match=rf"^threads {threads!r}: expected an integer, at least 1$",
    ):
        getattr(program, method)({"x": [[1, 2, 3]]}, threads=threads)
    with pytest.raises(BadInput, match=r"^threads 0: expected at least 1$"):
        getattr(program, method)({"x": [[1, 2, 3]]}, threads=0)


def test_threads_may_be_an_integer_of_numpy(program: Executable) -> None:
    found = program.run([[2, 4, 6]], threads=np.int64(2))
    assert found["y"].tolist() == [[4, 8, 12]]


def test_several_arrays_need_names(tmp_path: Path) -> None:
    two = cvm.load(save(pair(), tmp_path), engine="reference")
    with pytest.raises(BadInput, match=r"^one array for 2 inputs; give arrays"):
        two.run([[1, 2, 3]])


def test_programs_without_scales_say_what_run_takes(tmp_path: Path) -> None:
    program = cvm.load(save(doubler(), tmp_path), engine="reference")
    for method in (program.quantize, program.dequantize):
        with pytest.raises(
            BadInput, match=r"no scales; program\.run takes and gives integers$"
        ):
            method(
                {port.name: [0] for port in program.inputs + program.outputs}
            )


@pytest.mark.parametrize(
    ("prompt", "count", "message"),
    [
        (["a"], 2, "token 'a' at place 0 of the prompt: expected an integer"),
        ("a", 2, "prompt 'a': expected a list of the numbers of tokens"),
        (3, 2, "prompt 3: expected a list of the numbers of tokens"),
        ([1], "2", "count '2': expected an integer, at least 1"),
    ],
)
def test_prompts_are_integers(
    program: Executable,
    monkeypatch: pytest.MonkeyPatch,
    prompt: Any,
    count: Any,
    message: str,
) -> None:
    monkeypatch.setattr("cvm.runtime.executable.Decoder.of", lambda *_: None)
    with pytest.raises(BadInput, match=f"^{message}"):
        program.generate(prompt, count)


@pytest.mark.parametrize("given", ["p.cvm", Path("p.cvm"), b"", None])
def test_a_path_in_the_place_of_a_program_is_named_with_what_loads_it(
    given: Any,
) -> None:
    with pytest.raises(
        TypeError,
        match=rf"^form: found {type(given).__name__}; expected a program as cvm\.load\(path\)",
    ):
        cvm.run(given, {"x": [[2, 4, 6]]})
