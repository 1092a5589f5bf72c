"""Reads preprocessor_config.json, in which Hugging Face's image processors keep how pictures are prepared.

Every key is read, known to change nothing, or refused by name: a picture prepared almost as in
training costs accuracy without a word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mrt.calibrate.preprocessing import RESAMPLES, Preprocessing
from mrt.errors import BadOption
from mrt.option_values import Flag, Integer, Number

MAX_BYTES = 65536  # those that are published have a few hundred
_SHOWN = 8  # keys in a message
# Pillow's numbers of its filters.
_FILTERS = dict(
    enumerate(("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"))
)
assert set(_FILTERS.values()) == set(RESAMPLES)
_READ = {
    *("do_resize", "size", "resample", "default_to_square", "crop_pct"),
    *("do_center_crop", "crop_size", "do_rescale", "rescale_factor"),
    *("do_normalize", "image_mean", "image_std", "do_flip_channel_order"),
    *("image_processor_type", "feature_extractor_type", "processor_class"),
}
_WITHOUT_EFFECT = {  # on one picture, opened as RGB
    *("_valid_processor_keys", "data_format", "input_data_format", "device"),
    *("return_tensors", "do_convert_rgb", "disable_grouping", "pad_size"),
    *("transformers_version", "do_convert_annotations", "format"),
}
_OWN_STEPS = (  # processors that do more than their keys state
    *("Levit", "EfficientNet", "PoolFormer", "GLPN", "ImageGPT", "Perceiver"),
    *("Detr", "ConditionalDetr", "DeformableDetr", "Yolos", "Sam", "Donut"),
    *("Nougat", "Pix2Struct", "Fuyu", "Idefics", "Llava", "Qwen2VL"),
)
_SHORTER_SIDE = (  # a size of one number is that of the shorter side, else of both
    *("CLIP", "ChineseCLIP", "MobileNet", "MobileViT", "Bit", "VideoMAE"),
)
_CROPPED_BELOW = (
    384  # ConvNeXT's pictures of at least this side are not cropped
)
_KEPT = 224 / 256  # ConvNeXT's crop_pct, unless stated


def read_preprocessor(path: Path) -> dict[str, Any]:
    """The options of preprocessing that the file stands for; BadOption, naming the file and the key, for any other."""
    content = _read_json(path)
    try:
        _refuse_others(content)
        options = {
            **_numbers(content),
            **_sizes(content),
            "color": "BGR" if _flips_channels(content) else "RGB",
        }
        Preprocessing(**options)  # judges the values
        return options
    except BadOption as problem:
        raise BadOption(f"{path}: {problem}") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise BadOption(
                f"{path}: has more than {MAX_BYTES} bytes; expected a preprocessor_config.json"
            )
        content = json.loads(data)
    except OSError as problem:
        raise BadOption(
            f"{path}: cannot be read ({problem.strerror})"
        ) from None
    except (ValueError, RecursionError) as problem:
        raise BadOption(f"{path}: is not JSON ({problem})") from None
    if not isinstance(content, dict):
        raise BadOption(f"{path}: expected an object of keys and values")
    return content


def _refuse_others(content: Mapping[str, Any]) -> None:
    """Refuse unknown keys, except null, false or empty ones, which request nothing."""
    unknown = [
        key
        for key, value in content.items()
        if key not in _READ
        and key not in _WITHOUT_EFFECT
        and value not in (None, False, [], {})
    ]
    for family in _OWN_STEPS:
        if _is_of(content, family):
            raise BadOption(
                f"{family}'s processor does more than its keys say; prepare the samples yourself and give an .npz"
            )
    if "crop_pct" in content and not _is_of(content, "ConvNext"):
        unknown.append("crop_pct")
    if unknown:
        more = f" and {len(unknown) - _SHOWN} more" * (len(unknown) > _SHOWN)
        raise BadOption(
            f"{', '.join(unknown[:_SHOWN])}{more}: mrt does not know what this does to a picture; "
            "prepare the samples yourself and give an .npz"
        )


def _flag(content: Mapping[str, Any], key: str, default: bool) -> bool:
    value = content.get(key)
    return default if value is None else _taken(key, value, Flag)


def _taken(key: str, value: Any, kind: Any) -> Any:
    from mrt.option_tables import read_one

    return read_one(kind, key, value)


def _is_of(content: Mapping[str, Any], family: str) -> bool:
    kinds = ("image_processor_type", "feature_extractor_type")
    return any(str(content.get(kind, "")).startswith(family) for kind in kinds)


# -- numbers -----------------------------------------------------------------------


def _numbers(content: Mapping[str, Any]) -> dict[str, Any]:
    """Scale, mean and deviation. Files from before do_rescale was a key always rescale."""
    scale = 1.0
    if _flag(content, "do_rescale", True):
        factor = content.get("rescale_factor", 1 / 255)
        scale = _taken("rescale_factor", factor, Number)
    by_default = "image_mean" in content or not _is_of(content, "MobileViT")
    if not _flag(content, "do_normalize", by_default):
        return {"scale": scale, "mean": (0.0,), "std": (1.0,)}
    return {
        "scale": scale,
        "mean": _channels(content, "image_mean"),
        "std": _channels(content, "image_std"),
    }


def _channels(content: Mapping[str, Any], key: str) -> tuple[float, ...]:
    value = content.get(key)
    if value is None:
        raise BadOption(
            f"{key} is missing, and do_normalize asks for it; give --mean and --std instead of the file"
        )
    numbers = value if isinstance(value, list) else [value]
    if len(numbers) not in (1, 3):
        raise BadOption(f"{key} = {value!r}: expected one number or three")
    return tuple(_taken(key, number, Number) for number in numbers)


def _flips_channels(content: Mapping[str, Any]) -> bool:
    return _flag(content, "do_flip_channel_order", _is_of(content, "MobileViT"))


# -- sizes -------------------------------------------------------------------------


def _sizes(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return resize, crop and filter. A size that the file does not have is None, so that no option of the caller replaces it."""
    options: dict[str, Any] = {
        "resize": None,
        "crop": None,
        "resample": _filter(content),
    }
    if _is_of(content, "ConvNext"):
        return options | _sizes_of_convnext(content)
    if _flag(content, "do_resize", True):
        options["resize"] = _resize(content)
    if _flag(content, "do_center_crop", "crop_size" in content):
        options["crop"] = _sides("crop_size", content.get("crop_size"))
    return options


