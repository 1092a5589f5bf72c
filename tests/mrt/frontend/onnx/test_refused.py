"""What the ONNX front end refuses, each with the sentence a user reads."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mrt.errors import BadModel, MrtError, Unsupported
from mrt.frontend.onnx import load_onnx, read_onnx
from mrt.frontend.onnx.read import read
from mrt.rewrite import rewrite
from tests.support.graphs import build, node

_RELU = [node("Relu", "x", "y")]
_SHAPE = {"x": (1, 3, 4, 4)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.onnx"


def refusal(path, proto=None, kind=BadModel, **shapes):
    if proto is not None:
        path.write_bytes(proto.SerializeToString())
    with pytest.raises(kind) as caught:
        load_onnx(path, shapes)
    return str(caught.value).replace(str(path), "m.onnx")


def weights_model(array):
    return build([node("Mul", "x w", "y")], _SHAPE, {"w": array})


def test_a_missing_file(path):
    assert refusal(path) == "m.onnx: No such file or directory"


def test_a_folder(path):
    path.mkdir()
    assert refusal(path) == "m.onnx: is a folder; expected an .onnx file"


def test_an_empty_file(path):
    path.write_bytes(b"")
    assert refusal(path) == "m.onnx: the file is empty"


def test_a_text_file(path):
    path.write_text("Dear reader, this is a letter and no model.\n")
    assert refusal(path) == (
        "m.onnx: 44 bytes that are not an ONNX file, or one cut short; copy or export it again"
    )


def test_an_error_page(path):
    path.write_text("<!DOCTYPE html><html><body>404 Not Found</body></html>")
    assert refusal(path).startswith("m.onnx: 54 bytes that are not an ONNX")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_truncated_file(path, part):
    whole = weights_model(np.ones((3, 1, 1), np.float32)).SerializeToString()
    path.write_bytes(whole[: int(len(whole) * part)])
    assert refusal(path).startswith("m.onnx: ")


def test_a_file_above_the_size_limit(path, monkeypatch):
    monkeypatch.setattr(read, "LARGEST_FILE", 10)
    path.write_bytes(b"x" * 11)
    assert (
        refusal(path) == "m.onnx: 11 bytes; the largest .onnx file is 10 bytes"
    )


def test_a_protobuf_without_a_graph(path):
    assert refusal(path, onnx.ModelProto(ir_version=8)) == (
        "m.onnx: not an ONNX model (it has no graph or no IR version)"
    )


def test_a_graph_without_outputs(path):
    proto = build(_RELU, _SHAPE)
    del proto.graph.output[:]
    assert refusal(path, proto) == "m.onnx: the graph has no outputs"


@pytest.mark.parametrize("opset", [0, 29])
def test_an_opset_outside_the_range(path, opset):
    proto = build(_RELU, _SHAPE)
    proto.opset_import[0].version = opset
    assert (
        refusal(path, proto)
        == f"m.onnx: opset {opset}; supported are 1 to 28: export the model for one of these"
    )


def test_one_opset_said_twice_is_one(path):
    proto = build(_RELU, _SHAPE)
    proto.opset_import.add(domain="", version=20)
    onnx.save(proto, path)
    assert load_onnx(path)[0].graph.num_nodes() == 1
    proto.opset_import[1].version = 19
    assert (
        refusal(path, proto)
        == "m.onnx: names 2 versions of the default operator set; expected one"
    )


def test_no_default_operator_set(path):
    proto = build(_RELU, _SHAPE)
    proto.opset_import[0].domain = "com.example"
    assert (
        refusal(path, proto)
        == "m.onnx: names 0 versions of the default operator set; expected one"
    )


def test_an_unknown_element_type(path):
    proto = weights_model(np.ones((3, 1, 1), np.float32))
    proto.graph.initializer[0].data_type = 45
    assert refusal(path, proto) == "m.onnx: 'w' has the unknown element type 45"


def test_weights_with_bytes_missing(path):
    proto = weights_model(np.ones((3, 1, 1), np.float32))
    proto.graph.initializer[0].raw_data = b"\0" * 8
    assert refusal(path, proto).startswith("m.onnx: not a valid ONNX model: ")


def test_a_node_without_a_first_operand(path):
    proto = build(_RELU, _SHAPE)
    proto.graph.node[0].input[0] = ""
    assert "  Relu:y (Relu): its first operand is missing" in refusal(
        path, proto, Unsupported
    )


def test_an_attribute_that_is_no_text(path):
    proto = build(
        [node("MaxPool", "x", "y", kernel_shape=[2, 2], auto_pad="VALID")],
        _SHAPE,
    )
    next(
        a for a in proto.graph.node[0].attribute if a.name == "auto_pad"
    ).s = b"\xff\xfe"
    assert "  MaxPool:y (MaxPool): attribute auto_pad is no text" in refusal(
        path, proto, Unsupported
    )


def test_a_padding_mode_that_does_not_exist(path):
    proto = build(
        [node("MaxPool", "x", "y", kernel_shape=[2, 2], auto_pad="VALID")],
        _SHAPE,
    )
    next(
        a for a in proto.graph.node[0].attribute if a.name == "auto_pad"
    ).s = b"SAME"
    assert (
        "auto_pad=SAME; expected NOTSET or SAME_UPPER or SAME_LOWER or VALID"
        in refusal(path, proto, Unsupported)
    )


def test_every_unsupported_node_at_once(path):
    nodes = [
        node("Multinomial", "x", "a"),
        node("Relu", "a", "b"),
        node("MaxPool", "b", "c", kernel_shape=[2, 2], storage_order=1),
        node("Pad", "c p", "d", mode="mirror"),
        node("Pool", "d", "e", domain="com.example"),
        node("Conv", "e k", "f", kernel_shape=[3, 3, 3, 3]),
        node("BatchNormalization", "f s s s s", "y z q", training_mode=1),
    ]
    proto = build(_RELU, _SHAPE)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    assert refusal(path, proto, Unsupported).splitlines() == [
        "7 unsupported:",
        "  Multinomial:a (Multinomial): unsupported operator (ONNX opset 20): random numbers, which no program draws; "
        "export the model for inference, make them an input, or end in front of it with --outputs",
        "  MaxPool:c (MaxPool): storage_order=1; expected 0",
        "  Pad:d (Pad): mode=mirror; expected constant or edge or reflect or wrap",
        "  Pool:e (Pool): operator of the domain 'com.example': its author's own; "
        "export the model with operators of ONNX, or end in front of it with --outputs",
        "  Conv:f (Conv): kernel_shape=[3, 3, 3, 3]; expected 1 to 3 dimensions",
        "  BatchNormalization:y (BatchNormalization): training_mode=1; expected 0",
        "  BatchNormalization:y (BatchNormalization): second output 'z'; expected one output",
        "supported operators: mrt operators --frontend onnx",
    ]


@pytest.mark.parametrize("outputs", ["y z", "y r"])
def test_a_second_result_that_is_read(path, outputs):
    proto = build(
        [node("Dropout", "x", "y z"), node("Cast", "z", "r", to=1)],
        _SHAPE,
        outputs=outputs,
        opset=13,
    )
    assert (
        "  Dropout:y (Dropout): second output 'z'; expected one output"
        in refusal(path, proto, Unsupported)
    )


def test_a_batch_normalization_that_trains_as_old_ones_say_it(path):
    proto = build(
        [node("BatchNormalization", "x s s s s", "y a b c d")],
        _SHAPE,
        {"s": np.ones(3, np.float32)},
        opset=8,
    )
    assert (
        "(BatchNormalization): second output 'a'; expected one output"
        in refusal(path, proto, Unsupported)
    )


def test_nodes_without_a_name_are_called_by_their_output(path):
    proto = build([node("Relu", "x", "a")], _SHAPE, outputs="a")
    proto.graph.node[0].op_type, proto.graph.node[0].name = "Foo", ""
    assert (
        "  a (Foo): unsupported operator (ONNX opset 20): ONNX has none of this name; "
        "export the model with operators of ONNX, or end in front of it with --outputs"
        in refusal(path, proto, Unsupported)
    )


def test_a_node_with_a_graph_of_its_own(path):
    proto = build([node("Identity", "x", "y")], _SHAPE)
    branch = helper.make_graph([], "branch", [], [])
    proto.graph.node[0].attribute.append(helper.make_attribute("body", branch))
    assert "Identity:y (Identity): body: attributes that are graphs" in refusal(
        path, proto, Unsupported
    )


@pytest.mark.parametrize(("kind", "name"), [(8, "string"), (14, "complex64")])
def test_inputs_that_no_program_takes(path, kind, name):
    proto = build([node("Cast", "x", "y", to=1)], _SHAPE, kind=kind)
    expected = f"  input 'x': holds {name}; expected floats, bool or integers"
    assert expected in refusal(path, proto, Unsupported)


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (np.array([1, np.nan], np.float32), "holds NaN"),
        (np.array([1, np.nan], np.float16), "holds NaN"),
        (
            np.array([1, -np.inf], np.float32),
            "holds infinities, or numbers too large for float32",
        ),
        (
            np.array([1, 1e300]),
            "holds infinities, or numbers too large for float32",
        ),
    ],
)
def test_weights_that_are_no_numbers(path, array, problem):
    proto = build(
        [node("Cast", "w", "f", to=1), node("Mul", "x f", "y")],
        {"x": (3, 2)},
        {"w": array},
    )
    assert refusal(path, proto) == (
        f"initializer 'w' {problem}, which Mul:y (Mul) reads; "
        "expected finite numbers: change them in the file, or end in front of it with --outputs"
    )


@pytest.mark.parametrize("is_node", [False, True])
def test_texts_that_are_looked_up_are_refused_with_a_way_around_them(
    path, is_node
):
    """In front of them the model ends in the class."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])
    y = helper.make_tensor_value_info("y", TensorProto.STRING, [1])
    animals = helper.make_tensor(
        "animals", TensorProto.STRING, [3], [b"cat", b"dog", b"cow"]
    )
    nodes = [
        helper.make_node("ArgMax", ["x"], ["class"], axis=1, keepdims=0),
        helper.make_node("Gather", ["animals", "class"], ["y"]),
    ]
    if is_node:
        nodes.insert(
            0, helper.make_node("Constant", [], ["animals"], value=animals)
        )
    graph = helper.make_graph(
        nodes, "g", [x], [y], [] if is_node else [animals]
    )
    onnx.save(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
        ),
        path,
    )
    with pytest.raises(
        Unsupported,
        match=r"y \(Gather\): it reads the texts in 'animals', .* end in front of it with --outputs",
    ):
        load_onnx(path)
    model = read_onnx(path, outputs=["class"]).model
    assert [value.name for value in model.graph.outputs] == ["class"]


