"""Sampling at rational positions: resize, nearest and bilinear."""

from __future__ import annotations

from string import Template

from cvm.export.c.instruction import CInstruction

_AXIS = """\
const int32_t at_$A = $I * $D + $OFFSET;
const int32_t floor_$A = (at_$A + $N) / $N - 1;
const int32_t rest_$A = at_$A - floor_$A * $N;
const int32_t before_$A = floor_$A < 0 ? 0 : floor_$A;
const int32_t after_$A = floor_$A + 1 < $SIZE ? floor_$A + 1 : $LAST;
"""
_NEAREST = """\
const int32_t $A = 2 * rest_$A >= $N ? after_$A : before_$A;
"""
_LOOPS = Template("""\
for (int32_t n = 0; n < $N; n++) {
  for (int32_t i = 0; i < $OH; i++) {
$ROWS
    for (int32_t j = 0; j < $OW; j++) {
$COLUMNS
      $T *result = y + ((n * $OH + i) * $OW + j) * $C;
$BODY
    }
  }
}
""")
_COPY = """\
      const $X *place = x0 + ((n * $H + u) * $W + v) * $C;
      for (int32_t c = 0; c < $C; c++) result[c] = place[c];"""
_MIX = """\
      const $X *top = x0 + (n * $H + before_u) * $W * $C;
      const $X *bottom = x0 + (n * $H + after_u) * $W * $C;
      for (int32_t c = 0; c < $C; c++) {
        const int32_t upper = top[before_v * $C + c] * ($XN - rest_v) + top[after_v * $C + c] * rest_v;
        const int32_t lower = bottom[before_v * $C + c] * ($XN - rest_v) + bottom[after_v * $C + c] * rest_v;
        result[c] = upper * ($YN - rest_u) + lower * rest_u;
      }"""


def resize(node: CInstruction) -> str:
    """Positions are worked out as the loops go; they fit 32 bits by the limits on sizes and scales."""
    nearest = node.word("mode") == "nearest"
    x, scale = node.operands[0], node.integers("scale")
    text = _LOOPS.template.replace("$ROWS", _axis(node, 0, nearest, "    "))
    text = text.replace("$COLUMNS", _axis(node, 1, nearest, "      "))
    text = text.replace("$BODY", _COPY if nearest else _MIX)
    names = dict(zip("NHWC", x.shape, strict=True))
    return Template(text).substitute(
        names,
        OH=node.result.shape[1],
        OW=node.result.shape[2],
        T=node.c_type,
        X=x.c_type,
        YN=scale[0],
        XN=scale[2],
    )


def _axis(node: CInstruction, axis: int, nearest: bool, indent: str) -> str:
    """The neighbours of one output place on one axis."""
    scale, size = node.integers("scale"), node.operands[0].shape[1 + axis]
    text = Template(_AXIS + (_NEAREST if nearest else "")).substitute(
        A="uv"[axis],
        I="ij"[axis],
        N=scale[2 * axis],
        D=scale[2 * axis + 1],
        OFFSET=node.integers("offset")[axis],
        SIZE=size,
        LAST=size - 1,
    )
    return "\n".join(indent + line for line in text.splitlines())
