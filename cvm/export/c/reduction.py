"""Along an axis: sums, extremes, their indices, and the order of elements."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from string import Template

from cvm.export.c.instruction import CInstruction

_REDUCE = Template("""\
for (int32_t o = 0; o < $OUTER; o++) {
  $T *result = y + o * $INNER;
  const $X *first = x0 + o * $K * $INNER;
  for (int32_t i = 0; i < $INNER; i++) result[i] = $FIRST;
  for (int32_t k = 1; k < $K; k++) {
    const $X *row = first + k * $INNER;
    for (int32_t i = 0; i < $INNER; i++) $NEXT
  }
}
""")
_ARGSORT = Template("""\
for (int32_t m = 0; m < $ROWS; m++) {
  int32_t *order = y + m * $K;
  for (int32_t k = 0; k < $K; k++) order[k] = k;
  sort_$BITS(x0 + m * $K, order, $K, $DESCENDING);
}
""")
_NEXT = {
    "reduce_sum": "result[i] += row[i];",
    "reduce_max": "result[i] = row[i] > result[i] ? row[i] : result[i];",
    "reduce_min": "result[i] = row[i] < result[i] ? row[i] : result[i];",
    "argmax": "result[i] = row[i] > first[result[i] * $INNER + i] ? k : result[i];",
}


def along(name: str) -> Callable[[CInstruction], str]:
    """The writer of a reduction: rows are joined one after the other, so that the loop over a row may use vectors."""
    first = "0" if name == "argmax" else "first[i]"
    template = _REDUCE.template.replace("$NEXT", _NEXT[name])

    def write(node: CInstruction) -> str:
        x, axis = node.operands[0], node.integer("axis")
        return Template(template).substitute(
            OUTER=prod(x.shape[:axis]),
            K=x.shape[axis],
            INNER=prod(x.shape[axis + 1 :]),
            T=node.c_type,
            X=x.c_type,
            FIRST=first,
        )

    return write


def argsort(node: CInstruction) -> str:
    """A heap sort of indices in place; indices decide between equal keys, so the sort is stable."""
    x = node.operands[0]
    return _ARGSORT.substitute(
        ROWS=prod(x.shape[:-1]),
        K=x.shape[-1],
        BITS=x.stored[1:],
        DESCENDING=int(bool(node.attributes["descending"])),
    )
