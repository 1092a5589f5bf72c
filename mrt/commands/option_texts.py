"""Reads the texts of a command line as values such as a config file has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mrt.errors import BadOption
from mrt.quantize.options import MOST, WEIGHT_BITS


def values_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command as `mrt.settings.settings_of` takes them.

    Texts that show no number stay texts, to be refused there with the option's name.
    """
    readers: Mapping[str, Callable[[Any], Any]] = {
        **dict.fromkeys(("scale", "mean", "std", "resize", "crop"), _numbers),
        "extra_products": _number,
        "bits": _bits,
        "outputs": _outputs,
        "refine": _stages,
        "shapes": lambda texts: dict(map(_shape, texts)),
        "values": lambda texts: dict(map(_value, texts)),
        "states": lambda texts: dict(map(_state, texts)),
    }
    return {
        name: readers[name](value)
        if name in readers and value is not None
        else value
        for name, value in options.items()
    }


def _bits(text: str) -> int:
    """A number of bits, which may be too many for activations alone."""
    bits = _number(text)
    if not isinstance(bits, int) or bits not in WEIGHT_BITS:
        raise BadOption(
            f"--bits {text}: expected auto or 2..8; for 16: --activation-bits 16 --weight-bits {MOST}"
        )
    return bits


def _stages(text: str) -> str | list[str]:
    names = _names(text)
    if len(names) == 1 and text in ("all", "none"):
        return text
    for alone in ("all", "none"):
        if alone in names:
            raise BadOption(
                f"--refine {text}: '{alone}' stands alone; beside it no stage can be named"
            )
    return names


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _outputs(text: str) -> list[str]:
    names = _names(text)
    if not all(names):
        raise BadOption(
            f"--outputs {text}: expected names with commas between them"
        )
    return names


def _numbers(text: str) -> Any:
    """One number, or a list of them."""
    numbers = [_number(word) for word in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _shape(text: str) -> tuple[str, list[int]]:
    name, equals, sizes = text.rpartition("=")
    shape = [_number(size) for size in sizes.split(",")]
    good = [
        size for size in shape if isinstance(size, int) and 0 < size < 2**31
    ]
    if not (equals and name and good == shape):
        raise BadOption(
            f"--shape {text}: expected NAME=1,3,224,224 with dimensions of 1 or more"
        )
    return name, good


def _value(text: str) -> tuple[str, float]:
    name, equals, number = text.rpartition("=")
    value = _number(number)
    if not (
        equals
        and name
        and isinstance(value, (int, float))
        and abs(value) < float("inf")
    ):
        raise BadOption(f"--value {text}: expected NAME=NUMBER")
    return name, value


def _state(text: str) -> tuple[str, str]:
    name, _, output = text.partition("=")
    if not (name and output):
        raise BadOption(
            f"--state {text}: expected INPUT=OUTPUT, such as past.0.key=present.0.key"
        )
    return name, output
