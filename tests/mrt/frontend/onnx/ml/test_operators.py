"""Operators of ai.onnx.ml mean what onnxruntime computes; what has no tensors is refused by name."""

import tracemalloc
from contextlib import contextmanager

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.rewrite import rewrite
from tests.support.graphs import assert_same, node, run

MOST_MEMORY = 64 << 20  # bytes, to read and refuse a small file
X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
WEIGHTS = {
    "coefficients": [0.5, -1.0, 2.0, 1.0, 0.25, -0.5],
    "intercepts": [0.1, -0.2],
}
FORMS = {
    "Scaler": ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, 1.0]}),
    "Scaler of one number": ("Scaler", {"offset": [1.0], "scale": [0.5]}),
    "Normalizer L1": ("Normalizer", {"norm": "L1"}),
    "Normalizer L2": ("Normalizer", {"norm": "L2"}),
    "LinearRegressor": ("LinearRegressor", WEIGHTS | {"targets": 2}),
    "LinearClassifier": (
        "LinearClassifier",
        WEIGHTS | {"classlabels_ints": [7, 3], "post_transform": "SOFTMAX"},
    ),
    "LinearClassifier, logistic": (
        "LinearClassifier",
        WEIGHTS | {"classlabels_ints": [0, 1], "post_transform": "LOGISTIC"},
    ),
    "LinearClassifier, sums": (
        "LinearClassifier",
        WEIGHTS | {"classlabels_ints": [0, 1]},
    ),
}


# Feature 0 at 0.25: yes, a leaf; no, feature 2 at -0.5: two leaves. The second tree is one leaf.
NODES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0], "nodes_featureids": [0, 0, 2, 0, 0, 0],
    "nodes_values": [0.25, 0.0, -0.5, 0.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 3, 0, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0, 0],
}  # fmt: skip


def trees(mode, **more):
    return (
        NODES
        | {"nodes_modes": [mode, "LEAF", mode, "LEAF", "LEAF", "LEAF"]}
        | more
    )


def leaves(role):
    names = ("treeids", "nodeids", "ids", "weights")
    rows = [
        (0, 1, 0, 1.5),
        (0, 3, 1, 2.0),
        (0, 4, 0, -1.0),
        (0, 4, 1, 0.25),
        (1, 0, 0, 0.125),
        (1, 0, 1, -0.5),
    ]
    return {
        f"{role}_{name}": list(column)
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }


@contextmanager
def little_memory():
    """Fail if what runs inside takes more than MOST_MEMORY."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()


for kind in (
    "BRANCH_LEQ",
    "BRANCH_LT",
    "BRANCH_GTE",
    "BRANCH_GT",
    "BRANCH_EQ",
    "BRANCH_NEQ",
):
    FORMS[f"TreeEnsembleRegressor {kind}"] = (
        "TreeEnsembleRegressor", trees(kind, n_targets=2, base_values=[0.5, -0.5], **leaves("target")))  # fmt: skip
FORMS["TreeEnsembleClassifier"] = (
    "TreeEnsembleClassifier", trees("BRANCH_LEQ", classlabels_int64s=[0, 1], **leaves("class")))  # fmt: skip


# One sum of two classes: numbers to either side of 0, or shares between 0 and 1.
ONE_SUM = {
    "class_treeids": [0, 0, 0, 1],
    "class_nodeids": [1, 3, 4, 0],
    "class_ids": [0, 0, 0, 0],
}
for name, numbers in (
    ("sides", [1.5, -2.0, -1.0, 0.125]),
    ("shares", [0.5, 0.125, 0.25, 0.25]),
):
    for transform in ("NONE", "LOGISTIC"):
        FORMS[f"TreeEnsembleClassifier of one sum, {name}, {transform}"] = (
            "TreeEnsembleClassifier",
            trees(
                "BRANCH_LEQ",
                classlabels_int64s=[4, 9],
                post_transform=transform,
                class_weights=numbers,
                **ONE_SUM,
            ),
        )
FORMS |= {
    "Binarizer": ("Binarizer", {"threshold": 0.25}),
    "Imputer": (
        "Imputer",
        {
            "imputed_value_floats": [1.0, 2.0, 3.0],
            "replaced_value_float": float(X[1, 2]),
        },
    ),
    "Imputer of one number": (
        "Imputer",
        {"imputed_value_floats": [7.0], "replaced_value_float": float(X[1, 2])},
    ),
    "Imputer of NaN": (
        "Imputer",
        {"imputed_value_floats": [7.0], "replaced_value_float": float("nan")},
    ),
    "Normalizer MAX": ("Normalizer", {"norm": "MAX"}),
    "OneHotEncoder": ("OneHotEncoder", {"cats_int64s": [1, 0, -1, 5]}),
}


VECTORS = (
    np.random.default_rng(3)
    .normal(size=(6, 3))
    .astype(np.float32)
    .ravel()
    .tolist()
)
KERNELS = {
    "LINEAR": [0.0, 0.0, 0.0],
    "POLY": [0.5, 1.0, 3.0],
    "RBF": [0.25, 0.0, 3.0],
    "SIGMOID": [0.5, 0.1, 0.0],
}
LINEAR = {
    "kernel_type": "LINEAR",
    "kernel_params": KERNELS["LINEAR"],
    "rho": [0.1],
}
SHARES = [0.5, -1.0, 0.25, 2.0, -0.75, 0.125]
THREE = {
    "rho": [0.1, -0.2, 0.05],
    "classlabels_ints": [3, 1, 2],
    "vectors_per_class": [1, 3, 2],
}
for kernel, numbers in KERNELS.items():
    form = {
        "kernel_type": kernel,
        "support_vectors": VECTORS,
        "kernel_params": numbers,
    }
    FORMS[f"SVMRegressor {kernel}"] = (
        "SVMRegressor",
        form | {"coefficients": SHARES, "rho": [0.2], "n_supports": 6},
    )
    FORMS[f"SVMClassifier {kernel}"] = (
        "SVMClassifier",
        form | THREE | {"coefficients": [*SHARES, *SHARES[::-1]]},
    )
FORMS |= {
    "SVMRegressor of one class": (
        "SVMRegressor",
        LINEAR
        | {
            "coefficients": [0.5, -1.0],
            "n_supports": 2,
            "support_vectors": VECTORS[:6],
            "one_class": 1,
        },
    ),
    "SVMRegressor of weights alone": (
        "SVMRegressor",
        LINEAR | {"coefficients": [0.5, -1.0, 2.0]},
    ),
}


def model_of(folder, operator, attributes, inputs="x", weights=()):
    outputs = ["label", "y"] if operator.endswith("Classifier") else ["y"]
    one = helper.make_node(
        operator,
        inputs.split(),
        outputs,
        name="one",
        domain="ai.onnx.ml",
        **attributes,
    )
    values = [helper.make_empty_tensor_value_info(name) for name in outputs]
    for value in values:
        value.type.tensor_type.elem_type = (
            onnx.TensorProto.INT64
            if value.name == "label"
            else onnx.TensorProto.FLOAT
        )
    arrays = [
        numpy_helper.from_array(array, name)
        for name, array in dict(weights).items()
    ]
    graph = helper.make_graph(
        [one],
        "g",
        [helper.make_tensor_value_info("x", 1, X.shape)],
        values,
        arrays,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(proto, folder / "m.onnx")
    return proto


@pytest.mark.parametrize("name", FORMS)
def test_it_means_what_onnxruntime_computes(name, tmp_path):
    proto = model_of(tmp_path, *FORMS[name])
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize("probable", [False, True])
@pytest.mark.parametrize("kernel", ["LINEAR", "RBF"])
def test_support_vectors_of_two_classes(kernel, probable, tmp_path):
    form = {"kernel_type": kernel, "support_vectors": VECTORS, "kernel_params": [0.25, 0.5, 3.0], "rho": [0.1],
            "coefficients": SHARES, "vectors_per_class": [2, 4], "classlabels_ints": [5, 9]}  # fmt: skip
    proto = model_of(
        tmp_path,
        "SVMClassifier",
        form | ({"prob_a": [-1.5], "prob_b": [0.2]} if probable else {}),
    )
    model, _ = load_onnx(tmp_path / "m.onnx")
    expected, found = run(proto, {"x": X}), run(model, {"x": X})
    assert found["label"].tolist() == expected["label"].tolist() and set(
        found["label"]
    ) == {5, 9}
    assert np.abs(found["y"] - expected["y"]).max() < (
        0.005 if probable else 1e-5
    )


@pytest.mark.parametrize("mark", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_replaced_where_the_model_computes_them(
    mark, tmp_path
):
    """As scikit-learn's PowerTransformer does: a logarithm of -1 or of 0, and 7 in its place."""
    proto = model_of(
        tmp_path,
        "Imputer",
        {"imputed_value_floats": [7.0], "replaced_value_float": mark},
    )
    made = "l" if np.isnan(mark) else "m"
    proto.graph.node[0].input[0] = made
    for entry in (node("Neg", "l", "m"), node("Log", "x", "l")):
        proto.graph.node.insert(0, entry)
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = {"x": X.clip(0) if made == "m" else X}
    model, _ = load_onnx(tmp_path / "m.onnx")
    rewrite(model)
    found = run(model, feeds)["y"]
    assert (found == 7).sum() == (X <= 0).sum()
    assert_same(run(proto, feeds), {"y": found})


