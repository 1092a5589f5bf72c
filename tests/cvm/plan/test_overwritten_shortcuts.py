"""Sums of products are written over a shortcut that no later step reads."""

from cvm.plan.steps import Plan, Room
from tests.cvm.plan.test_fusion_rules import Builder, i8, i32, told

SIZE = 4 * 4 * 16  # bytes of a value of these programs


def add_shortcut(b: Builder, y: str, x: str, shortcut: str) -> None:
    """A convolution of x and a shortcut, rescaled, added, to bytes."""
    b.conv(f"{y} sums", x)
    b.rescale(f"{y} own", f"{y} sums", "i32")
    b.rescale(f"{y} shortcut", shortcut, "i32")
    b.add(f"{y} both", "add", f"{y} own", f"{y} shortcut")
    b.rescale(y, f"{y} both")


def layer(b: Builder, y: str, x: str, inputs: int = 16) -> None:
    b.conv(f"{y} sums", x, inputs=inputs)
    b.rescale(y, f"{y} sums")


def join(b: Builder, both: str, left: str, x: str) -> None:
    """A concat of a convolution of x, and of one of that."""
    layer(b, left, x)
    layer(b, f"{both} right", left)
    b.add(both, "concat", left, f"{both} right", axis=3)


def in_arena(plan: Plan, number: dict[str, int], *names: str) -> list[int]:
    places = [plan.places[number[name]] for name in names]
    assert {place.room for place in places} == {Room.ARENA}
    return [place.position for place in places]


def test_blocks_add_to_one_stream_in_one_place() -> None:
    b = Builder(x=i8())
    layer(b, "stream", "x")
    for block, before in (("first", "stream"), ("second", "first")):
        layer(b, f"{block} inner", before)
        add_shortcut(b, block, f"{block} inner", before)
    layer(b, "y", "second")
    plan, number = b.plan("y")
    assert [told(step) for step in plan.steps].count(
        "conv2d rescale load rescale add rescale"
    ) == 2
    stream, first, second = in_arena(plan, number, "stream", "first", "second")
    assert stream == first == second
    assert plan.arena_bytes == plan.largest_live_bytes == 2 * SIZE


def test_what_a_later_step_reads_stays() -> None:
    b = Builder(x=i8())
    layer(b, "stream", "x")
    layer(b, "inner", "stream")
    add_shortcut(b, "sum", "inner", "stream")
    layer(b, "left", "sum")
    layer(b, "right", "stream")
    plan, number = b.plan("left", "right")
    stream, total = in_arena(plan, number, "stream", "sum")
    assert stream != total
    assert plan.largest_live_bytes == 3 * SIZE


def test_what_the_products_multiply_stays() -> None:
    b = Builder(x=i8())
    layer(b, "stream", "x")
    add_shortcut(b, "sum", "stream", "stream")
    layer(b, "y", "sum")
    plan, number = b.plan("y")
    stream, total = in_arena(plan, number, "stream", "sum")
    assert stream != total


def test_what_they_multiply_under_another_shape_stays() -> None:
    b = Builder(x=i8())
    layer(b, "stream", "x")
    b.add("column", "reshape", "stream", shape=(1, 16, 1, 16))
    layer(b, "inner", "column")
    b.add("inner image", "reshape", "inner", shape=(1, 4, 4, 16))
    add_shortcut(b, "sum", "inner image", "stream")
    layer(b, "y", "sum")
    plan, number = b.plan("y")
    stream, total = in_arena(plan, number, "stream", "sum")
    assert stream == total  # the view is read by an earlier step alone

    b = Builder(x=i8())
    layer(b, "stream", "x")
    b.add("column", "reshape", "stream", shape=(1, 16, 1, 16))
    b.conv("sums", "column")
    b.rescale("own", "sums", "i32")
    b.rescale("narrow", "stream", "i32")
    b.add("shortcut", "reshape", "narrow", shape=(1, 16, 1, 16))
    b.add("both", "add", "own", "shortcut")
    b.rescale("sum", "both")
    layer(b, "y", "sum")
    plan, number = b.plan("y")
    stream, total = in_arena(plan, number, "stream", "sum")
    assert stream != total


def test_what_holds_a_part_that_the_products_multiply_stays() -> None:
    b = Builder(x=i8())
    join(b, "both", "left", "x")
    b.conv("sums", "left", outputs=32)
    b.rescale("own", "sums", "i32")
    b.rescale("narrow", "both", "i32")
    b.add("added", "add", "own", "narrow")
    b.rescale("sum", "added")
    layer(b, "y", "sum", inputs=32)
    plan, number = b.plan("y")
    assert plan.inside[number["left"]] == number["both"]
    whole, total = in_arena(plan, number, "both", "sum")
    assert whole != total


def test_an_input_is_not_overwritten() -> None:
    b = Builder(x=i8(), wide=i32())
    layer(b, "inner", "x")
    b.conv("sums", "inner")
    b.rescale("own", "sums", "i32")
    b.add("both", "add", "own", "wide")
    b.rescale("sum", "both")
    layer(b, "y", "sum")
    plan, number = b.plan("y")
    assert plan.places[number["wide"]].room is Room.INPUT
    assert plan.places[number["sum"]].room is Room.ARENA


def test_what_holds_a_part_that_the_step_before_multiplies_stays() -> None:
    b = Builder(x=i8())
    join(b, "both", "left", "x")
    layer(b, "inner", "both", inputs=32)
    b.conv("passed", "left", outputs=32)
    b.conv("sums", "inner", outputs=32)
    b.rescale("own", "sums", "i32")
    b.add("two", "add", "own", "passed")
    b.rescale("narrow", "both", "i32")
    b.add("three", "add", "two", "narrow")
    b.rescale("sum", "three")
    layer(b, "y", "sum", inputs=32)
    plan, number = b.plan("y")
    assert plan.places[number["passed"]].room is Room.PASSED
    whole, total = in_arena(plan, number, "both", "sum")
    assert whole != total
