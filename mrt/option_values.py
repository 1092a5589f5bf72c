"""How values of options are written: readers of TOML values, and forms that the command line and TOML share.

A reader gives the value, or raises BadOption with what was expected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from mrt.errors import BadOption

MAX_SAMPLES = 10**9


def read_text(value: Any) -> str:
    """Text that is not empty."""
    return (
        value if isinstance(value, str) and value else refuse("expected text")
    )


def read_names(value: Any) -> tuple[str, ...]:
    """A list of names."""
    good = (
        isinstance(value, list)
        and value
        and all(isinstance(item, str) and item for item in value)
    )
    return tuple(value) if good else refuse("expected a list of names")


def path_reader(folder: Path) -> Callable[[Any], Path]:
    """Reads paths relative to a folder."""
    return lambda value: folder / read_text(value)


def read_integer(value: Any) -> int:
    """An integer; true and false are none."""
    return value if type(value) is int else refuse("expected an integer")


def read_flag(value: Any) -> bool:
    """True or false."""
    return (
        value if isinstance(value, bool) else refuse("expected true or false")
    )


def read_number(value: Any) -> float:
    """A number, or a fraction as text: "1/255"."""
    try:
        if isinstance(value, str):
            top, bottom = value.split("/")
            return float(top) / float(bottom)
        if type(value) in (int, float):
            return float(value)
    except (ValueError, ArithmeticError):
        pass
    return refuse('expected a number or a fraction such as "1/255"')


def read_numbers(value: Any) -> tuple[float, ...]:
    """One number or a list of them."""
    return tuple(
        read_number(item)
        for item in (value if isinstance(value, list) else [value])
    )


def read_sides(value: Any) -> int | tuple[int, int]:
    """A number of pixels, or a list of height and width."""
    if isinstance(value, list) and len(value) == 2:
        return read_integer(value[0]), read_integer(value[1])
    if isinstance(value, list):
        return refuse("expected a number of pixels, or [height, width]")
    return read_integer(value)


def read_shape(value: Any) -> tuple[int, ...]:
    """The dimensions of a tensor."""
    good = (
        isinstance(value, list)
        and value
        and all(type(size) is int and 0 < size < 2**31 for size in value)
    )
    return (
        tuple(value)
        if good
        else refuse("expected a list of dimensions, each 1 or more")
    )


def read_sample_count(value: Any) -> int:
    """How many samples."""
    if type(value) is int and 0 < value <= MAX_SAMPLES:
        return value
    return refuse("expected a number of samples, 1 or more")


def bits_reader(allowed: tuple[int, ...]) -> Callable[[Any], int]:
    """Reads precisions that are allowed."""
    expected = f"expected one of {', '.join(map(str, allowed))}"

    def read(value: Any) -> int:
        if type(value) is int and value in allowed:
            return value
        return refuse(expected)

    return read


def word_reader(allowed: tuple[str, ...]) -> Callable[[Any], str]:
    """Reads words that are allowed."""
    return lambda value: (
        value
        if value in allowed
        else refuse(f"expected one of {', '.join(allowed)}")
    )


def mapping_reader(
    read: Callable[[Any], Any],
) -> Callable[[Any], dict[str, Any]]:
    """Reads tables whose values `read` reads."""

    def read_mapping(value: Any) -> dict[str, Any]:
        return (
            {name: read(item) for name, item in value.items()}
            if isinstance(value, dict)
            else refuse("expected a table")
        )

    return read_mapping


def refuse(problem: str) -> NoReturn:
    """Raise BadOption."""
    raise BadOption(problem)


# -- forms -------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """How the value of an option is written where no list has all values that are allowed."""

    metavar: str
    read: Callable[[Any], Any]  # a TOML value
    parse: Callable[[str], Any]  # the command line's text as a TOML value


def _parse_number(text: str) -> Any:
    if "/" in text:
        return text
    try:
        return float(text)
    except ValueError:
        return text


def _parse_side(text: str) -> Any:
    return int(text) if text.strip().isdecimal() and len(text) < 10 else text


def _parse_list(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse_all(text: str) -> Any:
        items = [parse(item) for item in text.split(",")]
        return items[0] if len(items) == 1 else items

    return parse_all


TEXT = Form("NAME", read_text, str)
NUMBER = Form("X", read_number, _parse_number)
NUMBERS = Form("X[,X,X]", read_numbers, _parse_list(_parse_number))
SIDES = Form("PX[,PX]", read_sides, _parse_list(_parse_side))
