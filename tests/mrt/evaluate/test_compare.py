"""Float against integer on a model that copies its input, and a program that copies it at a coarse scale."""

import json
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import Proven, validate
from mrt.calibrate.samples import Sample, Samples
from mrt.errors import BadData
from mrt.evaluate import Evaluation, evaluate
from mrt.evaluate.evaluation import Accuracy, ClassFacts
from mrt.page.sections import accuracy

ROWS = (
    [5.0, 4.9, 0.0, 0.0, 0.0, -2.0],
    [0.0, 2.4, 2.0, -9.0, 0.0, 1.0],
    [4.4, 4.5, 0.0, 0.0, 0.0, 0.0],
)


def copying_model(output: str = "y", size: int = 6) -> ir.Model:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], [output])],
        "g",
        [info("x", TensorProto.FLOAT, [1, size])],
        [info(output, TensorProto.FLOAT, [1, size])],
    )
    return ir.from_proto(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
        )
    )


def copying_program(size: int = 6) -> Proven:
    """Integers are the input rounded and stopped at -2..5, so that 5.0 and 4.9 become the same."""
    meaning = Meaning(scale=1.0, zero_point=0)
    return validate(
        Program(
            (Input("x", TensorType("i8", (1, size)), -2, 5),),
            (),
            (Instruction("cast", (0,), {"dtype": "i32"}),),
            (Output("y", 1),),
            Metadata(inputs={"x": meaning}, outputs={"y": meaning}),
        )
    )


def samples(labels: tuple[int, ...] | None = None) -> Samples:
    items: list[Sample] = [{"x": np.array([row], np.float32)} for row in ROWS]
    return Samples(("x",), len(items), labels, "rows", lambda: iter(items))


def token_model() -> ir.Model:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [
            info("x", TensorProto.FLOAT, [1, 2, 1]),
            info("attention_mask", TensorProto.INT64, [1, 2]),
        ],
        [info("y", TensorProto.FLOAT, [1, 2, 1])],
    )
    return ir.from_proto(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
        )
    )


def token_program() -> Proven:
    """Two tokens of one number each, rounded and stopped at -2..5."""
    meaning = Meaning(scale=1.0, zero_point=0)
    return validate(
        Program(
            (
                Input("x", TensorType("i8", (1, 2, 1)), -2, 5),
                Input("attention_mask", TensorType("i8", (1, 2)), 0, 1),
            ),
            (),
            (Instruction("cast", (0,), {"dtype": "i32"}),),
            (Output("y", 2),),
            Metadata(
                inputs={"x": meaning, "attention_mask": meaning},
                outputs={"y": meaning},
            ),
        )
    )


def token_samples(rows: list[list[float]], masks: list[list[int]]) -> Samples:
    items: list[Sample] = [
        {
            "x": np.array(row, np.float32).reshape(1, 2, 1),
            "attention_mask": np.array([mask], np.int64),
        }
        for row, mask in zip(rows, masks, strict=True)
    ]
    names = ("x", "attention_mask")
    return Samples(names, len(items), None, "rows", lambda: iter(items))


def without_speed(report: Evaluation) -> dict:
    return {
        key: value
        for key, value in report.to_json().items()
        if "per_second" not in key
    }


def test_the_report_counts_hits_and_agreements() -> None:
    # float top-1: 0, 1, 1; integers are [5 5 0 0 0 -2], [0 2 2 -2 0 1], [4 5 0 0 0 0], top-1: 0, 1, 1
    found = evaluate(
        copying_model(), copying_program(), samples((1, 1, 0))
    ).to_json()
    assert found["samples"] == 3
    assert found["float.top1"] == found["integer.top1"] == pytest.approx(1 / 3)
    assert found["float.top5"] == found["integer.top5"] == 1.0
    assert found["agreement"] == 1.0
    # squares: 5^2+4.9^2+4 + 2.4^2+4+81+1 + 4.4^2+4.5^2 = 184.38; errors .1^2 + .4^2+7^2 + .4^2+.5^2 = 49.58
    assert found["snr_db"] == pytest.approx(
        10 * np.log10(184.38 / 49.58), abs=1e-5
    )
    assert found["snr_db.outputs"] == {"y": found["snr_db"]}
    assert found["float.samples_per_second"] > 0
    assert found["integer.samples_per_second"] > 0


