"""Loops and sequences that are known at conversion become plain nodes; others are refused.

The plain nodes give what onnxruntime gives for the loop or sequence.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.frontend.onnx.resolve import if_branch
from mrt.rewrite import canonical, rewrite
from tests.support.graphs import run

RNG = np.random.default_rng(6)
SHAPE = (2, 4)
W = RNG.normal(size=(4, 4)).astype(np.float32) / 2
CONSTANTS = {"w": W, "four": np.array(4), "many": np.array(2**40), "yes": np.array(True), "one": np.array(1),
             "three": np.array(3), "zero": np.array(0)}  # fmt: skip


def value(name, shape=None, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(
        operator,
        inputs.split(),
        outputs.split(),
        name=f"{operator}:{outputs}",
        **attributes,
    )


def body(nodes, states, outputs, kinds=()):
    """A Loop's body: iteration, condition, states."""
    begins = [
        value("i", [], TensorProto.INT64),
        value("c", [], TensorProto.BOOL),
        *(value(name) for name in states),
    ]
    named = dict(kinds)
    ends = [
        value(name, None, named.get(name, TensorProto.FLOAT))
        for name in outputs
    ]
    ends[0] = value(outputs[0], [], TensorProto.BOOL)
    return helper.make_graph(nodes, "body", begins, ends)


def model_of(nodes, opset=13, outputs="y", inputs=None):
    held = [
        numpy_helper.from_array(array, name)
        for name, array in CONSTANTS.items()
    ]
    begins = [
        value(name, shape) for name, shape in (inputs or {"x": SHAPE}).items()
    ]
    graph = helper.make_graph(
        nodes, "g", begins, [value(name) for name in outputs.split()], held
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
    )


def check(proto, folder, inputs=None):
    """Equal to onnxruntime's, and of canonical operators in the end."""
    feeds = {
        name: RNG.normal(size=shape).astype(np.float32)
        for name, shape in (inputs or {"x": SHAPE}).items()
    }
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = dict(
        zip(
            [item.name for item in session.get_outputs()],
            session.run(None, feeds),
            strict=True,
        )
    )
    onnx.save(proto, folder / "m.onnx")
    model, _ = load_onnx(folder / "m.onnx")
    rewrite(model)
    assert all(
        entry.op_type in canonical.CANONICAL_OPERATORS for entry in model.graph
    )
    for name, found in run(model, feeds).items():
        assert found.shape == expected[name].shape
        assert np.allclose(found, expected[name], atol=1e-5), name


STEP = [
    node("MatMul", "s w", "p"),
    node("Tanh", "p", "t"),
    node("Identity", "c", "go"),
]
ENDED = [
    *STEP[:2],
    node("ReduceMax", "t", "most", keepdims=0),
    node("Cast", "most", "go", to=TensorProto.BOOL),
]
GROWING = [
    node("Concat", "s s", "t", axis=0),
    node("ReduceMax", "t", "most", keepdims=0),
    node("Cast", "most", "go", to=TensorProto.BOOL),
]
DECIDED = [*STEP[:2], node("Less", "i many", "go")]


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_a_loop_of_so_many_steps(opset, tmp_path):
    """The body reads a weight from outside, gives a state and keeps what each step gave."""
    made = node(
        "Loop",
        "four yes x",
        "last every",
        body=body(STEP, ["s"], ["go", "t", "t"]),
    )
    check(
        model_of(
            [made, node("Relu", "last", "y"), node("Neg", "every", "z")],
            opset,
            "y z",
        ),
        tmp_path,
    )


def test_a_loop_that_decides_whether_to_go_on(tmp_path):
    inner = [
        *STEP[:2],
        node("Add", "i one", "next"),
        node("Less", "next three", "go"),
    ]
    made = node(
        "Loop", "many yes x", "last", body=body(inner, ["s"], ["go", "t"])
    )
    check(model_of([made, node("Relu", "last", "y")]), tmp_path)


