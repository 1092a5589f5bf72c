import tracemalloc

import numpy as np
import pytest

import cvm.runtime.execution
from cvm.errors import BadInput
from cvm.file.npy import NpyHeader
from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate
from cvm.runtime import boundary
from tests.support.run_programs import MEANINGS, chain, doubler, pair


def one_input(
    dtype: str,
    shape: tuple[int, ...],
    lo: int,
    hi: int,
    metadata: Metadata | None = None,
) -> Program:
    """y = x, reversed."""
    steps = (Instruction("reverse", (0,), {"axis": 0}),)
    return Program(
        (Input("x", TensorType(dtype, shape), lo, hi),),
        (),
        steps,
        (Output("y", 1),),
        metadata,
    )


def run(program: Program, **arrays: object) -> dict[str, list[object]]:
    result = cvm.runtime.execution.run(
        validate(program),
        {name: np.asarray(array) for name, array in arrays.items()},
    )
    return {name: array.tolist() for name, array in result.items()}


def refusal(program: Program, **arrays: object) -> str:
    with pytest.raises(BadInput) as caught:
        boundary.split_samples(
            program, {name: np.asarray(array) for name, array in arrays.items()}
        )
    return str(caught.value)


def test_an_array_of_the_input_shape_is_one_sample() -> None:
    assert run(doubler(), x=[[1, 2, -3]]) == {"y": [[2, 4, -6]]}


def test_a_leading_one_is_where_samples_go_and_outputs_concatenate() -> None:
    assert run(doubler(), x=[[1, 2, 3], [4, 5, 6]]) == {
        "y": [[2, 4, 6], [8, 10, 12]]
    }


def test_outputs_without_a_leading_one_stack() -> None:
    program = Program(
        (Input("x", TensorType("i32", (1, 2)), 0, 9),),
        (),
        (Instruction("transpose", (0,), {"perm": (1, 0)}),),
        (Output("y", 1),),
    )
    assert run(program, x=[[1, 2], [3, 4], [5, 6]]) == {
        "y": [[[1], [2]], [[3], [4]], [[5], [6]]]
    }
    assert run(program, x=[[1, 2]]) == {"y": [[1], [2]]}


def test_a_leading_two_takes_samples_on_a_new_axis_only() -> None:
    assert run(doubler(shape=(2, 1)), x=[[1], [2]]) == {"y": [[2], [4]]}
    assert run(doubler(shape=(2, 1)), x=[[[1], [2]], [[3], [4]]]) == {
        "y": [[[2], [4]], [[6], [8]]]
    }
    assert refusal(doubler(shape=(2, 1)), x=[[1], [2], [3], [4]]) == (
        "input 'x': shape [4, 1]; expected [2,1] or, for N samples, [N,2,1]"
    )


def test_a_leading_one_takes_samples_in_its_place_and_on_a_new_axis() -> None:
    expected = {"y": [[2, 4, 6], [8, 10, 12]]}
    assert run(doubler(), x=[[1, 2, 3], [4, 5, 6]]) == expected
    assert run(doubler(), x=[[[1, 2, 3]], [[4, 5, 6]]]) == expected
    assert refusal(doubler(), x=[[[1, 2, 3], [4, 5, 6]]]) == (
        "input 'x': shape [1, 2, 3]; expected [1,3] or, for N samples, [N,3]"
    )


def test_one_sample_on_a_new_axis_stays_a_batch() -> None:
    assert run(doubler(shape=(2,)), x=[[1, 2]]) == {"y": [[2, 4]]}


def test_scalars_are_samples_too() -> None:
    assert run(doubler(shape=()), x=7) == {"y": 14}
    assert run(doubler(shape=()), x=[7, 8]) == {"y": [14, 16]}


def test_inputs_of_both_kinds_batch_together() -> None:
    result = run(
        pair(),
        a=[[1, 2], [3, 4]],
        b=[[[10, 20], [30, 40]], [[50, 60], [70, 80]]],
    )
    assert result == {"total": [[[11, 22], [31, 42]], [[53, 64], [73, 84]]]}


def test_all_inputs_have_the_same_number_of_samples() -> None:
    assert refusal(pair(), a=[[1, 2], [3, 4]], b=[[0, 0], [0, 0]]) == (
        "inputs have different numbers of samples: 'a' 2, 'b' 1"
    )


def test_no_samples_are_refused() -> None:
    assert (
        refusal(doubler(), x=np.zeros((0, 3), np.int32))
        == "input 'x': shape [0, 3] holds no samples"
    )


def test_a_missing_input_is_named() -> None:
    assert refusal(pair(), a=[[1, 2]]) == "no array for input 'b'"


