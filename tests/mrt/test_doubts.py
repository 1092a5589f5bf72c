"""What looks wrong is said: samples prepared otherwise than in training, samples that say nothing, integers far from float."""

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from click.testing import CliRunner, Result

from cvm.runtime.boundary import Clipping
from mrt.calibrate.first_normalization import (
    _beginning,
    first_normalization,
    measure,
)
from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.calibrate.sample_checks import SampleChecks, near_chance
from mrt.calibrate.samples import Samples, evenly_spaced
from mrt.cli import cli
from mrt.doubts import evaluation_warnings
from mrt.evaluate.evaluation import Accuracy, Evaluation
from tests.support.graphs import build, graph_of, node
from tests.support.mxnet_files import node as mx_node
from tests.support.mxnet_files import variable, write_params, write_symbol

RNG = np.random.default_rng(4)
SAMPLES = [
    {"x": RNG.normal(3.0, 2.0, (1, 1, 6, 6)).astype(np.float32)}
    for _ in range(40)
]


def normalized(
    mean: list[float], variance: list[float], **constants
) -> ir.Model:
    """A BatchNormalization behind a product by 2 and channels made of one another by a convolution."""
    count = len(mean)
    weights = np.arange(1, count + 1, dtype=np.float32).reshape(-1, 1, 1, 1)
    arrays = {
        "two": np.float32(2),
        "w": weights,
        "gain": np.ones(count, np.float32),
        "shift": np.zeros(count, np.float32),
        "mean": np.array(mean, np.float32),
        "variance": np.array(variance, np.float32),
    }
    nodes = [
        node("Mul", "x two", "doubled"),
        node("Conv", "doubled w", "c"),
        node("BatchNormalization", "c gain shift mean variance", "y", epsilon=0.0),
    ]  # fmt: skip
    return graph_of(nodes, {"x": (1, 1, 6, 6)}, weights=arrays)


def test_samples_as_in_training_have_a_ratio_of_one_and_bytes_have_255():
    """x is N(3, 2): doubled N(6, 4), times 1, 2 and 3 in the channels."""
    model = normalized([6, 12, 18], [16, 64, 144])
    found = first_normalization(model)
    assert found is not None
    assert found.deviation.tolist() == [4, 8, 12]
    spread = measure(model, found, SAMPLES)
    assert spread.ratio == pytest.approx(1, abs=0.1)
    large = [{"x": sample["x"] * 255} for sample in SAMPLES]
    spread = measure(model, found, large)
    assert spread.ratio == pytest.approx(255, rel=0.1)
    assert [item.name for item in model.graph.outputs] == ["y"]


def test_numbers_that_overflow_tell_nothing():
    model = normalized([6, 12], [16, 64])
    found = first_normalization(model)
    huge = [{"x": np.full((1, 1, 6, 6), 3e38, np.float32)}]
    assert measure(model, found, huge) is None


def test_only_the_beginning_of_the_model_is_run():
    """Not the weights behind it: a large model would be copied for nothing."""
    model = normalized([6, 12], [16, 64])
    copy = _beginning(model, "c")
    assert [node.op_type for node in copy.graph] == ["Mul", "Conv"]
    assert sorted(copy.graph.initializers) == ["two", "w"]


def test_a_normalization_that_was_never_trained_says_nothing():
    assert first_normalization(normalized([0, 0], [1, 1])) is None


def test_a_normalization_behind_what_is_not_linear_says_nothing_of_samples():
    arrays = {
        name: np.ones(1, np.float32)
        for name in ("gain", "shift", "mean", "variance")
    }
    nodes = [
        node("Relu", "x", "c"),
        node("BatchNormalization", "c gain shift mean variance", "y"),
    ]
    model = graph_of(nodes, {"x": (1, 1, 6, 6)}, weights=arrays)
    assert first_normalization(model) is None


@pytest.mark.parametrize(
    ("hits", "count", "classes", "is_said"),
    [
        (10, 100, 10, True),
        # 100/10 + 2 * sqrt(100 * 0.1 * 0.9) = 16
        (16, 100, 10, True),
        (17, 100, 10, False),
        (0, 19, 10, False),  # too few to tell
        (20, 20, 1, False),
        (0, 50, 1000, True),
        (1, 50, 1000, False),
    ],
)
def test_a_model_that_guesses_is_told_from_one_that_sees(
    hits, count, classes, is_said
):
    assert bool(near_chance(hits, count, classes, "d")) == is_said


def doubts_of(values: list[np.ndarray], labels=None, answers=None) -> list[str]:
    samples = Samples(("x",), len(values), labels, "d", lambda: iter([]))
    checks = SampleChecks(samples, "y")
    for index, value in enumerate(values):
        answer = np.zeros((1, 4), np.float32)
        if answers is not None:
            answer[0, answers[index]] = 1
        for name in ("inner", "y"):
            checks.observe(
                index, {"x": value}, name, ObservedTensor(answer, answer)
            )
    return checks.doubts()


