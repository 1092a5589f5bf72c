"""Operands with ranks, axes and reductions that no operator takes, each with the sentence a user reads."""

import numpy as np
import pytest
from onnx import numpy_helper

from mrt.errors import BadModel, Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.rewrite import rewrite
from tests.support.graphs import build, node


def refusal(tmp_path, proto, kind=BadModel):
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(kind) as caught:
        rewrite(load_onnx(path)[0])
    return str(caught.value).replace(str(path), "m.onnx")


def model(operator, shape, operands, **attributes):
    """Return a model of one node whose other operands are constants; None is one left empty."""
    names = [
        "-" if array is None else f"c{place}"
        for place, array in enumerate(operands)
    ]
    arrays = {
        name: array
        for name, array in zip(names, operands, strict=True)
        if array is not None
    }
    # The library's inference raises for some of these, which `build` runs: it is given a Relu.
    proto = build([node("Relu", "x", "y")], {"x": shape})
    del proto.graph.node[:], proto.graph.value_info[:]
    proto.graph.node.append(
        node(operator, " ".join(["x", *names]), "y", **attributes)
    )
    for name, array in arrays.items():
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


def indices(*shape):
    return np.zeros(shape, np.int64)


def numbers(*shape):
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    ("operator", "shape", "operands", "attributes", "problem"),
    [
        (
            "Max",
            (2, 3),
            [None],
            {},
            "operand 2 of 2 is left empty; expected a value",
        ),
        (
            "Sum",
            (2, 3),
            [numbers(3), None],
            {},
            "operand 3 of 3 is left empty; expected a value",
        ),
        (
            "GatherElements",
            (2, 3),
            [indices(2, 3)],
            {"axis": 2},
            "axis=2; its input [2, 3] has 2 axes",
        ),
        (
            "GatherElements",
            (2, 3),
            [indices(3, 3)],
            {"axis": 1},
            "indices [3, 3]; expected as many axes as its input [2, 3], "
            "none longer than there but axis 1",
        ),
        (
            "GatherND",
            (2, 3),
            [indices(3, 1)],
            {"batch_dims": 1},
            "indices [3, 1] and batch_dims=1 do not go together with its input [2, 3]",
        ),
        (
            "ScatterElements",
            (),
            [indices(), numbers()],
            {},
            "axis=0; its input [] has 0 axes",
        ),
        (
            "ScatterElements",
            (3,),
            [indices(), numbers(3)],
            {},
            "updates [3]; expected the shape of the indices, []",
        ),
        (
            "ScatterElements",
            (1, 1),
            [indices(2), numbers(2)],
            {},
            "indices [2]; expected as many axes as its input [1, 1], "
            "none longer than there but axis 0",
        ),
        (
            "ScatterElements",
            (4,),
            [indices(3), numbers(3)],
            {"reduction": "tanh"},
            "reduction=tanh; expected one of none, add, mul, max, min",
        ),
        (
            "ScatterND",
            (3,),
            [indices(), numbers(3)],
            {},
            "indices []; expected a last axis of at most 1 for its input [3]",
        ),
        (
            "ScatterND",
            (3,),
            [indices(2), numbers(4)],
            {},
            "indices [2]; expected a last axis of at most 1 for its input [3]",
        ),
        (
            "ScatterND",
            (3, 4),
            [indices(2, 1), numbers(2, 1)],
            {},
            "updates [2, 1]; expected [2, 4]",
        ),
        (
            "ScatterND",
            (3,),
            [indices(1, 1), numbers(1)],
            {"reduction": "mean"},
            "reduction=mean; expected one of none, add, mul, max, min",
        ),
        (
            "Compress",
            (2, 3),
            [np.array(True)],
            {},
            "condition []; expected one axis",
        ),
        (
            "Unique",
            (2, 3),
            [],
            {"axis": -(1 << 40)},
            "axis=-1099511627776; its input [2, 3] has 2 axes",
        ),
        (
            "ReverseSequence",
            (2, 4),
            [indices(2)],
            {"time_axis": 2},
            "time_axis=2 and batch_axis=1; expected 0 and 1, or 1 and 0",
        ),
        (
            "ReverseSequence",
            (2, 4),
            [indices(3)],
            {},
            "sequence_lens [3] do not go together with its input [2, 4]",
        ),
        (
            "NonMaxSuppression",
            (4, 3, 1, 2),
            [numbers(1, 3)],
            {},
            "boxes [4, 3, 1, 2] and scores [1, 3]; expected three axes each",
        ),
        (
            "AffineGrid",
            (),
            [np.array([1, 2, 2, 2])],
            {},
            "theta []; expected [batch, 2, 3] or [batch, 3, 4]",
        ),
        (
            "Pad",
            (),
            [indices()],
            {},
            "pads [] for 0 axes of its input []; expected [0]",
        ),
        (
            "Pad",
            (),
            [indices(1), None, indices(0)],
            {},
            "pads [1] for 0 axes of its input []; expected [0]",
        ),
    ],
)
def test_operands_that_no_operator_takes(
    tmp_path, operator, shape, operands, attributes, problem
):
    proto = model(operator, shape, operands, **attributes)
    assert refusal(tmp_path, proto) == f"{operator}:y ({operator}): {problem}"


def test_more_groups_than_a_constant_can_count(tmp_path):
    proto = model(
        "GroupNormalization",
        (2, 4, 3),
        [numbers(4), numbers(4)],
        num_groups=1 << 62,
    )
    proto.opset_import[0].version = 21
    assert refusal(tmp_path, proto) == (
        "GroupNormalization:y (GroupNormalization): "
        "num_groups=4611686018427387904; expected 1 to 65536"
    )


def test_an_empty_list_where_a_spectrum_wants_a_number(tmp_path):
    proto = model("STFT", (4, 4), [indices(0), numbers(), indices(2)])
    assert refusal(tmp_path, proto).startswith(
        "m.onnx: the shapes do not fit together: "
    )


def sliced_to_nothing(last, **weights):
    bounds = {
        "starts": np.array([0]),
        "ends": np.array([0]),
        "axes": np.array([2]),
    }
    return build(
        [node("Slice", "x starts ends axes", "s"), last],
        {"x": (1, 2, 3, 4)},
        bounds | weights,
    )


def test_a_mean_of_no_elements(tmp_path):
    proto = sliced_to_nothing(node("GlobalAveragePool", "s", "y"))
    assert (
        "its input [1, 2, 0, 4] has no elements; end in front of it with --outputs"
        in refusal(tmp_path, proto, Unsupported)
    )


def test_rows_without_elements_looked_up_by_tuples(tmp_path):
    proto = sliced_to_nothing(
        node("GatherND", "s i", "y"), i=np.zeros((1, 1), np.int64)
    )
    assert "has no elements" in refusal(tmp_path, proto, Unsupported)


def test_tuples_of_no_indices_name_the_whole(tmp_path):
    """As onnxruntime has it; ONNX asks for one index or more."""
    path = tmp_path / "m.onnx"
    for proto in (
        model("GatherND", (2, 3), [indices(0)]),
        model("ScatterND", (2, 3), [indices(0), numbers(2, 3)]),
    ):
        path.write_bytes(proto.SerializeToString())
        loaded, _ = load_onnx(path)
        rewrite(loaded)
        assert loaded.graph.outputs[0].shape == [2, 3]
