"""What becomes one step, what no step at all: small programs whose plans are told by hand."""

import numpy as np

from cvm.plan.fuse import fused
from cvm.plan.steps import Place, Plan, Room, Step
from cvm.plan.summary import summarize
from cvm.program import (
    Attribute,
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import check

SHAPE = (1, 4, 4, 16)


class Builder:
    """A program of NHWC values. Values are named; numbers come when it is finished."""

    def __init__(self, **inputs: TensorType) -> None:
        self.inputs = [
            Input(name, type_, -100, 100) for name, type_ in inputs.items()
        ]
        self.constants: list[tuple[str, IntArray]] = []
        self.steps: list[
            tuple[str, str, tuple[str, ...], dict[str, Attribute]]
        ] = []

    def constant(self, array: IntArray) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append((name, array))
        return name

    def add(
        self, result: str, name: str, *operands: str, **attributes: Attribute
    ) -> None:
        self.steps.append((result, name, operands, attributes))

    def conv(
        self, result: str, x: str, inputs: int = 16, outputs: int = 16
    ) -> None:
        w = self.constant(np.ones((outputs, 1, 1, inputs), np.int8))
        b = self.constant(np.zeros(outputs, np.int32))
        self.add(
            result, "conv2d", x, w, b, pad=(0,) * 4, stride=(1, 1), dilation=(1, 1), groups=1, input_zp=0
        )  # fmt: skip

    def rescale(self, result: str, x: str, dtype: str = "i8") -> None:
        m = self.constant(np.array([2**30], np.int32))
        s = self.constant(np.array([33], np.int8))
        self.add(
            result, "rescale", x, m, s, input_zp=0, output_zp=0, dtype=dtype
        )

    def plan(self, *outputs: str) -> tuple[Plan, dict[str, int]]:
        names = [
            *(item.name for item in self.inputs),
            *(n for n, _ in self.constants),
            *(s[0] for s in self.steps),
        ]
        number = {name: index for index, name in enumerate(names)}
        instructions = tuple(
            Instruction(name, tuple(number[v] for v in operands), attributes)
            for _, name, operands, attributes in self.steps
        )
        ends = tuple(Output(name, number[name]) for name in outputs)
        constants = tuple(array for _, array in self.constants)
        return fused(
            check(Program(tuple(self.inputs), constants, instructions, ends))
        ), number


def told(step: Step) -> str:
    return " ".join([step.name, *(stage.name for stage in step.stages)])


def i8(*shape: int) -> TensorType:
    return TensorType("i8", shape or SHAPE)


def i32(*shape: int) -> TensorType:
    return TensorType("i32", shape or SHAPE)


def test_a_convolution_takes_its_rescale_and_the_shortcut_with_a_rescale_of_its_own() -> (
    None
):
    b = Builder(x=i8())
    b.rescale("narrow", "x", "i32")
    b.conv("sums", "x")
    b.rescale("wide", "sums", "i32")
    b.add("both", "add", "narrow", "wide")
    b.rescale("y", "both")
    plan, number = b.plan("y")
    copy, step = plan.steps
    assert told(copy) == "reshape"
    assert told(step) == "conv2d rescale load rescale add rescale"
    assert [stage.sources for stage in step.stages] == [
        (0,),
        (),
        (2,),
        (3, 1),
        (4,),
    ]
    assert step.operands == (
        copy.result,
        copy.result,
    )  # the x of the convolution, then what a stage loads
    assert step.stages[1].operand == 1
    assert step.covers == tuple(
        number[name] for name in ("narrow", "sums", "wide", "both", "y")
    )
    assert (
        summarize(plan)[1].what
        == "conv2d 1x1 16->16 + rescale + rescale + add + rescale"
    )
    assert summarize(plan)[1].multiply_accumulates == 4 * 4 * 16 * 16
    assert plan.places[number["y"]] == Place(Room.OUTPUT, 0, 16)


def test_of_two_convolutions_the_later_takes_the_add_and_the_earlier_stores_its_own_rescale() -> (
    None
):
    b = Builder(x=i8())
    b.conv("first", "x")
    b.conv("second", "x")
    b.rescale("first_wide", "first", "i32")
    b.rescale("second_wide", "second", "i32")
    b.add("both", "add", "first_wide", "second_wide")
    b.rescale("y", "both")
    plan, number = b.plan("y")
    assert [told(step) for step in plan.steps[1:]] == [
        "conv2d rescale",
        "conv2d rescale load add rescale",
    ]
    assert plan.steps[1].result == number["first_wide"]
    assert plan.steps[2].operands[1] == number["first_wide"]


def test_a_value_that_a_step_outside_reads_is_stored() -> None:
    b = Builder(x=i8())
    b.conv("sums", "x")
    b.rescale("narrow", "sums")
    b.add("wide", "cast", "narrow", dtype="i32")
    b.add("y", "abs", "wide")
    b.add("z", "reverse", "narrow", axis=1)
    plan, number = b.plan("y", "z")
    assert [told(step) for step in plan.steps[1:]] == [
        "conv2d rescale",
        "chain load cast abs",
        "reverse",
    ]
    assert plan.steps[1].result == number["narrow"]


def test_an_output_is_stored_though_only_one_instruction_reads_it() -> None:
    b = Builder(x=i32())
    b.add("y", "abs", "x")
    b.add("z", "abs", "y")
    plan, _ = b.plan("y", "z")
    assert [told(step) for step in plan.steps] == [
        "chain load abs",
        "reshape",
        "chain load abs",
    ]


def test_a_value_that_one_region_reads_twice_needs_no_memory() -> None:
    b = Builder(x=i8())
    b.conv("sums", "x")
    b.rescale("y", "sums")
    b.add(
        "gate", "table", "y", b.constant(np.arange(-128, 128).astype(np.int8))
    )
    b.add("product", "mul", "y", "gate", shift=0)
    plan, _ = b.plan("product")
    assert [told(step) for step in plan.steps] == [
        "reshape",
        "conv2d rescale table mul",
    ]


def test_a_residual_that_the_convolution_itself_reads_stays_in_memory() -> None:
    b = Builder(x=i32())
    b.rescale("narrow", "x")
    b.conv("sums", "narrow")
    b.add("wide", "cast", "narrow", dtype="i32")
    b.add("y", "add", "sums", "wide")
    plan, _ = b.plan("y")
    assert [told(step) for step in plan.steps] == [
        "chain load rescale",
        "conv2d load cast add",
    ]


def test_what_is_repeated_is_computed_before_and_loaded() -> None:
    b = Builder(x=i32(), row=i32(1, 1, 1, 16))
    b.add("positive", "abs", "row")
    b.add("y", "add", "x", "positive")
    plan, _ = b.plan("y")
    assert [told(step) for step in plan.steps] == [
        "chain load abs",
        "chain load load add",
    ]


def test_a_linear_step_loads_rows_columns_and_elements_but_nothing_else() -> (
    None
):
    for shape, count in (
        ((1, 1, 1, 16), 1),
        ((1, 1, 1, 1), 1),
        ((1, 4, 4, 1), 1),
        ((1, 4, 1, 16), 2),
        ((1, 1, 4, 1), 2),
    ):
        b = Builder(x=i8(), other=i32(*shape))
        b.add("moved", "reverse", "x", axis=1)
        b.conv("sums", "moved")
        b.add("y", "add", "sums", "other")
        plan, _ = b.plan("y")
        assert len(plan.steps) == 1 + count, shape


def test_a_chain_ends_where_the_engine_has_no_more_operands_or_stages() -> None:
    b = Builder(**{f"x{n}": i32() for n in range(20)})
    for n in range(1, 20):
        b.add(f"sum{n}", "add", f"sum{n - 1}" if n > 1 else "x0", f"x{n}")
    plan, _ = b.plan("sum19")
    assert [len(step.operands) for step in plan.steps] == [16, 5]
    b = Builder(x=i32())
    for n in range(100):
        b.add(f"y{n}", "abs", f"y{n - 1}" if n else "x")
    plan, _ = b.plan("y99")
    assert [len(step.stages) for step in plan.steps] == [64, 38]


def test_a_reshape_is_the_same_bytes_and_an_output_of_one_is_written_by_what_computes_it() -> (
    None
):
    b = Builder(x=i8())
    b.add("moved", "reverse", "x", axis=1)
    b.add("flat", "reshape", "moved", shape=(16, 16))
    plan, number = b.plan("flat")
    assert [told(step) for step in plan.steps] == ["reverse"]
    assert plan.places[number["moved"]] == Place(Room.OUTPUT, 0, 16)


def encoder(shape: tuple[int, ...]) -> Builder:
    """A dense whose rows another shape shows, 16 wide, before a clamp."""
    b = Builder(x=i8(4, 8))
    w = b.constant(np.ones((16, 8), np.int8))
    none = b.constant(np.zeros(16, np.int32))
    b.add("sums", "dense", "x", w, none, input_zp=0)
    b.rescale("y", "sums", "i16")
    b.add("seen", "reshape", "y", shape=shape)
    b.add("z", "clamp", "seen", min=-5, max=5)
    return b


def test_a_dense_takes_what_follows_a_reshape_that_keeps_its_rows() -> None:
    plan, number = encoder((1, 4, 16)).plan("z")
    assert [told(step) for step in plan.steps] == [
        "reshape",
        "dense rescale clamp",
    ]
    assert plan.steps[1].covers == tuple(number[v] for v in ("sums", "y", "z"))
    assert [stage.sources for stage in plan.steps[1].stages] == [(0,), (1,)]


def test_a_dense_ends_before_a_reshape_that_cuts_its_rows_or_that_others_read_too() -> (
    None
):
    apart = ["reshape", "dense rescale", "chain load clamp"]
    plan, _ = encoder((4, 2, 8)).plan("z")
    assert [told(step) for step in plan.steps] == apart
    for other in ("seen", "y"):
        plan, _ = encoder((1, 4, 16)).plan("z", other)
        assert set(apart) <= {told(step) for step in plan.steps}


def test_a_convolution_sees_its_own_shape_and_ends_before_a_reshape() -> None:
    b = Builder(x=i8())
    b.conv("sums", "x")
    b.rescale("y", "sums")
    b.add("seen", "reshape", "y", shape=(16, 16))
    b.add("z", "clamp", "seen", min=-5, max=5)
    plan, _ = b.plan("z")
    assert [told(step) for step in plan.steps][1:] == [
        "conv2d rescale",
        "chain load clamp",
    ]


def test_a_reshape_of_an_input_is_read_where_the_input_lies() -> None:
    b = Builder(x=i8())
    b.add("flat", "reshape", "x", shape=(2, 128))
    b.add("y", "clamp", "flat", min=-5, max=5)
    plan, number = b.plan("y")
    assert [told(step) for step in plan.steps] == ["chain load clamp"]
    assert plan.places[number["flat"]] == Place(Room.INPUT, 0, 128)


def test_a_transpose_that_only_moves_axes_of_length_one_is_a_view() -> None:
    b = Builder(x=i8(1, 16, 1, 4))
    b.add("moved", "transpose", "x", perm=(0, 2, 1, 3))
    b.add("turned", "transpose", "moved", perm=(0, 1, 3, 2))
    plan, _ = b.plan("turned")
    assert [told(step) for step in plan.steps] == ["transpose"]


def test_convolutions_write_their_columns_of_a_concat() -> None:
    b = Builder(x=i8())
    b.conv("a", "x")
    b.rescale("left", "a")
    b.conv("c", "x", outputs=32)
    b.rescale("right", "c")
    b.add("both", "concat", "left", "right", axis=3)
    b.add("y", "max_pool2d", "both", kernel=(1, 1), stride=(1, 1), pad=(0,) * 4)
    plan, number = b.plan("y")
    assert [told(step) for step in plan.steps[1:]] == [
        "conv2d rescale",
        "conv2d rescale",
        "max_pool2d",
        "reshape",
    ]
    start = plan.places[number["both"]].position
    assert plan.places[number["left"]] == Place(Room.ARENA, start, 48)
    assert plan.places[number["right"]] == Place(Room.ARENA, start + 16, 48)
    assert plan.inside == {
        number["left"]: number["both"],
        number["right"]: number["both"],
    }
    assert (
        plan.largest_live_bytes == 2 * 4 * 4 * 48
    )  # while max_pool2d reads both parts and writes as much


def test_concats_of_concats_lie_in_one_buffer_and_readers_that_skip_gaps_read_there() -> (
    None
):
    b = Builder(x=i8())
    b.conv("a", "x")
    b.rescale("first", "a")
    b.conv("c", "first")
    b.rescale("second", "c")
    b.add("two", "concat", "first", "second", axis=3)
    b.conv("d", "two", inputs=32)
    b.rescale("third", "d")
    b.add("three", "concat", "two", "third", axis=3)
    b.add("y", "reverse", "three", axis=1)
    plan, number = b.plan("y")
    assert [told(step) for step in plan.steps[1:]] == ["conv2d rescale"] * 3 + [
        "reverse"
    ]
    start = plan.places[number["three"]].position
    places = [
        plan.places[number[name]]
        for name in ("first", "second", "two", "third")
    ]
    assert places == [
        Place(Room.ARENA, start + column, 48) for column in (0, 16, 0, 32)
    ]


def test_a_value_whose_reader_needs_dense_rows_is_copied_into_the_concat() -> (
    None
):
    b = Builder(x=i8())
    b.conv("a", "x")
    b.rescale("first", "a")
    b.add(
        "pooled",
        "max_pool2d",
        "first",
        kernel=(1, 1),
        stride=(1, 1),
        pad=(0,) * 4,
    )
    b.add("both", "concat", "first", "pooled", axis=3)
    b.add("y", "reverse", "both", axis=1)
    plan, number = b.plan("y")
    assert [told(step) for step in plan.steps[1:]] == [
        "conv2d rescale",
        "max_pool2d",
        "concat",
        "reverse",
    ]
    copy = plan.steps[3]
    assert copy.operands == (number["first"],)
    assert plan.places[copy.result].pitch == 32
    assert plan.places[number["first"]].pitch == 16


def test_a_value_that_is_twice_in_a_concat_is_written_to_one_place_and_copied_to_the_other() -> (
    None
):
    b = Builder(x=i32())
    b.rescale("a", "x")
    b.add("twice", "concat", "a", "a", axis=3)
    b.add("y", "reverse", "twice", axis=1)
    plan, number = b.plan("y")
    assert [told(step) for step in plan.steps] == [
        "chain load rescale",
        "concat",
        "reverse",
    ]
    start = plan.places[number["twice"]].position
    assert plan.places[number["a"]] == Place(Room.ARENA, start, 32)
    assert plan.places[plan.steps[1].result] == Place(
        Room.ARENA, start + 16, 32
    )


def test_a_value_of_two_concats_lies_in_the_later_and_the_earlier_stays_a_step() -> (
    None
):
    b = Builder(x=i32())
    b.rescale("a", "x")
    b.add("twice", "concat", "a", "a", axis=3)
    b.add("again", "concat", "a", "twice", axis=3)
    b.add("y", "reverse", "twice", axis=1)
    b.add("z", "reverse", "again", axis=1)
    plan, number = b.plan("y", "z")
    a, twice = number["a"], number["twice"]
    assert [step.operands for step in plan.steps[1:3]] == [(a, a), (twice,)]
    assert plan.places[a] == Place(
        Room.ARENA, plan.places[number["again"]].position, 48
    )
    assert plan.places[twice].pitch == 32


def test_a_value_that_is_also_seen_with_rows_of_another_length_has_no_gaps() -> (
    None
):
    b = Builder(x=i32())
    b.rescale("a", "x")
    b.rescale("c", "x")
    b.add("flat", "reshape", "a", shape=(8, 32))
    b.add("y", "clamp", "flat", min=-5, max=5)
    b.add("both", "concat", "a", "c", axis=3)
    b.add("z", "reverse", "both", axis=1)
    plan, number = b.plan("y", "z")
    assert plan.places[number["a"]].pitch == 16
    assert plan.places[number["c"]].pitch == 32
    assert plan.places[number["flat"]] == Place(
        Room.ARENA, plan.places[number["a"]].position, 32
    )


def test_a_value_whose_view_is_read_by_a_step_that_needs_dense_rows_has_no_gaps() -> (
    None
):
    b = Builder(x=i32())
    b.rescale("a", "x")
    b.rescale("c", "x")
    b.add("flat", "reshape", "a", shape=(16, 16))
    b.add("y", "reverse", "flat", axis=1)
    b.add("both", "concat", "a", "c", axis=3)
    b.add("z", "reverse", "both", axis=1)
    plan, number = b.plan("y", "z")
    assert plan.places[number["a"]].pitch == 16
    assert plan.places[number["c"]].pitch == 32


def test_a_step_that_cannot_skip_gaps_writes_beside_the_concat() -> None:
    b = Builder(x=i32())
    b.add("order", "argsort", "x", descending=False)
    b.add("positive", "abs", "x")
    b.add("both", "concat", "order", "positive", axis=3)
    b.add("y", "reverse", "both", axis=1)
    plan, number = b.plan("y")
    assert plan.places[number["order"]].pitch == 16
    assert plan.places[number["positive"]].pitch == 32


def test_convolutions_of_16_bits_and_matmul_read_no_rows_with_gaps() -> None:
    b = Builder(x=i32(1, 16, 16))
    b.rescale("a", "x")
    b.rescale("c", "x")
    b.add("product", "matmul", "c", "a", a_zp=0, b_zp=0)
    b.add("both", "concat", "a", "c", axis=2)
    b.add("y", "reverse", "both", axis=1)
    plan, number = b.plan("product", "y")
    assert [plan.places[number[name]].pitch for name in ("a", "c")] == [16, 16]
    for dtype, pitch in (("i8", 32), ("i16", 16)):
        b = Builder(x=i32())
        b.rescale("a", "x", dtype)
        b.rescale("c", "x", dtype)
        b.conv("sums", "a")
        b.add("both", "concat", "a", "c", axis=3)
        b.add("y", "reverse", "both", axis=1)
        plan, number = b.plan("sums", "y")
        assert plan.places[number["a"]].pitch == pitch


def test_rows_of_a_value_with_gaps_have_gaps() -> None:
    b = Builder(x=i32(), high=i32(1, 8, 4, 16))
    b.rescale("a", "x")
    b.rescale("c", "x")
    b.add("tall", "concat", "a", "c", axis=1)
    b.rescale("beside", "high")
    b.add("both", "concat", "tall", "beside", axis=3)
    b.add("y", "reverse", "both", axis=1)
    plan, number = b.plan("y")
    start = plan.places[number["both"]].position
    places = [plan.places[number[name]] for name in ("a", "c", "beside")]
    assert places == [
        Place(Room.ARENA, start + offset, 32) for offset in (0, 4 * 4 * 32, 16)
    ]


def test_a_concat_inside_several_images_stays_a_step() -> None:
    b = Builder(x=i32(2, 4, 4, 16))
    b.rescale("a", "x")
    b.rescale("c", "x")
    b.add("tall", "concat", "a", "c", axis=1)
    b.add("y", "reverse", "tall", axis=1)
    plan, _ = b.plan("y")
    assert [told(step) for step in plan.steps] == ["chain load rescale"] * 2 + [
        "concat",
        "reverse",
    ]


def test_a_concat_of_short_rows_or_of_an_output_stays_a_step() -> None:
    for outputs, ends in ((8, ("y",)), (16, ("y", "both"))):
        b = Builder(x=i8())
        b.conv("a", "x", outputs=outputs)
        b.rescale("left", "a")
        b.conv("c", "x", outputs=outputs)
        b.rescale("right", "c")
        b.add("both", "concat", "left", "right", axis=3)
        b.add("y", "reverse", "both", axis=1)
        plan, _ = b.plan(*ends)
        assert [told(step) for step in plan.steps].count("concat") == 1


def test_rows_under_one_another_are_written_densely_and_any_step_can_read_them() -> (
    None
):
    b = Builder(x=i32())
    b.rescale("top", "x")
    b.add(
        "pooled",
        "max_pool2d",
        "top",
        kernel=(1, 1),
        stride=(1, 1),
        pad=(0,) * 4,
    )
    b.add("both", "concat", "top", "pooled", axis=1)
    b.add("y", "reverse", "both", axis=1)
    plan, number = b.plan("y")
    assert [told(step) for step in plan.steps] == [
        "chain load rescale",
        "max_pool2d",
        "reverse",
    ]
    start = plan.places[number["both"]].position
    assert plan.places[number["top"]] == Place(Room.ARENA, start, 16)
    assert plan.places[number["pooled"]] == Place(Room.ARENA, start + 256, 16)


def test_columns_of_a_value_that_is_rows_of_another_under_another_shape_keep_their_own_pitch() -> (
    None
):
    b = Builder(x=i32())
    b.rescale("left", "x")
    b.add("right", "reverse", "left", axis=1)
    b.add("wide", "concat", "left", "right", axis=3)
    b.add("long", "reshape", "wide", shape=(1, 32, 16))
    b.add(
        "all",
        "concat",
        "long",
        b.constant(np.zeros((1, 8, 16), np.int8)),
        axis=1,
    )
    b.add("y", "reverse", "all", axis=1)
    plan, number = b.plan("y")
    start = plan.places[number["all"]].position
    copy = plan.steps[
        2
    ]  # of left, which reverse reads: it is not among those that skip gaps
    assert [told(step) for step in plan.steps] == [
        "chain load rescale",
        "reverse",
        "concat",
        "concat",
        "reverse",
    ]
    assert plan.places[copy.result] == Place(Room.ARENA, start, 32)
    assert plan.places[number["right"]] == Place(Room.ARENA, start + 16, 32)


def test_a_value_that_is_two_outputs_is_copied_to_both() -> None:
    b = Builder(x=i32())
    b.add("y", "abs", "x")
    b.add("flat", "reshape", "y", shape=(16, 16))
    plan, number = b.plan("y", "flat")
    assert [told(step) for step in plan.steps] == [
        "chain load abs",
        "reshape",
        "reshape",
    ]
    assert plan.places[number["y"]].room is Room.ARENA


def test_an_input_that_only_movement_reads_is_not_copied() -> None:
    b = Builder(x=i8(1, 3, 4, 4))
    b.add("nhwc", "transpose", "x", perm=(0, 2, 3, 1))
    b.conv("sums", "nhwc", inputs=3)
    plan, _ = b.plan("sums")
    assert [told(step) for step in plan.steps] == ["transpose", "conv2d"]


def test_a_convolution_loads_a_residual_from_rows_with_gaps() -> None:
    b = Builder(x=i32(), z=i8())
    b.rescale("a", "x", "i32")
    b.rescale("c", "x", "i32")
    b.conv("sums", "z")
    b.add("sum", "add", "sums", "a")
    b.add("both", "concat", "a", "c", axis=3)
    b.add("y", "reverse", "both", axis=1)
    plan, number = b.plan("sum", "y")
    assert "conv2d load add" in [told(step) for step in plan.steps]
    assert plan.places[number["a"]].pitch == 32