def test_a_nan_in_a_constant_node(path):
    value = numpy_helper.from_array(np.array([np.nan], np.float32))
    proto = build(
        [node("Constant", "", "c", value=value), node("Mul", "x c", "y")],
        _SHAPE,
    )
    assert refusal(path, proto) == (
        "initializer 'c' holds NaN, which Mul:y (Mul) reads; "
        "expected finite numbers: change them in the file, or end in front of it with --outputs"
    )


def test_a_nan_that_a_choice_by_a_constant_drops_is_read(path):
    """As JAX's variance: NaN where there are no elements, x where there are."""
    nodes = [
        node("Greater", "n z", "c"),
        node("Where", "c x nan", "w"),
        node("Relu", "w", "y"),
    ]
    constants = {"n": 64.0, "z": 0.0, "nan": float("nan")}
    onnx.save(build(nodes, {"x": (2, 3)}, constants), path)
    model, _ = load_onnx(path)
    rewrite(model)
    assert [entry.op_type for entry in model.graph] == ["Relu"]


@pytest.mark.parametrize("expanded", [False, True])
def test_a_nan_that_is_handed_on_to_a_choice_is_read(path, expanded):
    """As JAX's variance of an open batch."""
    handing = [
        node("Unsqueeze", "nan zeros", "one"),
        node("Reshape", "one ones", "two"),
        node("Expand", "two sizes", "n2"),
    ]
    nodes = [
        *handing[: 3 if expanded else 2],
        node("Where", f"c x {'n2' if expanded else 'two'}", "y"),
    ]
    constants = {
        "nan": float("nan"),
        "zeros": np.array([0]),
        "ones": np.array([1, 1]),
        "sizes": np.array([2, 3]),
        "c": np.ones((2, 3), bool),
    }
    onnx.save(build(nodes, {"x": (2, 3)}, constants), path)
    load_onnx(path)


