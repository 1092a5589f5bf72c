"""Indices, counts and truths stay exact whatever stands beside them, and what i32 does not hold is refused by name."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from cvm.proof.validate import validate
from mrt.errors import Unsupported
from mrt.quantize import QuantizeOptions, quantize
from mrt.table.table import MeasuredRange
from tests.support.float_models import FloatModel, convert, f32, run_real
from tests.support.invented_ranges import invented_table

SIXTEEN = QuantizeOptions(8, 16)
ROWS = (3, 8)
X = f32(
    np.roll(np.eye(3, 8), 2, axis=1) * 5
)  # the greatest of each row: 2, 3, 4
TABLE = f32(np.arange(10) / 4)


def best(m: FloatModel) -> str:
    return m.add("ArgMax", "x", axis=1, keepdims=1, select_last_index=0)


def as_float(m: FloatModel, value: str) -> str:
    return m.add("Cast", value, to=TensorProto.FLOAT)


def answers(m: FloatModel, *outputs: str) -> list[list[float]]:
    found = run_real(convert(m, *outputs, options=SIXTEEN), {"x": X})
    return [found[name].ravel().tolist() for name in outputs]


@pytest.mark.parametrize("most", [2**40, 2**63 - 1])
def test_a_limit_beyond_i32_leaves_the_other_one_in_force(most):
    m = FloatModel(x=ROWS)
    held = m.add("Clip", best(m), np.array(3), np.array(most))
    assert answers(m, m.add("Gather", TABLE, held, axis=0))[0] == pytest.approx(
        [0.75, 0.75, 1.0], abs=1e-4
    )


@pytest.mark.parametrize("operator", ["Add", "Mul", "Max"])
def test_a_whole_constant_beyond_i32_is_refused(operator):
    m = FloatModel(x=ROWS)
    output = as_float(m, m.add(operator, best(m), np.array(2**40)))
    with pytest.raises(
        Unsupported,
        match=rf"\({operator}\): a constant of {2**40}..{2**40} does not fit i32",
    ):
        convert(m, output, options=SIXTEEN)


def test_integers_beyond_16_bits_are_compared_exactly_however_often_they_are_read():
    m = FloatModel(x=ROWS)
    number = m.add("Mul", best(m), np.array(20011))
    same = m.add("Equal", number, np.array(60033))
    above = m.add("Greater", number, np.array(60032))
    assert answers(m, as_float(m, same), as_float(m, above)) == [
        [0, 1, 0],
        [0, 1, 1],
    ]


def test_the_greatest_of_integers_beyond_16_bits_is_found_however_often_they_are_read():
    m = FloatModel(x=ROWS)
    number = m.add("Mul", best(m), np.array(20011))
    place = m.add("ArgMax", number, axis=0, keepdims=0, select_last_index=0)
    assert answers(m, as_float(m, place), as_float(m, number)) == [
        [2],
        [40022, 60033, 80044],
    ]


def test_a_comparison_with_nan_is_refused():
    m = FloatModel(x=ROWS)
    output = as_float(m, m.add("Greater", "x", f32([np.nan] + [0] * 7)))
    with pytest.raises(Unsupported, match=r"\(Greater\): it compares with NaN"):
        convert(m, output, options=SIXTEEN)


def test_booleans_are_padded_with_a_fraction():
    m = FloatModel(x=ROWS)
    booleans = as_float(m, m.add("Greater", "x", f32(3.0)))
    padded = m.add(
        "Pad", booleans, np.array([0, 1, 0, 0]), f32(0.5), mode="constant"
    )
    assert answers(m, padded)[0] == pytest.approx(
        np.pad(X > 3, [(0, 0), (1, 0)], constant_values=0).ravel()
        + 0.5 * (np.arange(27) % 9 == 0),
        abs=1e-4,
    )


@pytest.mark.parametrize(
    ("factor", "to", "low", "high"),
    [
        (100, TensorProto.UINT8, 0, 255),  # only the upper end is passed
        (-10, TensorProto.UINT8, 0, 255),  # only the lower one
        (-100, TensorProto.INT8, -128, 127),
        (3, TensorProto.INT8, 0, 21),  # neither
    ],
)
def test_a_cast_of_integers_gives_those_of_its_type(factor, to, low, high):
    m = FloatModel(x=ROWS)
    number = m.add("Mul", best(m), np.array(factor))
    program = convert(m, as_float(m, m.add("Cast", number, to=to)))
    proven = validate(program)
    assert proven.intervals[program.outputs[0].value] == (low, high)


NUMBERS = np.array([-(2**31), -32769, -129, -1, 128, 255, 65536, 2**31 - 1])


def of_numbers(build) -> list[float]:
    """The answers for each of NUMBERS, which are looked up."""
    m = FloatModel(x=(8, 8))
    number = m.add("Gather", NUMBERS, best(m), axis=0)
    output = as_float(m, build(m, number))
    program = convert(m, output, options=SIXTEEN)
    return run_real(program, {"x": f32(np.eye(8))})[output].ravel().tolist()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2"])
def test_a_cast_keeps_the_lowest_bits_of_integers(dtype):
    to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    found = of_numbers(lambda m, number: m.add("Cast", number, to=to))
    assert found == NUMBERS.astype(dtype).tolist()


COMPARED = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}


@pytest.mark.parametrize("operator", COMPARED)
@pytest.mark.parametrize(
    "limit", [-(2**33), -(2**31), -129, 2**31 - 1, 2**31, 2**33]
)
def test_integers_are_compared_with_what_no_i32_is(operator, limit):
    found = of_numbers(
        lambda m, number: m.add(operator, number, np.array(limit))
    )
    expected = COMPARED[operator](NUMBERS, limit)
    assert found == expected.astype(float).tolist()


def test_integers_of_one_dtype_are_joined_in_it():
    m = FloatModel(x=ROWS)
    joined = m.add("Concat", best(m), best(m), axis=1)
    program = convert(m, as_float(m, joined))
    types = validate(program).types
    (join,) = [
        number
        for number, item in enumerate(
            program.instructions, program.first_instruction
        )
        if item.name == "concat"
    ]
    operands = program.instructions[join - program.first_instruction].operands
    casts = [
        program.instructions[value - program.first_instruction].name
        for value in operands
    ]
    assert "cast" not in casts
    assert {types[value].dtype for value in operands} == {types[join].dtype}


def test_integers_of_several_dtypes_are_joined_exactly():
    m = FloatModel(x=ROWS)
    is_three = m.add("Equal", best(m), np.array(3))
    flag = m.add("Cast", is_three, to=TensorProto.INT64)
    joined = m.add("Concat", best(m), flag, axis=1)
    assert answers(m, as_float(m, joined)) == [[2, 0, 3, 1, 4, 0]]


@pytest.mark.parametrize(
    ("dtype", "most"),
    [
        (TensorProto.UINT8, 255),
        (TensorProto.UINT16, 2**16 - 1),
        (TensorProto.UINT32, 2**31 - 1),
        (TensorProto.UINT64, 2**31 - 1),
    ],
)
def test_an_input_of_unsigned_integers_takes_those_that_i32_holds(dtype, most):
    m = FloatModel(x=ROWS)
    m.add("Cast", "x", to=TensorProto.FLOAT, name="y")
    proto = m.proto("y")
    proto.graph.input[0].type.tensor_type.elem_type = dtype
    graph = ir.from_proto(proto)
    table = invented_table(graph, "")
    beyond = MeasuredRange(0.0, 2.0**40, 0.0, 2.0**40)
    table = replace(table, ranges={**table.ranges, "x": beyond})
    (item,) = quantize(graph, table, QuantizeOptions()).inputs
    assert (item.lo, item.hi) == (0, most)


def test_a_choice_between_booleans_stays_one():
    m = FloatModel(x=ROWS)
    one, two, three = (m.add("Greater", "x", f32(n)) for n in (1.0, 2.0, 3.0))
    flags = [m.add("Cast", n, to=TensorProto.INT64) for n in (one, three)]
    chosen = m.add("Where", two, *flags)
    program = convert(m, as_float(m, chosen))
    (choice,) = [
        number
        for number, item in enumerate(
            program.instructions, program.first_instruction
        )
        if item.name == "select"
    ]
    assert validate(program).types[choice].dtype == "bool"
