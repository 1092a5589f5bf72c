"""NonMaxSuppression of ONNX: its very rows, in its order, then rows of -1; judged by onnxruntime, in float and in integers."""

import numpy as np
import onnx
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples
from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import rewrite
from mrt.rewrite.lookup.non_max_suppression import lower_non_max_suppression
from mrt.table.table import CalibrationOptions
from tests.support.float_models import run_real
from tests.support.graphs import build, graph_of, node, run


def detector(folder, shape=(1, 3, 40), tail=(), outputs="y", form=(), **limits):
    """Boxes and scores in, selected rows out, and whatever else is asked for; and the model as it is loaded."""
    batches, _, boxes = shape
    limits = {"most": 5, "overlap": 0.4, "score": 0.3} | limits
    arrays = {
        name: np.array([value], np.int64 if name == "most" else np.float32)
        for name, value in limits.items()
        if value is not None
    }
    operands = "boxes scores " + " ".join(
        name if name in arrays else "-" for name in ("most", "overlap", "score")
    )
    one = node(
        "NonMaxSuppression", operands.removesuffix(" -"), "y", **dict(form)
    )
    arrays |= {"two": np.array(2), "only": np.array([2])}
    inputs = {"boxes": (batches, boxes, 4), "scores": shape}
    proto = build([one, *tail], inputs, arrays, opset=11, outputs=outputs)
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    onnx.save(proto, folder / "m.onnx")
    return proto, load_onnx(folder / "m.onnx")[0]


def feeds(seed, shape=(1, 3, 40)):
    """Boxes that overlap in every degree, half of them told by their other corners; no two scores nearer than 1/total."""
    random, (batches, classes, boxes) = np.random.default_rng(seed), shape
    low = random.uniform(0, 60, (batches, boxes, 2))
    corners = np.concatenate(
        [low, low + random.uniform(5, 50, (batches, boxes, 2))], 2
    )
    turned = random.random((batches, boxes)) < 0.5
    corners[turned] = corners[turned][:, [2, 3, 0, 1]]
    total = batches * classes * boxes
    scores = random.permutation(total).reshape(shape) / total
    return {
        "boxes": corners.astype(np.float32),
        "scores": scores.astype(np.float32),
    }


def assert_rows(found, expected):
    assert np.array_equal(found[: len(expected)], expected)
    assert (found[len(expected) :] == -1).all()


CASES = {
    "one class": ((1, 1, 40), {}, 5),
    "classes": ((1, 3, 40), {}, 15),
    "batches, classes, any score": (
        (2, 3, 20),
        {"most": 50, "score": None},
        120,
    ),
    "boxes around centres": ((2, 2, 30), {"form": {"center_point_box": 1}}, 20),
    "boxes that may not overlap at all": ((1, 2, 40), {"overlap": None}, 10),
    "no box with such a score": ((1, 2, 40), {"score": 2.0}, 10),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rows_of_onnxruntime_then_rows_of_minus_one(name, tmp_path):
    shape, options, rows = CASES[name]
    proto, model = detector(tmp_path, shape, **options)
    rewrite(model)
    for seed in range(3):
        (expected,) = run(proto, feeds(seed, shape)).values()
        (found,) = run(model, feeds(seed, shape)).values()
        assert found.shape == (rows, 3)
        assert_rows(found, expected)


LOOKUPS = [
    node("Gather", "y two", "place", axis=1),
    node("Gather", "boxes place", "box", axis=1),
]


def test_what_missing_rows_look_up_is_zero(tmp_path):
    proto, model = detector(tmp_path, (1, 1, 40), LOOKUPS, "y box", most=30)
    rewrite(model)
    expected = run(proto, feeds(0, (1, 1, 40)))
    found = run(model, feeds(0, (1, 1, 40)))
    known = len(expected["y"])
    assert 0 < known < 30 == len(found["y"])
    assert np.array_equal(found["box"][0, :known], expected["box"][0])
    assert (found["box"][0, known:] == 0).all()


def test_a_lookup_by_tuples_of_places_is_zero_too(tmp_path):
    tail = [node("Transpose", "scores", "columns", perm=[0, 2, 1]), node("Gather", "y pick", "place", axis=1),
            node("GatherND", "columns place", "score")]  # fmt: skip
    one = node("NonMaxSuppression", "boxes scores most overlap least", "y")
    arrays = {"most": np.array([30]), "overlap": np.array([0.4], np.float32), "least": np.array([0.3], np.float32),
              "pick": np.array([0, 2, 1])}  # fmt: skip
    proto = build(
        [one, *tail],
        {"boxes": (1, 40, 4), "scores": (1, 2, 40)},
        arrays,
        opset=12,
        outputs="y score",
    )
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    rewrite(model)
    expected = run(proto, feeds(0, (1, 2, 40)))
    found = run(model, feeds(0, (1, 2, 40)))
    known = len(expected["y"])
    assert known < 60
    assert np.array_equal(found["score"][:known], expected["score"])
    assert (found["score"][known:] == 0).all()


@pytest.mark.parametrize("shape", [(1, 1, 40), (1, 3, 40), (2, 2, 30)])
def test_integers_choose_the_same_boxes(shape, tmp_path):
    proto, model = detector(tmp_path, shape)
    rewrite(model)
    samples = [feeds(seed, shape) for seed in range(3)]
    given = Samples(
        ("boxes", "scores"), len(samples), None, "test", lambda: iter(samples)
    )
    table = calibrate(
        model,
        given,
        CalibrationOptions(observer="minmax"),
        model_sha256="0" * 64,
    )
    program = quantize(model, table, QuantizeOptions(8, 16))
    assert "nms" in [item.name for item in program.instructions]
    for sample in samples:
        (expected,) = run(proto, sample).values()
        (found,) = run_real(program, sample).values()
        assert_rows(found, expected)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (
            {"most": 0},
            r"NonMaxSuppression:y \(NonMaxSuppression\): it gives up to 0 rows; expected 1 to 65536",
        ),
        ({"most": None}, "it gives up to 0 rows"),
        ({"overlap": 1.5}, r"iou_threshold=1.5; expected 0 to 1"),
    ],
)
def test_limits_that_leave_nothing_to_choose_are_named(
    limits, sentence, tmp_path
):
    _, model = detector(tmp_path, **limits)
    with pytest.raises(Unsupported, match=sentence):
        rewrite(model)


def test_more_rows_than_a_program_should_have_are_refused_with_the_way_out(
    tmp_path,
):
    tail = [node("Relu", "in", "scores")]
    one = node("NonMaxSuppression", "boxes scores most", "y")
    inputs = {"boxes": (1, 900, 4), "in": (1, 80, 900)}
    proto = build([*tail, one], inputs, {"most": np.array([2**31])}, opset=11)
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    with pytest.raises(
        Unsupported,
        match=r"up to 72000 rows; expected 1 to 65536\n.*in front of it: --outputs scores",
    ):
        rewrite(model)


def test_a_computed_limit_is_refused():
    nodes = [
        node("ReduceMax", "scores", "least", keepdims=0),
        node("NonMaxSuppression", "boxes scores most overlap least", "y"),
    ]
    arrays = {"most": np.array([5]), "overlap": np.array([0.4], np.float32)}
    shapes = {"boxes": (1, 40, 4), "scores": (1, 1, 40)}
    model = graph_of(nodes, shapes, arrays)
    assert lower_non_max_suppression(model) == 0