def test_a_recurrence_whose_many_steps_each_ask_for_the_next(tmp_path):
    """As tf2onnx writes a masked recurrence of Keras: each condition is known, for the counter alone decides."""
    inner = [
        *STEP[:2],
        node("Add", "i one", "next"),
        node("Less", "i steps", "now"),
        node("Less", "next steps", "later"),
        node("And", "now later", "go"),
    ]
    made = node(
        "Loop", "steps yes x", "y every", body=body(inner, ["s"], ["go", "t", "t"])
    )  # fmt: skip
    model = model_of([made, node("Neg", "every", "z")], outputs="y z")
    model.graph.initializer.append(
        numpy_helper.from_array(np.array(70), "steps")
    )
    check(model, tmp_path)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_loop_that_a_computed_condition_ends(keepdims, tmp_path):
    """The steps behind the end are computed as well, and their states are dropped."""
    inner = [
        node("Mul", "s half", "t"),
        node("ReduceMax", "t", "most", keepdims=keepdims),
        node("Abs", "most", "size"),
        node("Greater", "size half", "large"),
        node("Reshape", "large shape", "go"),
        node("Add", "k half", "next"),
    ]
    made = node(
        "Loop",
        "eight yes x half",
        "last count",
        body=body(inner, ["s", "k"], ["go", "t", "next"]),
    )
    ends = [
        node("Relu", "last", "y"),
        node("Neg", "count", "z"),
    ]
    proto = model_of([made, *ends], outputs="y z")
    shape = np.ones(keepdims, np.int64)
    for name, array in (
        ("half", np.float32(0.5)),
        ("eight", np.array(8)),
        ("shape", shape),
    ):
        proto.graph.initializer.append(
            numpy_helper.from_array(np.asarray(array), name)
        )
    for _ in range(8):
        check(proto, tmp_path)


def test_a_loop_that_goes_on_as_long_as_a_shape_says(tmp_path):
    """As tf2onnx writes a recurrence of TensorFlow: counted in the body, up to the length of the input."""
    inner = [
        *STEP[:2],
        node("Add", "i one", "next"),
        node("Less", "next length", "go"),
    ]
    made = node(
        "Loop", "many yes x", "last", body=body(inner, ["s"], ["go", "t"])
    )
    before = [
        node("Shape", "x", "shape"),
        node("Gather", "shape one", "length", axis=0),
    ]
    check(model_of([*before, made, node("Relu", "last", "y")]), tmp_path)


def test_a_loop_that_counts_in_its_body(tmp_path):
    inner = [
        node("Cast", "i", "f", to=1),
        node("Mul", "s f", "t"),
        node("Add", "t x", "u"),
        STEP[2],
    ]
    made = node(
        "Loop", "four yes x", "last", body=body(inner, ["s"], ["go", "u"])
    )
    check(model_of([made, node("Relu", "last", "y")]), tmp_path)


def test_loops_in_loops(tmp_path):
    inner = helper.make_graph(
        [node("Add", "b x", "bb"), node("Identity", "d", "dd")], "inner",
        [value("j", [], TensorProto.INT64), value("d", [], TensorProto.BOOL), value("b")],
        [value("dd", [], TensorProto.BOOL), value("bb")],
    )  # fmt: skip
    outer = [
        node("Loop", "three yes s", "t", body=inner),
        node("Tanh", "t", "u"),
        STEP[2],
    ]
    made = node(
        "Loop", "one yes x", "last", body=body(outer, ["s"], ["go", "u"])
    )
    check(model_of([made, node("Relu", "last", "y")]), tmp_path)


@pytest.mark.parametrize(
    "attributes", [{}, {"scan_input_axes": [1], "scan_output_axes": [1]},
                   {"scan_input_directions": [1], "scan_output_directions": [1]}]
)  # fmt: skip
def test_a_scan_over_rows_or_columns(attributes, tmp_path):
    axis = attributes.get("scan_input_axes", [0])[0]
    length = SHAPE[1 - axis]
    inner = helper.make_graph(
        [node("Add", "s r", "t"), node("Tanh", "t", "k")], "body", [value("s", [length]), value("r", [length])],
        [value("t", [length]), value("k", [length])],
    )  # fmt: skip
    made = node(
        "Scan", "first x", "last y", body=inner, num_scan_inputs=1, **attributes
    )
    nodes = [
        node(
            "Constant",
            "",
            "first",
            value=numpy_helper.from_array(np.ones(length, np.float32)),
        ),
        made,
    ]
    check(model_of([*nodes, node("Neg", "last", "z")], outputs="y z"), tmp_path)


def test_the_steps_of_a_scan_that_are_too_many_are_counted(tmp_path):
    """As of the nearest neighbours of scikit-learn, with an operator of ai.onnx.ml beside it."""
    inner = helper.make_graph(
        [node("Identity", "s", "t"), node("Sub", "s r", "k")], "body", [value("s", [4]), value("r", [4])],
        [value("t", [4]), value("k", [4])],
    )  # fmt: skip
    rows = numpy_helper.from_array(np.ones((1300, 4), np.float32))
    nodes = [
        node("Constant", "", "rows", value=rows),
        node("Constant", "", "first", value=numpy_helper.from_array(W[0])),
        node("Scan", "first rows", "last z", body=inner, num_scan_inputs=1),
        node("Normalizer", "x", "y", domain="ai.onnx.ml"),
    ]
    model = model_of(nodes, outputs="y z")
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(
        Unsupported,
        match=r"Scan:last z \(Scan\): it runs 1300 times; at most 1024 steps are written out: "
        "export the model without it, or end in front of it with --outputs",
    ):
        load_onnx(tmp_path / "m.onnx")