@pytest.mark.parametrize(
    ("classes", "is_shown"), [(0, True), (2, False), (5, False), (6, True)]
)
def test_the_best_five_of_five_classes_are_no_figure(
    classes: int, is_shown: bool
) -> None:
    side = Accuracy(0.5, 1.0, 1.0)
    found = Evaluation(
        8, side, side, 1.0, {}, classes=ClassFacts(count=classes)
    )
    assert ("top-5" in repr(found)) == is_shown
    axis = accuracy(found)
    assert axis is not None
    assert ("top-5" in {share.name for share in axis.shares}) == is_shown


def test_the_number_of_classes_is_that_of_the_scores() -> None:
    found = evaluate(copying_model(), copying_program(), samples((1, 1, 0)))
    assert found.classes.count == 6


def test_tokens_of_padding_are_not_counted() -> None:
    rows = [[9.0, 1.4], [2.0, 9.0], [1.0, 3.2]]  # 9 becomes 5
    padding = [[0, 1], [1, 0], [1, 1]]
    found = evaluate(
        token_model(), token_program(), token_samples(rows, padding)
    )
    decibels = found.snr_db["y"]
    # 1.4^2 + 2^2 + 1^2 + 3.2^2 of signal, 0.4^2 + 0.2^2 of noise
    assert decibels == pytest.approx(10 * np.log10(17.2 / 0.2), abs=1e-5)
    assert found.to_json()["without_padding"] == ["y"]
    assert "of 3 samples, SNR 19.3 dB without padding:" in repr(found)
    assert "signal to noise of 'y', without padding: 19.3 dB" in repr(found)


def test_all_tokens_are_counted_where_none_is_padding() -> None:
    rows = [[9.0, 1.4], [2.0, 1.0]]
    found = evaluate(
        token_model(), token_program(), token_samples(rows, [[1, 1]] * 2)
    )
    expected = 10 * np.log10((81 + 1.96 + 4 + 1) / (16 + 0.16))
    assert found.snr_db["y"] == pytest.approx(expected, abs=1e-5)
    assert not found.without_padding
    assert "padding" not in repr(found)


def test_the_keys_are_those_of_the_interface() -> None:
    text = json.dumps(
        evaluate(copying_model(), copying_program(), samples()).to_json(),
        allow_nan=False,
    )
    assert list(json.loads(text)) == [
        "format",
        "samples",
        "class_output",
        "float.top1",
        "float.top5",
        "integer.top1",
        "integer.top5",
        "agreement",
        "intervals_95",
        "snr_db",
        "snr_db.outputs",
        "change_db.outputs",
        "without_padding",
        "equal.outputs",
        "float.metric",
        "integer.metric",
        "clipped.inputs",
        "float.samples_per_second",
        "integer.samples_per_second",
        "verdict",
        "sentence",
    ]


def test_without_labels_there_is_no_accuracy_but_agreement() -> None:
    found = evaluate(copying_model(), copying_program(), samples()).to_json()
    assert (
        found["float.top1"],
        found["float.top5"],
        found["integer.top1"],
        found["integer.top5"],
    ) == (None,) * 4
    assert found["agreement"] == 1.0


def test_one_number_a_sample_has_signal_to_noise_only() -> None:
    items: list[Sample] = [{"x": np.array([[1.5]], np.float32)}]
    one = Samples(("x",), 1, (0,), "one", lambda: iter(items))
    found = evaluate(copying_model(size=1), copying_program(1), one).to_json()
    assert (found["float.top1"], found["agreement"]) == (None, None)
    assert found["snr_db"] == pytest.approx(10 * np.log10(2.25 / 0.25))


def test_the_signal_to_noise_of_others_is_told_from_that_of_each() -> None:
    report = evaluate(copying_model(), copying_program(), samples())
    # Squares of the samples 53.01, 91.76, 39.61; their errors .01, 49.16, .41.
    ratios = np.array([49.57 / 131.37, 0.42 / 92.62, 49.17 / 144.77])
    squares = (ratios - ratios.mean()) ** 2
    noise = 49.58 / 184.38 + 2 * np.sqrt(2 / 3 * squares.sum())
    least = -10 * np.log10(noise)
    assert report.noise.least_snr_db == {"y": pytest.approx(least, rel=1e-4)}


def test_threads_change_no_figure() -> None:
    whole = evaluate(copying_model(), copying_program(), samples((0, 1, 2)))
    assert without_speed(whole) == without_speed(
        evaluate(
            copying_model(), copying_program(), samples((0, 1, 2)), threads=3
        )
    )


def test_progress_ends_with_all_samples() -> None:
    steps: list[tuple[str, int, int]] = []
    evaluate(
        copying_model(),
        copying_program(),
        samples(),
        lambda *step: steps.append(step),
    )
    assert steps[-1] == ("comparing", 3, 3)