def test_columns_by_their_places(tmp_path):
    proto = model_of(
        tmp_path,
        "ArrayFeatureExtractor",
        {},
        "x places",
        {"places": np.array([2, 0])},
    )
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize(
    ("operator", "attributes", "sentence"),
    [
        (
            "Normalizer",
            {"norm": "L3"},
            r"one \(Normalizer\): norm=L3; expected L1, L2 or MAX",
        ),
        (
            "OneHotEncoder",
            {"cats_strings": ["a"]},
            "its categories are text; encode it outside",
        ),
        (
            "OneHotEncoder",
            {"cats_int64s": [1], "zeros": 0},
            r"zeros=0 stops at an unknown category, which no program can; expected 1: "
            r"export scikit-learn's OneHotEncoder\(handle_unknown='ignore'\)",
        ),
        ("Imputer", {}, "it has no values to put in the place of others"),
        (
            "LabelEncoder",
            {"keys_int64s": [1], "values_strings": ["a"]},
            "its values are text; encode it outside",
        ),
        (
            "LabelEncoder",
            {"keys_int64s": [1, 10**9], "values_int64s": [1, 2]},
            "keys from 1 to 1000000000; expected integers",
        ),
        (
            "LabelEncoder",
            {"keys_floats": [0.5], "values_int64s": [1]},
            "keys from 0.5 to 0.5; expected integers",
        ),
        (
            "LabelEncoder",
            {"keys_int64s": [1, 2], "values_int64s": [1]},
            "2 keys and 1 values",
        ),
        (
            "LinearRegressor",
            WEIGHTS | {"targets": 4},
            r"6 coefficients for 4 results",
        ),
        (
            "LinearRegressor",
            WEIGHTS | {"targets": 3},
            r"2 intercepts for 3 results",
        ),
        *(
            (
                "LinearRegressor",
                {"coefficients": [1.0, 2.0, 3.0], "targets": targets},
                f"3 coefficients for {targets} results",
            )
            for targets in (-1, 0, 2**62)
        ),
        (
            "LinearClassifier",
            WEIGHTS,
            "0 labels; expected two or more, and a row of coefficients for each",
        ),
        (
            "LinearRegressor",
            WEIGHTS | {"targets": 2, "post_transform": "PROBIT"},
            "post_transform=PROBIT; expected NONE",
        ),
        (
            "TreeEnsembleRegressor",
            trees("BRANCH_MEMBER", n_targets=2, **leaves("target")),
            "tree 0: conditions of the kinds BRANCH_MEMBER",
        ),
        (
            "TreeEnsembleRegressor",
            trees("BRANCH_LEQ", n_targets=2, **leaves("target"))
            | {"nodes_truenodeids": [1, 0, 0, 0, 0, 0]},
            "tree 0: its nodes are no tree",
        ),
        (
            "TreeEnsembleRegressor",
            trees("BRANCH_LEQ", n_targets=3, **leaves("target")),
            "no tree whose every leaf has a weight for result 2; runtimes read that in different ways",
        ),
        (
            "TreeEnsembleRegressor",
            trees("BRANCH_LEQ", n_targets=-1, **leaves("target")),
            "n_targets=-1; expected 1 or more",
        ),
        (
            "TreeEnsembleRegressor",
            trees("BRANCH_LEQ", n_targets=2**62, **leaves("target")),
            "no tree whose every leaf has a weight for result 2; runtimes",
        ),
        (
            "TreeEnsembleRegressor",
            trees("BRANCH_LEQ", **leaves("target")),
            "a weight for result 1 of 1",
        ),
        (
            "Scaler",
            {"offset": "much"},
            r"one \(Scaler\): operator of the domain 'ai.onnx.ml'",
        ),
        (
            "SVMRegressor",
            {},
            r"0 coefficients and 0 numbers of rho for 0 vectors",
        ),
        (
            "SVMRegressor",
            LINEAR
            | {
                "coefficients": [0.5, -1.0],
                "n_supports": -1,
                "support_vectors": VECTORS[:6],
            },
            r"2 coefficients and 1 numbers of rho for -1 vectors",
        ),
        (
            "SVMClassifier",
            LINEAR
            | {
                "vectors_per_class": [1, 1],
                "classlabels_ints": [0, 1],
                "coefficients": [1.0, 2.0],
                "support_vectors": VECTORS[:6],
            },
            "weights of one sign, or 0 and 0 numbers for probabilities",
        ),
        (
            "SVMClassifier",
            {
                "vectors_per_class": [1, 1, 1],
                "classlabels_ints": [0, 1, 2],
                "prob_a": [1.0],
            },
            "its probabilities are found by iteration; export it without probabilities",
        ),
        (
            "DictVectorizer",
            {},
            r"one \(DictVectorizer\): operator of the domain 'ai.onnx.ml': a classical model",
        ),
    ],
)
def test_what_is_not_supported_is_named(
    operator, attributes, sentence, tmp_path
):
    model_of(tmp_path, operator, attributes)
    with pytest.raises(Unsupported, match=sentence):
        load_onnx(tmp_path / "m.onnx")


