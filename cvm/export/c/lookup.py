"""Rows that others name: gather."""

from __future__ import annotations

from string import Template

from cvm.export.c.instruction import CInstruction

_GATHER = Template("""\
for (int32_t n = 0; n < $N; n++) {
  for (int32_t w = 0; w < $W; w++) {
    const $X *row = x0 + (n * $K + x1[n * $W + w]) * $C;
    for (int32_t c = 0; c < $C; c++) y[(n * $W + w) * $C + c] = row[c];
  }
}
""")


def gather(node: CInstruction) -> str:
    """The proof holds every index inside 0..K-1."""
    values, indices = node.operands
    names = dict(zip("NKC", values.shape, strict=True))
    return _GATHER.substitute(names, W=indices.shape[1], X=values.c_type)