def test_a_nan_among_sizes_is_refused(path):
    """What a Reshape takes for its sizes is none of the numbers that it hands on."""
    nodes = [
        node("Cast", "nan", "sizes", to=7),
        node("Reshape", "x sizes", "r"),
        node("Where", "c r x", "y"),
    ]
    constants = {"nan": np.float32([np.nan]), "c": np.ones(6, bool)}
    proto = build(nodes, {"x": (6,)}, constants)
    assert refusal(path, proto) == (
        "initializer 'nan' holds NaN, which Reshape:r (Reshape) reads; "
        "expected finite numbers: change them in the file, or end in front of it with --outputs"
    )


def test_unknown_dimensions(path):
    proto = build(_RELU, {"x": ("N", 3, "H", "W")})
    assert refusal(path, proto) == (
        "input 'x' has unknown dimensions; add --shape x=1,3,?,?, numbers for each ?, "
        "or --data with samples of it (a folder of pictures needs --crop, too)"
    )


def test_all_open_inputs_are_named_at_once(path):
    nodes = [node("Add", "x z", "y")]
    proto = build(nodes, {"x": ("N", "H"), "z": ("N", "H")})
    assert refusal(path, proto) == (
        "inputs 'x', 'z' have unknown dimensions; add --shape x=1,? --shape z=1,?, numbers for each ?, "
        "or --data with samples of it (a folder of pictures needs --crop, too)"
    )


