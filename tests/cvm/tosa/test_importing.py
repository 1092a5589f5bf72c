"""A TOSA file becomes a program with the same meaning, or is refused by the name of each operator."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from cvm.errors import BadInput, Invalid, Unproven
from cvm.export.tosa.model import graph_of
from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference.interpreter import run as run_reference
from cvm.tosa.graph import (
    TosaGraph,
    TosaOperator,
    TosaShape,
    TosaTensor,
    to_bytes,
)
from cvm.tosa.importing import program_of
from cvm.tosa.importing.rescale import factors_of
from cvm.tosa.importing.rules import parts_of
from tests.cvm.export.test_tosa import WRITTEN
from tests.determinism.programs import all_items
from tests.support.command import cvm
from tests.support.cvm_programs import random_inputs, random_program
from tests.support.tosa_programs import signed

RESCALED = {
    "scale32": True,
    "rounding_mode": 1,
    "per_channel": False,
    "input_unsigned": False,
    "output_unsigned": False,
}


def graph(operators, tensors, shapes=(), inputs=("x",), outputs=("y",)):
    """A block of operators; a constant has its CONST before them."""
    constants = [
        TosaOperator("CONST", (), (item.name,)) for item in tensors if item.data
    ]
    sizes = [TosaOperator("CONST_SHAPE", (), (item.name,)) for item in shapes]
    return TosaGraph(
        tuple(tensors),
        tuple(shapes),
        (*constants, *sizes, *operators),
        inputs,
        outputs,
    )


def one(name, element, value, shape=(1,)):
    """A constant of equal elements."""
    code = {"INT8": "b", "INT16": "<h", "INT32": "<i"}[element]
    count = int(np.prod(shape))
    return TosaTensor(name, element, shape, struct.pack(code, value) * count)


def answer(of, x, intervals=None):
    """The output of the reference machine."""
    form = validate(program_of(of, intervals or {}))
    return run_reference(form, {"x": x})["y"]


def rescaling(x="INT8", y="INT8", points=(0, 0), factors=(2**30, 30), **more):
    """y = x times a factor, with zero points."""
    inputs = ("x", "m", "s", "a", "b")
    operator = TosaOperator("RESCALE", inputs, ("y",), RESCALED | more)
    tensors = [
        TosaTensor("x", x, (3,)),
        one("m", "INT32" if more.get("scale32", True) else "INT16", factors[0]),
        one("s", "INT8", factors[1]),
        one("a", x, points[0]),
        one("b", y, points[1]),
        TosaTensor("y", y, (3,)),
    ]
    return graph([operator], tensors)


def test_a_rescale_of_bytes_without_sign_reads_them_so():
    of = rescaling(y="INT16", points=(-56, 0), input_unsigned=True)  # 200
    program = program_of(of, {})
    assert program.inputs[0].type.dtype == "u8"
    found = answer(of, np.array([0, 200, 255], np.uint8))
    assert found.tolist() == [-200, 0, 55]


def test_a_rescale_to_bytes_without_sign_stops_at_their_bounds():
    of = rescaling(x="INT16", points=(0, -56), output_unsigned=True)
    found = answer(of, np.array([-32768, 5, 56], np.int16))
    assert (found.dtype, found.tolist()) == (np.uint8, [0, 205, 255])


def test_a_multiplier_of_16_bits_is_doubled_into_the_one_form():
    of = rescaling(y="INT16", factors=(3, 2), scale32=False)
    found = answer(of, np.array([2, -2, 1], np.int8))
    assert found.tolist() == [2, -1, 1]  # 1.5, -1.5 and 0.75, half up


def test_factors_come_to_the_one_form_and_keep_their_value():
    m, s = factors_of(np.array([0, 1, 3, 2**30]), np.array([2, 62, 2, 7]))
    assert m.tolist() == [0, 1, 3 * 2**29, 2**30]
    assert s.tolist() == [62, 62, 31, 7]


@pytest.mark.parametrize("more", [{"rounding_mode": 3}, {"rounding_mode": 2}])
def test_other_roundings_are_refused(more):
    with pytest.raises(BadInput, match=r"RESCALE 'y': only SINGLE_ROUND"):
        program_of(rescaling(**more), {})


def test_a_byte_that_has_a_sign_elsewhere_is_refused():
    of = rescaling(y="INT16", input_unsigned=True)
    tensors = (*of.tensors, TosaTensor("z", "INT32", (3,)))
    cast = TosaOperator("CAST", ("x",), ("z",))
    both = replace(of, tensors=tensors, operators=(*of.operators, cast), outputs=("y", "z"))  # fmt: skip
    with pytest.raises(
        BadInput, match=r"CAST 'z': bytes that are without sign"
    ):
        program_of(both, {})


def test_a_table_of_16_bits_interpolates():
    """The example of SPEC, section interpolate."""
    values = np.zeros(513, np.int16)
    values[256:] = 30
    values[256] = 10
    operator = TosaOperator("TABLE", ("x", "v"), ("y",))
    tensors = [
        TosaTensor("x", "INT16", (5,)),
        TosaTensor("v", "INT16", (513,), values.astype("<i2").tobytes()),
        TosaTensor("y", "INT32", (5,)),
    ]
    of = graph([operator], tensors)
    found = answer(of, np.array([0, 1, 64, 127, 128], np.int16))
    assert found.tolist() == [1280, 1300, 2560, 3820, 3840]


def convolving(weight, zero_point, bias_shape=(1,)):
    """Two places, one channel, one weight for two outputs."""
    inputs = ("x", "w", "b", "xz", "wz")
    given = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1)}
    operator = TosaOperator(
        "CONV2D", inputs, ("y",), given | {"local_bound": False, "acc_type": 5}
    )
    tensors = [
        TosaTensor("x", "INT8", (1, 1, 2, 1)),
        one("w", "INT8", weight, (2, 1, 1, 1)),
        one("b", "INT32", 7, bias_shape),
        one("xz", "INT8", 3),
        one("wz", "INT8", zero_point),
        TosaTensor("y", "INT32", (1, 1, 2, 2)),
    ]
    return graph([operator], tensors)


@pytest.mark.parametrize(
    ("weight", "zero_point"), [(127, -128), (-128, 127), (5, 2), (5, 0)]
)
def test_weights_less_their_zero_point_may_need_more_than_a_byte(
    weight, zero_point
):
    x = np.array([-128, 127], np.int8).reshape(1, 1, 2, 1)
    factor = weight - zero_point
    expected = [7 - 131 * factor] * 2 + [7 + 124 * factor] * 2
    found = answer(convolving(weight, zero_point), x)
    assert found.ravel().tolist() == expected


def test_the_parts_of_weights_are_bytes_and_add_up():
    weights = np.array([127, -128, 0, 1], np.int8)
    parts = list(parts_of(weights, -128))
    assert len(parts) == 3
    assert sum(part.astype(int) for part in parts).tolist() == [255, 0, 128, 129]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["CONV2D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"]
)
@pytest.mark.parametrize("tensor", ["x", "w"])
def test_a_convolution_of_a_scalar_is_refused(name, tensor):
    of = convolving(1, 0)
    scalars = {"x": TosaTensor("x", "INT8", ()), "w": one("w", "INT8", 1, ())}
    tensors = tuple(
        scalars[tensor] if item.name == tensor else item for item in of.tensors
    )
    last = replace(of.operators[-1], name=name)
    with pytest.raises(BadInput, match=name):
        program_of(
            replace(of, tensors=tensors, operators=(*of.operators[:-1], last)),
            {},
        )


def test_a_bias_of_another_length_is_refused():
    with pytest.raises(BadInput, match=r"the bias has the shape \[3\]"):
        program_of(convolving(1, 0, (3,)), {})


def adding():
    """y = x + x of 32 bits."""
    tensors = [TosaTensor(name, "INT32", (2,)) for name in "xy"]
    return graph([TosaOperator("ADD", ("x", "x"), ("y",))], tensors)


def test_what_may_overflow_needs_an_interval():
    with pytest.raises(Unproven, match=r"add\.fits"):
        validate(program_of(adding(), {}))
    x = np.array([5, -6], np.int32)
    found = answer(adding(), x, {"x": (-6, 5)})
    assert found.tolist() == [10, -12]


def test_every_operator_without_an_instruction_is_named_in_one_message():
    tensors = [TosaTensor(name, "INT32", (2,)) for name in ("x", "v", "w", "y")]
    operators = [
        TosaOperator("BITWISE_NOT", ("x",), ("v",)),
        TosaOperator("SIN", ("v",), ("w",)),
        TosaOperator("CLAMP", ("w",), ("y",)),
    ]
    expected = (
        "no instruction has the meaning of BITWISE_NOT ('v'); SIN ('w'); "
        "CLAMP: INT32 > INT32 ('y')"
    )
    with pytest.raises(BadInput) as raised:
        program_of(graph(operators, tensors), {})
    assert str(raised.value) == expected


BROKEN = {
    "nothing has defined 'z' before": lambda g: replace(
        g, operators=(replace(g.operators[0], inputs=("x", "z")),)
    ),
    "'y' is defined twice": lambda g: replace(g, operators=g.operators * 2),
    "there is no tensor 'q'": lambda g: replace(g, inputs=("q",)),
    "nothing defines the output 'z'": lambda g: replace(g, outputs=("z",)),
    "the output 'x' is an input": lambda g: replace(g, outputs=("x",)),
    "two tensors or shapes have one name": lambda g: replace(
        g, tensors=g.tensors * 2
    ),
    "it gives i32": lambda g: replace(
        g, tensors=(*g.tensors[::2], TosaTensor("y", "INT32", (3,)))
    ),
    "is INT32 of rank 9": lambda g: replace(
        g, tensors=(TosaTensor("x", "INT32", (1,) * 9), *g.tensors[1:])
    ),
    "as if it were a constant": lambda g: replace(
        g, tensors=(*g.tensors[::2], one("y", "INT32", 0, (2,)))
    ),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_graph_that_contradicts_itself_is_refused(message):
    of = adding()
    extra = TosaTensor("z", "INT32", (2,))
    base = replace(of, tensors=(of.tensors[0], of.tensors[1], extra))
    if "it gives" in message or "as if" in message:
        base = replace(of, tensors=(of.tensors[0], extra))
    with pytest.raises(BadInput, match=message):
        program_of(BROKEN[message](base), {})


def test_a_constant_that_is_read_too_often_is_refused(monkeypatch):
    monkeypatch.setattr("cvm.tosa.importing.program.LEAST_WORK", 2)
    monkeypatch.setattr("cvm.tosa.importing.program.READINGS", 0)
    with pytest.raises(BadInput, match="the same constants are read too often"):
        program_of(convolving(1, 0), {})


def test_an_array_is_not_reshaped_to_a_scalar():
    """The one test of Arm's that must be rejected and that its generator fails to write."""
    tensors = [TosaTensor("x", "INT32", (34,)), TosaTensor("y", "INT32", ())]
    reshape = TosaOperator("RESHAPE", ("x", "s"), ("y",))
    of = graph([reshape], tensors, [TosaShape("s", 0, ())])
    with pytest.raises(BadInput, match=r"reshape\.C2"):
        program_of(of, {})