def _machines(classes, coefficients, rho):
    return {
        "kernel_type": "LINEAR",
        "vectors_per_class": [1] * classes,
        "classlabels_ints": list(range(classes)),
        "coefficients": np.zeros(coefficients, np.float32).tolist(),
        "rho": np.zeros(rho, np.float32).tolist(),
        "support_vectors": np.zeros(3 * classes, np.float32).tolist(),
    }


@pytest.mark.parametrize(
    ("classes", "coefficients", "rho", "sentence"),
    [
        (
            2000,
            1,
            1,
            "1 coefficients and 1 numbers of rho for 2000 vectors",
        ),
        (
            500,
            499 * 500,
            499 * 250,
            "124750 pairs of 500 classes, with 500 vectors, need 124750000 weights and votes; at most 33554432",
        ),
    ],
)
def test_pairs_of_many_classes_are_refused_before_they_take_memory(
    classes, coefficients, rho, sentence, tmp_path
):
    attributes = _machines(classes, coefficients, rho)
    model_of(tmp_path, "SVMClassifier", attributes)
    with little_memory(), pytest.raises(Unsupported, match=sentence):
        load_onnx(tmp_path / "m.onnx")


def _ladder(depth):
    """A tree whose conditions stand in a row; each has a leaf beside it."""
    numbers = list(range(2 * depth + 1))
    is_leaf = [number % 2 == 1 or number == 2 * depth for number in numbers]
    leaves_ = [number for number in numbers if is_leaf[number]]
    return {
        "n_targets": 1,
        "nodes_treeids": [0] * len(numbers),
        "nodes_nodeids": numbers,
        "nodes_featureids": [0] * len(numbers),
        "nodes_values": [0.5] * len(numbers),
        "nodes_modes": ["LEAF" if leaf else "BRANCH_LEQ" for leaf in is_leaf],
        "nodes_truenodeids": [0 if is_leaf[n] else n + 1 for n in numbers],
        "nodes_falsenodeids": [0 if is_leaf[n] else n + 2 for n in numbers],
        "target_treeids": [0] * len(leaves_),
        "target_nodeids": leaves_,
        "target_ids": [0] * len(leaves_),
        "target_weights": [1.0] * len(leaves_),
    }


