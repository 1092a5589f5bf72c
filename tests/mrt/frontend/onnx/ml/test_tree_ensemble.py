"""TreeEnsemble of ai.onnx.ml 5 means what onnxruntime computes; broken and ambiguous ones are refused."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mrt.errors import BadModel, Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.frontend.onnx.ml import trees
from tests.support.graphs import assert_same, run

X = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
# Values of X themselves, at which <= and < differ.
AT_A_ROW, AT_ANOTHER = X[3, 0].item(), X[7, 1].item()
NAN = float("nan")
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
MODES = list(itertools.product((LEQ, LT, GTE, GT), repeat=2))


def cut_short(one):
    one.raw_data = one.raw_data[:-1]
    return one


def tensor(values, kind=np.float32):
    return numpy_helper.from_array(np.array(values, kind))


def forest(modes=(LEQ, LEQ, LEQ), **changed):
    """Node 0 and below it node 1, three leaves; then node 2 with two leaves."""
    return {
        "n_targets": 2,
        "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 2],
        "nodes_splits": tensor([AT_A_ROW, AT_ANOTHER, 0.0]),
        "nodes_modes": tensor(modes, np.uint8),
        "nodes_truenodeids": [1, 1, 3],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [0, 2, 4],
        "nodes_falseleafs": [1, 1, 1],
        "leaf_targetids": [0, 1, 0, 1, 0],
        "leaf_weights": tensor([1.0, 2.0, 3.0, 0.5, -0.5]),
    } | changed


def model_of(folder, attributes, opsets=(("", 21), ("ai.onnx.ml", 5))):
    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **attributes
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)
    y = helper.make_empty_tensor_value_info("y")
    y.type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph([node], "g", [x], [y])
    imports = [helper.make_opsetid(*opset) for opset in opsets]
    proto = helper.make_model(graph, opset_imports=imports, ir_version=10)
    onnx.save(proto, folder / "m.onnx")
    return proto


# Integers, of which some are members.
CATEGORIES = {
    "nodes_modes": tensor([MEMBER, LEQ, MEMBER], np.uint8),
    "nodes_splits": tensor([0.0, 0.0, 0.0]),
    "membership_values": tensor([-1, 1, NAN, 0, 2, 40, NAN]),
}
FORMS = {
    "sum": {},
    "average": {"aggregate_function": 0},
    "one result": {"n_targets": 1, "leaf_targetids": [0] * 5},
    # Both sides of node 2 are leaf 3: a tree of one leaf.
    "single leaf": {"nodes_falsenodeids": [0, 2, 3]},
    "equal": {"nodes_modes": tensor([EQ, EQ, NEQ], np.uint8)},
    "equal or not": {"nodes_modes": tensor([EQ, NEQ, GT], np.uint8)},
    "equal and ordered": {"nodes_modes": tensor([LT, EQ, NEQ], np.uint8)},
    # Two branches that share a leaf.
    "shared leaf": {"nodes_falsenodeids": [1, 2, 4]},
}


@pytest.mark.parametrize("name", FORMS)
def test_it_means_what_onnxruntime_computes(name, tmp_path):
    proto = model_of(tmp_path, forest(**FORMS[name]))
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X}), run(model, {"x": X}))


def test_a_set_has_the_members_that_the_file_lists(tmp_path):
    proto = model_of(tmp_path, forest(**CATEGORIES))
    model, _ = load_onnx(tmp_path / "m.onnx")
    x = np.rint(X * 2)
    assert_same(run(proto, {"x": x}), run(model, {"x": x}))


@pytest.mark.parametrize("modes", MODES)
def test_conditions_of_several_kinds_in_one_tree(modes, tmp_path):
    """Rows 3 and 7 lie on a threshold, where each kind decides differently."""
    proto = model_of(tmp_path, forest((*modes, GT)))
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize("threshold", [np.inf, -np.inf])
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("modes", [*MODES, (EQ, LEQ), (LT, NEQ)])
def test_an_infinite_threshold_decides_its_condition(
    modes, place, threshold, tmp_path
):
    splits = [AT_A_ROW, AT_ANOTHER, 0.0]
    splits[place] = threshold
    changed = {"nodes_splits": tensor(splits)}
    proto = model_of(tmp_path, forest((*modes, modes[0]), **changed))
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X}), run(model, {"x": X}))


def test_no_tree_at_all_is_refused(tmp_path):
    proto = model_of(tmp_path, forest())
    roots = next(
        attribute
        for attribute in proto.graph.node[0].attribute
        if attribute.name == "tree_roots"
    )
    del roots.ints[:]
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match="no root of a tree"):
        load_onnx(tmp_path / "m.onnx")


def test_a_file_of_this_domain_alone(tmp_path):
    proto = model_of(tmp_path, forest(), opsets=[("ai.onnx.ml", 5)])
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X}), run(model, {"x": X}))


def test_a_node_of_onnx_needs_a_stated_version(tmp_path):
    proto = model_of(tmp_path, forest(), opsets=[("ai.onnx.ml", 5)])
    proto.graph.node.append(helper.make_node("Relu", ["y"], ["z"]))
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(BadModel, match="names 0 versions of the default"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"post_transform": 1}, "post_transform=1; expected 0: runtimes give"),
        ({"aggregate_function": 3}, r"aggregate_function=3; expected 0 \(ave"),
        ({"n_targets": -1}, "n_targets=-1; expected 1 or more"),
        (
            {"n_targets": 2**40},
            "tree from node 0: 3 leaves with weights for 1099511627776 results; at most 16777216 weights",
        ),
        (
            {"n_targets": 2**22},
            "the first 2 trees have 20971520 weights of leaves for all results; at most 16777216 in all",
        ),
        ({"tree_roots": [3]}, "tree from node 3: node 3 of 3"),
        ({"tree_roots": [-1]}, "tree from node -1: node -1 of 3"),
        ({"nodes_truenodeids": [1, 5, 3]}, "tree from node 0: leaf 5 of 5"),
        ({"nodes_truenodeids": [0, 1, 3]}, "tree from node 0: two ways to"),
        ({"leaf_targetids": [0, 1, 0, 1]}, "5 weights of leaves and 4 results"),
        ({"leaf_targetids": [0, 1, 0, 1, 2]}, "a weight for result 2 of 2"),
        ({"nodes_featureids": [0, 1]}, "lists of nodes of different lengths"),
        ({"nodes_modes": tensor([0, 0, 7], np.uint8)}, "of the kind 7; expec"),
        (
            {"leaf_weights": tensor([1, 2, 3, 4, 5], np.int64)},
            "leaf_weights of the type int64; expected float or double",
        ),
        (
            {"leaf_weights": cut_short(tensor([1.0, 2.0, 3.0, 0.5, -0.5]))},
            "leaf_weights: buffer size must be a multiple of element size",
        ),
        (
            {"nodes_modes": tensor([0, 0, 0], np.int64)},
            "nodes_modes of the type int64; expected uint8",
        ),
        (
            {"nodes_modes": tensor([MEMBER, 0, 0], np.uint8)},
            "membership_values of the type undefined; expected float or",
        ),
        (
            {
                "nodes_modes": tensor([MEMBER, 0, MEMBER], np.uint8),
                "membership_values": tensor([1.0, 2.0, NAN]),
            },
            "membership_values: 1 sets with members for 2 nodes that ask",
        ),
        (
            {"nodes_truenodeids": [1, 9, 3], "nodes_falsenodeids": [0, 9, 4]},
            "tree from node 0: leaf 9 of 5",
        ),
    ],
)
def test_what_is_broken_or_ambiguous_is_refused(changed, sentence, tmp_path):
    model_of(tmp_path, forest(**changed))
    with pytest.raises(Unsupported, match=rf"y \(TreeEnsemble\): .*{sentence}"):
        load_onnx(tmp_path / "m.onnx")


def test_trees_are_counted_as_they_are_read(monkeypatch, tmp_path):
    """An ensemble that is too large is refused before all of it is held."""
    monkeypatch.setattr(trees, "MOST_ENTRIES", 9)
    attributes = forest(
        tree_roots=[0, 2, 2, 2, 2], n_targets=1, leaf_targetids=[0] * 5
    )
    model_of(tmp_path, attributes)
    sentence = "the first 3 trees have 10 pairs of conditions and leaves; at most 9 in all trees"
    with pytest.raises(Unsupported, match=sentence):
        load_onnx(tmp_path / "m.onnx")
