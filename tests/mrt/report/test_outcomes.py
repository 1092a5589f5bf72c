"""The reported outcomes of operators, on graphs where they can be worked out by hand."""

import json
import time
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from cvm.program import Program
from cvm.proof.validate import validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.source_map import SourceMap
from mrt.report import Report, float_graph
from mrt.report.outcomes import FloatGraph, Operator, outcomes
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions
from tests.support.graphs import graph_of, node, shapes_of

RNG = np.random.default_rng(7)


def report_of(model: ir.Model, name: str = "m.onnx") -> Report:
    before = float_graph(model)
    rewrite(model)
    samples = synthetic_samples(shapes_of(model), 4)
    table = calibrate(model, samples, CalibrationOptions(), model_sha256="")
    source_map = SourceMap()
    proven = validate(
        quantize(model, table, QuantizeOptions(), source_map=source_map)
    )
    names = {"model": name, "origin": "onnx", "program_id": "0" * 64}
    return Report.of(
        proven, before, float_graph(model), source_map.of_number, **names
    )


def network() -> ir.Model:
    """A network with every outcome at least once."""
    nodes = [
        node("Conv", "x w", "conv"),
        node("BatchNormalization", "conv g b m v", "norm"),
        node("Relu", "norm", "relu"),
        node("Dropout", "relu", "dropped"),
        node("Shape", "dropped", "shape"),
        node("Gather", "shape zero", "batch"),
        node("Concat", "batch rest", "target", axis=0),
        node("Reshape", "dropped target", "flat"),
        node("Tanh", "flat", "nobody"),
        node("MatMul", "flat d", "product"),
        node("Add", "product e", "logits"),
        node("HardSwish", "logits", "y"),
    ]
    weights = {
        "w": RNG.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "d": RNG.normal(size=(64, 5)).astype(np.float32),
        "e": RNG.normal(size=5).astype(np.float32),
        **{name: RNG.normal(size=4).astype(np.float32) for name in "gbm"},
        "v": np.full(4, 2, np.float32),
        "zero": np.array([0]),
        "rest": np.array([-1]),
    }
    return graph_of(nodes, {"x": (1, 3, 6, 6)}, weights)


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(network())


def test_every_operator_of_the_model_is_listed_with_its_outcome(report):
    assert [
        (outcome.operator.kind, outcome.what) for outcome in report.outcomes
    ] == [
        ("Conv", "fused"),
        ("BatchNormalization", "fused"),
        ("Relu", "kept"),
        ("Dropout", "removed"),
        ("Shape", "folded"),
        ("Gather", "folded"),
        ("Concat", "folded"),
        ("Reshape", "kept"),
        ("Tanh", "unused"),
        ("MatMul", "fused"),
        ("Add", "fused"),
        ("HardSwish", "kept"),
    ]


def test_what_was_fused_says_into_which_value_and_operator(report):
    conv, norm = report.outcomes[:2]
    assert conv.into == norm.into == ("norm",)
    assert [place.kind for place in norm.places] == ["Conv"]
    product, add = report.outcomes[9:11]
    assert product.into == add.into == ("logits",) and add.together == 2
    assert [place.kind for place in add.places] == ["Gemm"]


def test_every_instruction_is_listed_with_the_operator_it_was_written_for(
    report,
):
    by_name = {
        outcome.operator.outputs[0]: dict(outcome.instructions)
        for outcome in report.outcomes
    }
    assert by_name["norm"] == {
        "conv2d": 1,
        "transpose": 1,
    }  # the input arrives as NCHW
    assert by_name["relu"] == {"rescale": 1}
    assert by_name["logits"] == {"dense": 1, "rescale": 1}
    assert by_name["y"] == {"table": 1}
    assert by_name["target"] == {} == by_name["nobody"]
    assert dict(report.elsewhere) == {}


