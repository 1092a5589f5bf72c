"""The types of option values: plain Python types, annotated with the other forms that are read as one, and their words.

Pydantic reads the annotations (`mrt/option_tables.py`). It is not imported here, for the
declarations of options stand on the way of every command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from pydantic_core.core_schema import CoreSchema

MAX_SAMPLES = 10**9
_LONGEST = 80  # characters of a value in a message
_FRACTION = r"^[^/]+/[^/]+$"


class Form:
    """Annotates a type with the words for what is allowed, and with the conversion of a value before it is judged.

    `limits` are those of pydantic's schemas: ge, gt, le, lt, min_length. `schema` is the
    JSON Schema where that of the type does not have all that `convert` takes. `choices` are
    the texts among which one was meant that is near.
    """

    def __init__(
        self,
        words: str,
        convert: Callable[[Any], Any] = lambda value: value,
        schema: Mapping[str, Any] | None = None,
        choices: Sequence[str] = (),
        **limits: float,
    ) -> None:
        self.words = words
        self._convert = convert
        self._schema = schema
        self._choices = choices
        self._limits = limits

    def __get_pydantic_core_schema__(
        self, source: Any, handler: Callable[[Any], CoreSchema]
    ) -> CoreSchema:
        """Pydantic's door: the type with the limits, and one sentence for all that it refuses."""
        from pydantic_core import PydanticCustomError, core_schema

        def read(value: Any, judge: Callable[[Any], Any]) -> Any:
            try:
                return judge(self._convert(value))
            except (ValueError, ArithmeticError):
                words = {"words": f"{self._near(value)}expected {self.words}"}
            try:
                bare = _without_quotes(value)
                judge(self._convert(bare))
                words["words"] += (
                    f"; {shown(value)} is text, write {shown(bare)} without quotes"
                )
            except (ValueError, ArithmeticError):
                pass
            raise PydanticCustomError("expected", "{words}", words)

        inner: Any = {**handler(source), **self._limits}
        return core_schema.no_info_wrap_validator_function(read, inner)

    def _near(self, value: Any) -> str:
        """A question after the choice that was meant, if there is one."""
        near = get_close_matches(str(value)[:_LONGEST], self._choices, 1)
        return f"did you mean {near[0]}? " if near else ""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: Callable[[CoreSchema], Any]
    ) -> Any:
        """Pydantic's door: the JSON Schema."""
        return handler(schema) if self._schema is None else dict(self._schema)


def shown(value: Any) -> str:
    """A value as TOML has it, in at most 80 characters."""
    text = _toml(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Mapping):
        entries = (f"{key} = {_toml(entry)}" for key, entry in value.items())
        return f"{{ {', '.join(entries)} }}"
    return repr(str(value)) if isinstance(value, (str, Path)) else str(value)


def _without_quotes(value: Any) -> Any:
    """The number, true or false that a text shows; ValueError if it shows none."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_without_quotes, value))
    if not isinstance(value, str):
        return value
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.isdecimal() else float(value)


def _number(value: Any) -> Any:
    """A fraction as the number that it is."""
    if isinstance(value, str):
        top, bottom = value.split("/")
        return float(top) / float(bottom)
    return float(value) if type(value) is int else value


def _other_than_0(value: Any) -> Any:
    number = _number(value)
    if number == 0:
        raise ValueError(value)
    return number


def _numbers(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else (value,)


def _path(value: Any) -> Any:
    """Return the path; None for what is none, such as a text of which no file can have the name."""
    is_text = isinstance(value, (str, PathLike))
    return Path(value) if is_text and value and "\0" not in str(value) else None


_NUMBER_SCHEMA = {
    "anyOf": [{"type": "number"}, {"type": "string", "pattern": _FRACTION}]
}
_NUMBERS_SCHEMA = {
    "anyOf": [
        *_NUMBER_SCHEMA["anyOf"],
        {"type": "array", "items": _NUMBER_SCHEMA, "minItems": 1},
    ]
}
_FRACTIONS = 'such as "1/255"'

Flag = Annotated[bool, Form("true or false")]
Text = Annotated[str, Form("text", min_length=1)]
File = Annotated[Path, Form("text", _path, {"type": "string", "minLength": 1})]
Names = Annotated[tuple[Text, ...], Form("a list of names", min_length=1)]
Integer = Annotated[int, Form("an integer")]
SampleCount = Annotated[
    int, Form("a number of samples, 1 or more", ge=1, le=MAX_SAMPLES)
]
HeldBackCount = Annotated[
    int, Form("a number of samples, 0 or more", ge=0, le=MAX_SAMPLES)
]
Number = Annotated[
    float,
    Form(
        f"a finite number or a fraction {_FRACTIONS}", _number, _NUMBER_SCHEMA
    ),
]
NumberOtherThan0 = Annotated[
    float,
    Form(
        f"a finite number other than 0, or a fraction {_FRACTIONS}",
        _other_than_0,
        _NUMBER_SCHEMA,
    ),
]
Numbers = Annotated[
    tuple[Number, ...],
    Form(
        f"finite numbers, or fractions {_FRACTIONS}",
        _numbers,
        _NUMBERS_SCHEMA,
        min_length=1,
    ),
]
_Positive = Annotated[float, Form("a positive number", _number, gt=0)]
PositiveNumbers = Annotated[
    tuple[_Positive, ...],
    Form(
        f"positive numbers, or fractions {_FRACTIONS}",
        _numbers,
        _NUMBERS_SCHEMA,
        min_length=1,
    ),
]
_Dimension = Annotated[int, Form("a dimension", ge=1, lt=2**31)]
Shape = Annotated[
    tuple[_Dimension, ...],
    Form("a list of dimensions, each 1 or more", min_length=1),
]
MAX_SIDE = 65536
_Side = Annotated[int, Form("a number of pixels", ge=1, le=MAX_SIDE)]
Sides = Annotated[
    _Side | tuple[_Side, _Side],
    Form(f"a number of pixels from 1 to {MAX_SIDE}, or [height, width]"),
]
Percentile = Annotated[
    float, Form("a number above 50, up to 100", _number, gt=50, le=100)
]
MOST_PRODUCTS = 2
ProductShare = Annotated[
    float,
    Form(
        f"a number from 0 to {MOST_PRODUCTS}, of the model's products",
        _number,
        ge=0,
        le=MOST_PRODUCTS,
    ),
]
Precision = Annotated[int, Form("a precision from 2 to 16", ge=2, le=16)]
