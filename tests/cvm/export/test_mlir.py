"""Exported MLIR is valid to mlir-opt, and IREE gives the bytes of the reference by it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export import targets
from cvm.export.mlir import TABLE
from cvm.export.mlir.model import module_of, module_of_functions
from cvm.file import disk
from cvm.instructions import INSTRUCTIONS
from cvm.program import (
    DTYPES,
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate
from tests.conformance.test_vectors import load_vectors, program_of_vector
from tests.cvm.export.test_c_source import convolution
from tests.determinism.programs import all_items
from tests.support import mlir_programs
from tests.support.cvm_programs import random_inputs
from tests.support.mlir_programs import differing, mlir_opt_error


def needs_iree(test):
    """Compiling takes seconds for each module."""
    absent = mlir_programs.compiler is None
    skipped = pytest.mark.skipif(absent, reason=mlir_programs.NO_IREE)
    return pytest.mark.slow(skipped(test))


needs_mlir_opt = pytest.mark.skipif(
    mlir_programs.MLIR_OPT is None, reason=mlir_programs.NO_MLIR_OPT
)
KINDS = sorted(TABLE)
DEMOS = ("models/lenet_digits28-8bit", "models/resnet_digits8-16bit")


def test_every_instruction_but_one_is_written():
    assert INSTRUCTIONS.keys() - TABLE.keys() == {"nms"}
    assert TABLE.keys() <= INSTRUCTIONS.keys()


def vectors_of(kind):
    """Return the answers, the programs and the inputs of an instruction's vectors, under names for MLIR."""
    chosen = [
        vector
        for name, vector in load_vectors()
        if name == kind and "outputs" in vector
    ]
    answers = {f"f{i}": v["outputs"] for i, v in enumerate(chosen)}
    made = [program_of_vector(kind, vector) for vector in chosen]
    forms = {f"f{i}": validate(p) for i, (p, _) in enumerate(made)}
    return answers, forms, {f"f{i}": x for i, (_, x) in enumerate(made)}


@needs_iree
@pytest.mark.parametrize("kind", KINDS)
def test_the_vectors_of_an_instruction_give_their_answers(kind):
    answers, forms, samples = vectors_of(kind)
    module = mlir_programs.compiled(module_of_functions(forms))
    for name, form in forms.items():
        found = mlir_programs.called(module[name], form, samples[name])
        for array, item in zip(found.values(), answers[name], strict=True):
            assert array.dtype == DTYPES[item["dtype"]]
            flat = np.asarray(item["data"]).ravel()
            expected = np.broadcast_to(flat, array.size)
            assert np.array_equal(array.ravel(), expected)


@needs_mlir_opt
@pytest.mark.parametrize("kind", KINDS)
def test_the_vectors_of_an_instruction_are_valid_to_mlir_opt(kind):
    _, forms, _ = vectors_of(kind)
    assert mlir_opt_error(module_of_functions(forms)) == ""


@needs_mlir_opt
def test_a_wrong_type_is_found_by_mlir_opt():
    text = module_of(validate(convolution()))
    assert "error" in mlir_opt_error(text.replace("acc_type = i32", ""))


def with_meanings(values, inputs=None):
    """x of bytes, clamped, then each dtype of a cast; `values` are meanings by value."""
    x = Input("x", TensorType("i8", (1, 2)), 0, 1)
    steps = [Instruction("clamp", (0,), {"min": 0, "max": 1})]
    steps += [
        Instruction("cast", (1,), {"dtype": dtype})
        for dtype in ("u8", "i16", "i32", "bool")
    ]
    outputs = tuple(Output(f"y{n}", n) for n in range(1, 6))
    metadata = Metadata(inputs=inputs or {}, values=values)
    return Program((x,), (), tuple(steps), outputs, metadata)


EVERY = {
    1: Meaning(0.5, 3),
    2: Meaning(0.25, 255),  # of the same bits as 1, so written nowhere
    3: Meaning(2.0, 0, "", (1.0, 0.125)),
    4: Meaning(1e-6, -5),
}


def test_meanings_are_quant_types_per_tensor_and_per_axis():
    program = with_meanings(EVERY, {"x": Meaning(1.0, -128)})
    text = module_of(validate(program))
    assert re.findall(r"!quant.uniform<[^>]*>", text) == [
        "!quant.uniform<i8:f64, 1.00000000000000000e+00:-128>",
        "!quant.uniform<i8:f64, 5.00000000000000000e-01:3>",
        "!quant.uniform<i16:f64:1, {2.00000000000000000e+00:0, 2.50000000000000000e-01:0}>",
        "!quant.uniform<i32:f64, 9.99999999999999955e-07:-5>",
    ]


@pytest.mark.parametrize(
    "values",
    [
        {1: Meaning(0.5, 128)},
        {1: Meaning(1e-310, 0)},
        {1: Meaning(1e300, 0, "", (1e300, 1.0))},
        {1: Meaning(1.0, 0, "", (1.0, 1.0), (0.5, 0.0))},
        {5: Meaning(1.0, 0)},
    ],
)
def test_what_a_quant_type_does_not_mean_has_none(values):
    assert "quant" not in module_of(validate(with_meanings(values)))