def test_a_list_that_a_loop_fills(tmp_path):
    """As scripted modules gather the results of their steps."""
    inner = [*STEP[:2], node("SequenceInsert", "q t", "r"), STEP[2]]
    graph = body(inner, ["s"], ["go", "t"])
    graph.input.append(
        helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None)
    )
    graph.output.append(
        helper.make_tensor_sequence_value_info("r", TensorProto.FLOAT, None)
    )
    nodes = [
        node("SequenceEmpty", "", "none", dtype=1),
        node("Loop", "three yes x none", "last all", body=graph),
        node("ConcatFromSequence", "all", "y", axis=1, new_axis=1),
    ]
    check(model_of(nodes), tmp_path)


def test_bags_whose_places_are_known(tmp_path):
    """As torch exports nn.EmbeddingBag: its loop counts with numbers that CastLike makes, and has no trip count."""
    inner = [
        node("CastLike", "one k", "step"),
        node("Add", "k step", "n"),
        *(
            node("Gather", f"offsets {place}", end)
            for place, end in (("k", "start"), ("n", "end"))
        ),
        *(
            node("Reshape", f"{end} list", f"{end}s")
            for end in ("start", "end")
        ),
        node("Slice", "x starts ends", "rows"),
        node("ReduceSum", "rows axis", "bag"),
        node("SequenceInsert", "q bag", "r"),
        node("Less", "n three", "go"),
    ]
    graph = body(inner, ["k"], ["go", "n"], {"n": TensorProto.INT64})
    graph.input[2].CopyFrom(value("k", [], TensorProto.INT64))
    graph.input.append(
        helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None)
    )
    graph.output.append(
        helper.make_tensor_sequence_value_info("r", TensorProto.FLOAT, None)
    )
    nodes = [
        node("Constant", "", "offsets", value_ints=[0, 1, 4, 6]),
        node("Constant", "", "list", value_ints=[-1]),
        node("Constant", "", "axis", value_ints=[0]),
        node("SequenceEmpty", "", "none", dtype=1),
        helper.make_node(
            "Loop",
            ["", "yes", "zero", "none"],
            ["last", "all"],
            name="Loop",
            body=graph,
        ),
        node("ConcatFromSequence", "all", "y", axis=0),
    ]
    inputs = {"x": (6, 4)}
    check(model_of(nodes, 18, inputs=inputs), tmp_path, inputs)


@pytest.mark.parametrize("opset", [11, 13])
def test_pieces_of_a_tensor(opset, tmp_path):
    nodes = [
        node("SplitToSequence", "x three", "pieces", axis=1),  # of 3 and of 1
        node("SequenceAt", "pieces zero", "a"),
        node("SequenceAt", "pieces one", "b"),
        node("Mul", "a b", "y"),
        node("SplitToSequence", "x", "columns", axis=1, keepdims=0),
        node("SequenceErase", "columns one", "fewer"),
        node("SequenceInsert", "fewer b0 zero", "more"),
        node("SequenceLength", "more", "n"),
        node("Cast", "n", "f", to=1),
        node("ConcatFromSequence", "more", "joined", axis=0),
        node("Mul", "joined f", "z"),
    ]
    nodes.insert(0, node("ReduceMax", "x", "b0", axes=[1], keepdims=0))
    check(model_of(nodes, opset, "y z"), tmp_path)


def test_sequences_that_are_built(tmp_path):
    nodes = [
        node("Relu", "x", "r"),
        node("SequenceConstruct", "x r", "both"),
        node("Identity", "both", "same"),
        node("SequenceAt", "both one", "a"),
        node("ConcatFromSequence", "both", "b", axis=0),
        node("Neg", "a", "y"),
        node("Neg", "b", "z"),
    ]
    check(model_of(nodes, 16, outputs="y z"), tmp_path)


