"""Hugging Face's preprocessor_config.json: what those that are published mean, and what is refused by name."""

import json

import pytest

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.preprocessor_file import MAX_BYTES, read_preprocessor
from mrt.calibrate.presets import prepared
from mrt.errors import BadOption
from mrt.settings import settings_of

# As in the repositories of these models; the expected settings follow their processors' documents.
VIT = {
    "do_normalize": True,
    "do_resize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "size": 224,
}
VIT_NEW = {
    **VIT,
    "do_rescale": True,
    "image_processor_type": "ViTImageProcessor",
    "resample": 2,
    "rescale_factor": 0.00392156862745098,
    "size": {"height": 224, "width": 224},
}
CLIP = {
    "crop_size": 224,
    "do_center_crop": True,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "CLIPFeatureExtractor",
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "resample": 3,
    "size": 224,
}
MOBILENET = {
    "crop_size": {"height": 224, "width": 224},
    "do_center_crop": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_processor_type": "MobileNetV2ImageProcessor",
    "image_std": [0.5, 0.5, 0.5],
    "resample": 2,
    "rescale_factor": 0.00392156862745098,
    "size": {"shortest_edge": 256},
}
RESNET = {
    "crop_pct": 0.875,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "ConvNextFeatureExtractor",
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
    "resample": 3,
    "size": 224,
}
MOBILEVIT = {
    "crop_size": {"height": 256, "width": 256},
    "do_center_crop": True,
    "do_flip_channel_order": True,
    "do_rescale": True,
    "do_resize": True,
    "image_processor_type": "MobileViTImageProcessor",
    "resample": 2,
    "rescale_factor": 0.00392156862745098,
    "size": {"shortest_edge": 288},
}
HALF = {"scale": 1 / 255, "mean": (0.5,) * 3, "std": (0.5,) * 3}
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (VIT, {**HALF, "resize": (224, 224)}),
        (VIT_NEW, {**HALF, "resize": (224, 224)}),
        (
            {**VIT, "do_rescale": False},
            {**HALF, "scale": 1.0, "resize": (224, 224)},
        ),
        ({**VIT, "do_resize": False}, HALF),
        ({**VIT, "size": [3]}, "size = [3]: expected an integer"),
        (
            CLIP,
            {
                "scale": 1 / 255,
                "mean": (0.48145466, 0.4578275, 0.40821073),
                "std": (0.26862954, 0.26130258, 0.27577711),
                "resize": 224,
                "crop": (224, 224),
                "resample": "bicubic",
            },
        ),
        (
            {**CLIP, "default_to_square": True, "do_normalize": False},
            {
                "scale": 1 / 255,
                "resize": (224, 224),
                "crop": (224, 224),
                "resample": "bicubic",
            },
        ),
        (MOBILENET, {**HALF, "resize": 256, "crop": (224, 224)}),
        (
            RESNET,
            {
                "scale": 1 / 255,
                **IMAGENET,
                "resize": 256,
                "crop": (224, 224),
                "resample": "bicubic",
            },
        ),
        (
            {**RESNET, "size": {"shortest_edge": 384}},
            {
                "scale": 1 / 255,
                **IMAGENET,
                "resize": (384, 384),
                "resample": "bicubic",
            },
        ),
        (
            MOBILEVIT,
            {
                "scale": 1 / 255,
                "color": "BGR",
                "resize": 288,
                "crop": (256, 256),
            },
        ),
        (
            {**VIT, "do_pad": False, "unheard_of": None},
            {**HALF, "resize": (224, 224)},
        ),
        ({**VIT, "do_pad": True}, "do_pad: mrt does not know what this does"),
        ({**VIT, "crop_pct": 0.9}, "crop_pct: mrt does not know"),
        ({**VIT, "include_top": True}, "include_top: mrt does not know"),
        ({**VIT, "auto_map": {"AutoImageProcessor": "a.B"}}, "auto_map: mrt"),
        (
            {**VIT, "image_processor_type": "EfficientNetImageProcessor"},
            "EfficientNet's processor does more than its keys say",
        ),
        ({**VIT, "image_mean": None}, "image_mean is missing"),
        ({**VIT, "image_mean": [1, 2]}, "expected one number or three"),
        (
            {**VIT, "image_std": [1, 0, 1]},
            "std = [1.0, 0.0, 1.0]: expected pos",
        ),
        (
            {**VIT, "image_mean": [1, float("nan"), 1]},
            "image_mean = nan: expected a finite",
        ),
        ({**VIT, "do_normalize": "yes"}, "do_normalize = 'yes': expected true"),
        ({**VIT, "rescale_factor": 0}, "scale = 0.0: expected a finite number"),
        ({**VIT, "resample": 9}, "resample = 9: expected one of Pillow's"),
        (
            {**VIT, "size": {"longest_edge": 3}},
            "size has longest_edge; expected",
        ),
        ({**VIT, "size": 2**40}, "expected a number of pixels from 1 to 65536"),
        ({**VIT, "do_center_crop": True}, "crop_size has nothing; expected"),
        ({"do_resize": True, "do_normalize": False}, "size has nothing"),
        ({**RESNET, "crop_pct": 0}, "crop_pct = 0: expected a number from 0.1"),
        ([], "expected an object of keys and values"),
    ],
)
def test_what_a_file_means(content, expected, tmp_path):
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(content))
    if isinstance(expected, dict):
        found = prepared(Preprocessing(), {"preprocessor": path})
        assert found.scale == pytest.approx(expected["scale"], rel=1e-12)
        assert found == Preprocessing(**{**expected, "scale": found.scale})
        assert found.stated
        return
    with pytest.raises(BadOption) as caught:
        read_preprocessor(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"{", "is not JSON"),
        (b"[" * 60000, "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b" " * MAX_BYTES + b"{}", "has more than 65536 bytes"),
        (None, "cannot be read (No such file"),
    ],
)
def test_what_is_no_such_file_is_refused(data, sentence, tmp_path):
    path = tmp_path / "p.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(BadOption) as caught:
        read_preprocessor(path)
    assert sentence in str(caught.value)


