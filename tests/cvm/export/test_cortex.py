"""The files for Cortex's runtime, executed by a reader that was written from the document of its formats alone."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from click.testing import CliRunner

from cvm.errors import BadInput, Invalid
from cvm.export import targets
from cvm.export.cortex import TABLE
from cvm.file import format as file_format
from cvm.instructions import INSTRUCTIONS
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from mrt.cli import cli
from tests.conformance.test_vectors import load_vectors, program_of_vector
from tests.determinism.programs import ROOT, anything
from tests.support.command import cvm
from tests.support.cortex_programs import (
    answer_of,
    expected_of,
    narrowed,
    of_one_input,
    runtime_of,
    short_multipliers,
    small,
)
from tests.support.cortex_reader import Runtime
from tests.support.cvm_programs import (
    MAKERS,
    program_of,
    random_inputs,
    random_program,
)
from tests.support.shared_data import SHARED, needs_shared

LACKED = {"conv2d_transpose", "isqrt", "argsort", "nms"}
KINDS = tuple(name for name in MAKERS if name in TABLE)
FITTING = ("--scales", "shift", "--activation-bits", "7")


def outcome(program: Program, sample: dict) -> str:
    """Return whether the runtime answers as the reference does, or that the program is refused."""
    program, sample = of_one_input(program, sample)
    form = validate(program)
    try:
        runtime = runtime_of(form)
    except BadInput:
        return "refused"
    found = answer_of(runtime, program, sample)
    return "same" if found == expected_of(form, sample) else "other"


def test_the_instructions_that_are_never_expressed():
    assert INSTRUCTIONS.keys() - TABLE.keys() == LACKED
    assert TABLE.keys() <= INSTRUCTIONS.keys()


def test_vectors_give_their_answers():
    """As they are or, where Cortex's integers are too narrow, with no wider intervals than their samples need."""
    found: dict[str, Counter[str]] = {name: Counter() for name in TABLE}
    for name, vector in load_vectors():
        if "outputs" in vector and name in TABLE:
            program, sample = program_of_vector(name, vector)
            found[name][outcome(program, sample)] += 1
            found[name][outcome(narrowed(program, sample), sample)] += 1
    assert not any(counts["other"] for counts in found.values())
    assert all(counts["same"] for counts in found.values())
    assert sum(counts["same"] for counts in found.values()) >= 300


@pytest.mark.parametrize("name", KINDS)
def test_an_instruction_gives_the_integers_of_the_reference(name):
    found = Counter()
    for seed in range(10):
        program = program_of((name, "rescale", "clamp"), seed)
        program = short_multipliers(small(program, 60))
        try:
            validate(program)
        except Invalid:
            continue
        found[outcome(program, random_inputs(program, seed))] += 1
    assert found["other"] == 0 and found["same"] >= 1


def test_random_programs_give_the_integers_of_the_reference():
    found = Counter()
    for seed in range(60):
        program = random_program(seed, 3 + seed % 4, KINDS)
        program = short_multipliers(small(program, 60))
        try:
            validate(program)
        except Invalid:
            continue
        found[outcome(program, random_inputs(program, seed))] += 1
    assert found["other"] == 0 and found["same"] >= 25


def converted(folder, config: str, *options: str) -> Program:
    """Return the program of a configuration, calibrated anew if no table is given."""
    path = folder / "program.cvm"
    words = ["convert", "--config", str(ROOT / "configs" / f"{config}.toml")]
    result = CliRunner().invoke(cli, [*words, *options, "-q", "-o", str(path)])
    assert result.exit_code == 0, result.output
    return file_format.read(path)


@pytest.mark.parametrize("model", ["lenet_digits28", "resnet_digits8"])
def test_a_demo_network_gives_the_integers_of_the_reference(model, tmp_path):
    program = converted(tmp_path, model, *FITTING)
    for seed in range(3):
        assert outcome(program, anything(program, seed)) == "same"