def test_samples_that_say_nothing_are_doubtful():
    one, other = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    flat = np.array([5.0, 5.0])
    assert doubts_of([one, other]) == []
    assert doubts_of([one, one, other]) == []
    assert doubts_of([flat, one]) == []
    (same,) = doubts_of([one, one])
    assert same.startswith("d: all 2 samples are the same")
    (single,) = doubts_of([one])
    assert single.startswith("d: one sample; give about 100")
    (grey,) = doubts_of([flat, flat * 2])
    assert grey.startswith("d: all numbers of a sample are equal")
    assert len(doubts_of([flat, flat])) == 2


def test_numbers_of_one_element_are_no_grey_pictures():
    assert doubts_of([np.array([1.0]), np.array([2.0])]) == []


def test_labels_that_the_model_misses_are_doubtful():
    values = [np.array([float(index), 0.5]) for index in range(40)]
    labels = tuple(index % 4 for index in range(40))
    (said,) = doubts_of(values, labels, [1] * 40)
    assert "finds the class of only 25.0 % of 40 samples" in said
    assert doubts_of(values, labels, list(labels)) == []
    assert doubts_of(values, None, [1] * 40) == []


def report(
    agreement: float | None, decibels: float | None, top1=None
) -> Evaluation:
    side = Accuracy(top1, top1, 1.0)
    return Evaluation(100, side, side, agreement, {"y": decibels})


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (report(0.9, 10.0), None),
        (report(None, None), None),
        (report(1.0, None, 0.11), "guessing finds 10.0 %"),
        (report(0.26, 30.0), "only 26.0 % of 100 samples. Calibrate on"),
        (
            report(None, 0.0),
            "'y' has 0.0 dB: its error is 100 % of the value. Cal",
        ),
        (report(0.5, 6.0), "samples; output 'y' has 6.0 dB: its error is 50 %"),
    ],
)
def test_a_comparison_that_is_low_comes_with_a_sentence(found, said):
    model = graph_of([node("Relu", "x", "y")], {"x": (1, 10)})
    warnings = evaluation_warnings(found, model, "d")
    assert len(warnings) == (said is not None)
    assert said is None or said in warnings[0]


def test_more_bits_are_no_advice_where_integers_were_clipped():
    model = graph_of([node("Relu", "x", "y")], {"x": (1, 10)}, kind=onnx.TensorProto.INT64)  # fmt: skip
    clipping = Clipping("x", (7,), 10, 0.0, 1700000000.0)
    side = Accuracy(None, None, 1.0)
    report = Evaluation(1, side, side, None, {"y": 5.0}, clipped={"x": clipping})  # fmt: skip
    (warning,) = evaluation_warnings(report, model, "d")
    assert "'x' at 0 and 1700000000" in warning
    assert "give more bits" not in warning


# -- by the commands ---------------------------------------------------------------