# -- what was exported comes back ---------------------------------------------------


def comes_back(program, seed, sample=None):
    """Whether the exported program is read as one with the same answers; None if TOSA, or a proof, does not take it."""
    form = validate(program)
    intervals = {item.name: (item.lo, item.hi) for item in program.inputs}
    try:
        found = program_of(graph_of(form), intervals)
        again = validate(found)
    except (BadInput, Invalid):
        return None
    sample = sample or random_inputs(program, seed)
    dtypes = {item.name: item.type.dtype for item in found.inputs}
    given = {
        name: array.view(np.int8)
        if array.dtype == np.uint8 and dtypes[name] == "i8"
        else array
        for name, array in sample.items()
    }
    expected = run_reference(form, sample).values()
    pairs = zip(expected, run_reference(again, given).values(), strict=True)
    return all(np.array_equal(signed(a), signed(b)) for a, b in pairs)


def test_random_programs_come_back_with_their_answers():
    found = [
        comes_back(random_program(seed, 4 + seed % 20, WRITTEN), seed)
        for seed in range(120)
    ]
    assert False not in found
    assert found.count(True) > 20


INDEX_OF = {
    "argmax": {"axis": 1},
    "argsort": {"descending": True},
}


@pytest.mark.parametrize("name", INDEX_OF)
def test_an_index_that_gathers_comes_back_within_its_bounds(name):
    """No proof knows that an element of a row is its greatest, or that the ranks of a row are all different."""
    values = np.array([[[7], [8], [9]]], np.int32)
    found = Instruction(name, (0,), INDEX_OF[name])
    shape = (1, 1) if name == "argmax" else (1, 3)
    program = Program(
        (Input("x", TensorType("i32", (1, 3)), -9, 9),),
        (values,),
        (
            found,
            Instruction("reshape", (2,), {"shape": shape}),
            Instruction("gather", (1, 3), {}),
        ),
        (Output("y", 4),),
    )
    for seed in range(3):
        assert comes_back(program, seed)