def test_many_open_inputs_have_a_line_each(path):
    names = [f"x{place}" for place in range(5)]
    proto = build(
        [node("Sum", " ".join(names), "y")],
        dict.fromkeys(names, ("N", "H")),
    )
    first, *shapes = refusal(path, proto).splitlines()
    assert first == (
        "5 inputs have unknown dimensions; add these, numbers for each ?, "
        "or --data with samples of it (a folder of pictures needs --crop, too)"
    )
    assert shapes == [f"  --shape {name}=1,?" for name in names]


@pytest.mark.parametrize("name", ["seq", "tokens", "length", "H"])
def test_an_open_first_dimension_with_another_name_than_a_batch(path, name):
    said = refusal(path, build(_RELU, {"x": (name, 3)}))
    assert said.startswith(
        "input 'x' has unknown dimensions; add --shape x=?,3, numbers for each ?,"
    )
    assert said.endswith(f"; if '{name}' counts samples, it is 1")


def test_where_nothing_is_known_the_first_dimension_may_be_time(path):
    dimensions = ("input_dim_0", "input_dim_1")
    said = refusal(path, build(_RELU, {"x": dimensions}))
    assert "; add --shape x=?,?, numbers for each ?, or --data" in said
    assert said.endswith("; if the first counts samples, it is 1")


@pytest.mark.parametrize(
    "name",
    ["N", "batch", "batch_size", "num_samples", "unk__12", "None", "s0", "?"],
)
def test_a_first_dimension_named_as_a_batch_or_not_at_all_is_1(path, name):
    onnx.save(build(_RELU, {"x": (name, 3)}), path)
    model, _ = load_onnx(path)
    assert list(model.graph.inputs[0].shape) == [1, 3]


def test_a_shape_for_an_input_that_is_not_there(path):
    assert refusal(path, build(_RELU, _SHAPE), data=(1, 3)) == (
        "--shape data: the model has no input of that name; it has x"
    )


def test_a_shape_of_another_rank(path):
    assert (
        refusal(path, build(_RELU, _SHAPE), x=(1, 3))
        == "--shape x=1,3: expected 4 dimensions, each 1 or more"
    )


def test_a_shape_that_does_not_fit_the_weights(path):
    proto = build(
        [node("Conv", "x w", "y")],
        {"x": (1, 3, "H", "W")},
        {"w": np.ones((2, 3, 3, 3), np.float32)},
    )
    assert refusal(path, proto, x=(1, 4, 8, 8)) == (
        "Conv:y (Conv): its input has 4 channels; its weights [2, 3, 3, 3] with group=1 expect 3"
    )


