"""An exported ONNX graph gives the bytes of the reference on onnxruntime, and holds no floating point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, shape_inference

from cvm.errors import BadInput
from cvm.export import targets
from cvm.export.onnx import TABLE
from cvm.export.onnx.model import model_of
from cvm.file import disk
from cvm.file import format as file_format
from cvm.instructions import INSTRUCTIONS
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from tests.conformance.test_vectors import load_vectors, program_of_vector
from tests.cvm.export.test_c_source import convolution, sums
from tests.determinism.programs import MODELS, OPTIONS, all_items
from tests.support.cvm_programs import (
    MAKERS,
    program_of,
    random_inputs,
    random_program,
)
from tests.support.onnx_programs import differing, session_of

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
KINDS = tuple(name for name in MAKERS if name in TABLE)
VECTORS = [
    pytest.param(name, vector, id=f"{name}: {vector['name']}")
    for name, vector in load_vectors()
    if "outputs" in vector and name in TABLE
]
EXPRESSIBLE = [
    path
    for path in sorted(GOLDEN.glob("*.cvm"))
    if all(item.name in TABLE for item in file_format.read(path).instructions)
]
INTEGERS = {
    *(onnx.TensorProto.BOOL, onnx.TensorProto.INT8, onnx.TensorProto.UINT8),
    *(onnx.TensorProto.INT16, onnx.TensorProto.INT32),
    *(onnx.TensorProto.INT64, onnx.TensorProto.UINT64),
}


def convolution_of(dtype: str, terms: int, weight: int) -> Program:
    """Return one sum of so many products of equal weights."""
    least = -100 if dtype == "i8" else -3000
    return Program(
        (Input("x", TensorType(dtype, (1, terms)), least, -least),),
        (np.full((1, terms), weight, np.int8), np.array([7], np.int32)),
        (Instruction("dense", (0, 1, 2), {"input_zp": 0}),),
        (Output("y", 3),),
    )


def operators(program: Program) -> set[str]:
    return {node.op_type for node in model_of(validate(program)).graph.node}


def test_every_instruction_but_one_is_written():
    assert INSTRUCTIONS.keys() - TABLE.keys() == {"nms"}
    assert TABLE.keys() <= INSTRUCTIONS.keys()


@pytest.mark.parametrize(("name", "vector"), VECTORS)
def test_a_vector_gives_its_answer(name, vector):
    program, arrays = program_of_vector(name, vector)
    assert differing(validate(program), arrays) == []


@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_gives_the_bytes_of_the_reference(seed):
    form = validate(random_program(seed, 8 + seed % 30, KINDS))
    assert differing(form, random_inputs(form.program, seed)) == []


@pytest.mark.parametrize("name", KINDS)
def test_an_instruction_gives_the_bytes_of_the_reference(name):
    for seed in range(5):
        form = validate(program_of((name, "rescale", "clamp"), seed))
        assert differing(form, random_inputs(form.program, seed)) == []


@pytest.mark.parametrize(
    "path", EXPRESSIBLE, ids=[path.stem for path in EXPRESSIBLE]
)
def test_a_golden_program_gives_the_bytes_of_the_reference(path):
    form = validate(file_format.read(path))
    assert differing(form, random_inputs(form.program, 1)) == []


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_a_demo_model_gives_the_bytes_of_the_reference(model, options):
    for item in all_items(f"models/{model}-{options}"):
        form = validate(item.program)
        assert differing(form, item.sample) == []


def test_no_value_is_a_float():
    """Inputs, constants, results and outputs: shape inference finds the type of each."""
    seen = set()
    for name, vector in load_vectors():
        if "outputs" in vector and name in TABLE:
            program, _ = program_of_vector(name, vector)
            seen |= element_types(model_of(validate(program)))
    assert seen <= INTEGERS
    assert len(seen) >= 6


def element_types(model: onnx.ModelProto) -> set[int]:
    """Return the types of all values; every node's results must have one."""
    onnx.checker.check_model(model)
    found = shape_inference.infer_shapes(model, strict_mode=True).graph
    types = {
        item.name: item.type.tensor_type.elem_type
        for item in (*found.input, *found.output, *found.value_info)
    }
    results = {name for node in found.node for name in node.output}
    assert results <= types.keys()
    return set(types.values()) | {item.data_type for item in found.initializer}


def test_bytes_are_multiplied_as_bytes_and_others_in_32_bits():
    assert "MatMulInteger" in operators(convolution_of("i8", 33025, 1))
    assert "MatMul" in operators(convolution_of("i16", 100, 1))
    assert "ConvInteger" in operators(convolution())


