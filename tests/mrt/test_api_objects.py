"""Torch modules, scikit-learn estimators, frames and wrong objects, as `mrt.convert` takes or refuses them."""

import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

import mrt
from mrt import api_exporters
from mrt.api_files import as_arrays
from mrt.errors import BadData, BadModel, BadOption, MrtError
from tests.support.float_models import FloatModel

RNG = np.random.default_rng(11)
SAMPLES = RNG.normal(size=(24, 6)).astype(np.float32)
OTHERS = 10 * RNG.normal(size=(24, 6)).astype(np.float32)
LABELS = RNG.integers(0, 4, 24)


def classifier() -> onnx.ModelProto:
    model = FloatModel(img=(1, 6))
    output = model.gemm("img", RNG.normal(size=(4, 6)), np.zeros(4))
    return model.proto(output)


def difference() -> onnx.ModelProto:
    model = FloatModel(a=(1, 6), b=(1, 6))
    return model.proto(model.add("Sub", "a", "b"))


# --- arguments of a torch module


class Recorder:
    """A stand-in of torch, whose exporter notes what it is given."""

    def __init__(self) -> None:
        self.called: list[tuple[Any, Any]] = []
        self.exported: dict[str, Any] = {}
        self.onnx = SimpleNamespace(export=self._export)
        self.from_numpy, self.no_grad = list, nullcontext

    def _export(self, model, arguments, path, **words) -> None:
        self.exported = {"arguments": arguments, **words}


class Module:
    """A stand-in of a module."""

    training = True

    def __init__(self, forward) -> None:
        self.forward, self.modes = forward, []

    def eval(self) -> None:
        self.modes.append(False)

    def train(self, mode: bool) -> None:
        self.modes.append(mode)

    def __call__(self, *arguments, **words):
        return self.forward(*arguments, **words)


def exported(monkeypatch, forward, *names: str, is_named: bool = True):
    torch, module = Recorder(), Module(forward)
    monkeypatch.setattr(api_exporters, "_exporter", lambda *_: torch)
    sample = {name: np.full(1, place) for place, name in enumerate(names)}
    try:
        api_exporters.export_torch(
            module, sample, Path("m.onnx"), is_named=is_named
        )
    finally:
        assert not module.modes or module.modes == [False, True]
    found = torch.exported
    return found["arguments"], found["kwargs"], found["input_names"]


def two(a, b):
    return None


def test_arrays_go_to_the_parameters_of_their_names(monkeypatch):
    for names in (("a", "b"), ("b", "a")):
        place = names.index
        by_name = {"a": [place("a")], "b": [place("b")]}
        found = exported(monkeypatch, two, *names)
        assert found == ((), by_name, ["a", "b"])

    def optional(a, b=None, *, c=None):
        return None

    assert exported(monkeypatch, optional, "c", "a") == (
        (),
        {"a": [1], "c": [0]},
        ["a", "c"],
    )


@pytest.mark.parametrize("is_named", [True, False])
def test_one_array_needs_no_name(monkeypatch, is_named):
    found = exported(
        monkeypatch, lambda a, b=None: None, "x", is_named=is_named
    )
    assert found == (([0],), None, ["x"])


def test_a_bare_array_is_the_first_argument_whatever_its_name(monkeypatch):
    found = exported(monkeypatch, lambda a, x=None: None, "x", is_named=False)
    assert found == (([0],), None, ["x"])


def test_names_that_forward_hides_are_taken_as_they_are(monkeypatch):
    found = exported(monkeypatch, lambda **words: None, "q", "p")
    assert found == ((), {"q": [0], "p": [1]}, ["q", "p"])
    found = exported(monkeypatch, lambda *arrays: None, "q", "p")
    assert found == (([0], [1]), None, ["q", "p"])


def test_names_that_are_no_parameters_are_refused(monkeypatch):
    for names, unknown in ((("x", "y"), "'x', 'y'"), (("a", "y"), "'y'")):
        with pytest.raises(BadData) as caught:
            exported(monkeypatch, two, *names)
        assert str(caught.value) == (
            f"data: {unknown} are no parameters of forward(a, b): name them so"
        )


def test_a_module_that_cannot_run_the_sample_is_refused_in_a_line(
    monkeypatch, capsys
):
    def fail(a):
        print("a flood")
        raise ValueError(f"{'no ' * 200}\nand a second line")

    with pytest.raises(BadModel) as caught:
        exported(monkeypatch, fail, "a")
    text = str(caught.value)
    assert text.startswith(
        "the module cannot run a sample [1]: ValueError: no no"
    )
    assert len(text) < 260
    assert text.endswith("...")
    assert "second" not in text
    assert capsys.readouterr() == ("", "")