def test_an_operator_without_instructions_names_the_value_that_does_its_work():
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 3, 1]),
        node("Transpose", "t", "u", perm=[0, 3, 1, 2]),
    ]
    model = graph_of(
        [*nodes, node("Sigmoid", "t", "s"), node("Relu", "u", "r")],
        {"x": (1, 3, 4, 5)},
        outputs="s r",
    )
    outcomes = {
        outcome.operator.outputs[0]: outcome
        for outcome in report_of(model).outcomes
    }
    assert (dict(outcomes["t"].instructions), outcomes["t"].taken_up_by) == (
        {},
        "s",
    )


def test_two_operators_that_became_one_table_share_it():
    nodes = [node("Sigmoid", "x", "s"), node("Mul", "x s", "y")]
    outcomes = report_of(graph_of(nodes, {"x": (1, 8)})).outcomes
    assert [dict(outcome.instructions) for outcome in outcomes] == [
        {},
        {"table": 1},
    ]
    assert outcomes[0].taken_up_by == "y"


def test_what_a_branch_reads_is_read_by_the_node_that_has_it():
    branches = {
        name: helper.make_graph(
            [helper.make_node(kind, ["x"], [f"{kind}_y"])],
            name,
            [],
            [
                helper.make_tensor_value_info(
                    f"{kind}_y", TensorProto.FLOAT, [1, 4]
                )
            ],
        )
        for name, kind in (("then_branch", "Relu"), ("else_branch", "Neg"))
    }
    model = graph_of(
        [node("If", "c", "y", **branches)], {"x": (1, 4)}, {"c": np.array(True)}
    )
    graph = float_graph(model)
    assert (
        graph.operators[0].inputs == ("c", "x", "x") and "y" in graph.depending
    )


def test_instructions_and_operators_are_counted_by_kind(report):
    rows = {row["kind"]: row for row in report.to_json()["kinds"]}
    assert rows["Conv"] == {
        "kind": "Conv",
        "count": 1,
        "outcomes": {"fused": 1},
        "instructions": ["conv2d", "transpose"],
    }
    assert sum(row["count"] for row in rows.values()) == 12


def test_the_summary_is_short_and_says_how_much_it_leaves_out(report):
    lines = report.summary(4)
    assert (
        lines[0]
        == "  operators      12 in float: 4 fused, 3 kept, 3 folded, removed, unused"
    )
    assert lines[5] == "    and 8 more kinds; --report F lists every operator"
    assert lines[6].startswith("  integers only  checked on the file: all ")
    assert len(report.summary(12)) == 14


def test_the_text_has_a_line_for_every_operator_and_ends_in_the_statement(
    report,
):
    lines = report.text().splitlines()
    assert (
        sum(
            "BatchNormalization:norm" in line
            and "fused with 1 more into Conv 'norm'" in line
            for line in lines
        )
        == 1
    )
    assert lines[-1].startswith(f"Checked on program {'0' * 64}: all ")
    assert lines[-1].endswith("instructions takes or gives a real number.")


def test_what_was_measured_stands_in_the_text_and_in_json(report):
    quality = {"verdict": "good", "sentence": "SNR 30.0 dB: good"}
    measured = replace(report, quality=quality)
    assert "Against float: SNR 30.0 dB: good." in measured.text()
    assert measured.to_json()["quality"] == quality
    assert "Against float" not in report.text()


def test_names_of_a_model_do_not_command_a_terminal():
    model = graph_of([node("Relu", "x", "y")], {"x": (1, 4)})
    model.graph[0].name = "\x1b[31m<script>\u2028é"
    found = report_of(model, "<b>.onnx")
    assert found.text().isascii() and "\x1b" not in found.text()
    assert (
        json.loads(json.dumps(found.to_json()))["operators"][0]["name"]
        == model.graph[0].name
    )


def test_an_operator_with_two_anchors_is_fused_if_either_anchor_has_another_operator():
    before = FloatGraph(
        (
            Operator("split", "Split", ("x",), ("b", "inner")),
            Operator("relu", "Relu", ("inner",), ("a",)),
        ),
        frozenset("x"),
    )
    after = FloatGraph(
        (
            Operator("slice", "Slice", ("x",), ("b",)),
            Operator("clip", "Clip", ("x",), ("a",)),
        ),
        frozenset("x"),
    )
    split, relu = outcomes(before, after, small_program(), {})
    assert (split.into, split.together, split.what) == (("a", "b"), 2, "fused")
    assert (relu.into, relu.together, relu.what) == (("a",), 2, "fused")


