"""Declarations of MXNet operators: names, attributes with defaults, inputs, and meaning in ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrt.frontend.mxnet.literals import (
    Literal,
    Reals,
    parse_bound,
    parse_flag,
    parse_integer,
    parse_integers,
    parse_optional_integers,
    parse_real,
    parse_reals,
)

if TYPE_CHECKING:
    import onnx_ir as ir

    from mrt.frontend.mxnet.operator_call import OperatorCall


Values = Mapping[str, Literal]
Handler = Callable[["OperatorCall"], "ir.Value | list[ir.Value]"]

# Inputs of these names are filled from the parameter file. A label serves training only
# and is dropped.
PARAMETERS_SLOT = "parameters"
PARAMETER_SLOTS = (
    "weight",
    "bias",
    "gamma",
    "beta",
    "moving_mean",
    "moving_var",
    PARAMETERS_SLOT,
)
LABEL_SLOT = "label"


@dataclass(frozen=True)
class Attribute:
    """A declared attribute. `only` lists the supported values, where MXNet has more."""

    parse: Callable[[str], Literal]
    default: Literal = None
    required: bool = False
    only: tuple[Literal, ...] = ()
    none_allowed: bool = False

    def read(self, text: str) -> Literal:
        """Read a text as a value; raise ValueError with what was expected."""
        if self.none_allowed and text.strip() == "None":
            return None
        value = self.parse(text)
        if self.only and value not in self.only:
            raise ValueError(
                "not supported; supported: "
                + ", ".join(str(supported) for supported in self.only)
            )
        return value


@dataclass(frozen=True)
class MXNetOperator:
    """An operator of MXNet; `slots` returns the names of its inputs for given attributes."""

    name: str
    attributes: Mapping[str, Attribute]
    slots: Callable[[Values], tuple[str, ...]]
    handler: Handler
    outputs: Callable[[Values], int]


OPERATORS: dict[str, MXNetOperator] = {}


def operator(
    *names: str,
    attributes: Mapping[str, Attribute] | None = None,
    slots: tuple[str, ...] | Callable[[Values], tuple[str, ...]] = ("data",),
    outputs: Callable[[Values], int] = lambda _: 1,
) -> Callable[[Handler], Handler]:
    """Register a handler under all the names that MXNet has for one meaning."""

    def register(handler: Handler) -> Handler:
        for name in names:
            assert name not in OPERATORS, f"{name} is declared twice"
            slots_of = (
                slots if callable(slots) else (lambda _, fixed=slots: fixed)
            )
            OPERATORS[name] = MXNetOperator(
                name, attributes or {}, slots_of, handler, outputs
            )
        return handler

    return register


def read_attributes(
    declared: Mapping[str, Attribute], texts: Mapping[str, str]
) -> tuple[Values, list[str]]:
    """Return the value of every declared attribute, and all problems."""
    problems = [
        f"unknown attribute {name!r}" for name in texts if name not in declared
    ]
    values: dict[str, Literal] = {}
    for name, attribute in declared.items():
        if name in texts:
            try:
                values[name] = attribute.read(texts[name])
            except ValueError as error:
                problems.append(
                    f"attribute {name}={texts[name][:100]!r}: {error}"
                )
        elif attribute.required:
            problems.append(f"attribute {name!r} is missing")
        else:
            values[name] = attribute.default
    return values, problems


def boolean(default: bool, *, only: tuple[bool, ...] = ()) -> Attribute:
    """Declare True or False."""
    return Attribute(parse_flag, default, only=only)


def integer(default: int) -> Attribute:
    """Declare an integer."""
    return Attribute(parse_integer, default)


def positive(default: int | None = None) -> Attribute:
    """Declare an integer from 1 to 2^31 - 1; required unless it has a default."""

    def parse(text: str) -> int:
        value = parse_integer(text)
        if not 1 <= value < 2**31:
            raise ValueError("expected a positive integer")
        return value

    return Attribute(parse, default, required=default is None)


def count() -> Attribute:
    """Declare the number of inputs or outputs; required."""

    def parse(text: str) -> int:
        value = parse_integer(text)
        if not 1 <= value <= 10_000:
            raise ValueError("expected an integer from 1 to 10000")
        return value

    return Attribute(parse, required=True)


def all_inputs(values: Values) -> tuple[str, ...]:
    """Return the slots of an operator with num_args inputs."""
    number = values["num_args"]
    assert isinstance(number, int)
    return ("data",) * number


def real(default: float | None = None) -> Attribute:
    """Declare a finite number; required unless it has a default."""
    return Attribute(parse_real, default, required=default is None)


def optional_real() -> Attribute:
    """Declare a finite number or None."""
    return Attribute(parse_real, none_allowed=True)


def bound() -> Attribute:
    """Declare a number or an infinity; required."""
    return Attribute(parse_bound, required=True)


def reals(default: tuple[float, ...]) -> Attribute:
    """Declare a tuple of finite numbers."""
    return Attribute(parse_reals, Reals(default))


def integers(default: tuple[int, ...] | None = ()) -> Attribute:
    """Declare a tuple of integers.

    None stands for the default; the attribute is required if that is None.
    """
    return Attribute(
        parse_integers,
        default,
        required=default is None,
        none_allowed=default is not None,
    )


def optional_integers() -> Attribute:
    """Declare a tuple of integers, or None, which differs from ()."""
    return Attribute(parse_integers, none_allowed=True)


def indices(*, required: bool = True) -> Attribute:
    """Declare a tuple whose items are integers or None."""
    return Attribute(
        parse_optional_integers, () if not required else None, required=required
    )


def optional_integer() -> Attribute:
    """Declare an integer or None."""
    return Attribute(parse_integer, none_allowed=True)


def choice(
    *words: str, default: str | None = None, required: bool = False
) -> Attribute:
    """Declare one of the supported words."""
    return Attribute(
        str.strip,
        default,
        required=required,
        only=words,
        none_allowed=not required,
    )


def ignored(*names: str) -> dict[str, Attribute]:
    """Declare attributes that only concern speed or training."""
    return {name: Attribute(str) for name in names}