def test_arrays_that_are_no_inputs_are_left_alone() -> None:
    assert run(doubler(), x=[[1, 2, 3]], labels=["seven"]) == {"y": [[2, 4, 6]]}


def test_a_value_outside_the_interval_is_named_with_its_place() -> None:
    assert refusal(doubler(), x=[[0, 0, 0], [0, 1000, 1001]]) == (
        "input 'x', sample 1, index [0, 2]: value 1001 is outside -1000..1000"
    )
    assert refusal(pair(), a=[[1, 2]], b=[[0, 0], [-4, 0]]) == (
        "input 'b', sample 0, index [1, 0]: value -4 is outside -3..300"
    )


@pytest.mark.parametrize(
    "dtype", ["i1", "u1", "<i2", ">i2", "u2", "i4", "u4", "i8", ">u8", "u8"]
)
def test_any_integer_dtype_serves_if_the_values_fit(dtype: str) -> None:
    assert run(doubler(), x=np.asarray([[1, 2, 3]], dtype)) == {
        "y": [[2, 4, 6]]
    }


@pytest.mark.parametrize(
    ("dtype", "value", "said"),
    [
        ("i8", 2**32 + 5, "4294967301"),
        ("u8", 2**64 - 1, "18446744073709551615"),
        ("i8", -(2**63), "-9223372036854775808"),
    ],
)
def test_wide_integers_do_not_wrap(dtype: str, value: int, said: str) -> None:
    assert refusal(doubler(), x=np.asarray([[0, 0, value]], dtype)) == (
        f"input 'x', sample 0, index [0, 2]: value {said} is outside -1000..1000"
    )


def test_an_interval_beyond_the_arrays_dtype_is_compared_exactly() -> None:
    program = one_input("i16", (2,), 300, 400)
    assert refusal(program, x=np.asarray([255, 255], np.uint8)) == (
        "input 'x', sample 0, index [0]: value 255 is outside 300..400"
    )


def test_bools_and_integers_serve_each_other_exactly() -> None:
    assert run(one_input("bool", (2,), 0, 1), x=[1, 0]) == {"y": [False, True]}
    assert run(one_input("i8", (2,), 0, 1), x=[True, False]) == {"y": [0, 1]}
    assert refusal(one_input("bool", (2,), 0, 1), x=[1, 2]).endswith(
        "value 2 is outside 0..1"
    )


def test_real_values_are_refused_naming_what_quantizes_them() -> None:
    problem = "input 'x': holds float64; expected i32 integers"
    assert refusal(doubler(), x=[[1.0, 2.0, 3.0]]) == (
        f"{problem}; program.quantize(...) makes integers of real values, by the program's scales"
    )
    header = NpyHeader((1, 3), fortran=False, dtype=np.dtype("f8"), length=0)
    with pytest.raises(BadInput) as caught:
        boundary.require_suited(doubler(), "x", header, real=False)
    assert str(caught.value) == (
        f"{problem}; give --real to quantize real values by the program's scales"
    )
    assert (
        refusal(doubler(), x=[["a", "b", "c"]])
        == "input 'x': holds <U1; expected i32 integers"
    )
    assert (
        refusal(doubler(), x=[[1j, 0, 0]])
        == "input 'x': holds complex128; expected i32 integers"
    )


def quantized(
    values: object,
    *,
    lo: int = -128,
    hi: int = 127,
    scale: float = 0.5,
    zero_point: int = 3,
) -> list[int]:
    array = np.asarray(values)
    program = one_input(
        "i8",
        array.shape,
        lo,
        hi,
        Metadata(inputs={"x": Meaning(scale, zero_point)}),
    )
    result = boundary.quantize(program, {"x": array})["x"]
    assert result.dtype == np.int8
    return list(result.tolist())


def test_real_values_round_half_up() -> None:
    # v / 0.5 = 0.5, -0.5, 1.5, -1.5, 0.498: floor(v + 0.5) = 1, 0, 2, -1, 0; then + 3
    assert quantized([0.25, -0.25, 0.75, -0.75, 0.249]) == [4, 3, 5, 2, 3]


def test_real_values_saturate_at_the_interval_not_the_dtype() -> None:
    assert quantized([1000.0, -1000.0, np.inf, -np.inf], lo=-20, hi=100) == [
        100,
        -20,
        100,
        -20,
    ]


def test_reals_beyond_float64_stop_at_the_ends_without_a_warning() -> None:
    beyond = np.asarray(
        [np.finfo(np.longdouble).max, -np.finfo(np.longdouble).max]
    )  # plain float64 on some platforms
    assert quantized(beyond, lo=-20, hi=100) == [100, -20]