def chain(length: int, kind: str) -> tuple[Operator, ...]:
    return tuple(
        Operator(f"n{index}", kind, (f"v{index}",), (f"v{index + 1}",))
        for index in range(length)
    )


def test_long_chains_of_operators_without_instructions_take_no_quadratic_time():
    """20,000 operators took five minutes when each walked all that follow on it."""
    graph = FloatGraph(chain(20_000, "Relu"), frozenset(["v0"]))
    program = small_program()
    source_map = {program.first_instruction: "v20000"}
    started = time.process_time()
    found = outcomes(graph, graph, program, source_map)
    assert time.process_time() - started < 5
    assert {item.what for item in found} == {"kept"}
    assert {item.taken_up_by for item in found[:-1]} == {"v20000"}
    assert (found[-1].taken_up_by, len(found[-1].instructions)) == ("", 1)


def test_many_operators_with_many_anchors_take_no_quadratic_memory():
    """Each operator of a chain names the first 64 of the 3000 values that its end is read for."""
    vanished = chain(3000, "Mul")
    readers = tuple(
        Operator(f"r{index}", "Relu", ("v3000",), (f"y{index}",))
        for index in range(3000)
    )
    before = FloatGraph((*vanished, *readers), frozenset(["v0"]))
    after = FloatGraph(
        tuple(replace(item, inputs=("v0",)) for item in readers),
        frozenset(["v0"]),
    )
    started = time.process_time()
    found = outcomes(before, after, small_program(), {})
    assert time.process_time() - started < 5
    first = tuple(sorted(f"y{index}" for index in range(64)))
    assert {item.into for item in found[:3000]} == {first}
    assert found[3000 + 64].into == ("y64",)


def test_of_several_values_downstream_the_first_in_the_graph_takes_up_an_operator():
    operators = (
        Operator("a", "Relu", ("x",), ("a",)),
        Operator("far", "Relu", ("a",), ("far",)),
        Operator("b", "Relu", ("a",), ("b",)),
        Operator("near", "Relu", ("b",), ("near",)),
        Operator("end", "Relu", ("far",), ("end",)),
    )
    graph = FloatGraph(operators, frozenset("x"))
    program = small_program()
    number = program.first_instruction
    source_map = {number: "end", number + 1: "near"}
    found = outcomes(graph, graph, program, source_map)
    taken_up = [item.taken_up_by for item in found]
    assert taken_up == ["near", "end", "near", "", ""]


def small_program() -> Program:
    """A small program; no instruction of it was written for an operator of the graphs."""
    model = graph_of([node("Relu", "x", "y")], {"x": (1, 4)})
    table = calibrate(
        model,
        synthetic_samples(shapes_of(model), 4),
        CalibrationOptions(),
        model_sha256="",
    )
    return quantize(model, table, QuantizeOptions())


def test_a_rescale_belongs_to_the_value_of_its_clamp():
    """The convolution that reads a clipped value writes both, but they stand for what is read."""
    ones = np.ones((2, 2, 1, 1), np.float32)
    limits = {"lo": np.float32(-0.3), "hi": np.float32(0.5)}
    model = graph_of(
        [
            node("Conv", "x w", "first"),
            node("Clip", "first lo hi", "clipped"),
            node("Conv", "clipped w", "second"),
        ],
        {"x": (1, 2, 3, 3)},
        {"w": ones, **limits},
        outputs="second",
    )
    rewrite(model)
    samples = synthetic_samples(shapes_of(model), 4)
    table = calibrate(model, samples, CalibrationOptions(), model_sha256="")
    source_map = SourceMap()
    program = quantize(model, table, QuantizeOptions(), source_map=source_map)
    owners = [
        (item.name, source_map.of_number[number])
        for number, item in enumerate(
            program.instructions, program.first_instruction
        )
    ]
    assert owners[1:5] == [
        ("conv2d", "first"),
        ("rescale", "clipped"),
        ("clamp", "clipped"),
        ("conv2d", "second"),
    ]