def test_a_sum_whose_raw_products_could_leave_i32_avoids_bytes():
    program = convolution_of("i8", 33026, 1)
    assert "MatMulInteger" not in operators(program)
    sample = {"x": np.full((1, 33026), 100, np.int8)}
    assert differing(validate(program), sample) == []


def test_bytes_are_multiplied_unsigned_on_both_sides():
    """Two products of 255 and 127 leave 16 bits, in which some kernels for signed bytes add them."""
    for program in (convolution(), convolution_of("i8", 64, 127)):
        model = model_of(validate(program))
        found = shape_inference.infer_shapes(model).graph
        types = {
            item.name: item.type.tensor_type.elem_type
            for item in found.value_info
        }
        types |= {item.name: item.data_type for item in found.initializer}
        (node,) = (n for n in found.node if n.op_type.endswith("Integer"))
        read = {types[name] for name in node.input}
        assert read == {onnx.TensorProto.UINT8}


@pytest.mark.parametrize(
    ("most", "long"),
    [
        pytest.param(2**30, False, id="a bit is left"),
        pytest.param(2**31 - 1, True, id="none is left"),
    ],
)
def test_a_rescale_of_great_numbers_is_exact_at_the_ends(most, long):
    type_ = TensorType("i32", (4,))
    program = Program(
        (Input("x", type_, -most, most),),
        (np.array([2**31 - 1], np.int32), np.array([62], np.int8)),
        (
            Instruction(
                "rescale",
                (0, 1, 2),
                {"input_zp": 0, "output_zp": 0, "dtype": "i32"},
            ),
        ),
        (Output("y", 3),),
    )
    assert ("BitwiseXor" in operators(program)) == long
    near = 2**30 + 1 if long else 2**30
    sample = {"x": np.array([-most, -near, near, most], np.int32)}
    assert differing(validate(program), sample) == []


def test_weights_are_stored_in_bytes():
    model = model_of(validate(convolution_of("i16", 5000, 1)))
    sizes = [
        len(numpy_helper.to_array(item).tobytes())
        for item in model.graph.initializer
    ]
    assert 5000 <= sum(sizes) < 5100


def test_a_fault_of_one_bit_is_found():
    form = validate(convolution())
    model = model_of(form)
    sample = random_inputs(form.program, 1)
    assert differing(form, sample, model) == []
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor).copy()
        if array.dtype == np.uint8 and array.size == 4:
            array.reshape(-1)[0] ^= 1
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    assert differing(form, sample, model) != []


def test_a_program_with_nms_is_refused_by_name():
    name, vector = next(
        (name, vector)
        for name, vector in load_vectors()
        if name == "nms" and "outputs" in vector
    )
    program, _ = program_of_vector(name, vector)
    with pytest.raises(BadInput, match=r"the target onnx has no nms \(%\d+\)"):
        targets.export(validate(program), "onnx", "p")


def test_an_input_and_an_output_of_one_name_are_refused():
    with pytest.raises(BadInput, match=r"both have a, b$"):
        targets.export(validate(sums(("a", "b"))), "onnx", "p")


def test_names_of_ports_are_kept_and_apart_from_ours():
    base = convolution()
    program = Program(
        (Input("v3", base.inputs[0].type, -100, 100),),
        base.constants,
        base.instructions,
        (Output("v1", 7), Output("a b/名", 6)),
    )
    form = validate(program)
    session = session_of(model_of(form))
    assert [item.name for item in session.get_inputs()] == ["v3"]
    assert [item.name for item in session.get_outputs()] == ["v1", "a b/名"]
    assert differing(form, random_inputs(program, 1)) == []


def test_an_export_is_the_same_each_time():
    form = validate(convolution())
    first, second = (targets.export(form, "onnx", "p") for _ in range(2))
    assert first == second
    assert sorted(first.contents) == [
        "README.md",
        "p.onnx",
        "sample.npz",
        "test.py",
    ]


def test_the_self_test_matches_and_another_model_does_not(tmp_path):
    form = validate(convolution())
    folder = tmp_path / "out"
    disk.write_folder(folder, targets.export(form, "onnx", "p").contents)
    assert self_test(folder) == (0, "match")
    model = onnx.load(folder / "p.onnx")
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.INT32:
            array = numpy_helper.to_array(tensor) + np.int32(70)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    onnx.save(model, folder / "p.onnx")
    assert self_test(folder) == (1, "differs")


def self_test(folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "test.py"], cwd=folder, capture_output=True, text=True
    )
    return done.returncode, done.stdout.splitlines()[-1]