def test_no_more_is_read_than_the_bound(tmp_path, monkeypatch):
    """A file that never ends, such as a device, is no problem."""
    import pathlib

    asked = []

    class Endless:
        def read(self, count):
            asked.append(count)
            return b" " * count

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(pathlib.Path, "open", lambda *_: Endless())
    with pytest.raises(BadOption, match="has more than 65536 bytes"):
        read_preprocessor(tmp_path / "p.json")
    assert asked == [MAX_BYTES + 1]


def test_many_unknown_keys_are_cut_short(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps({**VIT, **{f"k{i}": 1 for i in range(20)}}))
    with pytest.raises(BadOption, match="k7 and 12 more: mrt does not know"):
        read_preprocessor(path)


def test_the_command_line_and_a_config_take_the_file_and_what_is_beside_it_wins(
    tmp_path,
):
    (tmp_path / "p.json").write_text(json.dumps(MOBILENET))
    (tmp_path / "c.toml").write_text(
        '[preprocessing]\npreprocessor = "p.json"\nstd = 2\n'
    )
    expected = Preprocessing(
        **{**HALF, "std": (2.0,)}, resize=256, crop=(224, 224)
    )
    by_config = settings_of(
        tmp_path / "m.onnx", {"config": tmp_path / "c.toml"}
    )
    by_command = settings_of(
        tmp_path / "m.onnx", {"preset": str(tmp_path / "p.json"), "std": 2}
    )
    for config in (by_config, by_command):
        found = config.preprocessing
        assert found.scale == pytest.approx(1 / 255)
        assert found == Preprocessing(
            **{**vars(expected), "scale": found.scale}
        )


def test_a_preset_beside_a_file_is_refused(tmp_path):
    (tmp_path / "c.toml").write_text(
        '[preprocessing]\npreprocessor = "p.json"\npreset = "tf"\n'
    )
    with pytest.raises(
        BadOption, match="preset = 'tf': preprocessor is given, too"
    ):
        settings_of(tmp_path / "m.onnx", {"config": tmp_path / "c.toml"})


def test_a_preset_of_the_command_line_wins_over_the_file_of_a_config(tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(MOBILENET))
    (tmp_path / "c.toml").write_text(
        '[preprocessing]\npreprocessor = "p.json"\n'
    )
    options = {"config": tmp_path / "c.toml", "preset": "tf"}
    found = settings_of(tmp_path / "m.onnx", options).preprocessing
    assert (found.scale, found.mean, found.std) == (1 / 127.5, (1.0,), (1.0,))