def test_a_network_of_eight_bits_is_refused_by_name(tmp_path):
    path = tmp_path / "program.cvm"
    converted(tmp_path, "lenet_digits28")
    result = cvm("export", path, "--to", "cortex", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "conv2d (%23 %26): it reads 0..255, and Cortex -127..127" in (
        result.stderr
    )
    assert "rescale (%24 %34): " in result.stderr
    assert not (tmp_path / "out").exists()


def one(
    item: Input, *steps: Instruction, constants: tuple = (), outputs: int = 1
) -> Program:
    """Return a program of one input whose last values are the outputs."""
    last = len(constants) + len(steps)
    ports = [Output(f"y{k}", last - k) for k in range(outputs)]
    return Program((item,), constants, steps, tuple(ports))


I32 = TensorType("i32", (2,))
ABSOLUTE = Instruction("abs", (0,))


def test_one_refusal_names_every_instruction_and_why():
    program = one(
        Input("x", I32, 0, 2**31 - 1),
        Instruction("isqrt", (0,)),
        Instruction("isqrt", (1,)),
        Instruction("argsort", (2,), {"descending": True}),
        Instruction("mul", (0, 3), {"shift": 1}),
        outputs=1,
    )
    with pytest.raises(BadInput) as problem:
        targets.export(validate(program), "cortex", "n")
    assert str(problem.value) == (
        "the target cortex cannot express "
        "isqrt (%1 %2): Cortex has no operator for it; "
        "argsort (%3): Cortex has no operator for it; "
        "mul (%4): broadcast_mul would have 34 bits, and Cortex has 32. "
        "Most convolutional networks fit if converted with --scales shift --activation-bits 7"
    )


def test_more_than_one_input_is_refused():
    item = Input("x", I32, -9, 9)
    program = Program(
        (item, replace(item, name="z")),
        (),
        (Instruction("add", (0, 1)),),
        (Output("y", 2),),
    )
    with pytest.raises(BadInput) as problem:
        targets.export(validate(program), "cortex", "n")
    expected = (
        "the program has 2 inputs; the target cortex takes programs of one"
    )
    assert str(problem.value) == expected


def test_the_least_integer_of_32_bits_is_refused():
    form = validate(one(Input("x", I32, -(2**31), 0), Instruction("clz", (0,))))
    with pytest.raises(BadInput) as problem:
        targets.export(form, "cortex", "n")
    expected = "the target cortex cannot take the input: a value would have 33 bits, and Cortex has 32"
    assert str(problem.value) == expected


def rescaled(shift: int, dtype: str = "i8") -> Program:
    """Return x over 2^(shift - 30), then a clamp to 8 bits."""
    attributes = {"input_zp": 0, "output_zp": 0, "dtype": dtype}
    return one(
        Input("x", TensorType("i32", (9,)), -(2**31) + 2, 2**31 - 2),
        Instruction("rescale", (0, 1, 2), attributes),
        Instruction("clamp", (3,), {"min": -127, "max": 127}),
        constants=(np.array([2**30], np.int32), np.array([shift], np.int8)),
    )


def operators(program: Program) -> list[str]:
    runtime = runtime_of(validate(program))
    return [
        node["attrs"]["func_name"]
        for node in runtime.nodes
        if node["op"] != "null"
    ]


TIES = (-(2**31) + 2, -1025, -24, -8, -7, 7, 8, 24, 2**31 - 2)


def test_a_shift_with_its_clamp_is_one_operator_that_rounds_half_up():
    program = rescaled(34)
    assert operators(program) == ["cvm_right_shift"]
    runtime = runtime_of(validate(program))
    sample = {"x": np.array(TIES, np.int32)}
    found = answer_of(runtime, program, sample)
    assert found == [-127, -64, -1, 0, 0, 0, 1, 2, 127]


@pytest.mark.parametrize("shift", [30, 31, 59, 60, 62])
def test_shifts_at_the_ends_of_what_cortex_shifts(shift):
    program = rescaled(shift)
    assert outcome(program, {"x": np.array(TIES, np.int32)}) == "same"


def test_a_shift_by_31_bits_is_refused():
    with pytest.raises(BadInput, match="a shift by 31 bits"):
        runtime_of(validate(rescaled(61)))


def test_outputs_of_several_shapes_follow_one_another():
    program = one(
        Input("x", TensorType("i8", (2, 3)), -100, 100),
        Instruction("transpose", (0,), {"perm": (1, 0)}),
        Instruction("slice", (1,), {"start": (0, 0), "size": (1, 2)}),
        Instruction("cast", (2,), {"dtype": "i32"}),
        outputs=3,
    )
    sample = {"x": np.arange(6, dtype=np.int8).reshape(2, 3)}
    runtime = runtime_of(validate(program))
    found = answer_of(runtime, program, sample)
    assert found == [0, 3, 0, 3, 0, 3, 1, 4, 2, 5]


def artifact_of(program: Program):
    return targets.export(validate(program), "cortex", "n")


def test_the_sample_has_the_digest_that_is_beside_it():
    artifact = artifact_of(rescaled(34))
    runtime = Runtime.load(
        artifact.files["symbol"], artifact.binaries["params"]
    )
    answer = runtime.run(artifact.binaries["sample"])
    line = f"{sha256(answer).hexdigest()}  answer\n"
    assert artifact.files["answer.sha256"] == line
    assert set(artifact.contents) == {
        *("symbol", "params", "sample", "answer.sha256", "README.md")
    }


def test_a_parameter_of_nine_bits_has_four_bytes_an_integer():
    """The bytes as the document lists them, one after the other."""
    program = one(
        Input("x", I32, -9, 9),
        Instruction("add", (0, 1)),
        constants=(np.array([-128, 1], np.int32),),
    )
    data = artifact_of(program).binaries["params"]
    expected = (
        "b79c04054f8de5f7" "0000000000000000" "0100000000000000"
        "0300000000000000" "705f31" "0100000000000000"
        "3fa1b496f0405edd" "0000000000000000" "01000000" "00000000"
        "01000000" "00" "20" "0100" "0200000000000000" "0800000000000000"
        "80ffffff" "01000000"
    )  # fmt: skip
    assert data.hex() == expected


def same_at(program: Program, *values: int) -> bool:
    """Whether a program of one list of integers gives the reference's answer."""
    dtype = {"i8": np.int8, "i32": np.int32}[program.inputs[0].type.dtype]
    array = np.array(values, dtype).reshape(program.inputs[0].type.shape)
    return outcome(program, {"x": array}) == "same"


def clamp(value: int, low: int, high: int) -> Instruction:
    return Instruction("clamp", (value,), {"min": low, "max": high})


@pytest.mark.parametrize("second", [(0, 50), (-50, 5), (-50, 50), (-3, 3)])
def test_a_clamp_after_a_clamp_keeps_what_both_stop(second):
    program = one(
        Input("x", TensorType("i32", (4,)), -100, 100),
        clamp(0, -9, 7),
        clamp(1, *second),
    )
    assert same_at(program, -100, -8, 6, 100)


def test_an_output_that_is_read_early_keeps_its_memory():
    """Its shape is that of a row already, so that nothing copies it."""
    steps = [Instruction("abs", (0,))]
    steps += [Instruction("add", (k, k)) for k in range(1, 5)]
    item = Input("x", TensorType("i32", (1, 2)), -9, 9)
    assert same_at(one(item, *steps, outputs=5), -3, 5)


def test_transposes_in_a_row_are_taken_in_their_order():
    steps = [
        Instruction("transpose", (0,), {"perm": (1, 2, 0)}),
        Instruction("transpose", (1,), {"perm": (0, 2, 1)}),
        Instruction("transpose", (2,), {"perm": (2, 1, 0)}),
    ]
    program = one(Input("x", TensorType("i8", (2, 3, 4)), -99, 99), *steps)
    assert same_at(program, *range(24))


def test_half_of_the_greatest_integer_is_refused():
    """Cortex adds 1 to it before the shift."""
    program = rescaled(31)
    item = replace(program.inputs[0], hi=2**31 - 1)
    with pytest.raises(BadInput, match="half of 2147483647 overflows"):
        runtime_of(validate(replace(program, inputs=(item,))))


def test_channels_whose_shifts_lie_far_apart_have_a_product_each():
    attributes = {"input_zp": 0, "output_zp": 0, "dtype": "i32"}
    factors = np.array([2**30, 5 << 28, 0, 2**30, 2**30], np.int32)
    program = one(
        Input("x", TensorType("i32", (3, 5)), -(2**20), 2**20),
        Instruction("rescale", (0, 1, 2), attributes),
        constants=(factors, np.array([23, 32, 62, 44, 61], np.int8)),
    )
    assert operators(program).count("cvm_right_shift") == 2  # by 14 and by 4
    values = [-(2**20), -1, 7, 2**13, 2**20, 3, 2, 1, -(2**13), -1]
    assert same_at(program, *values, 2**20, -(2**20), 5, 2**13 - 1, 0)


def test_a_multiplier_of_many_bits_is_refused():
    attributes = {"input_zp": 0, "output_zp": 0, "dtype": "i8"}
    program = one(
        Input("x", I32, -9, 9),
        Instruction("rescale", (0, 1, 2), attributes),
        constants=(np.array([2**30 + 1], np.int32), np.array([31], np.int8)),
    )
    with pytest.raises(BadInput, match="broadcast_mul would have 37 bits"):
        runtime_of(validate(program))


@pytest.mark.parametrize(
    ("there", "fault"),
    [
        ('"shift_bit\\": \\"4', '"shift_bit\\": \\"5'),
        ('"precision\\": \\"8', '"precision\\": \\"7'),
    ],
)
def test_a_fault_in_the_graph_is_found(there, fault):
    program = rescaled(34)
    artifact = artifact_of(program)
    text = artifact.files["symbol"]
    assert text.count(there) == 1
    symbol = text.replace(there, fault)
    if "precision" in there:  # which the file has as an array, too
        content = json.loads(symbol)
        content["attrs"]["precision"][1][-1] = 7
        symbol = json.dumps(content)
    runtime = Runtime.load(symbol, artifact.binaries["params"])
    sample = {"x": np.array(TIES, np.int32)}
    expected = expected_of(validate(program), sample)
    assert answer_of(runtime, program, sample) != expected


@needs_shared
def test_a_real_network_gives_the_integers_of_the_reference(tmp_path):
    """MXNet's for 10 kinds of clothes, from the folder of real models."""
    assert SHARED.is_dir()
    program = converted(tmp_path, "mxnet_fashion-mnist", *FITTING)
    assert outcome(program, anything(program, 1)) == "same"
