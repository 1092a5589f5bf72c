"""Names from strangers as C identifiers: ASCII, no keyword, no macro of a system, and no two alike."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 40
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl complex const consteval
constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double
dynamic_cast else enum explicit export extern false float for friend goto if imaginary inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires restrict return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void
volatile wchar_t while xor xor_eq
"""  # of C and C++, for both read the header
_MACROS = "i386 linux unix vax sun mips near far interface errno offsetof"
TAKEN = frozenset(f"{_KEYWORDS} {_MACROS}".split())
FILES = frozenset(
    [
        "main",
        "glue",
        "con",
        "prn",
        "aux",
        "nul",
        "stdint",
        "stddef",
        "stdio",
        "string",
        "on_cpu",
        "warp_on_cpu",
    ]
)
_MACRO = re.compile(r"U?INT\w*|[A-Z]+_MAX|[A-Z]+_MIN|EXIT_\w+|NULL|EOF|I|\w+_t")


def identifier(name: str) -> str:
    """One identifier; different names may become the same."""
    text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:LONGEST]
    if not text or text[0].isdigit():
        text = f"x{text}"
    if text in TAKEN or _MACRO.fullmatch(text):
        text += "_"
    return text


def distinct(names: Iterable[str]) -> list[str]:
    """An identifier for each name, in order; one that would repeat an earlier one gets a number."""
    identifiers: list[str] = []
    used: set[str] = set()
    for base in map(identifier, names):
        text, number = base, 1
        while text.lower() in used:
            number += 1
            text = f"{base}_{number}"
        used.add(text.lower())
        identifiers.append(text)
    return identifiers


def base_name(name: str) -> str:
    """A base for file names and identifiers that no file beside them has."""
    text = identifier(name)
    reserved = text.lower() in FILES or re.fullmatch(
        r"(com|lpt)\d", text.lower()
    )
    return f"{text}_program" if reserved else text


def comment(text: str) -> str:
    """Text that can neither end a comment nor begin a trigraph."""
    return re.sub(r"[^A-Za-z0-9_.,:%()\[\]= -]", "_", text)
