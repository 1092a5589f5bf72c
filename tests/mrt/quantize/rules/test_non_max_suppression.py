"""The choice among boxes in integers: the float model's boxes, in its order, classes exactly."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from cvm.program import Input, Meaning, TensorType
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples
from mrt.frontend.mxnet import load_mxnet
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.rules.registry import OWN_RULES
from mrt.quantize.tensor import Tensor
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions
from tests.mrt.quantize.test_context import context
from tests.support.mxnet_files import node, variable, write_symbol

BOXES = 40
STEPS = {"i8": np.int8, "i16": np.int16, "i32": np.int32}


def feeds(seed, classes=3):
    """Boxes that overlap in every degree; no two scores are nearer than a hundredth."""
    random = np.random.default_rng(seed)
    low = random.uniform(0, 60, (1, BOXES, 2))
    return {
        "ids": random.integers(-1, classes, (1, BOXES, 1)).astype(np.float32),
        "scores": (
            random.permutation(BOXES).reshape(1, BOXES, 1) / np.float32(BOXES)
        ).astype(np.float32),
        "boxes": np.concatenate(
            [low, low + random.uniform(5, 50, (1, BOXES, 2))], 2
        ).astype(np.float32),
    }


def detector(folder, **attributes):
    """ids, scores and boxes as inputs; the three columns of the best eight as outputs."""
    path = folder / "detector.json"
    names = [variable(name) for name in ("ids", "scores", "boxes")]
    rows = node("Concat", "rows", [0, 1, 2], dim="-1", num_args="3")
    kept = node(
        "_contrib_box_nms",
        "kept",
        [3],
        **{"valid_thresh": "0.3", "topk": "12", "id_index": "0"} | attributes,
    )
    best = node("slice_axis", "best", [4], axis="1", begin="0", end="8")
    columns = [
        node("slice_axis", name, [5], axis="2", begin=str(first), end=str(end))
        for name, first, end in (
            ("class", 0, 1),
            ("score", 1, 2),
            ("box", 2, 6),
        )
    ]
    write_symbol(path, [*names, rows, kept, best, *columns], [6, 7, 8])
    shapes = {
        "ids": (1, BOXES, 1),
        "scores": (1, BOXES, 1),
        "boxes": (1, BOXES, 4),
    }
    return load_mxnet(path, shapes=shapes)


def both(model, bits=16, seeds=range(4)):
    """For each sample what onnxruntime makes of the model as it was read, and what its program does."""
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    names = [output.name for output in session.get_outputs()]
    floats = [
        dict(zip(names, session.run(None, feeds(seed)), strict=True))
        for seed in seeds
    ]
    rewrite(model)
    samples = Samples(
        ("ids", "scores", "boxes"),
        len(seeds),
        None,
        "test",
        lambda: iter([feeds(n) for n in seeds]),
    )
    table = calibrate(
        model,
        samples,
        CalibrationOptions(observer="minmax"),
        model_sha256="0" * 64,
    )
    program = quantize(model, table, QuantizeOptions(8, bits))
    form = validate(program)
    return program, [
        (real, integers(program, form, feeds(seed)))
        for real, seed in zip(floats, seeds, strict=True)
    ]


def integers(program, form, sample):
    given = {}
    for item in program.inputs:
        meaning = program.metadata.inputs[item.name]
        steps = (
            np.floor(sample[item.name].astype(np.float64) / meaning.scale + 0.5)
            + meaning.zero_point
        )
        given[item.name] = np.clip(steps, item.lo, item.hi).astype(
            STEPS[item.type.dtype]
        )
    meanings = program.metadata.outputs
    found = run(form, given)
    return {
        name: (value - float(meanings[name].zero_point)) * meanings[name].scale
        for name, value in found.items()
    }


CASES = {
    "of one class": {"overlap_thresh": "0.45"},
    "above any score": {"valid_thresh": "2"},
    "across classes": {"force_suppress": "True"},
    "without classes": {"id_index": "-1"},
    "without class 1": {"background_id": "1", "overlap_thresh": "0.3"},
    "suppressing nothing": {"overlap_thresh": "1"},
    "all that overlap": {"overlap_thresh": "0", "topk": "-1"},
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_boxes_are_kept_as_in_float(case, tmp_path):
    program, pairs = both(detector(tmp_path, **CASES[case]))
    assert [item.name for item in program.instructions].count("nms") == 1
    for real, whole in pairs:
        assert np.abs(np.round(whole["class"]) - real["class"]).max() == 0
        np.testing.assert_allclose(whole["score"], real["score"], atol=2e-3)
        np.testing.assert_allclose(
            whole["box"], real["box"], atol=0.05
        )  # of 110: a few steps of 16 bits


def test_thresholds_are_exact_in_the_integers_terms(tmp_path):
    """The float32 0.45 is 7549747 / 2^24."""
    program, _ = both(detector(tmp_path, overlap_thresh="0.45"), seeds=range(1))
    (chosen,) = [item for item in program.instructions if item.name == "nms"]
    assert chosen.attributes["overlap"] == (7549747, 2**24)
    scale = program.metadata.inputs["scores"].scale
    least = chosen.attributes["least_score"]
    assert (least - 1) * scale <= float(np.float32(0.3)) < least * scale
    assert (chosen.attributes["keep"], chosen.attributes["candidates"]) == (
        8,
        12,
    )
    assert (chosen.attributes["inclusive"], chosen.attributes["gaps"]) == (
        False,
        False,
    )


PLACES = 6  # boxes in one place, with scores of 0.4 to 0.9


def kept_of(classes, *, by_channel=False):
    """The indices that a suppression keeps, for constant classes, at scores of one scale or several."""
    net = context(activation_bits=16)
    corners = np.tile(np.float32([0, 0, 10, 10]), (1, PLACES, 1))
    scores = np.arange(4, 4 + PLACES).reshape(1, PLACES)
    steps = 2.0 ** np.arange(-PLACES, 0) if by_channel else np.ones(PLACES)
    item = Input("scores", TensorType("i32", scores.shape), 0, 2**20)
    handle = net.builder.input(item, Meaning(1.0, 0))
    scale = 0.1 * steps if by_channel else np.array([0.1])
    net._tensors["one"] = Tensor(handle, scale, 0, (0, 1))
    operands = [
        constant_value("boxes", corners),
        ir.Value(name="one", shape=ir.Shape(scores.shape)),
        constant_value("classes", np.float32([classes])),
    ]
    attributes = {
        "keep": PLACES, "candidates": PLACES, "least_score": 0.55, "overlap": 0.5,
        "inclusive": 0, "gaps": 0, "background": -1.0,
    }  # fmt: skip
    chosen = ir.node("NonMaxSuppression", operands, attributes, domain="mrt")
    chosen.outputs[0].name = "kept"
    OWN_RULES["NonMaxSuppression"](net, chosen)
    kept = net.as_computed(chosen.outputs[0])
    net.builder.output("kept", kept.value, Meaning(1.0, 0))
    given = (scores / steps).astype(np.int32)
    found = run(validate(net.builder.finish({})), {"scores": given})["kept"]
    return found.ravel().tolist()


def constant_value(name, array):
    return ir.Value(
        name=name, shape=ir.Shape(array.shape), const_value=ir.tensor(array)
    )


@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize(
    ("classes", "kept"), [([2, 1, 0, 0, 1, 0], [5, 4]), ([3] * 6, [5])]
)
def test_the_best_of_each_constant_class_is_kept(classes, kept, by_channel):
    """Of class 2 only a box of score 0.4 is left, below the threshold of 0.55."""
    none = [PLACES] * (PLACES - len(kept))
    assert kept_of(classes, by_channel=by_channel) == [*kept, *none]
