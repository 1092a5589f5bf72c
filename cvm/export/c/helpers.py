"""Small functions of C that instructions call; a source gets those that it needs.

None shifts a negative number, and none relies on how a compiler narrows what does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

_TEXTS = (
    """\
/* The greatest integer not above x / 2^shift. */
static inline int64_t floor_shift(int64_t x, int32_t shift)
{
  return x < 0 ? ~(~x >> shift) : x >> shift;
}

/* The integer nearest to x / 2^shift; a half goes up. */
static inline int64_t shift_half_up(int64_t x, int32_t shift)
{
  return shift == 0 ? x : floor_shift(floor_shift(x, shift - 1) + 1, 1);
}

/* The integer nearest to x * multiplier / 2^shift, 2 <= shift <= 62; a half goes up.
   Shifting x + 2^63, which is not negative, needs no branch. */
static inline int64_t scaled(int64_t x, int32_t multiplier, int32_t shift)
{
  const int64_t product = x * multiplier + (INT64_C(1) << (shift - 1));
  const uint64_t biased = (uint64_t)product ^ (UINT64_C(1) << 63);
  return (int64_t)(biased >> shift) - (INT64_C(1) << (63 - shift));
}

/* The same where the product plus the half fits 32 bits, and 1 <= shift <= 31. */
static inline int32_t scaled_in_32_bits(int32_t x, int32_t multiplier, int32_t shift)
{
  const uint32_t product = (uint32_t)x * (uint32_t)multiplier + (UINT32_C(1) << (shift - 1));
  const uint32_t biased = product ^ (UINT32_C(1) << 31);
  return (int32_t)(biased >> shift) - (INT32_C(1) << (31 - shift));
}

/* x, stopped at both ends. */
static inline int32_t clamped(int64_t x, int32_t least, int32_t most)
{
  return x < least ? least : x > most ? most : (int32_t)x;
}

/* The number of leading zeros of the 32 bits of x. */
static inline int32_t leading_zeros(int32_t x)
{
  int32_t count = 0;
  if (x < 0) return 0;
  while (count < 32 && ((uint32_t)x >> (31 - count)) == 0) count++;
  return count;
}

/* The greatest r with r * r <= x. */
static inline int32_t square_root(int32_t x)
{
  int32_t root = 0;
  for (int32_t bit = INT32_C(1) << 15; bit > 0; bit /= 2) {
    const int64_t larger = (int64_t)root + bit;
    if (larger * larger <= x) root += bit;
  }
  return root;
}

/* 128 times the point at `place` of a line from `start` at multiples of 128 to `end` at the next. */
static inline int32_t interpolated(int32_t start, int32_t end, int32_t place)
{
  return start * 128 + (place & 127) * (end - start);
}
"""
    + "".join(
        f"""
/* Whether index a stands behind index b when keys are sorted; equal keys stay in the order of their indices. */
static inline int behind_{width}(const int{width}_t *keys, int32_t a, int32_t b, int descending)
{{
  if (keys[a] == keys[b]) return a > b;
  return descending ? keys[a] < keys[b] : keys[a] > keys[b];
}}

/* Let the index at `root` sink to its place in a heap whose first stands behind all others. */
static void sink_{width}(const int{width}_t *keys, int32_t *order, uint32_t root, uint32_t count, int descending)
{{
  const int32_t moved = order[root];
  while (root < count / 2) {{
    uint32_t child = 2 * root + 1;
    if (child + 1 < count && behind_{width}(keys, order[child + 1], order[child], descending)) child++;
    if (!behind_{width}(keys, order[child], moved, descending)) break;
    order[root] = order[child];
    root = child;
  }}
  order[root] = moved;
}}

/* Sort indices by their keys, in place. */
static void sort_{width}(const int{width}_t *keys, int32_t *order, int32_t count, int descending)
{{
  for (uint32_t root = (uint32_t)count / 2; root > 0; root--) sink_{width}(keys, order, root - 1, (uint32_t)count, descending);
  for (uint32_t end = (uint32_t)count; end > 1; end--) {{
    const int32_t last = order[0];
    order[0] = order[end - 1];
    order[end - 1] = last;
    sink_{width}(keys, order, 0, end - 1, descending);
  }}
}}
"""
        for width in (8, 16, 32)
    )
    + """
/* The area of the box from (x0, y0) to (x1, y1). */
static inline int64_t area(int32_t x0, int32_t y0, int32_t x1, int32_t y1)
{
  return x1 > x0 && y1 > y0 ? ((int64_t)x1 - x0) * ((int64_t)y1 - y0) : 0;
}

/* The area that two boxes share. */
static inline int64_t shared_area(const int32_t *a, const int32_t *b)
{
  return area(a[0] > b[0] ? a[0] : b[0], a[1] > b[1] ? a[1] : b[1],
              a[2] < b[2] ? a[2] : b[2], a[3] < b[3] ? a[3] : b[3]);
}
"""
)
_CALL = re.compile(r"([a-z_0-9]+)\(")
_NAME = re.compile(r"^static .*?([a-z_0-9]+)\(", re.MULTILINE)


def _name_of(text: str) -> str:
    match = _NAME.search(text)
    assert match
    return match[1]


HELPERS = {
    _name_of(text): text.strip() for text in _TEXTS.split("\n\n") if text
}


def needed(bodies: Iterable[str], without: Container[str] = ()) -> list[str]:
    """The helpers that these texts call, directly or through other helpers, each before its callers, as C requires.

    Those named in `without` are left out.
    """
    called = {name for body in bodies for name in _CALL.findall(body)}
    texts: list[str] = []
    for name, text in reversed(HELPERS.items()):
        if name in called and name not in without:
            texts.insert(0, text)
            called.update(_CALL.findall(text))
    return texts
