"""canonical.check: every offence is listed, each form refuses what is not it."""

import numpy as np
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from mrt.errors import Unsupported
from mrt.rewrite.canonical import check
from mrt.rewrite.canonical_operators import CANONICAL_OPERATORS
from tests.support.graphs import graph_of, node

_W = {"w": np.ones((2, 3, 3, 3), np.float32), "b": [0.0, 0.0]}
_WINDOW = {
    "kernel_shape": [3, 3],
    "strides": [1, 1],
    "dilations": [1, 1],
    "pads": [0, 0, 0, 0],
}
_X = (1, 3, 5, 5)


def problems(model):
    with pytest.raises(Unsupported) as caught:
        check(model)
    return caught.value.problems


def test_all_offences_at_once():
    nodes = [
        node("Hardmax", "x", "a"),
        node("Conv", "a w", "c"),
        node("Relu", "c", "d"),
        node("Hardmax", "d", "y"),
    ]
    assert problems(graph_of(nodes, {"x": _X}, _W)) == [
        "Hardmax:a (Hardmax): it has no integer form for values that are only known when it runs; --value fixes an input",
        f"Conv:c (Conv): expected {CANONICAL_OPERATORS['Conv']}",
        "Hardmax:y (Hardmax): it has no integer form for values that are only known when it runs; --value fixes an input",
    ]


@pytest.mark.parametrize(
    ("operator", "operands", "alone"),
    [
        ("BitwiseXor", "x x", "one constant mask for all elements is"),
        ("BitShift", "x x", "constant shifts of up to 30 bits are"),
        ("BitwiseNot", "x", "that of integers with a sign, or of up to 16 bits, is"),
    ],
)  # fmt: skip
def test_bits_of_integers_are_no_matter_of_when_they_are_known(
    operator, operands, alone
):
    graph = graph_of([node(operator, operands, "y")], {"x": (3,)}, {})
    assert problems(graph) == [
        f"{operator}:y ({operator}): programs have no bitwise operations, and only {alone} written as arithmetic; "
        "end in front of it with --outputs"
    ]


def test_a_constant_that_is_too_large_to_fold_is_called_so():
    """As the weights of the light models in the onnx package, of 4096 times 18432 numbers."""
    sizes = {"s": np.array([2048, 2049])}
    nodes = [node("ConstantOfShape", "s", "w"), node("MatMul", "x w", "y")]
    assert problems(graph_of(nodes, {"x": (1, 2048)}, sizes))[0] == (
        "ConstantOfShape:w (ConstantOfShape): its result is constant, but has 4,196,352 numbers; at most 4,194,304 "
        "are computed before the program is written: store them in the model's file"
    )


def test_a_where_that_may_choose_nan_is_named():
    nodes = [node("Greater", "x z", "c"), node("Where", "c x n", "y")]
    constants = {"z": np.float32(0), "n": np.float32(np.nan)}
    assert problems(graph_of(nodes, {"x": (2, 3)}, constants)) == [
        "Where:y (Where): it may choose NaN of 'n', which no integer stands for; end in front of it with --outputs"
    ]


def test_a_constant_divided_by_zero_is_named():
    nodes = [node("Div", "z z", "q"), node("Add", "x q", "y")]
    constants = {"z": np.float32([0, 1, 2])}
    (problem,) = problems(graph_of(nodes, {"x": (2, 3)}, constants))
    assert problem.startswith("Div:q (Div): it divides 0 by 0 in a constant")


def test_a_negative_stored_variance_is_named_with_its_channel():
    parameters = {
        "g": [1.0] * 3,
        "b": [0.0] * 3,
        "m": [0.0] * 3,
        "v": [1.0, -0.25, -0.125],
    }
    norm = node("BatchNormalization", "x g b m v", "y", epsilon=0.125)
    assert problems(graph_of([norm], {"x": _X}, parameters)) == [
        "BatchNormalization:y (BatchNormalization): its variance is -0.25 in channel 1, with epsilon 0.125: their sum must "
        "be above 0, or the float model gives no number (2 of 3 channels)"
    ]