@needs_mlir_opt
def test_quant_types_are_valid_to_mlir_opt():
    program = with_meanings(EVERY, {"x": Meaning(1.0, -128)})
    assert mlir_opt_error(module_of(validate(program))) == ""
    wrong = {1: Meaning(2.0**-1022, 127, "", (1.0,) * 2)}
    text = module_of(validate(with_meanings(wrong)))
    assert mlir_opt_error(text) == ""
    assert "error" in mlir_opt_error(text.replace("<i8:f64:1", "<i99:f64:1"))


NAMED = {
    1: Meaning(0.5, 3, "a"),
    3: Meaning(2.0, 0, "b", (1.0, 1.0), (0.5, 0.0)),  # no quant.uniform
    4: Meaning(1e-6, -5, "c"),
}
RANGES = {"a": (-1e-5, 2.5), "b": (-3.0, 0.0), "c": (1.0, 1.0), "d": (0.0, 9.0)}


def test_what_calibration_met_stands_beside_the_quant_types():
    program = with_meanings(NAMED, {"x": Meaning(1.0, 0, "d")})
    form = validate(program)
    text = module_of(form, RANGES)
    assert re.findall(r"!quant.calibrated<[^>]*>>", text) == [
        "!quant.calibrated<f64<0.00000000000000000e+00:9.00000000000000000e+00>>",
        "!quant.calibrated<f64<-1.00000000000000008e-05:2.50000000000000000e+00>>",
        "!quant.calibrated<f64<-3.00000000000000000e+00:0.00000000000000000e+00>>",
    ]
    assert (
        "-05:2.5" in text.splitlines()[3]
        and "tosa.clamp" in text.splitlines()[3]
    )
    bare = re.sub(r"(, )?quant.calibrated = [^>]*>>", "", text)
    assert bare.replace(" {}", "") == module_of(form)
    facts = targets.export(form, "mlir", "p", {"--table": RANGES}).facts
    assert facts["calibrated_ranges"] == 3


@needs_mlir_opt
def test_calibrated_ranges_are_valid_to_mlir_opt():
    program = with_meanings(NAMED, {"x": Meaning(1.0, 0, "d")})
    text = module_of(validate(program), RANGES)
    assert mlir_opt_error(text) == ""
    backwards = text.replace("f64<-3.0", "f64<3.0")
    assert "illegal min and max" in mlir_opt_error(backwards)


def test_no_other_target_takes_ranges():
    form = validate(convolution())
    with pytest.raises(BadInput, match="the target tosa has no option --table"):
        targets.export(form, "tosa", "p", {"--table": RANGES})


@needs_iree
@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_model_gives_the_bytes_of_the_reference(name):
    for item in all_items(name):
        assert differing(validate(item.program), item.sample) == []


@needs_iree
def test_a_rescale_that_saturates_32_bits_is_exact():
    program = Program(
        (Input("x", TensorType("i32", (4,)), -(2**31), 2**31 - 1),),
        (np.array([2**31 - 1], np.int32), np.array([2], np.int8)),
        (
            Instruction(
                "rescale",
                (0, 1, 2),
                {"input_zp": 0, "output_zp": 0, "dtype": "i32"},
            ),
        ),
        (Output("y", 3),),
    )
    sample = {"x": np.array([-(2**31), -3, 3, 2**31 - 1], np.int32)}
    found = mlir_programs.outputs_of(validate(program), sample)
    most = 2**31 - 1
    assert found["y"].tolist() == [-(2**31), -1610612735, 1610612735, most]


@needs_iree
def test_a_fault_of_one_number_is_found():
    form = validate(convolution())
    sample = random_inputs(form.program, 1)
    assert differing(form, sample) == []
    step = form.program.instructions[0]
    bias = step.operands[2] - form.program.first_constant
    constants = list(form.program.constants)
    constants[bias] = constants[bias] + np.int32(70)
    other = validate(replace(form.program, constants=tuple(constants)))
    assert differing(form, sample, module_of(other)) != []


def test_a_program_with_nms_is_refused_by_name():
    name, vector = next(
        (name, vector)
        for name, vector in load_vectors()
        if name == "nms" and "outputs" in vector
    )
    program, _ = program_of_vector(name, vector)
    with pytest.raises(BadInput, match=r"the target mlir has no nms \(%\d+\)"):
        targets.export(validate(program), "mlir", "p")


def test_an_export_is_the_same_each_time():
    form = validate(convolution())
    first, second = (targets.export(form, "mlir", "p") for _ in range(2))
    assert first == second
    expected = ["README.md", "p.mlir", "sample.npz", "test.py"]
    assert sorted(first.contents) == expected


@needs_iree
def test_the_self_test_matches_and_another_answer_does_not(tmp_path):
    form = validate(convolution())
    folder = tmp_path / "out"
    disk.write_folder(folder, targets.export(form, "mlir", "p").contents)
    assert self_test(folder) == (0, "match")
    with np.load(folder / "sample.npz") as stored:
        arrays = [stored[name] * 0 for name in stored.files]
    np.savez(folder / "sample.npz", *arrays)
    assert self_test(folder) == (1, "differs")


def self_test(folder):
    done = subprocess.run(
        [sys.executable, "test.py"], cwd=folder, capture_output=True, text=True
    )
    return done.returncode, done.stdout.splitlines()[-1]