def test_real_values_of_any_number_type_are_converted_to_float64_first() -> (
    None
):
    assert quantized(np.asarray([0.25, -0.25], np.float32)) == [4, 3]
    assert quantized(np.asarray([2, -2], np.int16)) == [7, -1]
    # float32(0.7) lies below 0.7, so the quotient in float64 is 1.49999997; in float32 it would be 1.5
    assert quantized(
        np.asarray([0.7], np.float32), scale=0.7 / 1.5, zero_point=0
    ) == [1]


def test_a_quotient_beyond_float64_saturates() -> None:
    assert quantized([1e300], scale=1e-300) == [127]


@pytest.mark.parametrize("bits", [0x7FA00000, 0x7FC00000, 0xFF800001])
def test_a_signalling_nan_is_refused_like_any_other(bits: int) -> None:
    """Without a warning of numpy's, which is an error here."""
    x = np.array([[0, bits, 0]], np.uint32).view(np.float32)
    with pytest.raises(BadInput, match=r"index \[0, 1\]: value is NaN"):
        boundary.quantize(doubler(metadata=MEANINGS), {"x": x})


def test_nan_is_refused_with_its_place() -> None:
    program = doubler(metadata=MEANINGS)
    with pytest.raises(
        BadInput, match=r"^input 'x', sample 2, index \[0, 1\]: value is NaN$"
    ):
        boundary.quantize(
            program,
            {
                "x": np.asarray(
                    [[0, 0, 0], [0, 0, 0], [0, np.nan, 0]], np.float32
                )
            },
        )


def test_an_input_of_bytes_takes_no_fractions() -> None:
    def given(values: list[float], scale: float = 1.0) -> list[int]:
        program = one_input(
            "u8", (3,), 0, 255, Metadata(inputs={"x": Meaning(scale, 0)})
        )
        return list(
            boundary.quantize(program, {"x": np.asarray(values)})["x"].tolist()
        )

    assert given([0.0, 255.0, 300.0]) == [0, 255, 255]
    assert given([0.25, 0.5, 1.0], scale=0.25) == [1, 2, 4]
    with pytest.raises(
        BadInput,
        match=r"^input 'x', sample 0, index \[1\]: value 0.25 is a fraction; this input takes integers",
    ):
        given([0.0, 0.25, 1.0])


@pytest.mark.parametrize("dtype", ["i32", "bool"])
def test_an_input_of_integers_takes_no_fractions(dtype: str) -> None:
    """They once were rounded without a word."""

    def given(values: list[float], meaning: Meaning) -> list[int]:
        metadata = Metadata(inputs={"x": meaning})
        program = one_input(dtype, (3,), 0, 1, metadata)
        integers = boundary.quantize(program, {"x": np.asarray(values)})
        return [int(value) for value in integers["x"]]

    assert given([0.0, 1.0, np.inf], Meaning(1.0, 0)) == [0, 1, 1]
    assert given([0.0, 0.5, 1.0], Meaning(0.5, 0)) == [0, 1, 1]
    factors = Meaning(1.0, 0, channels=(1.0, 0.5, 2.0))
    assert given([0.0, 0.5, 1.0], factors) == [0, 1, 1]
    with pytest.raises(
        BadInput,
        match=r"^input 'x', sample 0, index \[1\]: value 0.5 is a fraction; this input takes integers 0\.\.1$",
    ):
        given([0.0, 0.5, 1.0], Meaning(1.0, 0))


def test_real_numbers_in_30_bits_may_have_the_scale_1() -> None:
    metadata = Metadata(inputs={"x": Meaning(1.0, 0)})
    program = one_input("i32", (2,), -(2**30), 2**30, metadata)
    integers = boundary.quantize(program, {"x": np.array([2.51, 3e8])})
    assert integers["x"].tolist() == [3, 300_000_000]


def test_quantizing_in_blocks_finds_the_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boundary, "_BLOCK", 6)
    values = np.arange(15, dtype=np.float64).reshape(5, 3) / 2
    program = doubler(metadata=MEANINGS)
    assert (
        boundary.quantize(program, {"x": values})["x"].tolist()
        == np.arange(15).reshape(5, 3).tolist()
    )
    values[3, 1] = np.nan
    with pytest.raises(BadInput, match=r"sample 3, index \[0, 1\]"):
        boundary.quantize(program, {"x": values})


def test_outputs_come_back_as_reals() -> None:
    # (q - 1) * 0.25
    result = boundary.dequantize(
        doubler(metadata=MEANINGS), {"y": np.asarray([[1, 2, -3]], np.int32)}
    )
    assert result["y"].dtype == np.float64
    assert result["y"].tolist() == [[0.0, 0.25, -1.0]]