@pytest.mark.filterwarnings("ignore")
def test_torch_itself_takes_arrays_by_name():
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

    class Weighted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.of_a = torch.nn.Linear(6, 3)
            self.of_b = torch.nn.Linear(6, 3)

        def forward(self, a, b):
            return self.of_a(a) + self.of_b(b)

    module = Weighted()
    with torch.no_grad():
        wanted = module(torch.from_numpy(SAMPLES), torch.from_numpy(OTHERS))
    for names in ("ab", "ba"):
        data = {name: {"a": SAMPLES, "b": OTHERS}[name] for name in names}
        program = mrt.convert(module, data).program
        assert sorted(port.name for port in program.inputs) == ["a", "b"]
        real = program.dequantize(program.run(program.quantize(data)))
        (found,) = real.values()
        assert np.abs(found - wanted.numpy()).max() < 1
    with pytest.raises(BadModel, match=r"cannot run a sample \[1,5\]: "):
        mrt.convert(torch.nn.Linear(6, 3), SAMPLES[:, :5])


# --- frames and estimators


class Frame:
    """A stand-in of a DataFrame."""

    def __init__(self, **columns: Any) -> None:
        self.columns = [name.replace("_", " ") for name in columns]
        self.array = np.stack(list(columns.values()), axis=1)
        self.iloc = self

    def __getitem__(self, places):
        return SimpleNamespace(to_numpy=lambda: self.array[places])

    def to_numpy(self):
        return self.array


@pytest.fixture(name="frame")
def _frame(monkeypatch):
    fake = SimpleNamespace(DataFrame=Frame)
    monkeypatch.setitem(sys.modules, "pandas", fake)
    return Frame(age=np.arange(3), the_income=np.arange(3) / 2)


def test_a_frame_is_an_array_for_each_column_where_inputs_are_columns(frame):
    arrays = as_arrays(frame, ["the_income", "age"])
    assert list(arrays) == ["the_income", "age"]
    assert arrays["the_income"].tolist() == [[0], [0.5], [1]]
    (whole,) = as_arrays(frame, ["X"]).values()
    assert whole.tolist() == [[0, 0], [1, 0.5], [2, 1]]
    assert as_arrays(frame).keys() == {"x"}


@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_of_named_columns_takes_a_frame_of_pandas():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("skl2onnx")
    compose = pytest.importorskip("sklearn.compose")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    frame = pandas.DataFrame(OTHERS[:, :2], columns=["age", "the income"])
    frame["count"] = np.arange(24)
    scaled = ("scaled", StandardScaler(), ["age", "the income"])
    pipeline = make_pipeline(
        compose.ColumnTransformer([scaled], remainder="passthrough"),
        LogisticRegression(),
    )
    with pytest.raises(BadModel, match=r"^the Pipeline is not fitted; call"):
        mrt.convert(pipeline, frame)
    pipeline.fit(frame, LABELS)
    converted = mrt.convert(pipeline, frame)
    names = [port.name for port in converted.program.inputs]
    assert names == ["age", "the_income", "count"]
    report = converted.evaluate(frame, LABELS)
    assert report.of_float.top1 == pytest.approx(pipeline.score(frame, LABELS))
    columns = {name: frame[name] for name in frame}
    assert mrt.convert(pipeline, columns).program.id == converted.program.id
    with pytest.raises(BadData, match=r"^data\['town'\]: holds .*expected"):
        mrt.convert(pipeline, frame.assign(town="a"))


@pytest.mark.filterwarnings("ignore")
def test_estimators_that_cannot_be_exported_are_refused_in_a_line():
    linear_model = pytest.importorskip("sklearn.linear_model")
    pytest.importorskip("skl2onnx")
    estimator = linear_model.LogisticRegression()
    with pytest.raises(
        BadModel, match=r"^the LogisticRegression is not fitted; call its fit"
    ):
        mrt.convert(estimator, SAMPLES)
    estimator.fit(SAMPLES, LABELS)
    with pytest.raises(
        BadData,
        match=r"^data: samples of shape \[5\]; the LogisticRegression was fitted on \[6\]$",
    ):
        mrt.convert(estimator, SAMPLES[:, :5])
    converted = mrt.convert(estimator, {"features": SAMPLES})
    assert converted.program.inputs[0].name == "features"

    class Own(linear_model.LogisticRegression):
        pass

    own = Own().fit(SAMPLES, LABELS)
    with pytest.raises(
        BadModel, match=r"^the Own cannot be exported as ONNX: .*Unable to find"
    ) as caught:
        mrt.convert(own, SAMPLES)
    assert len(str(caught.value)) < 260


