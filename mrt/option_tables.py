"""Tables of options, as pydantic models made from the declarations, and the sentences for what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from mrt.errors import BadOption
from mrt.option_values import Flag, Form, shown
from mrt.options import Option, options_of

KeyPath = tuple[str | int, ...]
"""The keys, and the indices of lists, that lead to a value."""
Table = type[BaseModel]
Misfit = tuple[str, str]
"""The key of an option, and why its value does not go with the others."""
MOST_PROBLEMS = 50  # in one message
STRICT = ConfigDict(
    extra="forbid",
    strict=True,
    allow_inf_nan=False,
    json_schema_extra=lambda schema: schema.pop("title", None),
)


@cache
def table_of(
    *declarations: type,
    without: frozenset[str] = frozenset(),
    check: Callable[[Mapping[str, Any]], Misfit | None] = lambda entries: None,
) -> Table:
    """A table with the options of these dataclasses, none of which must be given.

    `check` finds an option that does not go with the others.
    """
    columns: dict[str, Any] = {}
    for declaration in declarations:
        hints = get_type_hints(declaration, include_extras=True)
        for declared in options_of(declaration):
            if declared.name not in without:
                hint = hints[declared.name]
                columns[declared.name] = _field(declared, hint)

    def judge(table: BaseModel) -> BaseModel:
        misfit = check(table.model_dump(exclude_unset=True))
        if misfit is not None:
            key, words = misfit
            context = {"words": words, "keys": (key,)}
            raise PydanticCustomError("expected", "{words}", context)
        return table

    validators: dict[str, Any] = {"judge": model_validator(mode="after")(judge)}
    return create_model(
        "And".join(declaration.__name__ for declaration in declarations),
        __config__=STRICT,
        __validators__=validators,
        **columns,
    )


def _field(declared: Option, hint: Any) -> tuple[Any, Any]:
    """The type of an option without None, which no file can hold, and what documents have of it."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    if NoneType in get_args(hint):
        (hint,) = kinds
    if declared.allowed == (True, False):
        hint = Flag
    elif declared.allowed:
        kind: Any = Literal[declared.allowed]
        words = f"one of {', '.join(map(str, declared.allowed))}"
        (form,) = getattr(hint, "__metadata__", [Form(words)])
        hint = Annotated[kind, form]
    details: dict[str, Any] = {"description": declared.help}
    if declared.keys != (declared.name,):
        details["validation_alias"] = AliasChoices(*declared.keys)
    if declared.default is None:
        return hint, Field(default_factory=lambda: None, **details)
    return hint, Field(default=declared.default, **details)


# -- reading -----------------------------------------------------------------------


def say_key(path: KeyPath, value: Any) -> str:
    """How a message begins: the key and the value found."""
    return f"{dotted(path)} = {shown(value)}"


def read(
    table: Table,
    content: Mapping[str, Any],
    name_of: Callable[[KeyPath, Any], str] = say_key,
    line: Callable[[KeyPath], int] = lambda path: 0,
    where: str = "",
) -> dict[str, Any]:
    """Return the entries of `content` as values.

    Raise BadOption with a sentence for every entry that cannot be used: `name_of` begins it.
    They are in the order of their lines. `where` begins the message.
    """
    try:
        entries = table.model_validate(_frozen(content))
    except ValidationError as problem:
        details = problem.errors(include_url=False)
    else:
        return entries.model_dump(exclude_unset=True)
    details.sort(key=lambda detail: line(detail["loc"]))
    sentences = [
        _sentence(table, detail, name_of) for detail in details[:MOST_PROBLEMS]
    ]
    if len(details) == 1:
        raise BadOption(f"{where}{sentences[0]}")
    if len(details) > MOST_PROBLEMS:
        sentences.append(f"and {len(details) - MOST_PROBLEMS} more")
    raise BadOption(f"{where}{len(details)} entries cannot be used", sentences)


def read_one(kind: Any, key: str, value: Any) -> Any:
    """Return one value, of a type of `mrt.option_values`; BadOption if it is none."""
    columns: dict[str, Any] = {key: (kind, ...)}
    table = create_model("One", __config__=STRICT, **columns)
    return read(table, {key: value})[key]


def dotted(path: KeyPath) -> str:
    """A path as a message has it: keys with dots between them, indices in brackets."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{quoted(key)}"
    return text.removeprefix(".")


def quoted(key: str) -> str:
    """A key as TOML writes it."""
    bare = key.replace("-", "").replace("_", "")
    return key if bare.isascii() and bare.isalnum() else shown(key)


def _frozen(value: Any) -> Any:
    """Lists and arrays as tuples, which is what the declarations have."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if hasattr(value, "tolist"):  # numpy's, from Python's callers
        return _frozen(value.tolist())
    if isinstance(value, Mapping):
        return {key: _frozen(entry) for key, entry in value.items()}
    return value


def _sentence(
    table: Table, problem: ErrorDetails, name_of: Callable[[KeyPath, Any], str]
) -> str:
    path, value = problem["loc"], problem["input"]
    if problem["type"] == "extra_forbidden":
        reason = _unknown(table, path)
    elif problem["type"] == "expected":
        reason = problem["msg"]
        for key in problem.get("ctx", {}).get("keys", ()):
            path, value = (*path, key), value[key]
    else:
        reason = f"expected a table, [{dotted(path)}]"
    return f"{name_of(path, value)}: {reason}"


def _unknown(table: Table, path: KeyPath) -> str:
    *outer, key = path
    keys = keys_of(table, tuple(outer))
    near = get_close_matches(str(key)[:80], keys, 1)
    hint = f"; did you mean {near[0]}?" if near else ";"
    return f"unknown key{hint} known are {', '.join(keys)}"


def keys_of(table: Table, path: KeyPath) -> list[str]:
    """The keys that the table at a path below `table` may have."""
    inner: Any = table
    for key in path:
        named = get_args(inner)  # of a mapping from names to tables
        inner = named[-1] if named else inner.model_fields[key].annotation
    return [
        str(field.validation_alias.choices[0])
        if isinstance(field.validation_alias, AliasChoices)
        else name
        for name, field in inner.model_fields.items()
    ]