def test_a_program_without_scales_has_no_reals() -> None:
    with pytest.raises(
        BadInput,
        match=r"^this program has no metadata, so no scales; leave --real away",
    ):
        boundary.require_scales(doubler())
    with pytest.raises(
        BadInput, match=r"^output 'best' has no scale in the metadata"
    ):
        boundary.require_scales(chain(MEANINGS))
    with pytest.raises(
        BadInput, match=r"^input 'x' has no scale in the metadata"
    ):
        boundary.require_scales(doubler(metadata=Metadata()))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_an_unusable_scale_is_refused(scale: float) -> None:
    program = doubler(metadata=Metadata(inputs={"x": Meaning(scale, 0)}))
    with pytest.raises(
        BadInput, match=r"^input 'x' has the scale .* not usable$"
    ):
        boundary.quantize(program, {"x": np.zeros((1, 3))})


def test_memory_holds_the_work_of_one_sample_however_many_there_are() -> None:
    program = Program(  # 1 byte in, 4 bytes out, 400 kB in between
        (Input("x", TensorType("i8", (1,)), 0, 9),),
        (),
        (
            Instruction("tile", (0,), {"multiples": (100_000,)}),
            Instruction("cast", (1,), {"dtype": "i32"}),
            Instruction("reduce_sum", (2,), {"axis": 0}),
        ),
        (Output("y", 3),),
    )
    form, peaks = validate(program), []
    for count in (4, 40):
        tracemalloc.start()
        result = cvm.runtime.execution.run(
            form, {"x": np.arange(count, dtype=np.int8) % 10}
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert result["y"].tolist() == [
            100_000 * (number % 10) for number in range(count)
        ]
    assert peaks[1] < peaks[0] + 40_000  # 36 more results kept would be 14 MB


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_any_number_of_threads_gives_the_same(threads: int) -> None:
    x = np.arange(60, dtype=np.int32).reshape(20, 3)
    form = validate(doubler())
    assert np.array_equal(
        cvm.runtime.execution.run(form, {"x": x}, threads=threads)["y"], x * 2
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1, "100"),
        (199 / 200, "99"),
        (1 / 3, "33"),
        (0.0123, "1.2"),
        (1e-6, "0.0001"),
        (2e-9, "0.0000002"),
    ],
)
def test_a_share_is_written_without_an_exponent(share, text):
    """200 of 200 values were "1e+02 %" of them."""
    assert boundary.percent(share) == text


def of_columns(*factors: float) -> Program:
    meaning = Meaning(0.5, 0, "x", factors)
    return one_input("i32", (1, 3), -100, 100, Metadata({"x": meaning}))


def test_each_column_counts_steps_of_its_own() -> None:
    program = of_columns(1.0, 4.0, 0.25)
    quantized = boundary.quantize_and_count(
        program, {"x": np.array([[1.0, 1.0, 1.0], [-60.0, -60.0, -6.0]])}
    )
    assert quantized.integers["x"].tolist() == [[2, 1, 8], [-100, -30, -48]]
    (clipping,) = quantized.clipping
    assert clipping.counts == (0, 1)
    assert str(clipping) == (
        "input 'x': 1 of 6 values (17 %) lie outside the ranges of their columns, and were clipped"
    )
    with pytest.raises(
        BadInput, match=r"outside the ranges of their columns,?$"
    ):
        quantized.require_unclipped()


def test_nothing_counts_as_clipped_of_an_endless_input() -> None:
    meaning = Meaning(0.5, 0, "x")
    metadata = Metadata({"x": meaning}, provenance={"endless:x": ""})
    program = one_input("i32", (1, 3), -100, 100, metadata)
    quantized = boundary.quantize_and_count(
        program, {"x": np.array([[1.0, -np.inf, 60.0]])}
    )
    assert quantized.integers["x"].tolist() == [[2, -100, 100]]
    assert quantized.clipped == ()


@pytest.mark.parametrize("factors", [(1.0, 2.0), (1.0, 1e-320, 1e300)])
def test_factors_that_do_not_fit_the_columns_are_refused(
    factors: tuple[float, ...],
) -> None:
    meaning = Meaning(1e300, 0, "x", factors)
    program = one_input("i32", (1, 3), -9, 9, Metadata({"x": meaning}))
    with pytest.raises(BadInput, match=r"input 'x' \[1, 3\] has .* not usable"):
        boundary.quantize(program, {"x": np.zeros((1, 3))})
