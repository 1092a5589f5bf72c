"""What an export to C is made of: names of strangers, refusals, the self-test, faults that must not go unseen."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export import targets
from cvm.export.c import TABLE, identifiers
from cvm.export.c.program import plan
from cvm.export.refusals import require_expressible
from cvm.export.samples import sample, samples_of
from cvm.instructions import INSTRUCTIONS
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from tests.support.c_programs import CProgram, needs

HOSTILE = (
    *("int", "INT8_MAX", "uint8_t", "linux", "3", "_Bool", "a b", "a-b"),
    *("A_B", "*/ }", "??/", "\\\n", "名前", "x" * 256, "new"),
)
WEIGHTS = np.array([[[[1], [-2]]], [[[3], [100]]]], np.int8)


def convolution() -> Program:
    """Return two channels of sums over neighbours, scaled to i8, with room for the clamp to act."""
    return Program(
        inputs=(Input("x", TensorType("i8", (1, 1, 9, 1)), -100, 100),),
        constants=(
            WEIGHTS,
            np.array([5, -7000], np.int32),
            np.array([2**30, 2**30 + 7], np.int32),
            np.array([30, 36], np.int8),
        ),
        instructions=(
            Instruction(
                "conv2d",
                (0, 1, 2),
                {
                    "pad": (0, 0, 1, 0),
                    "stride": (1, 1),
                    "dilation": (1, 1),
                    "groups": 1,
                    "input_zp": -3,
                },
            ),
            Instruction(
                "rescale",
                (5, 3, 4),
                {"input_zp": 0, "output_zp": 1, "dtype": "i8"},
            ),
            Instruction("reshape", (6,), {"shape": (18,)}),
        ),
        outputs=(Output("y", 7), Output("again", 7), Output("first", 6)),
    )


def sums(names: tuple[str, ...], low: int = -9, high: int = 9) -> Program:
    """Return a program that adds inputs of these names up, one output of the same name for each."""
    count = len(names)
    type_ = TensorType("i32", (2,))
    negate = Instruction("negate", (0,), {"input_zp": 0, "output_zp": 0})
    steps = [negate] + [
        Instruction("add", (index, count + index - 1))
        for index in range(1, count)
    ]
    return Program(
        tuple(Input(name, type_, low, high) for name in names),
        (),
        tuple(steps),
        tuple(Output(name, count + k) for k, name in enumerate(names)),
    )


def test_every_instruction_is_written():
    assert TABLE.keys() == INSTRUCTIONS.keys()


def test_a_refusal_names_every_instruction_that_a_target_lacks():
    with pytest.raises(BadInput) as problem:
        require_expressible(sums(tuple("abcdef")), "small", {"clamp"})
    expected = "the target small has no negate (%6), add (%7 %8 %9 and 2 more)"
    assert str(problem.value) == expected


def test_a_value_with_more_elements_than_32_bits_can_place_is_refused():
    large = TensorType("bool", (2, 2**29))
    program = Program(
        (Input("x", large, 0, 1),),
        (),
        (Instruction("reshape", (0,), {"shape": (2**30,)}),),
        (Output("y", 1),),
    )
    with pytest.raises(BadInput) as problem:
        targets.export(validate(program), "c", "n")
    expected = "%0 is bool[2,536870912]; the target c takes values of at most 536,870,912 elements"
    assert str(problem.value) == expected


def test_an_export_is_the_same_each_time():
    form = validate(convolution())
    one, two = (targets.export(form, "c", "n").files for _ in range(2))
    assert one == two
    assert list(one) == ["n.h", "n.c", "main.c", "Makefile", "README.md"]


def test_facts_count_bytes():
    facts = targets.export(validate(convolution()), "c", "n").facts
    assert facts == {
        "instructions": 3,
        "functions": 2,  # the scaling finishes each row of sums
        # weights 4, biases 2 * 2, multipliers 2 * 4, shifts 2
        "constant_bytes": 18,
        # a row of two sums, in a block of 64 bytes; all else is an output
        "arena_bytes": 64,
    }


def groups_of(program: Program) -> list[tuple[int, ...]]:
    return [step.values for step in plan(validate(program)).steps]


def product(*steps: Instruction, outputs: tuple[int, ...]) -> Program:
    """Return x[2,1] by w[2,1], as value 5, and the steps after it; y[2,2], y[1,2] and y[2,1] are values 1 to 3."""
    shapes = ((2, 1), (2, 2), (1, 2), (2, 1))
    inputs = [
        Input(f"i{k}", TensorType("i32" if k else "i8", shape), -9, 9)
        for k, shape in enumerate(shapes)
    ]
    constants = (np.array([[3], [-5]], np.int8), np.array([1, 2], np.int32))
    dense = Instruction("dense", (0, 4, 5), {"input_zp": 0})
    ports = tuple(Output(f"o{value}", value) for value in outputs)
    return Program(tuple(inputs), constants, (dense, *steps), ports)


@pytest.mark.parametrize("other", [1, 2, 3])
def test_neighbours_finish_each_row_of_sums(other):
    steps = [Instruction("add", (6, other)), Instruction("abs", (7,))]
    assert groups_of(product(*steps, outputs=(8,))) == [(6, 7, 8)]


@pytest.mark.parametrize(
    ("steps", "outputs", "groups"),
    [
        # the sums are an output
        ([("abs", 6)], (6, 7), [(6,), (7,)]),
        # the sums are read again later
        ([("abs", 6), ("argmax", 6)], (7, 8), [(6,), (7,), (8,)]),
        # the sums are read by another shape
        ([("reshape", 6), ("abs", 7)], (8,), [(6,), (8,)]),
        ([("reshape", 6), ("add", 6, 7)], (8,), [(6,), (8,)]),
        # the neighbour reads something else
        ([("abs", 1), ("add", 6, 7)], (8,), [(6, 7, 8)]),
    ],
)
def test_sums_that_others_read_are_stored(steps, outputs, groups):
    attributes = {"reshape": {"shape": (2, 2)}, "argmax": {"axis": 0}}
    made = [Instruction(n, tuple(v), attributes.get(n, {})) for n, *v in steps]
    assert groups_of(product(*made, outputs=outputs)) == groups


def test_a_value_and_a_view_of_it_do_not_meet_in_one_loop():
    """The view would be read where only a variable is."""
    made = [
        Instruction("abs", (1,)),
        Instruction("reshape", (7,), {"shape": (2, 2)}),
        Instruction("add", (7, 8)),
    ]
    groups = groups_of(product(*made, outputs=(6, 9)))
    assert groups == [(6,), (7,), (9,)]


def test_an_operand_that_steps_unevenly_from_row_to_row_is_not_joined():
    x, image = TensorType("i8", (1, 2, 2, 1)), TensorType("i32", (1, 1, 2, 1))
    convolved = Instruction(
        "conv2d",
        (0, 2, 3),
        {
            "pad": (0, 0, 0, 0),
            "stride": (1, 1),
            "dilation": (1, 1),
            "groups": 1,
            "input_zp": 0,
        },
    )
    program = Program(
        (Input("x", x, -9, 9), Input("y", image, -9, 9)),
        (np.ones((1, 1, 1, 1), np.int8), np.zeros(1, np.int32)),
        (convolved, Instruction("add", (4, 1))),
        (Output("z", 5),),
    )
    assert groups_of(program) == [(4,), (5,)]


def test_equal_constants_and_equal_functions_exist_once():
    program = sums(tuple("abc"))
    two = Program(
        program.inputs,
        (np.array([1, 3], np.int32), np.array([1, 3], np.int32)),
        (
            Instruction("add", (0, 3)),
            Instruction("reduce_max", (5,), {"axis": 0}),
            Instruction("add", (1, 4)),
            Instruction("reduce_max", (7,), {"axis": 0}),
        ),
        (Output("p", 6), Output("q", 8)),
    )
    text = targets.export(validate(two), "c", "n").files["n.c"]
    assert text.count("static const int8_t") == 1
    assert re.findall(r"static void (\w+)", text) == ["add_1", "reduce_max_2"]


@needs("gcc")
@pytest.mark.parametrize(("calls", "is_apart"), [(16, False), (17, True)])
def test_a_function_with_many_calls_stays_one(tmp_path, calls, is_apart):
    """As in a network whose steps in time are written out: clang took minutes to put 500 calls of each function in line."""
    steps = [
        Instruction("argsort", (k,), {"descending": False})
        for k in range(calls)
    ]
    port = Input("x", TensorType("i32", (5,)), -9, 9)
    form = validate(Program((port,), (), tuple(steps), (Output("y", calls),)))
    made = CProgram.write(form, tmp_path)
    text = (tmp_path / "exported.c").read_text()
    kept = "__attribute__((noinline))\n#endif\nstatic void argsort_1("
    assert (kept in text, text.count("noinline")) == (is_apart, is_apart)
    assert (
        made.differing(
            made.build("gcc", "-O2"), samples=[samples_of(form.program)]
        )
        == []
    )


def test_names_become_identifiers_that_are_free_and_apart():
    found = identifiers.distinct(HOSTILE)
    expected = ["int_", "INT8_MAX_", "uint8_t_", "linux_", "x3", "Bool"]
    expected += ["a_b", "a_b_2", "A_B_3", "x", "x_2", "x_3", "x_4"]
    assert found == [*expected, "x" * 40, "new_"]


def test_a_name_with_a_number_does_not_meet_a_numbered_one():
    assert identifiers.distinct(["a", "a ", "a_2"]) == ["a", "a_2", "a_2_2"]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("digits8.v2", "digits8_v2"),
        ("main", "main_program"),
        ("CON", "CON_program"),
        ("../../x", "x"),
        ("int", "int_"),
    ],
)
def test_a_base_name_is_no_path_and_no_file_beside_it(name, base):
    assert identifiers.base_name(name) == base


@needs("gcc")
def test_hostile_names_compile_and_answer(tmp_path):
    form = validate(sums(HOSTILE))
    program = CProgram.write(form, tmp_path)
    random = np.random.default_rng(1)
    arrays = {
        name: random.integers(-9, 10, 2).astype(np.int32) for name in HOSTILE
    }
    binary = program.build("gcc", "-O1")
    assert program.differing(binary, samples=[arrays]) == []


@needs("gcc")
def test_a_program_of_constants_alone_compiles(tmp_path):
    program = Program(
        (Input("unread", TensorType("i8", (1,)), -128, 127),),
        (np.array([1, -7], np.int32),),
        (Instruction("abs", (1,)),),
        (Output("y", 2),),
    )
    written = CProgram.write(validate(program), tmp_path)
    binary = written.build("gcc", "-O0")
    sample = {"unread": np.array([3], np.int8)}
    (found,) = written.run(binary, samples=[sample])
    assert found["y"].tolist() == [1, 7]


@needs("gcc")
@pytest.mark.parametrize(("value", "code"), [(9, 0), (10, 2), (-10, 2)])
def test_an_input_outside_its_interval_is_refused_by_its_number(
    tmp_path, value, code
):
    program = CProgram.write(validate(sums(("a", "b"))), tmp_path)
    sent = np.array([0, 0, 0, value], np.int32).tobytes()
    done = subprocess.run(
        [program.build("gcc", "-O0")], input=sent, capture_output=True
    )
    assert done.returncode == code
    assert len(done.stdout) == (0 if code else 16)


def every_place(low: int, high: int) -> list[dict[str, np.ndarray]]:
    values = np.resize(np.arange(low, high + 1), (23, 1, 1, 9, 1))
    return [{"x": row.astype(np.int8)} for row in values]


@needs("gcc")
@pytest.mark.parametrize(
    ("there", "fault"),
    [
        ("{\n1, -2, 3, 100\n}", "{\n1, -2, 3, 101\n}"),
        ("{\n30, 36\n}", "{\n30, 37\n}"),
        ("1073741824, 1073741831", "1073741824, 1077936135"),
        ("j - 1", "j - 0"),
        ("places[c] + 3", "places[c] + 2"),
        ("<< (shift - 1));", "<< (shift - 2));"),
        ("-128, 127)", "-128, 126)"),
    ],
)
def test_a_fault_of_one_bit_is_found(tmp_path, there, fault):
    form = validate(convolution())
    program = CProgram.write(form, tmp_path)
    samples = every_place(-100, 100)
    binary = program.build("gcc", "-O0")
    assert program.differing(binary, samples=samples) == []
    path = tmp_path / "exported.c"
    original = path.read_text()
    assert original.count(there) == 1
    path.write_text(original.replace(there, fault))
    binary = program.build("gcc", "-O0")
    assert program.differing(binary, samples=samples) != []


@needs("gcc")
def test_the_self_test_matches_and_a_changed_weight_does_not(tmp_path):
    program = CProgram.write(validate(convolution()), tmp_path)
    done = subprocess.run(
        [program.build("gcc", main="main.c")], capture_output=True, text=True
    )
    digests = re.findall(r"^(\w+) [0-9a-f]{64} match$", done.stdout, re.M)
    assert (done.returncode, digests) == (0, ["y", "again", "first"])
    path = tmp_path / "exported.c"
    path.write_text(path.read_text().replace("1, -2, 3, 100", "1, -2, 2, 100"))
    done = subprocess.run(
        [program.build("gcc", main="main.c")], capture_output=True, text=True
    )
    assert done.returncode == 1 and "mismatch" in done.stdout


@needs("gcc")
@needs("make")
def test_make_test_compiles_and_matches(tmp_path):
    CProgram.write(validate(convolution()), tmp_path)
    done = subprocess.run(
        ["make", "-C", str(tmp_path), "test", "CC=gcc"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout.count(" match\n") == 3
    assert "warning" not in done.stderr


def test_samples_of_the_self_test_fill_their_interval():
    item = Input("x", TensorType("i32", (4096,)), -(2**31), 2**31 - 1)
    found = sample(item, 1).astype(np.int64)
    assert found.min() < -2.1e9 and found.max() > 2.1e9
    few = sample(Input("x", TensorType("i8", (64,)), -1, 1), 0)
    assert sorted(set(few.tolist())) == [-1, 0, 1]


def test_a_library_includes_no_more_than_promised_and_has_no_floating_point():
    files = targets.export(validate(convolution()), "c", "n").files
    text = files["n.h"] + files["n.c"]
    assert set(re.findall(r"#include (\S+)", text)) == {"<stdint.h>", '"n.h"'}
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    assert not re.search(r"\b(float|double|malloc|free)\b|\d\.\d", code)


def test_no_pointer_is_restricted():
    """A compiler computed wrong answers by it: see cvm/export/c/function.py."""
    files = targets.export(validate(convolution()), "c", "p").files
    assert not any("restrict" in text for text in files.values())