def test_a_root_comes_back_within_its_bounds():
    """Its square fits 32 bits, and it is a divisor where no x is 0."""
    program = Program(
        (Input("x", TensorType("i32", (3,)), 5, 2**31 - 1),),
        (),
        (
            Instruction("isqrt", (0,), {}),
            Instruction("mul", (1, 1), {"shift": 0}),
            Instruction("intdiv", (2, 1), {}),
        ),
        (Output("y", 3),),
    )
    ends = {"x": np.array([5, 2**31 - 1, 46340**2], np.int32)}
    assert comes_back(program, 0, ends)


@pytest.mark.parametrize(
    "name", ["models/lenet_digits28-8bit", "models/resnet_digits8-8bit"]
)
def test_a_demo_model_comes_back_with_its_answers(name):
    for item in all_items(name):
        assert comes_back(item.program, 0, item.sample)


# -- the command --------------------------------------------------------------------


def test_the_command_writes_a_program(tmp_path):
    source, target = tmp_path / "m.tosa", tmp_path / "m.cvm"
    source.write_bytes(to_bytes(adding()))
    result = cvm("import", source, "-o", target, "--interval", "x=-9..9")
    assert result.exit_code == 0, result.output
    program = file_format.read(target)
    assert (program.inputs[0].lo, program.inputs[0].hi) == (-9, 9)


def test_the_command_names_the_option_where_a_proof_fails(tmp_path):
    source, target = tmp_path / "m.tosa", tmp_path / "m.cvm"
    source.write_bytes(to_bytes(adding()))
    result = cvm("import", source, "-o", target)
    assert result.exit_code == 1
    assert "add.fits" in result.stderr
    assert "--interval NAME=LOW..HIGH" in result.stderr
    assert not target.exists()


@pytest.mark.parametrize("text", ["x", "x=1", "x=a..b", "=1..2"])
def test_an_interval_that_is_none_is_refused(tmp_path, text):
    source = tmp_path / "m.tosa"
    source.write_bytes(to_bytes(adding()))
    result = cvm("import", source, "-o", tmp_path / "m.cvm", "--interval", text)
    assert result.exit_code == 2
    assert "expected NAME=LOW..HIGH" in result.stderr


def test_an_interval_of_no_input_is_refused(tmp_path):
    source = tmp_path / "m.tosa"
    source.write_bytes(to_bytes(adding()))
    words = ("--interval", "q=1..2")
    result = cvm("import", source, "-o", tmp_path / "m.cvm", *words)
    assert result.exit_code == 2
    assert "there is no input 'q'" in result.stderr
