"""Float against integer on a model that copies its input, and a program that copies it at a coarse scale."""

import json

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
from mrt.evaluate import Report, evaluate

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


def without_speed(report: Report) -> dict:
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


def test_the_keys_are_those_of_the_interface() -> None:
    text = json.dumps(
        evaluate(copying_model(), copying_program(), samples()).to_json(),
        allow_nan=False,
    )
    assert list(json.loads(text)) == [
        "samples",
        "float.top1",
        "float.top5",
        "integer.top1",
        "integer.top5",
        "agreement",
        "snr_db",
        "snr_db.outputs",
        "float.samples_per_second",
        "integer.samples_per_second",
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
