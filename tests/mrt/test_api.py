"""`mrt.convert`: the same programs as the command line writes, from objects and from files."""

import gc
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from click.testing import CliRunner

import cvm
import mrt
from cvm.errors import BadInput
from cvm.file import format as cvm_format
from mrt.cli import cli
from mrt.errors import BadData, BadModel, BadOption, DoubtfulResult
from tests.support.float_models import FloatModel

RNG = np.random.default_rng(5)
SAMPLES = RNG.normal(size=(24, 6)).astype(np.float32)
LABELS = RNG.integers(0, 4, 24)


def classifier() -> onnx.ModelProto:
    model = FloatModel(x=(1, 6))
    output = model.gemm("x", RNG.normal(size=(4, 6)), np.zeros(4))
    return model.proto(output)


@pytest.fixture(name="files", scope="module")
def _files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    onnx.save(classifier(), folder / "m.onnx")
    np.savez(folder / "d.npz", x=SAMPLES, y=LABELS)
    return folder


@pytest.fixture(name="by_command", scope="module")
def _by_command(files) -> str:
    """The id of the program that the command line writes."""
    out = files / "p.cvm"
    words = ["convert", files / "m.onnx", "--data", files / "d.npz"]
    words += ["--bits", 7, "-o", out]
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return cvm_format.program_id(out.read_bytes())


def id_of(converted) -> str:
    return cvm_format.program_id(converted.program.program)


@pytest.mark.parametrize("kind", ["path", "text", "proto", "onnx_ir"])
def test_a_model_in_each_form_gives_the_program_of_the_command(
    kind, files, by_command
):
    path = files / "m.onnx"
    model = {
        "path": path,
        "text": str(path),
        "proto": onnx.load(path),
        "onnx_ir": ir.load(path),
    }[kind]
    assert id_of(mrt.convert(model, files / "d.npz", bits=7)) == by_command


@pytest.mark.parametrize(
    "data",
    [SAMPLES, SAMPLES.astype(np.float64), {"x": SAMPLES}, {"v0": SAMPLES}],
)
def test_samples_in_each_form_give_the_program_of_the_command(
    data, files, by_command
):
    if isinstance(data, dict) and "v0" in data:
        with pytest.raises(BadData, match="has no array 'x'"):
            mrt.convert(files / "m.onnx", data, bits=7)
        return
    assert id_of(mrt.convert(files / "m.onnx", data, bits=7)) == by_command


