"""Every vector of every JSON file here, run on both machines as a program of one instruction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvm.errors import Invalid, Trap, Unproven
from cvm.instructions import INSTRUCTIONS
from cvm.program import (
    DTYPE_RANGES,
    DTYPES,
    Attribute,
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
    dtype_name,
)
from cvm.program.bounds import Bounds, full, of_constant
from cvm.proof.validate import Proven, check, infer_bounds, validate
from cvm.reference.interpreter import run
from cvm.runtime import native
from cvm.runtime.native import Engine

HERE = Path(__file__).parent
Vector = dict[str, Any]
KEYS = {
    "name",
    "why",
    "attributes",
    "inputs",
    "outputs",
    "bounds",
    "invalid",
    "unproven",
    "trap",
}
EXPECTATIONS = ("outputs", "invalid", "unproven", "trap")


def load_vectors() -> list[tuple[str, Vector]]:
    """Every vector with the name of its instruction."""
    found: list[tuple[str, Vector]] = []
    for path in sorted(HERE.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        assert (
            content.keys() == {"instruction", "vectors"}
            and content["instruction"] == path.stem
        ), path.name
        found += [(path.stem, item) for item in content["vectors"]]
    return found


def _load() -> list[Any]:
    return [
        pytest.param(name, item, id=f"{name}: {item['name']}")
        for name, item in load_vectors()
    ]


def array_of(item: dict[str, Any], dtype: str) -> IntArray:
    """Literal data in its dtype; a number outside the dtype is a mistake in the vector, never wrapped."""
    exact = np.array(item["data"], dtype=object)
    if "shape" in item:
        exact = (
            np.broadcast_to(exact, item["shape"])
            if exact.size == 1
            else exact.reshape(item["shape"])
        )
    low, high = DTYPE_RANGES[dtype]
    assert all(low <= value <= high for value in exact.flat), (
        f"data outside {dtype}"
    )
    return exact.astype(DTYPES[dtype])


def _attribute(value: Any) -> Attribute:
    return tuple(value) if isinstance(value, list) else value


def program_of_vector(
    name: str, vector: Vector
) -> tuple[Program, dict[str, IntArray]]:
    """One instruction; equal constants stay apart, and operands that are constants follow the inputs in number."""
    inputs, constants, arrays = [], [], {}
    for index, item in enumerate(vector["inputs"]):
        if "constant" in item:
            constants.append(array_of(item, item["constant"]))
            continue
        array = arrays[f"input{index}"] = array_of(item, item["dtype"])
        low, high = item.get("interval", DTYPE_RANGES[item["dtype"]])
        assert low <= int(array.min()) and int(array.max()) <= high, (
            "data outside its interval"
        )
        inputs.append(
            Input(
                f"input{index}",
                TensorType(item["dtype"], array.shape),
                low,
                high,
            )
        )
    numbers = {
        True: iter(range(len(inputs), len(inputs) + len(constants))),
        False: iter(range(len(inputs))),
    }
    operands = tuple(
        next(numbers["constant" in item]) for item in vector["inputs"]
    )
    attributes = {
        key: _attribute(value)
        for key, value in vector.get("attributes", {}).items()
    }
    result = Output("output", len(operands))
    return Program(
        tuple(inputs),
        tuple(constants),
        (Instruction(name, operands, attributes),),
        (result,),
    ), arrays


def _assert_outputs(found: IntArray, vector: Vector) -> None:
    (expected,) = vector["outputs"]
    array = array_of(expected, expected["dtype"])
    assert found.dtype == array.dtype
    assert found.tolist() == array.tolist()  # shape included
    assert found.tobytes() == array.tobytes()


def _proven_bounds(program: Program) -> Bounds:
    """The interval of the one result, per index of its last axis."""
    form = check(program)
    types, (instruction,) = form.types, program.instructions
    known = [full(item.type, item.lo, item.hi) for item in program.inputs]
    known += [
        of_constant(array, TensorType(dtype_name(array), array.shape))
        for array in program.constants
    ]
    constants = [*(None for _ in program.inputs), *program.constants]
    return infer_bounds(
        instruction,
        types,
        tuple(constants[value] for value in instruction.operands),
        tuple(known[value] for value in instruction.operands),
        types[-1],
    )


def _assert_bounds(program: Program, expected: list[Any]) -> None:
    found = _proven_bounds(program)
    for end, literal in zip((found.lo, found.hi), expected, strict=True):
        assert end.tolist() == (
            literal if isinstance(literal, list) else [literal] * len(end)
        )


def _assert_engine_gives(
    form: Proven, arrays: dict[str, IntArray], vector: Vector
) -> None:
    """On every instruction set, as an output and as the value that a traced run sees; nothing where none was built."""
    for isa in native.isas():
        _assert_outputs(Engine(form, isa=isa).run(arrays)["output"], vector)
        seen: dict[int, IntArray] = {}
        Engine(form, isa=isa, traceable=True).observe(arrays, seen.__setitem__)
        assert list(seen) == [form.program.first_instruction]
        _assert_outputs(seen[form.program.first_instruction], vector)


@pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)
def test_the_engine_runs_the_vectors_on_at_least_one_instruction_set() -> None:
    assert "portable" in native.isas()


@pytest.mark.parametrize(("name", "vector"), _load())
def test_vector(name: str, vector: Vector) -> None:
    assert vector.keys() <= KEYS and {"name", "why", "inputs"} <= vector.keys()
    assert sum(key in vector for key in EXPECTATIONS) == 1
    program, arrays = program_of_vector(name, vector)
    if "invalid" in vector:
        with pytest.raises(Invalid) as problem:
            check(program)
        assert problem.value.rule == vector["invalid"]
    elif "unproven" in vector:
        check(program)
        with pytest.raises(Unproven) as problem:
            validate(program)
        assert problem.value.rule == vector["unproven"]
    elif "trap" in vector:
        with pytest.raises(Unproven):
            validate(program)
        with pytest.raises(Trap) as trap:
            run(check(program), arrays, checked=True)
        assert vector["trap"] in str(trap.value)
    else:
        form = validate(program)
        _assert_outputs(run(form, arrays)["output"], vector)
        _assert_outputs(
            run(check(program), arrays, checked=True)["output"], vector
        )
        _assert_engine_gives(form, arrays, vector)
        if "bounds" in vector:
            _assert_bounds(program, vector["bounds"])


def test_vector_names_are_unique_within_an_instruction() -> None:
    names = [parameter.id for parameter in _load()]
    assert len(names) == len(set(names))


def test_every_file_names_an_instruction() -> None:
    assert {path.stem for path in HERE.glob("*.json")} <= INSTRUCTIONS.keys()
