"""Sums of products of bytes, in the C of a program, by WebAssembly's instructions on 128 bits: no compiler finds them by itself.

for (c < count) sum += (x[c] - zero point) * w[c]  ->  sum = dot(x, w, -zero point, count), eight products at a time.
Exact: no subset of the products leaves 32 bits, so their order is free (SPEC section 3, "Linear").
"""

from __future__ import annotations

import re
from importlib.resources import files

_FUNCTION = re.compile(r"^static void .*?^}$", re.MULTILINE | re.DOTALL)
_X = re.compile(r"const int8_t \*places = ")
_W = re.compile(r"const int8_t \*weights = ")
_LOOP = re.compile(
    r"for \(int32_t c = 0; c < (?P<count>[^;]+); c\+\+\) sum \+= \(int32_t\)"
    r"(?:\(int16_t\)\()?places\[(?P<group>from \+ )?c\](?: (?P<sign>[+-]) (?P<zero>-?\d+)\))? \* weights\[c\];"
)


def with_vectors(source: str) -> str:
    """The same source with vector products, and the functions that these call after its first `#include`."""
    changed = _FUNCTION.sub(_function, source)
    if changed == source:
        return source
    place = files("cvm.export.web").joinpath("templates", "dot.c")
    head, line, rest = changed.partition('.h"\n')
    return f"{head}{line}{place.read_text(encoding='ascii')}{rest}"


def _function(match: re.Match[str]) -> str:
    """A function, changed where it multiplies bytes by bytes."""
    text = match[0]
    if not (_X.search(text) and _W.search(text)):
        return text
    return _LOOP.sub(_call, text)


def _call(loop: re.Match[str]) -> str:
    """The sum by `dot`, in place of its loop."""
    zero = int(loop["zero"] or 0)
    above = zero if loop["sign"] == "+" else -zero
    x = "places + from" if loop["group"] else "places"
    return f"sum = dot({x}, weights, {above}, {loop['count']});"
