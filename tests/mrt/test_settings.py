"""Options over a config file: which of the file's entries they replace, and to which they add."""

from pathlib import Path

import pytest

from mrt.commands.shared import read_settings
from mrt.config import Config, DataSettings
from mrt.errors import BadOption
from mrt.refine.options import RefineOptions
from mrt.settings import settings_of

FILE = """\
[model]
path = "own.json"
params = "own.params"
outputs = ["a"]
shapes = { data = [1], mask = [2] }
values = { rate = 3 }
[calibration]
data = "c.npz"
samples = 10
[evaluation]
data = "e.npz"
samples = 20
[refinement]
fit = false
"""


@pytest.fixture(name="file")
def _file(tmp_path) -> Path:
    (tmp_path / "c.toml").write_text(FILE)
    return tmp_path / "c.toml"


def over(file: Path, model: Path | None = None, **options: object) -> Config:
    return settings_of(model, {"config": file, **options})


def test_without_options_the_file_holds(file):
    model = over(file).model
    assert (model.path, model.params) == (
        file.parent / "own.json",
        file.parent / "own.params",
    )
    assert model.outputs == ("a",)


def test_another_model_has_not_the_files_weights_and_outputs(file):
    model = over(file, Path("m.onnx")).model
    assert (model.path, model.params, model.outputs) == (
        Path("m.onnx"),
        None,
        (),
    )
    assert model.shapes == {"data": (1,), "mask": (2,)}
    assert over(file, Path("m.json"), epoch=3).model.epoch == 3


def test_one_source_of_weights_replaces_the_others(file):
    model = over(file, random_weights=0).model
    assert (model.params, model.random_weights) == (None, 0)
    assert model.outputs == ("a",)


def test_shapes_and_values_are_added(file):
    given = {"shapes": {"mask": (5, 6)}, "values": {"gain": 0.5}}
    model = over(file, **given).model
    assert model.shapes == {"data": (1,), "mask": (5, 6)}
    assert model.values == {"rate": 3.0, "gain": 0.5}


def test_data_is_to_calibrate_on_unless_it_is_to_evaluate_on(file):
    here = file.parent
    found = over(file, data=Path("d.npz"))
    assert found.calibration_data == DataSettings(Path("d.npz"), 10)
    assert found.evaluation_data == DataSettings(here / "e.npz", 20)
    found = over(file, data=Path("d.npz"), samples=5, evaluation=True)
    assert found.calibration_data == DataSettings(here / "c.npz", 10)
    assert found.evaluation_data == DataSettings(Path("d.npz"), 5)


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("all", RefineOptions()),
        ("none", RefineOptions.of([])),
        ("fit, twins", RefineOptions.of(["fit", "duplicates"])),
    ],
)
def test_stages_of_the_command_line_replace_the_files(file, text, stages):
    options = {"config": file, "refine": text}
    assert read_settings(None, options).refinement == stages


def test_a_model_is_needed():
    with pytest.raises(BadOption, match="no model is given"):
        settings_of(None, {})