def test_shapes_that_do_not_fit_together(path):
    proto = build(
        [node("Add", "x w", "y")],
        {"x": (1, 3, "H", 4)},
        {"w": np.ones((5, 1), np.float32)},
    )
    assert refusal(path, proto, x=(1, 3, 2, 4)).startswith(
        "m.onnx: the shapes do not fit together: [ShapeInferenceError]"
    )


@pytest.mark.parametrize("target", [[4, -1], [4, 6]])
def test_a_model_for_a_batch_of_its_own_is_told_which(path, target):
    """As of four views of one picture: an open batch is 1 unless something says more."""
    proto = build(
        [node("Relu", "x", "a"), node("Reshape", "a s", "y")],
        {"x": ("batch", 2, 3)},
        {"s": np.array(target)},
    )
    found = refusal(path, proto)
    assert found == (
        f"m.onnx: Reshape:y (Reshape): its operand [1, 2, 3] does not fit the shape {target}; "
        "the open batch of 'x' was taken as 1, another may fit: --shape x=4,2,3"
    )


def test_no_batch_is_named_where_types_do_not_fit_together(path):
    """As of an index that an exporter left a real number."""
    proto = build([node("Gather", "w x", "y")], {"x": ("batch", 3)}, {"w": np.ones((5, 1), np.float32)})  # fmt: skip
    found = refusal(path, proto)
    assert found.startswith("m.onnx: the types of values do not fit together: ")
    assert found.endswith(
        "indices typestr: Tind, has unsupported type: tensor(float)"
    )


def test_an_open_batch_is_named_where_shapes_do_not_fit_together(path):
    proto = build(
        [node("Add", "x w", "y")],
        {"x": ("batch", 3)},
        {"w": np.ones((1, 2), np.float32)},
    )
    found = refusal(path, proto)
    assert found.startswith("m.onnx: the shapes do not fit together: ")
    assert found.endswith(
        "; the open batch of 'x' was taken as 1, another may fit: --shape x=N,3"
    )


@pytest.mark.parametrize(
    ("operator", "weights", "attributes", "problem"),
    [
        (
            "Conv",
            [(2, 3, 3, 3), (5,)],
            {},
            "its bias has shape [5]; expected [2]",
        ),
        (
            "Conv",
            [(3, 1, 3, 3)],
            {"group": 2},
            "group=2 does not divide 3 channels",
        ),
        (
            "Conv",
            [(2, 3, 3, 3)],
            {"kernel_shape": [2, 2]},
            "kernel_shape=[2, 2]; its weights are [2, 3, 3, 3]",
        ),
        (
            "ConvTranspose",
            [(4, 2, 3, 3)],
            {},
            "its input has 3 channels; its weights [4, 2, 3, 3] with group=1 expect 4",
        ),
        (
            "PRelu",
            [(5, 1, 1)],
            {},
            "slope [5, 1, 1] does not broadcast to its input [1, 3, 8, 8]",
        ),
    ],
)
def test_weights_that_do_not_suit_their_input(
    path, operator, weights, attributes, problem
):
    names = ["abcd"[index] for index in range(len(weights))]
    arrays = {
        name: np.ones(shape, np.float32)
        for name, shape in zip(names, weights, strict=True)
    }
    proto = build(
        [node(operator, " ".join(["x", *names]), "y", **attributes)],
        {"x": (1, 3, 8, 8)},
        arrays,
    )
    assert refusal(path, proto) == f"{operator}:y ({operator}): {problem}"


def test_a_gemm_with_an_unfit_c(path):
    arrays = {"w": np.ones((3, 4), np.float32), "c": np.ones((3,), np.float32)}
    assert refusal(
        path, build([node("Gemm", "x w c", "y")], {"x": (2, 3)}, arrays)
    ) == (
        "Gemm:y (Gemm): C has shape [3]; expected one that broadcasts to [2, 4]"
    )


def test_a_reshape_that_loses_elements(path):
    proto = build(
        [node("Reshape", "x s", "y")], {"x": (3, 5)}, {"s": np.array([4, 4])}
    )
    assert refusal(path, proto) == (
        "Reshape:y (Reshape): its input [3, 5] has another number of elements than its result [4, 4]"
    )


