"""Options are declared once: the command line, TOML, provenance and the documents follow the declaration."""

import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.presets import PresetOption
from mrt.cli import cli
from mrt.commands.shared import read_settings
from mrt.config import load_config
from mrt.errors import BadOption
from mrt.options import Option, options_of, provenance_of
from mrt.quantize.options import QuantizeOptions
from mrt.refine.options import STAGES, RefineOptions
from mrt.settings import settings_of
from mrt.table.table import CalibrationOptions

README = Path(__file__).resolve().parents[2] / "configs" / "README.md"
DECLARED = [
    *((option, "quantization") for option in options_of(QuantizeOptions)),
    (options_of(CalibrationOptions)[0], "calibration"),
]
PREPARING = {  # name: a value as TOML has it, the same for the command line, and what it means
    "preset": ('"tf"', "tf", {"scale": 1 / 127.5, "mean": (1.0,)}),
    "layout": ('"NHWC"', "NHWC", {"layout": "NHWC"}),
    "color": ('"BGR"', "BGR", {"color": "BGR"}),
    "scale": ('"1/4"', "1/4", {"scale": 0.25}),
    "mean": ("[1, 2.5, 3]", "1,2.5,3", {"mean": (1.0, 2.5, 3.0)}),
    "std": ("2", "2", {"std": (2.0,)}),
    "resize": ("[9, 10]", "9,10", {"resize": (9, 10)}),
    "crop": ("8", "8", {"crop": 8}),
    "resample": ('"box"', "box", {"resample": "box"}),
    "input_dtype": ('"u8"', "u8", {"input_dtype": "u8"}),
}
by_option = pytest.mark.parametrize(
    ("option", "table"), DECLARED, ids=[option.name for option, _ in DECLARED]
)


def example() -> str:
    """The TOML of the documents that shows every key."""
    return re.search(r"```toml\n(.*?)```", README.read_text(), re.DOTALL)[1]


def line_of(name: str, table: str) -> str:
    section = example().split(f"[{table}]")[1].split("\n[")[0]
    lines = [
        line for line in section.splitlines() if line.startswith(f"{name} =")
    ]
    assert len(lines) == 1, (
        f"configs/README.md: [{table}] has no line for {name}"
    )
    return lines[0]


@by_option
def test_the_documents_have_every_option_with_its_default_and_its_values(
    option, table
):
    line = line_of(option.name, table)
    shown = tomllib.loads(line)[option.name]
    if option.default is not None:
        assert shown == option.default
    assert shown in option.allowed
    if isinstance(option.allowed[0], str):
        assert " | ".join(option.allowed) in line


def test_the_documents_have_every_refining_stage():
    assert [line_of(stage, "refinement").split()[2] for stage in STAGES] == [
        "true"
    ] * 6


def other(option: Option) -> object:
    return next(value for value in option.allowed if value != option.default)


@by_option
def test_a_config_sets_every_option_and_refuses_other_values(
    option, table, tmp_path
):
    file, value = tmp_path / "c.toml", other(option)
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    file.write_text(f"[{table}]\n{option.name} = {text}\n")
    config = load_config(file)
    settings = (
        config.quantization if table == "quantization" else config.calibration
    )
    assert getattr(settings, option.name) == value
    file.write_text(f"[{table}]\n{option.name} = 'nonsense'\n")
    with pytest.raises(
        Exception, match=rf"\[{table}\] {option.name} = 'nonsense'"
    ):
        load_config(file)


@by_option
def test_the_command_has_the_options_that_are_declared_for_it(option, table):
    text = CliRunner().invoke(cli, ["convert", "--help"]).output
    assert (f"{option.flag} " in text) == option.on_command_line


def test_these_options_of_quantization_are_on_the_command_line():
    """The others are for configs: few people want them."""
    assert {
        option.name
        for option in options_of(QuantizeOptions)
        if option.on_command_line
    } == {
        *("weight_bits", "activation_bits", "product_bits", "stream_bits"),
        *(
            "channelwise_bits",
            "compared_bits",
            "small_layer_bits",
            "sum_bits",
            "scales",
            "scheme",
            "fast_on",
            "requantize",
            "fold",
        ),
    }