def test_a_deep_tree_is_refused_before_its_paths_are_listed(tmp_path):
    model_of(tmp_path, "TreeEnsembleRegressor", _ladder(5000))
    sentence = "25005000 pairs of conditions and leaves; at most 16777216"
    with little_memory(), pytest.raises(Unsupported, match=sentence):
        load_onnx(tmp_path / "m.onnx")


def _shared_chain(depth):
    """Conditions in a row, of which every two share what follows them."""
    numbers = list(range(depth + 1))
    after = [*numbers[1:], 0]
    return _ladder(1) | {
        "nodes_treeids": [0] * len(numbers),
        "nodes_nodeids": numbers,
        "nodes_featureids": [0] * len(numbers),
        "nodes_values": [0.5] * len(numbers),
        "nodes_modes": [*["BRANCH_LEQ"] * depth, "LEAF"],
        "nodes_truenodeids": after,
        "nodes_falsenodeids": after,
        "target_treeids": [0],
        "target_nodeids": [depth],
        "target_ids": [0],
        "target_weights": [1.0],
    }


@pytest.mark.parametrize(
    ("depth", "pairs"), [(20, 20 << 20), (5000, 5000 << 62)]
)
def test_branches_that_share_what_follows_are_counted_before_they_are_listed(
    depth, pairs, tmp_path
):
    model_of(tmp_path, "TreeEnsembleRegressor", _shared_chain(depth))
    sentence = f"{pairs} pairs of conditions and leaves; at most 16777216"
    with little_memory(), pytest.raises(Unsupported, match=sentence):
        load_onnx(tmp_path / "m.onnx")


def test_the_paths_of_a_deep_tree_share_their_steps(tmp_path):
    model_of(tmp_path, "TreeEnsembleRegressor", _ladder(2000))
    with little_memory():
        load_onnx(tmp_path / "m.onnx")


def test_dictionaries_of_columns_are_the_columns(tmp_path):
    model_of(tmp_path, "ZipMap", {"classlabels_int64s": [0, 1, 2]})
    (found,) = run(load_onnx(tmp_path / "m.onnx")[0], {"x": X}).values()
    assert np.array_equal(found, X)


def dictionaries(key):
    """The type that scikit-learn's converters give what ZipMap writes."""
    scores = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    return helper.make_sequence_type_proto(
        helper.make_map_type_proto(key, scores)
    )


def save_with_type(folder, place, kind):
    proto = onnx.load(folder / "m.onnx")
    getattr(proto.graph, place)[0].type.CopyFrom(kind)
    onnx.save(proto, folder / "m.onnx")