def test_a_scale_that_makes_a_size_negative(path):
    proto = build(
        [node("Resize", "x - s", "y")],
        _SHAPE,
        {"s": np.array([1, 1, 1, -2], np.float32)},
    )
    assert (
        "m.onnx: the shapes do not fit together: 'y' would have the shape "
        in refusal(path, proto)
    )


def test_a_scale_of_another_length_than_what_is_normalised(path):
    proto = build(
        [node("LayerNormalization", "x k", "y", axis=-1)],
        _SHAPE,
        {"k": np.ones(3, np.float32)},
    )
    assert (
        "LayerNormalization:y (LayerNormalization): scale [3] does not broadcast to ["
        in refusal(path, proto)
    )


def test_an_operand_that_nobody_makes(path):
    proto = build([node("Add", "x x", "y")], _SHAPE)
    proto.graph.node[0].input[1] = "ghost"
    assert refusal(path, proto).startswith(
        "m.onnx: not a valid ONNX model: Nodes in a graph must be topologically sorted"
    )


def test_an_attribute_newer_than_opset_20_that_changes_the_meaning(path):
    proto = build([node("Cast", "x", "y", to=1)], _SHAPE, opset=24)
    proto.graph.node[0].attribute.append(
        helper.make_attribute("round_mode", "up")
    )
    assert (
        "Cast:y (Cast): attribute round_mode is not one of opset 20"
        in refusal(path, proto, Unsupported)
    )


def test_an_attribute_of_another_type_than_the_operator_declares(path):
    proto = build([node("MaxPool", "x", "y", kernel_shape=[2, 2])], _SHAPE)
    proto.graph.node[0].attribute[0].type = onnx.AttributeProto.GRAPH
    assert "attribute kernel_shape is of type GRAPH; expected INTS" in refusal(
        path, proto, Unsupported
    )


@pytest.mark.parametrize("name", ["Relu:y", "wanted"])
def test_a_name_that_is_no_text(path, name):
    made = [node("Relu", "x", "wanted"), node("Relu", "wanted", "y")]
    data = build(made, _SHAPE).SerializeToString()
    path.write_bytes(data.replace(name.encode(), b"\xff" * len(name)))
    assert refusal(path) == "m.onnx: a name in it is no text (UTF-8)"


def test_a_sequence_as_an_output_names_its_elements(path):
    """As skl2onnx gives the probabilities of several classifiers."""
    proto = build(
        [
            node("Relu", "x", "label"),
            node("Sigmoid", "x", "one"),
            node("Tanh", "x", "two"),
            node("SequenceConstruct", "one two", "both"),
        ],
        _SHAPE,
        {},
    )
    label = helper.make_tensor_value_info("label", 1, None)
    both = helper.make_tensor_sequence_value_info("both", 1, None)
    proto.graph.ClearField("output")
    proto.graph.output.extend([label, both])
    found = refusal(path, proto, Unsupported)
    assert "output 'both' is a sequence" in found
    assert "--outputs label,one,two" in found


def test_pooling_of_constant_regions_is_not_called_computed(path):
    regions = {
        "regions": np.float32([[0, 0, 2, 2]]),
        "images": np.array([0]),
    }
    nodes = [node("RoiAlign", "x regions images", "y")]
    found = refusal(path, build(nodes, _SHAPE, regions), Unsupported)
    assert "pooling of regions, which no program does" in found


def test_a_node_without_outputs_is_refused(path):
    proto = build([node("Relu", "x", "y")], _SHAPE, {})
    proto.graph.node.insert(0, onnx.NodeProto(op_type="Unsqueeze", input=["x"]))
    assert refusal(path, proto, MrtError)


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.STRING])
def test_counts_of_words_and_of_tokens(path, kind):
    """Tokens are numbers already, so that it does not help to begin with numbers."""
    pool = (
        {"pool_int64s": [4, 7]}
        if kind == TensorProto.INT64
        else {"pool_strings": [b"a", b"b"]}
    )
    counting = node(
        "TfIdfVectorizer",
        "x",
        "y",
        mode="TF",
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=0,
        ngram_counts=[0],
        ngram_indexes=[0, 1],
        **pool,
    )
    model = build([counting], {"x": (1, 5)}, {})
    model.graph.input[0].type.tensor_type.elem_type = kind
    message = refusal(path, model, Unsupported)
    assert "count them outside, and let the model begin with the counts" in (
        message
    )