def test_a_label_beyond_the_classes_is_refused() -> None:
    with pytest.raises(
        BadData, match="rows: class 6 among the labels, but output 'y' has 6"
    ):
        evaluate(copying_model(), copying_program(), samples((0, 6, 0)))


def test_a_program_of_another_model_is_refused() -> None:
    with pytest.raises(
        BadData,
        match="the program's outputs are y, the model's z; give the program that was made from",
    ):
        evaluate(copying_model("z"), copying_program(), samples())


def test_no_samples_are_refused() -> None:
    with pytest.raises(
        BadData, match="nothing: holds no samples; expected at least one"
    ):
        evaluate(
            copying_model(),
            copying_program(),
            Samples(("x",), 0, None, "nothing", lambda: iter([])),
        )


def test_bits_that_are_the_most_follow_from_the_provenance() -> None:
    program = copying_program().program
    metadata = replace(
        program.metadata,
        provenance={"activation_bits": "16", "weight_bits": "8"},
    )
    found = evaluate(
        copying_model(),
        validate(replace(program, metadata=metadata)),
        samples(),
    )
    assert found.has_most == {"activation_bits"}


def test_what_an_input_cannot_hold_is_counted() -> None:
    # outside -2..5 after rounding to whole numbers: -9 of the second row
    found = evaluate(copying_model(), copying_program(), samples())
    clipped = found.clipped["x"]
    assert (clipped.count, clipped.total) == (1, 18)
    assert (clipped.low, clipped.high) == (-2.0, 5.0)
    assert found.to_json()["clipped.inputs"] == {"x": 1}


def labelling_model() -> ir.Model:
    """The best class as a number in front of the scores, as a scikit-learn classifier has them."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("ArgMax", ["x"], ["label"], axis=1, keepdims=0),
            helper.make_node("Identity", ["x"], ["scores"]),
        ],
        "g",
        [info("x", TensorProto.FLOAT, [1, 6])],
        [
            info("label", TensorProto.INT64, [1]),
            info("scores", TensorProto.FLOAT, [1, 6]),
        ],
    )
    return ir.from_proto(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
        )
    )


def labelling_program() -> Proven:
    """As `copying_program`; its label is that of the last row for each."""
    meaning = Meaning(scale=1.0, zero_point=0)
    return validate(
        Program(
            (Input("x", TensorType("i8", (1, 6)), -2, 5),),
            (np.array([1], np.int8),),
            (
                Instruction("cast", (0,), {"dtype": "i32"}),
                Instruction("cast", (1,), {"dtype": "i32"}),
            ),
            (Output("label", 3), Output("scores", 2)),
            Metadata(
                inputs={"x": meaning},
                outputs={"label": meaning, "scores": meaning},
            ),
        )
    )


def test_classes_are_taken_from_the_scores_behind_a_label() -> None:
    found = evaluate(
        labelling_model(), labelling_program(), samples((1, 1, 0))
    ).to_json()
    assert found["class_output"] == "scores"
    assert found["float.top1"] == pytest.approx(1 / 3)
    assert list(found["snr_db.outputs"]) == ["scores"]
    # float labels are 0, 1, 1; the program's are 1, 1, 1
    assert found["equal.outputs"] == {"label": pytest.approx(2 / 3)}


def test_a_label_is_judged_by_equality() -> None:
    found = evaluate(
        labelling_model(),
        labelling_program(),
        samples((1, 1, 0)),
        class_output="label",
    ).to_json()
    # labels are 1, 1, 0; float answers 0, 1, 1, the program 1, 1, 1
    assert found["float.top1"] == pytest.approx(1 / 3)
    assert found["integer.top1"] == found["agreement"] == pytest.approx(2 / 3)
    assert found["integer.top5"] is None


def test_a_metric_is_measured_on_both_sides() -> None:
    found = evaluate(
        copying_model(),
        copying_program(),
        samples((1, 1, 0)),
        metric=lambda outputs, labels: outputs["y"].max() + labels.sum(),
    ).to_json()
    # labels sum to 2; the greatest number is 5 on both sides, the least -9 and -2
    assert found["float.metric"] == found["integer.metric"] == 7
    found = evaluate(
        copying_model(),
        copying_program(),
        samples(),
        metric=lambda outputs, labels: outputs["y"].min(),
    ).to_json()
    assert (found["float.metric"], found["integer.metric"]) == (-9, -2)