def test_a_table_gives_the_program_of_its_samples(files, by_command):
    converted = mrt.convert(files / "m.onnx", SAMPLES, bits=7)
    again = mrt.convert(files / "m.onnx", table=converted.table, bits=7)
    assert id_of(again) == by_command
    words = {"table": converted.table, "bits": 7}
    measured = mrt.convert(files / "m.onnx", SAMPLES, **words)
    assert id_of(measured) == by_command
    # Whether the table was made from these samples is not known.
    sentence = measured.report.to_json()["quality"]["sentence"]
    assert " samples" in sentence and "calibrated" not in sentence


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (None, "no data was given, so the ranges were measured on synthetic"),
        (SAMPLES[:1], "one sample; give about 100"),
        (np.zeros_like(SAMPLES), "all numbers of a sample are equal"),
        (np.tile(SAMPLES[:1], (24, 1)), "all 24 samples are the same"),
        (SAMPLES, None),
    ],
)
def test_what_the_command_warns_of_is_a_warning_in_python(
    files, tmp_path, samples, said
):
    """Python once said nothing."""
    words = ["convert", str(files / "m.onnx"), "--bits", "8"]
    data = None
    if samples is not None:
        data = tmp_path / "x.npz"
        np.savez(data, x=samples)
        words += ["--data", str(data)]
    result = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "p.cvm")])
    start = "mrt: warning: "
    of_command = [
        line.removeprefix(start)
        for line in result.stderr.splitlines()
        if line.startswith(start)
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mrt.convert(files / "m.onnx", data, bits=8)
    assert [str(warning.message) for warning in caught] == of_command
    assert {it.category for it in caught} <= {DoubtfulResult}
    assert {it.filename for it in caught} <= {__file__}
    assert any(said in text for text in of_command) if said else not caught


def test_a_doubtful_result_names_data_that_were_given_as_arrays(files):
    with pytest.warns(DoubtfulResult, match="^data: one sample; give about"):
        mrt.convert(files / "m.onnx", SAMPLES[:1], bits=8)


def test_what_is_saved_is_the_program(files, tmp_path):
    converted = mrt.convert(files / "m.onnx", SAMPLES)
    path = converted.save(tmp_path / "q.cvm")
    loaded = cvm.load(path)
    integers = loaded.quantize({"x": SAMPLES})
    assert loaded.run(integers)["v0"].tolist() == (
        converted.program.run(integers)["v0"].tolist()
    )
    with pytest.raises(BadInput, match="is also an input"):
        converted.save(files / "m.onnx")
    with pytest.raises(BadInput, match=r"p\.json: \.json is the suffix of"):
        converted.save(tmp_path / "p.json")
    notes = tmp_path / "notes"
    notes.write_text("of somebody")
    with pytest.raises(BadOption, match="notes: exists, and is no program"):
        converted.save(notes)
    assert notes.read_text() == "of somebody"


def test_evaluation_is_that_of_the_command(files, by_command):
    converted = mrt.convert(onnx.load(files / "m.onnx"), SAMPLES, bits=7)
    report = converted.evaluate(SAMPLES, LABELS)
    logits = (
        SAMPLES
        @ np.asarray(
            onnx.numpy_helper.to_array(
                onnx.load(files / "m.onnx").graph.initializer[0]
            )
        )
        .reshape(4, 6)
        .T
    )
    right = float(np.mean(logits.argmax(axis=1) == LABELS))
    assert report.of_float.top1 == pytest.approx(right)
    assert report.samples == 24
    assert converted.evaluate(files / "d.npz").of_float.top1 == pytest.approx(
        right
    )
    assert converted.evaluate({"x": SAMPLES}).of_float.top1 is None


def test_a_representation_is_short_and_names_the_program(files, by_command):
    converted = mrt.convert(files / "m.onnx", SAMPLES, bits=7)
    assert by_command[:12] in repr(converted)
    assert len(repr(converted)) < 120
    page = converted._repr_html_()
    assert by_command in page
    assert page.startswith("<table>")


def test_files_made_for_objects_go_with_the_result(files):
    proto = onnx.load(files / "m.onnx")
    folder = Path(tempfile.gettempdir())
    before = set(folder.glob("mrt-*"))
    converted = mrt.convert(proto, SAMPLES)
    made = set(folder.glob("mrt-*")) - before
    assert len(made) == 1
    del converted
    gc.collect()
    assert not set(folder.glob("mrt-*")) - before
    with pytest.raises(BadOption):
        mrt.convert(proto, SAMPLES, observer="none such")
    assert not set(folder.glob("mrt-*")) - before


def test_options_are_those_of_the_command(files):
    with pytest.raises(TypeError, match=r"has no option 'bit'; it has .*bits"):
        mrt.convert(files / "m.onnx", SAMPLES, bit=7)
    converted = mrt.convert(
        files / "m.onnx", SAMPLES, refine=["biases"], shapes={"x": (1, 6)}
    )
    assert converted.conversion.config.refinement.biases
    assert not converted.conversion.config.refinement.fit


@pytest.mark.parametrize(
    ("model", "data", "problem", "message"),
    [
        (3, SAMPLES, BadModel, "a model of type builtins.int: expected a path"),
        ("m.onnx", ["a"], BadData, "^data: holds <U1; expected real numbers"),
    ],
)
def test_objects_that_are_neither_are_refused(model, data, problem, message):
    with pytest.raises(problem, match=message):
        mrt.convert(model, data)


def test_labels_beside_a_file_are_refused(files):
    with pytest.raises(BadOption, match="labels there"):
        mrt.convert(files / "m.onnx", files / "d.npz", labels=[1])


@pytest.mark.parametrize("name", ["m.onnx", "m-symbol.json", "m.bin"])
def test_a_missing_file_is_that_of_python(name, tmp_path, files):
    with pytest.raises(
        FileNotFoundError, match="No such file or directory"
    ) as caught:
        mrt.convert(tmp_path / name, SAMPLES)
    assert isinstance(caught.value, BadModel)
    with pytest.raises(FileNotFoundError, match="No such file") as caught:
        mrt.convert(files / "m.onnx", tmp_path / "none.npz")
    assert isinstance(caught.value, BadData)


@pytest.mark.filterwarnings("ignore")
def test_a_scikit_learn_estimator_is_converted():
    linear_model = pytest.importorskip("sklearn.linear_model")
    pytest.importorskip("skl2onnx")
    estimator = linear_model.LogisticRegression().fit(SAMPLES, LABELS)
    converted = mrt.convert(estimator, SAMPLES)
    report = converted.evaluate(SAMPLES, LABELS)
    assert report.of_float.top1 == pytest.approx(
        estimator.score(SAMPLES, LABELS)
    )
    assert report.class_output.name == "probabilities"


@pytest.mark.filterwarnings("ignore")
def test_a_torch_module_is_converted():
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    module = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.Dropout(), torch.nn.Linear(8, 4)
    )
    converted = mrt.convert(module, SAMPLES)
    assert module.training
    module.eval()
    with torch.no_grad():
        best = module(torch.from_numpy(SAMPLES)).argmax(dim=1).numpy()
    report = converted.evaluate(SAMPLES, best)
    assert report.of_float.top1 == 1
    assert report.of_integer.top1 > 0.8