def _filter(content: Mapping[str, Any]) -> str:
    number = content.get("resample")
    if number is None:
        return "bilinear"
    if type(number) is not int or number not in _FILTERS:
        raise BadOption(
            f"resample = {number!r}: expected one of Pillow's filters, 0 to {len(_FILTERS) - 1}"
        )
    return _FILTERS[number]


def _resize(content: Mapping[str, Any]) -> int | tuple[int, int]:
    size = content.get("size")
    if isinstance(size, dict) and size.keys() == {"shortest_edge"}:
        return _side("size", size["shortest_edge"])
    height, width = _sides("size", size)
    shorter = any(_is_of(content, family) for family in _SHORTER_SIDE)
    if isinstance(size, int) and not _flag(
        content, "default_to_square", not shorter
    ):
        return height
    return height, width


def _sides(key: str, size: Any) -> tuple[int, int]:
    if isinstance(size, dict) and size.keys() == {"height", "width"}:
        return _side(key, size["height"]), _side(key, size["width"])
    if isinstance(size, dict) and size.keys() == {"shortest_edge"}:
        size = size["shortest_edge"]
    if isinstance(size, dict) or size is None:
        keys = "nothing" if size is None else ", ".join(map(str, size))
        raise BadOption(
            f"{key} has {keys[:80]}; expected a number, shortest_edge, or height and width"
        )
    return _side(key, size), _side(key, size)


def _side(key: str, value: Any) -> int:
    return int(_taken(key, value, Integer))


def _sizes_of_convnext(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return sizes with which the crop keeps the share `crop_pct`; large pictures are squeezed instead."""
    if not _flag(content, "do_resize", True):
        return {}
    side, _ = _sides("size", content.get("size"))
    if side >= _CROPPED_BELOW:
        return {"resize": (side, side)}
    stated = content.get("crop_pct")
    kept = _KEPT if stated is None else _taken("crop_pct", stated, Number)
    if not 0.1 <= kept <= 1:
        raise BadOption(
            f"crop_pct = {stated!r}: expected a number from 0.1 to 1"
        )
    return {"resize": int(side / kept), "crop": (side, side)}