def test_fortran_order_is_no_matter():
    (array,) = as_arrays(np.asfortranarray(SAMPLES)).values()
    assert array.flags.c_contiguous
    proto = classifier()
    converted = mrt.convert(proto, np.asfortranarray(SAMPLES), bits=8)
    assert (
        converted.program.id == mrt.convert(proto, SAMPLES, bits=8).program.id
    )


# --- wrong calls


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SAMPLES[:, :5], r"data: a sample of shape \[5\] "),
        ({"img": SAMPLES[:, :5]}, r"data\['img'\]: a sample of shape \[5\] "),
        ({"img": SAMPLES * np.nan}, r"data\['img'\], sample 0: 6 of 6 values"),
        (SAMPLES[:0], "data: holds no samples"),
        ({"img": "a"}, r"data\['img'\]: holds <U1; expected real numbers"),
        ([[1], [1, 2]], "data: list is no array of numbers"),
        (3, "data: a single number; expected an array"),
        (np.ma.masked_greater(SAMPLES, 0.5), "data: some numbers are masked"),
        (
            [{"img": SAMPLES[0]}],
            "data: holds object.* in a mapping of an array",
        ),
        ({}, "data: an empty mapping; expected arrays by input name"),
        (
            {"pic": SAMPLES},
            "data: has no array 'img' or 'x' for the model's input; it has pic; rename one$",
        ),
    ],
)
def test_data_are_named_as_they_were_given(data, message):
    with pytest.raises(BadData, match=f"^{message}") as caught:
        mrt.convert(classifier(), data)
    for text in (str(caught.value), *caught.value.lines):
        assert "mrt-" not in text
        assert "mrt init" not in text


def test_one_array_for_two_inputs_is_refused_without_a_file():
    with pytest.raises(BadData) as caught:
        mrt.convert(difference(), SAMPLES)
    assert str(caught.value) == (
        "data: has no array 'a' for the model's input; give arrays by input name"
    )


def test_evaluation_names_its_data_too():
    converted = mrt.convert(classifier(), SAMPLES)
    with pytest.raises(BadData, match=r"^data: a sample of shape \[5\]"):
        converted.evaluate(SAMPLES[:, :5])
    with pytest.raises(BadData, match=r"^labels: has shape \[2\], expected"):
        converted.evaluate(SAMPLES, [1, 2])
    with pytest.raises(
        BadData,
        match=r"^labels: expected the numbers of classes, 0 or above, found 0\.5;",
    ):
        converted.evaluate(SAMPLES, [0.5] * 24)


def test_notes_on_objects_name_them():
    model = FloatModel(img=(1, 1, 2, 3))
    proto = model.proto(model.add("Relu", "img"))
    data = {"img": RNG.integers(0, 255, (24, 1, 2, 3)).astype(np.uint8)}
    remarks = mrt.convert(proto, data).conversion.remarks
    (note,) = [text for text in remarks.notes if "holds bytes" in text]
    assert note.startswith("data['img'] holds bytes, and the model gets them")
    texts = [*remarks.notes, *remarks.warnings]
    assert not [text for text in texts if "samples.npz" in text]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"table": 3}, "table: expected a CalibrationTable or the path of one"),
        (
            {"config": 3},
            "config: expected the path of a config file, found int",
        ),
        ({"progress": 3}, "progress: expected a function of"),
        ({"refine": 3}, "refine = 3: expected 'all', 'none' or names"),
        ({"bits": "x"}, "bits = 'x': expected auto, 2..8"),
        ({"shapes": 3}, "shapes = 3: expected a table"),
    ],
)
def test_options_of_a_wrong_type_are_refused(option, message):
    with pytest.raises(BadOption, match=f"^{message}"):
        mrt.convert(classifier(), SAMPLES, **option)


def test_an_error_with_several_lines_has_other_words_in_each():
    problem = MrtError("a", ["b", "c"], "d")
    problem.reword(str.upper)
    assert problem.lines == ["A", "  B", "  C", "D"]
    assert problem.problems == ["B", "C"]
    assert str(problem) == "A\n  B\n  C\nD"


# --- targets of a regression


@pytest.mark.parametrize("targets", [np.linspace(0, 1, 24), -np.ones((24, 2))])
def test_a_metric_gets_targets_as_they_are(targets):
    got = []

    def metric(outputs, y):
        got.append(y)
        return len(outputs)

    converted = mrt.convert(classifier(), {"img": SAMPLES}, bits=8)
    report = converted.evaluate({"img": SAMPLES}, targets, metric=metric)
    assert (report.of_float.metric, report.of_integer.metric) == (1, 1)
    assert report.of_float.top1 is None
    for of_side in got:
        assert np.array_equal(of_side, targets)
    with pytest.raises(BadData, match="a metric measures regressions"):
        converted.evaluate({"img": SAMPLES}, targets)
