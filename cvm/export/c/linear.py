"""Sums of products. No subset of them leaves 32 bits (SPEC section 3, "Linear"), so their order is free."""

from __future__ import annotations

import textwrap
from math import prod
from string import Template

from cvm.export.c.instruction import CInstruction, narrowed
from cvm.program import IntArray

_WINDOWS = Template("""\
for (int32_t n = 0; n < $N; n++) {
  for (int32_t i = 0; i < $OH; i++) {
    for (int32_t j = 0; j < $OW; j++) {
      const int32_t row = (n * $OH + i) * $OW + j;
      $SUMS
      for (int32_t o = 0; o < $O; o++) sums[o] = x2[o];
      for (int32_t p = 0; p < $KH; p++) {
        const int32_t u = i * $SH - $TOP + p * $DH;
        if (u < 0 || u >= $H) continue;
$TAPS
      }
$FINISH
    }
  }
}
""")
_SPAN = """\
        const int32_t v = j * $SW - $LEFT;
        const int32_t first = v < 0 ? -v : 0;
        const int32_t last = $W - v < $KW ? $W - v : $KW;
        if (first >= last) continue;
        const $X *places = x0 + ((n * $H + u) * $W + v + first) * $C;
        for (int32_t o = 0; o < $O; o++) {
          const $V *weights = x1 + ((o * $KH + p) * $KW + first) * $C;
          int32_t sum = 0;
          for (int32_t c = 0; c < (last - first) * $C; c++) sum += $PLACE * weights[c];
          sums[o] += sum;
        }"""
_COLUMN = """\
        for (int32_t q = 0; q < $KW; q++) {
          const int32_t v = j * $SW - $LEFT + q * $DW;
          if (v < 0 || v >= $W) continue;
          const $X *places = x0 + ((n * $H + u) * $W + v) * $C;
$INNER
        }"""
_GROUPS = """\
          for (int32_t o = 0; o < $O; o++) {
            const int32_t from = o / $OG * $CG;
            const $V *weights = x1 + ((o * $KH + p) * $KW + q) * $CG;
            int32_t sum = 0;
            for (int32_t c = 0; c < $CG; c++) sum += $GROUP_PLACE * weights[c];
            sums[o] += sum;
          }"""
_DEPTHWISE = """\
          const $V *weights = x1 + (p * $KW + q) * $O;
          for (int32_t o = 0; o < $O; o++) sums[o] += $ONE_PLACE * weights[o];"""
_TRANSPOSE = Template("""\
for (int32_t k = 0; k < $PLACES; k++) {
  for (int32_t o = 0; o < $O; o++) y[k * $O + o] = x2[o];
}
for (int32_t n = 0; n < $N; n++) {
  for (int32_t i = 0; i < $H; i++) {
    for (int32_t j = 0; j < $W; j++) {
      const $X *places = x0 + ((n * $H + i) * $W + j) * $C;
      for (int32_t p = 0; p < $KH; p++) {
        const int32_t u = i * $SH + p + $TOP;
        if (u < 0 || u >= $OH) continue;
        for (int32_t q = 0; q < $KW; q++) {
          const int32_t v = j * $SW + q + $LEFT;
          if (v < 0 || v >= $OW) continue;
          $T *sums = y + ((n * $OH + u) * $OW + v) * $O;
          for (int32_t o = 0; o < $O; o++) {
            const int32_t from = o / $OG * $CG;
            const $V *weights = x1 + ((o * $KH + p) * $KW + q) * $CG;
            int32_t sum = 0;
            for (int32_t c = 0; c < $CG; c++) sum += $GROUP_PLACE * weights[c];
            sums[o] += sum;
          }
        }
      }
    }
  }
}
""")
_DENSE = Template("""\
for (int32_t row = 0; row < $M; row++) {
  const $X *places = x0 + row * $K;
  $SUMS
  for (int32_t o = 0; o < $O; o++) {
    const $V *weights = x1 + o * $K;
    int32_t sum = 0;
    for (int32_t c = 0; c < $K; c++) sum += $PLACE * weights[c];
    sums[o] = x2[o] + sum;
  }
$FINISH
}
""")
_MATMUL = Template("""\
for (int32_t i = 0; i < $B; i++) {
  for (int32_t m = 0; m < $M; m++) {
    const int32_t row = i * $M + m;
    $SUMS
    for (int32_t o = 0; o < $O; o++) sums[o] = 0;
    for (int32_t k = 0; k < $K; k++) {
      const int32_t a = x0[row * $K + k]$MINUS_A;
      const $V *others = x1 + (i * $K + k) * $O;
      for (int32_t o = 0; o < $O; o++) sums[o] += a * $OTHER;
    }
$FINISH
  }
}
""")