def test_a_choice_between_constants_by_a_constant_is_out_of_form():
    constants = {"c": np.ones(3, bool), "a": [1.0] * 3, "b": [0.0] * 3}
    nodes = [node("Where", "c a b", "y"), node("Add", "x y", "z")]
    model = graph_of(nodes, {"x": (2, 3)}, constants, outputs="z")
    assert problems(model) == [
        f"Where:y (Where): expected {CANONICAL_OPERATORS['Where']}"
    ]


def test_a_convolution_in_form_passes():
    check(
        graph_of(
            [node("Conv", "x w b", "y", group=1, **_WINDOW)], {"x": _X}, _W
        )
    )


@pytest.mark.parametrize(
    "change",
    [
        {"strides": [1]},
        {"kernel_shape": [2, 2]},
        {"pads": [0, 0, -1, 0]},
        {"auto_pad": "VALID"},
        {"group": 3},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_convolution_with_one_attribute_wrong(change):
    model = graph_of(
        [node("Conv", "x w b", "y", **{"group": 1, **_WINDOW})], {"x": _X}, _W
    )
    for name, value in change.items():
        model.graph[0].attributes[name] = ir.convenience.convert_attribute(
            name, value
        )
    assert problems(model) == [
        f"Conv:y (Conv): expected {CANONICAL_OPERATORS['Conv']}"
    ]


_GEMM = {"w": np.ones((4, 5), np.float32), "b": [0.0] * 4}


@pytest.mark.parametrize(
    ("one", "inputs", "weights"),
    [
        (node("Conv", "x w b", "y", **_WINDOW), {"x": _X}, _W),
        (
            node("Gemm", "x w b", "y", transB=1, transA=0, alpha=0.5, beta=1.0),
            {"x": (2, 5)},
            _GEMM,
        ),
        (
            node("Gemm", "x w", "y", transB=1, transA=0, alpha=1.0, beta=1.0),
            {"x": (2, 5)},
            _GEMM,
        ),
        (node("MatMul", "x w", "y"), {"x": (2, 4)}, _GEMM),
        (node("Clip", "x l", "y"), {"x": (2, 4)}, {"l": 0.0}),
        (node("Pow", "x z", "y"), {"x": (2, 4), "z": (2, 4)}, {}),
        (node("LayerNormalization", "x z", "y"), {"x": (2, 4), "z": (4,)}, {}),
        (
            node("InstanceNormalization", "x z z", "y"),
            {"x": (2, 4, 3), "z": (4,)},
            {},
        ),
        (
            node("InstanceNormalization", "x s b", "y"),
            {"x": (2, 4, 3)},
            {"s": [1.0] * 3, "b": [0.0] * 3},
        ),
        (
            node("Reshape", "x s", "y", allowzero=1),
            {"x": (2, 4)},
            {"s": np.array([4, 2])},
        ),
        (
            node("ArgMax", "x", "y", axis=1, select_last_index=1),
            {"x": (2, 4)},
            {},
        ),
        (
            node("TopK", "x k", "y i", axis=1, sorted=0),
            {"x": (2, 4)},
            {"k": np.array([2])},
        ),
        (node("LRN", "x", "y", size=4), {"x": (2, 4, 3, 3)}, {}),
        (node("Pow", "x k", "y"), {"x": (2, 4)}, {"k": [1.0, 2.0, 3.0, 4.0]}),
        (node("MaxPool", "x", "y", **_WINDOW, ceil_mode=1), {"x": _X}, {}),
        (
            node("MaxPool", "x", "y", **_WINDOW | {"dilations": [2, 2]}),
            {"x": (1, 3, 9, 9)},
            {},
        ),
        (node("AveragePool", "x", "y", **_WINDOW), {"x": _X}, {}),
        (
            node(
                "AveragePool",
                "x",
                "y",
                **_WINDOW | {"pads": [1, 1, 1, 1]},
                count_include_pad=1,
            ),
            {"x": _X},
            {},
        ),
        (
            node("ReduceSum", "x a", "y", keepdims=0),
            {"x": (2, 4)},
            {"a": np.array([1])},
        ),
        (
            node("ReduceSum", "x a", "y", keepdims=1),
            {"x": (2, 4)},
            {"a": np.array([-1])},
        ),
        (node("Softmax", "x", "y", axis=0), {"x": (2, 4)}, {}),
        (node("Concat", "x x", "y", axis=-1), {"x": (2, 4)}, {}),
        (
            node("Reshape", "x s", "y", allowzero=0),
            {"x": (2, 4)},
            {"s": np.array([-1])},
        ),
        (node("Transpose", "x", "y"), {"x": (2, 4)}, {}),
        (
            node("Slice", "x s e", "y"),
            {"x": (2, 4)},
            {"s": np.array([0]), "e": np.array([1])},
        ),
        (
            node("Pad", "x p", "y", mode="constant"),
            {"x": (2, 4)},
            {"p": np.array([0, 1, 0, 0])},
        ),
        (
            node("Pad", "x p v", "y", mode="edge"),
            {"x": (2, 4)},
            {"p": np.array([0, 1, 0, 0]), "v": 0.0},
        ),
    ],
    ids=lambda item: getattr(item, "op_type", ""),
)
def test_a_node_out_of_form_is_refused_with_the_form(one, inputs, weights):
    expected = f"{one.name} ({one.op_type}): expected {CANONICAL_OPERATORS[one.op_type]}"
    assert problems(graph_of([one], inputs, weights)) == [expected]


def test_an_unknown_shape():
    model = graph_of([node("Relu", "x", "y")], {"x": ("n", 3)})
    assert problems(model) == [
        "input 'x': its shape is not known",
        "Relu:y (Relu): the shape of its result is not known",
    ]


@pytest.mark.parametrize(
    ("ends", "behind"),
    [("v", ""), ("t", "1 operator"), ("y", "3 operators")],
)
def test_what_stands_behind_a_length_that_the_data_decide_is_counted_alone(
    ends, behind
):
    nodes = [
        node("NonZero", "x", "v"),
        node("Transpose", "v", "t"),
        node("GatherND", "x t", "g"),
        node("Exp", "g", "y"),
    ]
    count = [one.output[0] for one in nodes].index(ends) + 1
    with pytest.raises(Unsupported) as caught:
        check(graph_of(nodes[:count], {"x": (1, 8)}, outputs=ends))
    (listed,) = caught.value.problems
    assert listed.startswith(
        "NonZero:v (NonZero): the length of its result depends on the data"
    )
    lines = str(caught.value).splitlines()
    assert lines[0] == "1 unsupported:"
    assert lines[2:] == (
        [f"and {behind} behind these, whose shapes follow from them"]
        if behind
        else []
    )


def test_nan_behind_a_length_that_the_data_decide_is_listed_too():
    nan = np.array(np.nan, np.float32)
    nodes = [
        node("NonZero", "x", "v"),
        node("Cast", "v", "c", to=9),
        node("Where", "c nan nan", "y"),
    ]
    with pytest.raises(Unsupported) as caught:
        check(graph_of(nodes, {"x": (1, 8)}, {"nan": nan}))
    first, second = caught.value.problems
    assert "NonZero" in first
    assert "may choose NaN of 'nan'" in second


def test_more_dimensions_than_an_integer_program_has():
    model = graph_of([node("Relu", "x", "y")], {"x": (1,) * 7})
    assert (
        "Relu:y (Relu): shape [1, 1, 1, 1, 1, 1, 1] has more than 6 dimensions"
        in problems(model)
    )


def test_a_tensor_without_elements():
    model = graph_of([node("Relu", "x", "y")], {"x": (2, 0)})
    assert "input 'x': shape [2, 0] has no elements" in problems(model)


def test_values_that_are_not_float():
    nodes = [
        node("Cast", "x", "a", to=7),
        node("Pow", "a k", "b"),
        node("Cast", "b", "y", to=1),
    ]
    model = graph_of(nodes, {"x": (2,)}, {"k": np.array(2)})
    assert "Pow:b (Pow): its result is int64; expected float" in problems(model)


def test_a_constant_first_operand():
    model = graph_of(
        [node("Relu", "k", "a"), node("Add", "x a", "y")],
        {"x": (2,)},
        {"k": [1.0, 2.0]},
    )
    assert problems(model) == ["Relu:a (Relu): its first operand is constant"]


def test_an_output_that_is_an_input():
    model = graph_of([node("Relu", "x", "y")], {"x": (2,)})
    model.graph.outputs.append(model.graph.inputs[0])
    assert problems(model) == ["output 'x': it is constant or an input"]


def test_another_opset():
    assert problems(
        graph_of([node("Relu", "x", "y")], {"x": (2,)}, opset=13)
    ) == ["opset 13; expected 20"]


def test_two_values_of_one_name():
    model = graph_of(
        [node("Relu", "x", "a"), node("Relu", "a", "y")], {"x": (2,)}
    )
    model.graph[0].outputs[0].name = "y"
    assert problems(model) == ["value 'y': 2 values have this name"]


def test_a_node_without_its_first_operand():
    model = graph_of([node("Relu", "x", "y")], {"x": (2,)})
    model.graph[0].replace_input_with(0, None)
    assert problems(model) == ["Relu:y (Relu): it has no first operand"]


def test_a_tensor_filled_with_nan_is_refused_as_such():
    nodes = [
        node("Shape", "x", "s"),
        node(
            "ConstantOfShape",
            "s",
            "n",
            value=numpy_helper.from_array(np.float32([np.nan])),
        ),
        node("Where", "c x n", "y"),
    ]
    model = graph_of(nodes, {"x": (2,)}, {"c": np.array([True, False])})
    assert problems(model)[1] == (
        "ConstantOfShape:n (ConstantOfShape): it fills a tensor with NaN, which no integer stands for; "
        "end in front of it with --outputs"
    )


def test_a_model_in_training_is_refused_as_such():
    weights = {"r": 0.5, "t": np.array(True)}
    model = graph_of([node("Dropout", "x r t", "y")], {"x": (2,)}, weights)
    assert problems(model) == [
        "Dropout:y (Dropout): it drops numbers at random, as in training; export the model for inference (model.eval() in PyTorch)"
    ]


def test_a_normalization_by_a_computed_variance_is_refused_by_name():
    parameters = {name: [1.0] * 3 for name in "gbm"}
    norm = node("BatchNormalization", "x g b m v", "y")
    assert problems(graph_of([norm], {"x": _X, "v": (3,)}, parameters)) == [
        "BatchNormalization:y (BatchNormalization): it has no integer form for values that are only known when it runs; "
        "--value fixes an input"
    ]


@pytest.mark.parametrize(
    ("shape", "sizes", "change"),
    [
        ((1, 2, 4, 4), (1, 2, 8, 8), {"mode": "nearest"}),
        ((1, 2, 4, 4), (1, 2, 8, 8), {"coordinate_transformation_mode": "half_pixel_symmetric"}),
        ((1, 2, 4, 4), (1, 2, 8, 8), {"antialias": 1}),
        ((1, 2, 4, 4), (1, 4, 8, 8), {}),
        ((2, 4, 4), (2, 8, 8), {}),
    ],
    ids=["nearest", "symmetric", "smoothed", "more channels", "no image"],
)  # fmt: skip
def test_a_resize_out_of_form(shape, sizes, change):
    attributes = {
        "mode": "linear",
        "coordinate_transformation_mode": "half_pixel",
    }
    resize = node("Resize", "x - - s", "y", **attributes | change)
    model = graph_of([resize], {"x": shape}, {"s": np.array(sizes)})
    assert problems(model) == [
        f"Resize:y (Resize): expected {CANONICAL_OPERATORS['Resize']}"
    ]


def test_a_scalar_has_an_element():
    check(graph_of([node("Relu", "x", "y")], {"x": ()}))


def test_a_layer_may_be_normalized_from_its_first_axis_on():
    ones = {"s": np.ones((2, 3), np.float32), "b": np.zeros((2, 3), np.float32)}
    norm = node("LayerNormalization", "x s b", "y", axis=0)
    check(graph_of([norm], {"x": (2, 3)}, ones))


def test_a_rest_of_reals_has_fmod_and_a_divisor():
    rest = node("Mod", "x k", "y", fmod=1)
    check(graph_of([rest], {"x": (2, 3)}, {"k": 3.0}))
    for attributes, divisor in (({"fmod": 1}, 0.0), ({"fmod": 0}, 3.0)):
        other = node("Mod", "x k", "y", **attributes)
        model = graph_of([other], {"x": (2, 3)}, {"k": divisor})
        assert problems(model) == [
            f"Mod:y (Mod): expected {CANONICAL_OPERATORS['Mod']}"
        ]