def test_every_option_of_preprocessing_has_a_row_here():
    declared = (*options_of(PresetOption), *options_of(Preprocessing))
    assert [
        option.name for option in declared if option.on_command_line
    ] == list(PREPARING)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file in the place of a model: what is missing is refused before the options are read."""
    path = tmp_path / "m.onnx"
    path.touch()
    return path


@pytest.mark.parametrize("name", PREPARING)
def test_preprocessing_means_the_same_in_a_config_and_on_the_command_line(
    name, tmp_path, model
):
    in_toml, on_command_line, meant = PREPARING[name]
    file = tmp_path / "c.toml"
    file.write_text(f"[preprocessing]\n{name} = {in_toml}\n")
    by_file = load_config(file).preprocessing
    given = {name: on_command_line}
    by_command = read_settings(model, given).preprocessing
    in_python = {name: tomllib.loads(f"x = {in_toml}")["x"]}
    by_python = settings_of(model, in_python).preprocessing
    assert by_file == by_command == by_python == Preprocessing(**meant)
    assert by_file.stated == by_command.stated
    assert by_file.stated == (name in ("preset", "scale", "mean", "std"))
    line_of(name, "preprocessing")


@pytest.mark.parametrize(
    "command", ["convert", "calibrate", "evaluate", "compare"]
)
def test_commands_that_take_data_prepare_it(command):
    text = CliRunner().invoke(cli, [command, "--help"]).output
    for name in PREPARING:
        if name != "input_dtype":
            assert f"--{name} " in text


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"mean": "1,a"}, "--mean 1,a: expected finite numbers, or fractions"),
        (
            {"scale": "1/0"},
            "--scale 1/0: expected a finite number other than 0",
        ),
        ({"scale": "nan"}, "--scale nan: expected a finite number"),
        ({"resize": "1,2,3"}, r"--resize 1,2,3: expected .* \[height, width\]"),
        ({"crop": "0"}, "--crop 0: expected a number of pixels from 1"),
        ({"crop": "1.5"}, "--crop 1.5: expected a number of pixels"),
        (
            {"preset": "imagnet"},
            "--preset imagnet: did you mean imagenet. expected one of imagenet, caffe, tf",
        ),
    ],
)
def test_what_the_command_line_gets_wrong_is_said_by_the_options_name(
    given, sentence, model
):
    with pytest.raises(BadOption, match=f"^{sentence}"):
        read_settings(model, given)


def test_all_that_the_command_line_gets_wrong_is_said_at_once(model):
    given = {"mean": "1,a", "crop": "1.5", "weight_bits": 16, "samples": 0}
    with pytest.raises(BadOption) as caught:
        read_settings(model, given)
    first, *more = caught.value.lines
    assert first == "4 entries cannot be used"
    assert {line.split(":")[0].strip() for line in more} == {
        "--mean 1,a",
        "--crop 1.5",
        "--weight-bits 16",
        "--samples 0",
    }


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"bits": "8"}, "bits = '8': .*'8' is text, write 8 without quotes"),
        ({"bits": True}, "bits = true: expected auto, 2..8"),
        ({"shapes": {"x": (0,)}}, r"shapes\.x = \[0\]: expected a list of dim"),
        ({"outputs": "a"}, "outputs = 'a': expected a list of names"),
        ({"refine": ["fitt"]}, "'fitt' is no stage"),
        ({"extra_products": "0.3"}, "extra_products = '0.3': .*without quot"),
        ({"extra_products": 3}, "extra_products = 3: expected a number from 0"),
        ({"extra_products": True}, "extra_products = true: expected a number"),
        (
            {"extra_products": 1, "refine": ["fit"]},
            "extra_products = 1 adds copies of channels, which the stage",
        ),
    ],
)
def test_what_python_gets_wrong_is_said_by_the_keyword(
    given, sentence, tmp_path
):
    with pytest.raises(BadOption, match=f"^{sentence}"):
        settings_of(tmp_path / "m.onnx", given)


def test_python_gives_values_of_numpy_too(tmp_path):
    given = {
        "bits": np.int64(6),
        "mean": np.float32([1, 2, 3]),
        "shapes": {"x": np.array([1, 3])},
        "refine": ["fit"],
        "params": str(tmp_path / "p.params"),
    }
    none = {"extra_products": 0, "refine": ["fit"]}  # no copies: no stage
    of_none = settings_of(tmp_path / "m.onnx", none).refinement
    assert of_none == replace(RefineOptions.of(["fit"]), extra_products=0)
    more = settings_of(tmp_path / "m.onnx", {"extra_products": np.float32(0.5)})
    assert more.refinement == RefineOptions(extra_products=0.5)
    found = settings_of(tmp_path / "m.onnx", given)
    assert found.quantization == QuantizeOptions(6, 6)
    assert found.calibration.bits == 6
    assert found.preprocessing.mean == (1.0, 2.0, 3.0)
    assert found.model.shapes == {"x": (1, 3)}
    assert found.model.params == tmp_path / "p.params"
    assert found.refinement == RefineOptions.of(["fit"])


def test_provenance_keeps_its_words():
    """They are part of a program's bytes."""
    plain = {
        "weight_bits": "8",
        "activation_bits": "8",
        "scales": "real",
        "scheme": "symmetric",
        "bias_correction": "true",
    }
    assert list(provenance_of(QuantizeOptions()).items()) == list(plain.items())
    changed = QuantizeOptions(per_channel=False, unsigned=False, stream_bits=16)
    assert provenance_of(changed) == {
        **plain,
        "per_channel": "false",
        "unsigned": "false",
    }


def test_help_does_not_wait_for_pydantic():
    """It is read with the first option; `mrt --help` needs only the declarations."""
    code = "import sys, mrt.cli; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
