"""pull_slices: before and after on the smallest detectors, and where they must not apply."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from mrt.frontend.mxnet import load_mxnet
from mrt.frontend.mxnet.suppression import function
from mrt.rewrite import rewrite
from mrt.rewrite.movement.pull_slices import pull_slices
from tests.support.graphs import assert_same, graph_of, node, run, seeded
from tests.support.mxnet_files import node as mx_node
from tests.support.mxnet_files import variable, write_symbol

BOXES = 12
NMS = {
    "id_index": "0",
    "overlap_thresh": "0.4",
    "valid_thresh": "0.2",
    "topk": "6",
}


def detector(folder, *nodes, heads=None):
    """Variables ids, scores and boxes, joined to rows and chosen among; further nodes count from number 5."""
    path = folder / "detector.json"
    joined = mx_node("Concat", "rows", [0, 1, 2], dim="-1", num_args="3")
    names = [variable(name) for name in ("ids", "scores", "boxes")]
    write_symbol(
        path,
        [
            *names,
            joined,
            mx_node("_contrib_box_nms", "kept", [3], **NMS),
            *nodes,
        ],
        heads,
    )
    return load_mxnet(
        path,
        shapes={
            "ids": (1, BOXES, 1),
            "scores": (1, BOXES, 1),
            "boxes": (1, BOXES, 4),
        },
    )


def column(name, first, end, of=4):
    return mx_node(
        "slice_axis", name, [of], axis="2", begin=str(first), end=str(end)
    )


def feeds():
    random = np.random.default_rng(5)
    low = random.uniform(0, 6, (1, BOXES, 2))
    return {
        "ids": random.integers(0, 2, (1, BOXES, 1)).astype(np.float32),
        "scores": (
            random.permutation(BOXES).reshape(1, BOXES, 1) / np.float32(BOXES)
        ).astype(np.float32),
        "boxes": np.concatenate(
            [low, low + random.uniform(1, 5, (1, BOXES, 2))], 2
        ).astype(np.float32),
    }


def answers(model):
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    return session.run(None, feeds())


def operators(model):
    return [one.op_type for one in model.graph]


def test_columns_of_the_kept_rows_are_rows_of_the_parts(tmp_path):
    nodes = [mx_node("slice_axis", "best", [4], axis="1", begin="0", end="4"), *(
        column(name, first, end, 5) for name, first, end in (("i", 0, 1), ("s", 1, 2), ("b", 2, 6)))]  # fmt: skip
    model = detector(tmp_path, *nodes, heads=[6, 7, 8])
    before = answers(model)
    rewrite(model)
    assert "Concat" not in operators(model) and "Slice" not in operators(model)
    assert (
        operators(model).count("NonMaxSuppression") == 1
        and operators(model).count("Gather") == 3
    )
    (chosen,) = [one for one in model.graph if one.domain == "mrt"]
    assert (
        chosen.attributes["keep"].as_int() == 4
        and chosen.attributes["candidates"].as_int() == 6
    )
    for found, expected in zip(answers(model), before, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rows", [(2, 5), (2, 8)])
@pytest.mark.parametrize(
    ("first", "end"), [(0, 3), (1, 4), (2, 6), (4, 5), (0, 6)]
)
def test_any_columns_of_any_rows_stay_what_they_are(rows, first, end, tmp_path):
    begin, behind = map(str, rows)
    model = detector(
        tmp_path,
        mx_node("slice_axis", "some", [4], axis="1", begin=begin, end=behind),
        column("y", first, end, 5),
    )
    before = answers(model)
    rewrite(model)
    np.testing.assert_array_equal(answers(model)[0], before[0])


def test_through_what_moves_rows_in_between(tmp_path):
    nodes = [
        mx_node("Reshape", "grid", [4], shape="(0, 3, 4, -1)"),
        mx_node("transpose", "turned", [5], axes="(0, 2, 1, 3)"),
        mx_node("slice_axis", "y", [6], axis="3", begin="2", end="6"),
    ]
    model = detector(tmp_path, *nodes)
    before = answers(model)
    rewrite(model)
    assert "Concat" not in operators(model)
    np.testing.assert_array_equal(answers(model)[0], before[0])


def test_models_that_choose_no_boxes_are_left_alone():
    ends = {
        name: np.array([value])
        for name, value in (("a", 0), ("e", 2), ("d", 1), ("one", 1))
    }
    model = graph_of(
        [node("Concat", "x x", "j", axis=1), node("Slice", "j a e d one", "y")],
        {"x": (2, 2)},
        ends,
    )
    assert pull_slices(model) == 0


def test_boxes_and_scores_share_no_scale_in_front_of_a_topk():
    """Detectors without suppression join them, part them again, and choose the boxes of the best scores."""
    nodes = [
        node("Concat", "boxes scores", "rows", axis=0),
        node("Transpose", "rows", "turned", perm=[1, 0]),
        node("Split", "turned sizes", "four one", axis=1),
        node("Transpose", "one", "column", perm=[1, 0]),
        node("Reshape", "column flat", "ranked"),
        node("TopK", "ranked k", "best places", axis=0),
        node("Gather", "four places", "kept", axis=0),
    ]
    shapes = {"boxes": (4, BOXES), "scores": (1, BOXES)}
    numbers = {"sizes": [4, 1], "flat": [-1], "k": [3]}
    constants = {name: np.array(value) for name, value in numbers.items()}
    model = graph_of(nodes, shapes, constants, outputs="kept best")
    before = run(model, seeded(shapes))
    rewrite(model)
    assert "Concat" not in operators(model) and "Slice" not in operators(model)
    assert_same(before, run(model, seeded(shapes)), 0)


def test_the_function_is_what_its_domain_is_named_after():
    assert function().identifier() == ("mrt", "NonMaxSuppression", "")


def pulled(nodes, shapes, weights):
    """Return the operators that a pull leaves in a graph that chooses boxes elsewhere."""
    model = graph_of(nodes, shapes, weights)
    numbers = seeded(shapes)
    before = run(model, numbers)
    choice = ir.Node("mrt", "NonMaxSuppression", [model.graph.inputs[0]])
    model.graph.append(choice)
    pull_slices(model)
    model.graph.remove(choice, safe=True)
    RemoveUnusedNodesPass()(model)
    assert_same(before, run(model, numbers), 0)
    return operators(model)


def bounds(start, end, axis):
    numbers = {"s": start, "e": end, "a": axis, "one": 1, "shape": (4, 3, 1)}
    return {
        name: np.array(number).reshape(-1) for name, number in numbers.items()
    }


JOIN, CUT = node("Concat", "x x", "j", axis=0), "s e a one"


@pytest.mark.parametrize(
    ("mover", "axis"),
    [
        (node("Transpose", "j", "t"), 1),
        (node("Reshape", "j shape", "t"), 0),
    ],
    ids=["Transpose", "Reshape"],
)
def test_a_slice_moves_in_front_of_what_moves_elements(mover, axis):
    nodes = [JOIN, mover, node("Slice", f"t {CUT}", "y")]
    found = pulled(nodes, {"x": (2, 3)}, bounds(1, 3, axis))
    assert found == ["Concat", "Slice", mover.op_type]


def test_a_slice_of_parts_joined_along_another_axis_stays():
    nodes = [JOIN, node("Slice", f"j {CUT}", "y")]
    assert pulled(nodes, {"x": (2, 3)}, bounds(1, 3, 1)) == ["Concat", "Slice"]
    nodes[0] = node("Concat", "x x", "j", axis=1)
    assert pulled(nodes, {"x": (2, 3)}, bounds(1, 2, 0)) == ["Concat", "Slice"]


def test_a_slice_from_a_computed_start_stays():
    nodes = [
        JOIN,
        node("Cast", "p", "place", to=7),
        node("Slice", "j place e a one", "y"),
    ]
    found = pulled(nodes, {"x": (2, 3), "p": (1,)}, bounds(0, 4, 0))
    assert found == ["Concat", "Cast", "Slice"]


def test_parts_that_end_where_a_slice_begins_are_left_out():
    joined = node("Concat", "x z x", "j", axis=0)
    nodes = [joined, node("Slice", f"j {CUT}", "y")]
    found = pulled(nodes, {"x": (2, 3), "z": (3, 3)}, bounds(2, 5, 0))
    assert found == ["Identity"]


def test_a_slice_moves_past_a_lookup_along_the_first_axis():
    nodes = [
        JOIN,
        node("Gather", "j places", "g"),
        node("Slice", f"g {CUT}", "y"),
    ]
    places = {"places": np.array([3, 0, 1])}
    found = pulled(nodes, {"x": (2, 3)}, bounds(1, 3, 0) | places)
    assert found == ["Concat", "Gather", "Slice"]