@pytest.mark.parametrize(
    ("attribute", "labels", "key"),
    [
        ("classlabels_int64s", [0, 1, 2], onnx.TensorProto.INT64),
        ("classlabels_strings", ["a", "b", "c"], onnx.TensorProto.STRING),
    ],
)
def test_an_output_with_the_type_of_dictionaries_is_a_tensor(
    attribute, labels, key, tmp_path
):
    model_of(tmp_path, "ZipMap", {attribute: labels})
    save_with_type(tmp_path, "output", dictionaries(key))
    (found,) = run(load_onnx(tmp_path / "m.onnx")[0], {"x": X}).values()
    assert np.array_equal(found, X)


def test_dictionaries_as_an_input_are_refused_by_name(tmp_path):
    model_of(tmp_path, "DictVectorizer", {"int64_vocabulary": [0, 1]})
    kind = dictionaries(onnx.TensorProto.INT64).sequence_type.elem_type
    save_with_type(tmp_path, "input", kind)
    with pytest.raises(Unsupported, match="input 'x': holds dictionaries"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (
            {"keys_int64s": [3, -1, 0, 3]},
            {"values_floats": [0.5, 1.5, 2.5, 9.0], "default_float": -7.0},
        ),
        ({"keys_int64s": [3, -1, 0]}, {"values_int64s": [5, 6, 7]}),
    ],
)
def test_a_table_of_labels(keys, values, tmp_path):
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], to=onnx.TensorProto.INT64),
        helper.make_node(
            "LabelEncoder", ["i"], ["c"], domain="ai.onnx.ml", **keys, **values
        ),
        helper.make_node("Cast", ["c"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    ends = [helper.make_tensor_value_info(name, 1, [5, 3]) for name in "xy"]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:]),
        opset_imports=opsets,
        ir_version=8,
    )
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X * 4}), run(model, {"x": X * 4}))


def test_columns_side_by_side(tmp_path):
    made = helper.make_node(
        "FeatureVectorizer",
        ["x", "x"],
        ["y"],
        domain="ai.onnx.ml",
        inputdimensions=[3, 3],
    )
    ends = [
        helper.make_tensor_value_info("x", 1, [5, 3]),
        helper.make_tensor_value_info("y", 1, [5, 6]),
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    proto = helper.make_model(
        helper.make_graph([made], "g", ends[:1], ends[1:]),
        opset_imports=opsets,
        ir_version=8,
    )
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X}), run(model, {"x": X}))


def test_labels_of_text_are_their_places_and_a_note_says_so(tmp_path):
    texts = WEIGHTS | {"classlabels_strings": ["no", "yes"]}
    proto = model_of(tmp_path, "LinearClassifier", texts)
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert (
        model.metadata_props["mrt_notes"]
        == "'label' is the place of a label: 0 is 'no', 1 is 'yes'"
    )
    found, expected = run(model, {"x": X}), run(proto, {"x": X})
    assert [("no", "yes")[place] for place in found["label"]] == expected[
        "label"
    ].tolist()
    assert np.allclose(found["y"], expected["y"])


def test_a_text_that_is_looked_up_is_its_place(tmp_path):
    """As exporters end a network whose classes have names."""
    nodes = [
        helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=0),
        helper.make_node(
            "ArrayFeatureExtractor",
            ["names", "best"],
            ["found"],
            domain="ai.onnx.ml",
        ),
        helper.make_node("Reshape", ["found", "row"], ["label"]),
    ]
    names = helper.make_tensor(
        "names", onnx.TensorProto.STRING, [3], [b"a", b"b", b"c"]
    )
    row = numpy_helper.from_array(np.array([-1]), "row")
    ends = [
        helper.make_tensor_value_info("x", 1, [5, 3]),
        helper.make_tensor_value_info("label", 8, [5]),
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [names, row])
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert (
        model.metadata_props["mrt_notes"]
        == "'found' is the place of a label: 0 is 'a', 1 is 'b', 2 is 'c'"
    )
    assert ["abc"[place] for place in run(model, {"x": X})["label"]] == run(
        proto, {"x": X}
    )["label"].tolist()