def mrt(*words: object) -> Result:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A BatchNorm for numbers of mean 3 and deviation 2, and a layer that names the greatest of 4 means."""
    place = tmp_path_factory.mktemp("doubts")
    names = ("gamma", "beta", "moving_mean", "moving_var")
    nodes = [
        variable("data"),
        *(variable(f"bn_{name}") for name in names),
        mx_node("BatchNorm", "bn", [0, 1, 2, 3, 4], fix_gamma="False"),
        mx_node("Pooling", "pool", [5], pool_type="avg", global_pool="True", kernel="(1, 1)"),
        mx_node("Flatten", "out", [6]),
    ]  # fmt: skip
    write_symbol(place / "m-symbol.json", nodes)
    four = np.ones(4, np.float32)
    write_params(
        place / "m-0000.params",
        {
            "arg:bn_gamma": four,
            "arg:bn_beta": 0 * four,
            "aux:bn_moving_mean": 3 * four,
            "aux:bn_moving_var": 4 * four,
        },
    )
    rng = np.random.default_rng(8)
    data = rng.normal(3, 2, (60, 4, 6, 6)).astype(np.float32)
    labels = np.arange(60) % 4
    data[np.arange(60), labels] += 1
    np.savez(place / "good.npz", data=data, y=labels)
    np.savez(place / "wrong_labels.npz", data=data, y=(labels + 1) % 4)
    np.savez(place / "grey.npz", data=np.full_like(data, 3))
    return place


def warnings_of(result: Result) -> list[str]:
    return [
        line.removeprefix("mrt: warning: ")
        for line in result.stderr.splitlines()
        if line.startswith("mrt: warning: ")
    ]


def test_good_samples_are_passed_without_a_word(folder):
    files = (folder / "m-symbol.json", "--data", folder / "good.npz")
    assert mrt("convert", *files).stderr == ""
    program = (folder / "m-symbol.json", folder / "m.cvm", *files[1:])
    assert mrt("evaluate", *program).stderr == ""
    words = (*files, "-o", folder / "t.json")
    assert mrt("calibrate", *words).stderr == ""


def test_every_command_that_prepares_samples_says_that_they_are_spread_otherwise(
    folder,
):
    files = (folder / "m-symbol.json", "--data", folder / "good.npz")
    mrt("convert", *files)
    program = (folder / "m-symbol.json", folder / "m.cvm", *files[1:])
    for words in (
        ("convert", *files, "-o", folder / "other.cvm"),
        ("calibrate", *files, "-o", folder / "t.json"),
        ("evaluate", *program),
    ):
        (said, *_) = warnings_of(mrt(*words, "--scale", "1/255", "--mean", 3 / 255))  # fmt: skip
        assert "the samples vary 2" in said and "times less than those" in said
        assert "by the statistics of 'bn'" in said
        assert "--preset, --scale, --mean, --std" in said


def test_wrong_labels_and_grey_samples_are_said(folder):
    symbol = folder / "m-symbol.json"
    for command, out in (("convert", "out.cvm"), ("calibrate", "out.json")):
        words = (command, symbol, "-o", folder / out)
        (said,) = warnings_of(mrt(*words, "--data", folder / "wrong_labels.npz"))  # fmt: skip
        assert "even in float" in said and "guessing finds 25.0 %" in said
        same, grey = sorted(warnings_of(mrt(*words, "--data", folder / "grey.npz")))  # fmt: skip
        assert "all 45 samples are the same" in same
        assert "all numbers of a sample are equal" in grey


def test_a_page_on_a_model_that_guesses_says_so_first(folder):
    files = [folder / name for name in ("m-symbol.json", "guess.cvm")]
    mrt("convert", files[0], "--data", folder / "good.npz", "-o", files[1])
    guessed = (
        "Float itself is no better than guessing on these samples, so that this says nothing of the program. "
        "The integers are as accurate as float: top-1 "
    )
    for labels, is_guessed in (("wrong_labels", True), ("good", False)):
        data = folder / f"{labels}.npz"
        result = mrt("report", *files, "--data", data)
        assert result.stdout.startswith(guessed) == is_guessed
        page = (folder / "guess.html").read_text()
        assert ("Float itself is no better" in page) == is_guessed
        assert ('"verdict good"' in page) != is_guessed


def test_a_program_calibrated_on_grey_samples_is_said_to_be_far_from_float(
    folder,
):
    symbol, program = folder / "m-symbol.json", folder / "grey.cvm"
    mrt("convert", symbol, "--data", folder / "grey.npz", "-o", program)
    result = mrt("evaluate", symbol, program, "--data", folder / "good.npz")
    (said,) = warnings_of(result)
    assert "Calibrate on samples like these" in said


def test_invented_weights_are_no_reason_to_doubt_samples(folder):
    words = ("--data", folder / "good.npz", "--scale", "1000")
    result = mrt("convert", folder / "m-symbol.json", *words)
    assert any("vary" in said for said in warnings_of(result))
    result = mrt(
        "convert", folder / "m-symbol.json", *words, "--random-weights", 1
    )
    assert not any("vary" in said for said in warnings_of(result))


@pytest.mark.parametrize(
    ("least", "kind", "is_said"),
    [(1, np.int64, True), (0, np.int64, False), (1, np.bool_, False)],
)
def test_a_mask_that_was_the_same_in_all_samples_is_said(
    tmp_path, least, kind, is_said
):
    """An input of integers takes what was measured; one of bool takes both, whatever was measured."""
    nodes = [
        node("Cast", "mask", "m", to=onnx.TensorProto.FLOAT),
        node("Mul", "x m", "y"),
    ]
    proto = build(nodes, {"x": (1, 4), "mask": (1, 4)})
    type_of_mask = proto.graph.input[1].type.tensor_type
    type_of_mask.elem_type = onnx.helper.np_dtype_to_tensor_dtype(
        np.dtype(kind)
    )
    onnx.save(proto, tmp_path / "m.onnx")
    rng = np.random.default_rng(8)
    mask = rng.integers(least, 2, (60, 4)).astype(kind)
    x = rng.normal(size=(60, 4)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, mask=mask)
    result = mrt("convert", tmp_path / "m.onnx", "--data", tmp_path / "d.npz")
    assert warnings_of(result) == is_said * [
        "input 'mask' was 1 in all samples, and the program takes nothing else: give samples in which it varies, "
        "such as sentences with padding for a mask"
    ]


def test_samples_that_cannot_be_measured_on_are_said_though_quiet(tmp_path):
    """A sample that calibration did not meet holds no number."""
    onnx.save(build([node("Relu", "x", "y")], {"x": (1, 4)}), tmp_path / "m.onnx")  # fmt: skip
    x = np.random.default_rng(8).normal(size=(60, 4)).astype(np.float32)
    files = (tmp_path / "m.onnx", "--data", tmp_path / "d.npz")
    np.savez(tmp_path / "d.npz", x=x)
    assert mrt("convert", *files, "-q").stderr == ""
    place = evenly_spaced(60, 15)[1]  # of those held back for the verdict
    x[place] = np.nan
    np.savez(tmp_path / "d.npz", x=x)
    (said,) = warnings_of(mrt("convert", *files, "-q"))
    assert said.startswith("the program was not measured against float: ")
    assert f"sample {place}: 4 of 4 values are NaN or infinite" in said