def test_a_nest_of_loops_with_too_many_steps_is_refused_before_any_is_unrolled(
    tmp_path,
):
    """Eight loops of four steps in one another: 4^8 nodes. They were unrolled one by one, from the outermost, for ten seconds."""
    nested = body(STEP, ["s"], ["go", "t"])
    for _ in range(7):
        one = node("Loop", "four yes s", "t", body=nested)
        go = node("Identity", "c", "go")
        nested = body([go, one], ["s"], ["go", "t"])
    model = model_of([node("Loop", "four yes x", "y", body=nested)])
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(
        Unsupported,
        match=r"1 unsupported:\n.*: its 4 steps of \d+ nodes or more, beside 1 nodes of the model, "
        "are too many; at most 65536 nodes in all: export",
    ):
        load_onnx(tmp_path / "m.onnx")


def test_constructs_in_a_large_model_are_resolved_only_while_that_is_fast(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(if_branch, "MOST_INFERRED_NODES", 31)
    then = helper.make_graph([node("Relu", "x", "t")], "then", [], [value("t")])
    other = helper.make_graph([node("Neg", "x", "o")], "else", [], [value("o")])
    nodes = [
        node("If", "yes", f"y{index}", then_branch=then, else_branch=other)
        for index in range(5)
    ]
    model = model_of(nodes, outputs=" ".join(f"y{index}" for index in range(5)))
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match="4 unsupported"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (
            node("Loop", "n yes x", "y", body=body(STEP, ["s"], ["go", "t"])),
            "how often it runs is not known at conversion; fix shapes",
        ),
        (
            node(
                "Loop", "many yes x", "y", body=body(STEP, ["s"], ["go", "t"])
            ),
            "it runs 1099511627776 times; at most 1024 steps are written out: export",
        ),
        (
            helper.make_node(
                "Loop",
                ["", "yes", "x"],
                ["y"],
                name="Loop:y",
                body=body(STEP, ["s"], ["go", "t"]),
            ),
            "it runs without end; at most 1024 steps are written out: export",
        ),
        (
            node(
                "Loop",
                "many yes x",
                "y",
                body=body(DECIDED, ["s"], ["go", "t"]),
            ),
            "it decides after each step whether to go on, and goes on after 64; at most 64 steps are written out: export",
        ),
        (
            node(
                "Loop", "many yes x", "y", body=body(ENDED, ["s"], ["go", "t"])
            ),
            "a computed condition ends it, and its trip count allows 1099511627776 steps; with at most 64 all",
        ),
        (
            node(
                "Loop",
                "four yes x",
                "y",
                body=body(GROWING, ["s"], ["go", "t"]),
            ),
            "how often it runs is not known at conversion",
        ),
    ],
)
def test_loops_of_unknown_or_endless_length_are_refused(
    made, problem, tmp_path
):
    count = [
        node("ReduceMax", "x", "m", keepdims=0),
        node("Cast", "m", "n", to=7),
    ]
    onnx.save(model_of([*count, made]), tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match=rf"Loop:y \(Loop\): .*{problem}"):
        load_onnx(tmp_path / "m.onnx")


def test_an_optional_that_holds_a_tensor(tmp_path):
    nodes = [
        node("Optional", "x", "maybe"),
        node("Identity", "maybe", "same"),
        node("OptionalHasElement", "same", "has"),
        node("OptionalGetElement", "same", "held"),
        node("Neg", "x", "other"),
        node("Where", "has held other", "y"),
    ]
    check(model_of(nodes, opset=18), tmp_path)


@pytest.mark.parametrize(
    "nodes",
    [
        [
            node("SequenceConstruct", "x", "pieces"),
            node("Optional", "pieces", "maybe"),
            node("OptionalHasElement", "maybe", "has"),
        ],
        [
            node("SequenceConstruct", "x", "maybe"),
            node("OptionalHasElement", "maybe", "has"),
        ],
    ],
)
def test_an_optional_that_holds_a_sequence_is_refused(nodes, tmp_path):
    nodes = [*nodes, node("Cast", "has", "y", to=TensorProto.FLOAT)]
    onnx.save(model_of(nodes, opset=18), tmp_path / "m.onnx")
    with pytest.raises(
        Unsupported, match=r"\(OptionalHasElement\): .*optionals"
    ):
        load_onnx(tmp_path / "m.onnx")


def test_a_place_in_a_sequence_that_is_computed_is_refused(tmp_path):
    nodes = [
        node("ReduceMax", "x", "m", keepdims=0),
        node("Cast", "m", "n", to=7),
        node("SequenceConstruct", "x x", "both"),
        node("SequenceAt", "both n", "y"),
    ]
    onnx.save(model_of(nodes), tmp_path / "m.onnx")
    with pytest.raises(
        Unsupported,
        match=r"SequenceAt:y \(SequenceAt\): .*whose length is only known when it runs",
    ):
        load_onnx(tmp_path / "m.onnx")
