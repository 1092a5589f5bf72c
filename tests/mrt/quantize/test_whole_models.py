"""Operators that compare, index, order, move and resize, from the ONNX file to the program that ran, beside onnxruntime.

At 16 bits a rule that is right gives 75 dB or more where only activations are rounded, and about 45 where 8-bit weights are
in play too; a wrong one gives a few. Indices, counts and truths are equal, all of them.
"""

import numpy as np
import pytest

from tests.support.graphs import node
from tests.support.shared_data import SHARED, needs_shared
from tests.support.whole_models import model_of, through

RNG = np.random.default_rng(3)
IMAGE = (2, 3, 5, 4)


def f32(values):
    return np.asarray(values, np.float32)


def normal(*shape):
    return f32(RNG.normal(size=shape))


def samples(**shapes):
    return [
        {name: normal(*shape) for name, shape in shapes.items()}
        for _ in range(3)
    ]


def whole(low, high, shape, dtype=np.int64, name="i"):
    return [
        {name: RNG.integers(low, high, shape, endpoint=True).astype(dtype)}
        for _ in range(3)
    ]


CONV = {"w": normal(4, 3, 3, 3), "b": normal(4), "v": normal(4, 3, 3, 3)}
PADS = {"p": np.array([0, 1, 2, 1, 1, 0, 3, 2])}


def to_float(operator, operands):
    return [node(operator, operands, "c"), node("Cast", "c", "y", to=1)]


