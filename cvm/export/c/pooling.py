"""Windows without weights: max_pool2d and avg_pool2d. Places outside x do not count."""

from __future__ import annotations

from string import Template

from cvm.export.c.instruction import CInstruction
from cvm.program import DTYPE_RANGES

_WINDOWS = Template("""\
for (int32_t n = 0; n < $N; n++) {
  for (int32_t i = 0; i < $OH; i++) {
    const int32_t top = i * $SH - $TOP;
    const int32_t begin_row = top < 0 ? 0 : top;
    const int32_t end_row = top + $KH < $H ? top + $KH : $H;
    for (int32_t j = 0; j < $OW; j++) {
      const int32_t left = j * $SW - $LEFT;
      const int32_t begin_column = left < 0 ? 0 : left;
      const int32_t end_column = left + $KW < $W ? left + $KW : $W;
$BODY
    }
  }
}
""")
_MAX = """\
      $T *greatest = y + ((n * $OH + i) * $OW + j) * $C;
      const $X *first = x0 + ((n * $H + begin_row) * $W + begin_column) * $C;
      for (int32_t c = 0; c < $C; c++) greatest[c] = first[c];
      for (int32_t u = begin_row; u < end_row; u++) {
        for (int32_t v = begin_column; v < end_column; v++) {
          const $X *places = x0 + ((n * $H + u) * $W + v) * $C;
          for (int32_t c = 0; c < $C; c++) {
            greatest[c] = places[c] > greatest[c] ? places[c] : greatest[c];
          }
        }
      }"""
_MEAN = """\
      const int32_t count = (end_row - begin_row) * (end_column - begin_column);
      int32_t bits = 0;
      while ((INT32_C(1) << bits) < count) bits++;
      const int64_t reciprocal = ((INT64_C(1073741825)) << bits) / count;
      for (int32_t c = 0; c < $C; c++) {
        int32_t sum = 0;
        for (int32_t u = begin_row; u < end_row; u++) {
          for (int32_t v = begin_column; v < end_column; v++) {
            sum += x0[((n * $H + u) * $W + v) * $C + c]$MINUS;
          }
        }
        const int64_t mean = shift_half_up(sum * reciprocal, 30 + bits);
        y[((n * $OH + i) * $OW + j) * $C + c] = ($T)clamped(mean + $ZP, $LEAST, $MOST);
      }"""


def max_pool2d(node: CInstruction) -> str:
    """The greatest of each window."""
    return _windows(node, _MAX)


def avg_pool2d(node: CInstruction) -> str:
    """The mean of each window, by TOSA's reciprocal."""
    zero_point = node.integer("input_zp")
    least, most = DTYPE_RANGES[node.result.dtype]
    return _windows(
        node,
        _MEAN,
        MINUS=f" - {zero_point}" if zero_point else "",
        ZP=node.integer("output_zp"),
        LEAST=least,
        MOST=most,
    )


def _windows(node: CInstruction, body: str, **more: object) -> str:
    pad, kernel = node.integers("pad"), node.integers("kernel")
    stride = node.integers("stride")
    names = dict(zip("NHWC", node.operands[0].shape, strict=True))
    text = Template(_WINDOWS.template.replace("$BODY", body))
    return text.substitute(
        names,
        **more,
        T=node.c_type,
        X=node.operands[0].c_type,
        OH=node.result.shape[1],
        OW=node.result.shape[2],
        KH=kernel[0],
        KW=kernel[1],
        SH=stride[0],
        SW=stride[1],
        TOP=pad[0],
        LEFT=pad[2],
    )