def _row(node: CInstruction, finish: str | None, indent: str) -> dict[str, str]:
    """Where the sums of a row lie: in y, or in a row of their own that `finish` reads, once they are complete."""
    if finish is not None:
        return {"SUMS": "", "FINISH": textwrap.indent(finish, indent)}
    outputs = node.result.shape[-1]
    return {"SUMS": f"int32_t *sums = y + row * {outputs};", "FINISH": ""}


def conv2d(node: CInstruction, finish: str | None = None) -> str:
    """Windows of NHWC; the taps of one row of w are one run of memory where nothing lies between them."""
    names = _image_names(node)
    names |= _pair("D", node.integers("dilation"))
    names |= {"TOP": node.integers("pad")[0], "LEFT": node.integers("pad")[2]}
    if is_depthwise(node):
        taps = _COLUMN.replace("$INNER", _DEPTHWISE)
    elif node.integer("groups") > 1 or node.integers("dilation")[1] > 1:
        taps = _COLUMN.replace("$INNER", _GROUPS)
    else:
        taps = _SPAN
    text = Template(_WINDOWS.template.replace("$TAPS", taps))
    return text.substitute(names, **_row(node, finish, " " * 6))


def conv2d_transpose(node: CInstruction) -> str:
    """Each place of x is added where its taps lie in y."""
    out_pad = node.integers("out_pad")
    names = _image_names(node) | {"TOP": out_pad[0], "LEFT": out_pad[2]}
    places = prod(node.result.shape[:3])
    return _TRANSPOSE.substitute(names, PLACES=places)


def is_depthwise(node: CInstruction) -> bool:
    """Whether each group has one channel of its own, so that a loop over outputs is the longest."""
    return node.operands[1].shape[3] == 1 and node.integer("groups") > 1


def conv2d_constant(node: CInstruction, index: int) -> IntArray | None:
    """Weights of a depthwise convolution with their outputs last, as its loop reads them."""
    if index != 1 or not is_depthwise(node):
        return None
    weights = node.operands[1].constant
    assert weights is not None
    return narrowed(weights[..., 0].transpose(1, 2, 0))


def dense(node: CInstruction, finish: str | None = None) -> str:
    """Each row of x by each row of w."""
    x, w, _ = node.operands
    names = _types(node) | _row(node, finish, "  ")
    return _DENSE.substitute(names, M=x.shape[0], K=x.shape[1], O=w.shape[0])


def matmul(node: CInstruction, finish: str | None = None) -> str:
    """Row after row of the second operand is added, times an element of the first."""
    a, b = node.operands
    names = dict(zip("BMK", a.shape, strict=True)) | {"O": b.shape[2]}
    a_zp, b_zp = node.integer("a_zp"), node.integer("b_zp")
    other = f"(others[o] - {b_zp})" if b_zp else "others[o]"
    return _MATMUL.substitute(
        names,
        **_row(node, finish, "    "),
        V=b.c_type,
        MINUS_A=f" - {a_zp}" if a_zp else "",
        OTHER=other,
    )


def _types(node: CInstruction) -> dict[str, str]:
    """C types, and an element of x above its zero point, in 16 bits where that shortens the product."""
    zero_point = node.integer("input_zp")

    def place(element: str) -> str:
        if zero_point:
            return f"(int32_t)(int16_t)({element} - {zero_point})"
        return f"(int32_t){element}"

    return {
        "T": node.c_type,
        "X": node.operands[0].c_type,
        "V": node.operands[1].c_type,
        "PLACE": place("places[c]"),
        "GROUP_PLACE": place("places[from + c]"),
        "ONE_PLACE": place("places[o]"),
    }


def _image_names(node: CInstruction) -> dict[str, object]:
    """The dimensions of x, w and y, as the texts name them."""
    x, w, _ = node.operands
    groups = node.integer("groups")
    names: dict[str, object] = dict(_types(node))
    names |= dict(zip("NHWC", x.shape, strict=True))
    names |= dict(zip(("O", "KH", "KW", "CG"), w.shape, strict=True))
    names |= {"OH": node.result.shape[1], "OW": node.result.shape[2]}
    names |= {"OG": w.shape[0] // groups}
    if is_depthwise(node) and w.shape[0] > groups:
        outputs_per_group = w.shape[0] // groups
        names["ONE_PLACE"] = str(names["ONE_PLACE"]).replace(
            "[o]", f"[o / {outputs_per_group}]"
        )
    return names | _pair("S", node.integers("stride"))


def _pair(letter: str, values: tuple[int, ...]) -> dict[str, object]:
    """A number down and one right."""
    return {f"{letter}H": values[0], f"{letter}W": values[1]}