# name: nodes, samples, constants. What is whole or true must be equal.
EXACT = {
    **{f"{op} of two": (to_float(op, "x z"), samples(x=IMAGE, z=(3, 1, 4)), {})
       for op in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal")},
    **{f"{op} and a constant, a bool": ([node(op, "k x", "y")], samples(x=IMAGE), {"k": normal(3, 1, 1)})
       for op in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal")},
    "accumulators compared": ([node("Conv", "x w b", "h"), node("Conv", "x v b", "g"), *to_float("Greater", "h g")],
                              samples(x=(1, 3, 6, 6)), CONV),
    "an accumulator against a number for each channel": (
        [node("Conv", "x w b", "h"), *to_float("GreaterOrEqual", "h k")], samples(x=(1, 3, 6, 6)),
        CONV | {"k": f32([[[0.1]], [[-2.0]], [[0.7]], [[1.1]]])}),
    "logic": ([node("Greater", "x k", "a"), node("Less", "z k", "b"), node("Xor", "a b", "c"), node("Not", "c", "d"),
               node("And", "d a", "e"), node("Or", "e b", "y")], samples(x=IMAGE, z=IMAGE), {"k": f32(0.1)}),
    "a sign": ([node("Relu", "x", "a"), *to_float("Greater", "a k")], samples(x=IMAGE), {"k": f32(0)}),
    **{f"argmax along {axis}, kept {kept}": ([node("ArgMax", "x", "y", axis=axis, keepdims=kept)], samples(x=IMAGE), {})
       for axis in (0, 1, -1) for kept in (0, 1)},
    "the last of the least of an accumulator": (
        [node("Conv", "x w b", "h"), node("ArgMin", "h", "i", axis=1, select_last_index=1),
         node("Cast", "i", "y", to=1)], samples(x=(1, 3, 6, 6)), CONV),
    "places of the best": ([node("TopK", "x k", "v y", axis=1)], samples(x=IMAGE), {"k": np.array([2])}),
    "places of the least": ([node("TopK", "x k", "v y", largest=0)], samples(x=IMAGE), {"k": np.array([3])}),
    "one hot of a place": ([node("ArgMax", "x", "i", axis=1, keepdims=0), node("OneHot", "i d v", "y")],
                           samples(x=IMAGE), {"d": np.array([3]), "v": f32([0, 1])}),
    "one hot from behind": ([node("OneHot", "i d v", "y", axis=1)], whole(-5, 5, (2, 3)),
                            {"d": np.array(5), "v": f32([0, 1])}),
    "arithmetic of integers": (
        [node("Mul", "i two", "a"), node("Sub", "ten a", "b"), node("Mod", "b three", "c"),
         node("Div", "b three", "d"), node("Max", "c d", "e"), node("Abs", "e", "g"), node("Cast", "g", "y", to=1)],
        whole(0, 9, (2, 3)), {"two": np.array(2), "ten": np.array(10), "three": np.array(3)}),
    "a single number by another": ([node("Mul", "n two", "a"), node("Cast", "a", "b", to=1), node("Add", "x b", "c"),
                                    node("Sub", "c x", "d"), node("Mul", "d k", "e"), node("Cast", "a", "y", to=1)],
                                   [feeds | {"n": np.array(3)} for feeds in samples(x=(1, 3))],
                                   {"two": np.array(2), "k": f32(0)}),
    "reductions of integers": (
        [node("ReduceSum", "i a", "b", keepdims=0), node("ReduceMax", "i a", "c", keepdims=0),
         node("Add", "b c", "y")], whole(-4, 9, (2, 3), np.int32), {"a": np.array([1])}),
    "clips of integers": ([node("Clip", "i a b", "c"), node("Sign", "c", "s"), node("Mul", "c s", "y")],
                          whole(-9, 9, (2, 9)), {"a": np.array(-2), "b": np.array(5)}),
    "integers chosen and joined": (
        [node("Less", "i k", "c"), node("Where", "c k i", "d"), node("Concat", "d i", "e", axis=1),
         node("Slice", "e s t a u", "y")], whole(-9, 9, (2, 4)),
        {"k": np.array(0), "s": np.array([-1]), "t": np.array([-99]), "a": np.array([1]), "u": np.array([-1])}),
    "a quotient of places, and its rest": (
        [node("ArgMax", "x", "i", axis=1, keepdims=0), node("Cast", "i", "f", to=1), node("Div", "f k", "g"),
         node("Floor", "g", "h"), node("Mul", "h k", "l"), node("Sub", "f l", "y")],
        samples(x=(2, 50, 3)), {"k": f32(7)}),
    **{f"{op} of integers and {k}": ([node("Cast", "i", "g", to=1), *to_float(op, "g k")],
                                          [{"i": np.arange(-4, 5)}], {"k": f32(k)})
       for op in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal") for k in (1.5, 2)},
    "quotients that 1/41 would miss": ([node("Cast", "i", "g", to=1), node("Div", "g k", "h"), node("Floor", "h", "y")],
                                       [{"i": np.arange(100)}], {"k": f32(41)}),
    "floats cut off": ([node("Mul", "x k", "a"), node("Cast", "a", "i", to=7), node("Cast", "i", "y", to=1)],
                       samples(x=IMAGE), {"k": f32(3)}),
    "a look at integers": ([node("Gather", "t i", "y")], whole(-6, 5, (2, 3)), {"t": np.arange(12).reshape(6, 2) * 1000}),
}  # fmt: skip

# At 16 bits, this many decibels at least.
CLOSE = {
    "peaks": (75, [node("MaxPool", "x", "m", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Equal", "m x", "c"),
                   node("Cast", "c", "q", to=1), node("Mul", "q x", "y")], samples(x=(1, 2, 6, 6)), {}),
    "a choice": (75, [node("Greater", "x z", "c"), node("Where", "c x z", "y")], samples(x=IMAGE, z=(3, 5, 4)), {}),
    "a choice of truths given": (75, [node("Where", "m x z", "y")], [
        feeds | more for feeds, more in zip(
            whole(0, 1, (2, 1, 4), np.bool_, "m"), samples(x=(2, 3, 4), z=(3, 4)), strict=True)], {}),
    "what TopK found": (75, [node("TopK", "x k", "y i", axis=2)], samples(x=IMAGE), {"k": np.array([3])}),
    "an embedding": (75, [node("Gather", "t i", "y")], whole(0, 9, (2, 3), np.int32), {"t": normal(10, 4)}),
    "an embedding from behind": (75, [node("Add", "i m", "j"), node("Gather", "t j", "y")], whole(0, 9, (2, 3)),
                                 {"t": normal(10, 4), "m": np.array(-10)}),
    "an embedding of floats": (75, [node("Clip", "i a b", "c"), node("Cast", "c", "d", to=7),
                                    node("Gather", "t d", "y")], whole(-2, 12, (2, 6), np.float32),
                               {"t": normal(10, 4), "a": f32(0), "b": f32(9)}),
    "rows by place": (75, [node("ArgMax", "z", "i", axis=0, keepdims=0), node("Gather", "x i", "y", axis=1)],
                      samples(x=(2, 5, 4), z=(5, 3)), {}),
    "elements by place": (75, [node("ArgMax", "x", "i", axis=1), node("GatherElements", "z i", "y", axis=1)],
                          samples(x=IMAGE, z=IMAGE), {}),
    "places in several axes": (75, [node("GatherND", "x i", "y", batch_dims=1)], samples(x=(2, 3, 4)),
                               {"i": np.array([[[0, 1], [-1, 2]], [[2, 3], [1, -4]]])}),
    "places given": (75, [node("GatherND", "x i", "y")], [
        feeds | more for feeds, more in zip(whole(-3, 2, (5, 1)), samples(x=(3, 4)), strict=True)], {}),
    "written rows": (75, [node("ScatterND", "x i u", "y")], samples(x=(4, 3), u=(2, 3)), {"i": np.array([[2], [-4]])}),
    "a triangle": (75, [node("Trilu", "x k", "y")], samples(x=(2, 4, 5)), {"k": np.array(1)}),
    "running sums": (75, [node("CumSum", "x a", "y", exclusive=1, reverse=1)], samples(x=(2, 7, 4)), {"a": np.array(1)}),
    "sequences of given lengths turned round": (
        75, [node("ReverseSequence", "x l", "y", batch_axis=0, time_axis=1)],
        [feeds | more for feeds, more in zip(whole(0, 5, (3,), name="l"), samples(x=(3, 5, 2)), strict=True)], {}),
    "sequences turned round": (75, [node("ReverseSequence", "x l", "y")], samples(x=(5, 3, 2)), {"l": np.array([2, 5, 1])}),
    **{f"pad {mode}": (75, [node("Pad", "x p", "y", mode=mode)], samples(x=IMAGE), PADS)
       for mode in ("edge", "reflect", "wrap")},
    "a long reflection": (75, [node("Pad", "x p", "y", mode="reflect")], samples(x=(1, 1, 40, 1)),
                          {"p": np.array([0, 0, 30, 0, 0, 0, 20, 0])}),
    **{f"resize linear {mode} to {size}": (
        75, [node("Resize", "x - - s", "y", mode="linear", coordinate_transformation_mode=mode)],
        samples(x=(1, 2, 5, 4)), {"s": np.array(size)})
       for mode in ("align_corners", "half_pixel", "asymmetric", "pytorch_half_pixel")
       for size in ([1, 2, 9, 7], [1, 2, 3, 2], [1, 2, 1, 4])},
    "resize in steps too fine for one product": (
        72, [node("Resize", "x - - s", "y", mode="linear", coordinate_transformation_mode="align_corners")],
        samples(x=(1, 1, 30, 31)), {"s": np.array([1, 1, 299, 288])}),
    "resize of what is never negative": (
        72, [node("Relu", "x", "r"), node("Resize", "r - - s", "y", mode="linear")], samples(x=(1, 2, 5, 4)),
        {"s": np.array([1, 2, 8, 8])}),
    "resize by factors that are none of sizes": (
        44, [node("Resize", "x - s", "y", mode="linear")], samples(x=(1, 2, 5, 4)), {"s": f32([1, 1, 1.7, 2.3])}),
    "resize cubic": (44, [node("Resize", "x - - s", "y", mode="cubic")], samples(x=(1, 2, 5, 4)),
                     {"s": np.array([1, 2, 9, 7])}),
    "resize nearest down": (
        75, [node("Resize", "x - - s", "y", coordinate_transformation_mode="align_corners", nearest_mode="ceil")],
        samples(x=(1, 2, 5, 4)), {"s": np.array([1, 2, 3, 2])}),
    "a dilated maximum": (75, [node("MaxPool", "x", "y", kernel_shape=[2, 3], dilations=[2, 2], pads=[1, 2, 1, 1],
                                    strides=[1, 2])], samples(x=(1, 2, 9, 8)), {}),
    "a dilated mean": (72, [node("AveragePool", "x", "y", kernel_shape=[2, 3], dilations=[2, 2], pads=[1, 2, 1, 1])],
                       samples(x=(1, 2, 9, 8)), {}),
    "bytes": (75, [node("Cast", "i", "g", to=1), node("Mul", "g k", "y")], whole(0, 255, (1, 3, 4, 4), np.uint8),
              {"k": f32(1 / 255)}),
    "a mask": (75, [node("Cast", "m", "g", to=1), node("Sub", "one g", "h"), node("Mul", "h k", "l"),
                    node("Add", "x l", "y")], [
        feeds | more for feeds, more in zip(whole(0, 1, (2, 1, 4), np.int64, "m"), samples(x=(2, 3, 4)), strict=True)],
        {"one": f32(1), "k": f32(-10)}),
    "the maximum of what is not masked": (
        68, [node("Where", "c shut x", "a"), node("ReduceMax", "a axis", "m"), node("Sub", "a m", "d"), node("Exp", "d", "e"),
             node("Mul", "e m", "y")], samples(x=(2, 3, 4)),
        {"c": np.array([True, False, False, True]), "shut": f32(-np.inf), "axis": np.array([2])}),
    "einsum": (72, [node("Einsum", "x z", "y", equation="bhid,bhjd->bhij")], samples(x=(2, 2, 3, 4), z=(2, 2, 5, 4)), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_booleans_and_integers_are_equal(name, tmp_path):
    nodes, feeds, weights = EXACT[name]
    answer = through(model_of(nodes, feeds[0], weights), feeds, tmp_path)
    assert answer.agreement() == 1


@pytest.mark.parametrize("name", CLOSE)
def test_reals_are_close(name, tmp_path):
    decibels, nodes, feeds, weights = CLOSE[name]
    answer = through(model_of(nodes, feeds[0], weights), feeds, tmp_path)
    assert answer.snr_db() > decibels


def test_indices_at_eight_bits_are_those_of_the_integers_compared(tmp_path):
    """Of 5 numbers apart by more than a step of 8 bits the order is known; ties have the lower index first."""
    feeds = [{"x": f32([[3, 1, 3, -1, 2]])}]
    answer = through(
        model_of([node("TopK", "x k", "v y")], feeds[0], {"k": np.array([5])}),
        feeds,
        tmp_path,
        bits=8,
    )
    assert answer.integers[0]["y"].tolist() == [[0, 2, 4, 1, 3]]


def test_an_input_of_indices_takes_the_places_of_its_axis_and_no_scale(
    tmp_path,
):
    feeds = whole(0, 3, (2, 3), np.float32)
    nodes = [node("Cast", "i", "c", to=7), node("Gather", "t c", "y")]
    program = through(
        model_of(nodes, feeds[0], {"t": normal(10, 4)}), feeds, tmp_path
    ).program
    (item,) = program.inputs
    assert (
        item.type.dtype,
        item.lo,
        item.hi,
        program.metadata.inputs["i"].scale,
    ) == (
        "i32",
        0,
        9,
        1.0,
    )


def test_single_indices_of_gathernd_take_the_places_of_their_axis(tmp_path):
    feeds = whole(0, 3, (2, 3, 1))
    nodes = [node("GatherND", "t i", "y")]
    program = through(
        model_of(nodes, feeds[0], {"t": normal(10, 4)}), feeds, tmp_path
    ).program
    assert [(item.lo, item.hi) for item in program.inputs] == [(0, 9)]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.bool_, ("bool", 0, 1)),
        (np.uint8, ("u8", 0, 255)),
        (np.int8, ("i8", -128, 127)),
        (np.int64, ("i32", 0, 1)),
    ],
)
def test_an_input_of_integers_has_the_interval_of_its_type_or_what_was_seen(
    dtype, expected, tmp_path
):
    feeds = [{"i": np.array([[0, 1, 1]], dtype)}]
    program = through(
        model_of([node("Cast", "i", "y", to=1)], feeds[0], {}), feeds, tmp_path
    ).program
    (item,) = program.inputs
    assert (item.type.dtype, item.lo, item.hi) == expected


def test_outputs_that_are_whole_have_scale_1_in_the_narrowest_type(tmp_path):
    feeds = samples(x=(1, 200))
    program = through(
        model_of([node("ArgMax", "x", "y", axis=1)], feeds[0], {}),
        feeds,
        tmp_path,
    ).program
    assert program.metadata.outputs["y"].scale == 1.0
    assert program.instructions[-1].name == "cast"
    assert program.instructions[-1].attributes["dtype"] == "i16"


@needs_shared
@pytest.mark.slow
def test_a_classifier_of_files_takes_their_bytes(tmp_path):
    """magika: the first and the last 1024 bytes of a file, 256 where there are none."""
    import onnx

    def bytes_of(path):
        data, row = path.read_bytes().strip(), np.full(2048, 256, np.int32)
        row[: len(data[:1024])] = np.frombuffer(data[:1024], np.uint8)
        row[2048 - len(data[-1024:]) :] = np.frombuffer(data[-1024:], np.uint8)
        return {"bytes": row[None]}

    root = SHARED / "mxnet"
    feeds = [
        bytes_of(path)
        for path in (
            root / "TRAPS.md",
            root / "FORMAT.md",
            *sorted((root / "zoo").iterdir())[:2],
        )
    ]
    proto = onnx.load(SHARED / "onnx" / "magika_v3_3.onnx")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    answer = through(proto, feeds, tmp_path, bits=16)
    assert answer.snr_db("target_label") > 35
    assert answer.program.inputs[0].hi == 256
