"""The JSON of receipts and traces: one text for one content when written, strict and bounded when read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from cvm.errors import BadInput, brief

MAX_BYTES = 2**28
_HEX_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def dump(content: Any) -> str:
    """Sorted keys, ASCII, one item a line, a newline at the end."""
    return (
        json.dumps(
            content,
            sort_keys=True,
            ensure_ascii=True,
            allow_nan=False,
            indent=1,
        )
        + "\n"
    )


def dump_compact(content: Any) -> bytes:
    """The bytes that are hashed: sorted keys, ASCII, no white space."""
    return json.dumps(
        content,
        sort_keys=True,
        ensure_ascii=True,
        allow_nan=False,
        separators=(",", ":"),
    ).encode()


def parse(data: bytes, name: str) -> Any:
    """JSON of objects, lists, strings and integers; no duplicate keys, floats or deep nesting. BadInput otherwise."""
    if len(data) > MAX_BYTES:
        raise BadInput(
            f"{name}: {len(data)} bytes; at most {MAX_BYTES} are read"
        )
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_without_duplicates,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
    except (ValueError, RecursionError) as problem:
        reason = (
            "nested too deeply"
            if isinstance(problem, RecursionError)
            else str(problem)
        )
        raise BadInput(
            f"{name}: not the JSON of a receipt or trace: {reason}"
        ) from None


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("an object has the same key twice")
    return content


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is not an integer")


def expect(holds: bool, name: str, where: str, rule: str) -> None:
    """BadInput saying which part of which file breaks which rule."""
    if not holds:
        raise BadInput(f"{name}: {where}{' ' if where else ''}{rule}")


def parse_as(
    kinds: Sequence[str],
    data: bytes,
    name: str,
    *,
    required: Sequence[str],
    optional: Sequence[str] = (),
) -> dict[str, Any]:
    """The object of a file whose `format` is one of these, with exactly these other keys."""
    content = parse(data, name)
    if (
        isinstance(content, dict) and "format" in content
    ):  # first: the rest would only say how another kind differs
        expect(
            content["format"] in kinds,
            name,
            "format",
            f"is {brief(content['format'])}; expected {' or '.join(map(repr, kinds))}",
        )
    return fields(
        content, name, "", required=("format", *required), optional=optional
    )


def fields(
    content: Any,
    name: str,
    where: str,
    *,
    required: Sequence[str],
    optional: Sequence[str] = (),
) -> dict[str, Any]:
    """An object with exactly these keys."""
    expect(isinstance(content, dict), name, where, "must be an object")
    for key in required:
        expect(key in content, name, where, f"lacks '{key}'")
    for key in content:
        expect(
            key in required or key in optional,
            name,
            where,
            f"has the unknown key {key!r}",
        )
    return dict(content)


def items(content: Any, name: str, where: str) -> list[Any]:
    """A list."""
    expect(isinstance(content, list), name, where, "must be a list")
    return list(content)


def digest(content: Any, name: str, where: str) -> bytes:
    """A SHA-256 as 64 lower-case hexadecimal digits."""
    holds = isinstance(content, str) and _HEX_DIGEST.match(content) is not None
    expect(holds, name, where, "must be 64 lower-case hexadecimal digits")
    return bytes.fromhex(content)


def count(content: Any, name: str, where: str) -> int:
    """An integer >= 0."""
    holds = (
        isinstance(content, int)
        and not isinstance(content, bool)
        and content >= 0
    )
    expect(holds, name, where, "must be an integer that is not negative")
    return int(content)


def digests_by_name(content: Any, name: str, where: str) -> dict[str, bytes]:
    """An object from names to digests."""
    expect(isinstance(content, dict), name, where, "must be an object")
    return {
        key: digest(value, name, f"{where}[{key!r}]")
        for key, value in content.items()
    }
