"""Presets: what each does to a pixel, and what wins over it."""

import numpy as np
import pytest

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.presets import PRESETS, prepared, require_stated
from mrt.config import load_config
from mrt.errors import BadOption
from mrt.settings import settings_of

PIXEL = np.array([255, 0, 51], np.uint8).reshape(1, 1, 3)  # RGB
# By hand: (1 - 0.485) / 0.229, (0 - 0.456) / 0.224, (0.2 - 0.406) / 0.225; 51 - 103.939 and so on, blue first.
EXPECTED = {
    "imagenet": [2.24890829, -2.03571429, -0.91555556],
    "caffe": [-52.939, -116.779, 131.32],
    "tf": [1.0, -1.0, -0.6],
    "0..1": [1.0, 0.0, 0.2],
    "raw": [255.0, 0.0, 51.0],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_preset_does_to_a_pixel(name):
    step = prepared(Preprocessing(layout="NHWC"), {"preset": name})
    found = step.apply(PIXEL, (1, 3, 1, 1), "here").reshape(-1)
    assert found == pytest.approx(EXPECTED[name], rel=1e-6)


def test_the_refusal_lists_every_preset_with_what_it_does():
    assert PRESETS.keys() == EXPECTED.keys()
    with pytest.raises(BadOption) as caught:
        require_stated(Preprocessing(color="BGR", crop=3), "images: pictures")
    first, *lines, _, last = str(caught.value).splitlines()
    assert first.startswith("images: pictures; it was decided when")
    assert [line.split()[1] for line in lines] == list(EXPECTED)
    assert lines[2].endswith(
        "x/127.5 - 1, so -1 to 1 (TensorFlow, Keras's MobileNet and Inception)"
    )
    assert 'preset = "imagenet" under [preprocessing]' in last


@pytest.mark.parametrize(
    "given",
    [{"preset": "raw"}, {"scale": 1.0}, {"mean": (0.0,)}, {"std": (1.0,)}],
)
def test_numbers_that_change_nothing_are_an_answer_too(given):
    require_stated(prepared(Preprocessing(), given), "images")
    with pytest.raises(BadOption):
        require_stated(prepared(Preprocessing(), {"layout": "HW"}), "images")


def test_a_key_beside_a_preset_wins():
    step = prepared(Preprocessing(), {"preset": "caffe", "color": "RGB"})
    assert (step.color, step.mean) == ("RGB", (103.939, 116.779, 123.68))


def settings(tmp_path, text, **options):
    (tmp_path / "c.toml").write_text(text)
    options["config"] = tmp_path / "c.toml"
    return settings_of(tmp_path / "m.onnx", options)


def test_a_preset_of_the_command_line_wins_over_the_numbers_of_a_file(tmp_path):
    text = '[preprocessing]\nscale = 3\nlayout = "NHWC"\n[inputs.a]\nmean = 7\n'
    config = settings(tmp_path, text, preset="0..1", mean=5)
    for step in (config.preprocessing, config.inputs["a"]):
        assert step == Preprocessing("NHWC", scale=1 / 255, mean=(5.0,))


def test_an_input_starts_from_the_shared_preset(tmp_path):
    text = '[preprocessing]\npreset = "tf"\n[inputs.a]\nstd = 2\n'
    item = settings(tmp_path, text).inputs["a"]
    assert (item.scale, item.mean, item.std) == (1 / 127.5, (1.0,), (2.0,))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {"preset": "caffe", "crop": 8, "layout": "NCHW"}),
        ('[preprocessing]\npreset = "tf"\n', {}),
        ('[preprocessing]\npreset = "tf"\n', {"color": "BGR"}),
        ("[preprocessing]\nstd = 3\n", {"preset": "raw"}),
        (
            '[preprocessing]\nlayout = "HW"\n[inputs.a]\nstd = 3\n',
            {"mean": [1, 2]},
        ),
    ],
)
def test_written_settings_prepare_data_as_this_conversion_did(
    text, options, tmp_path
):
    from mrt.settings import written_settings

    config = settings(tmp_path, text, **options)
    written = written_settings(
        tmp_path / "c.toml", config, tmp_path, with_table=False
    )
    (tmp_path / "w.toml").write_text(written)
    found = load_config(tmp_path / "w.toml")
    assert found.preprocessing == config.preprocessing
    assert found.preprocessing.stated == config.preprocessing.stated
    assert found.inputs == config.inputs
