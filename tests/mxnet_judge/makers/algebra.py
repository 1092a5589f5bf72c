"""Products of matrices, and what attention is made of."""

from __future__ import annotations

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.registry import Drawn, maker


@maker("dot", cases=30)
def dot(draw: Draw, name: str) -> Drawn:
    """The last axis of the left by the first of the right; transposed, the first by the last."""
    shared = draw.integer(1, 5)
    left = draw.shape(0, 2, 4)
    right = draw.shape(0, 2, 4)
    first, second = draw.maybe(True, False), draw.maybe(True, False)
    a = (shared, *left) if first is True else (*left, shared)
    b = (*right, shared) if second is True else (shared, *right)
    attributes = {"transpose_a": first, "transpose_b": second}
    if draw.chance(0.15):
        attributes["forward_stype"] = draw.one(None, "default")
    return Drawn([draw.data(a), draw.data(b)], attributes)


@maker("batch_dot", cases=20)
def batch_dot(draw: Draw, name: str) -> Drawn:
    batch, m, k, n = (draw.integer(1, 4) for _ in range(4))
    first, second = draw.maybe(True, False), draw.maybe(True, False)
    a = (batch, k, m) if first is True else (batch, m, k)
    b = (batch, n, k) if second is True else (batch, k, n)
    attributes = {"transpose_a": first, "transpose_b": second}
    if draw.chance(0.15):
        attributes["forward_stype"] = draw.one(None, "default")
    return Drawn([draw.data(a), draw.data(b)], attributes)


@maker("linalg_gemm2", "_linalg_gemm2", "linalg_gemm", "_linalg_gemm", cases=16)
def gemm(draw: Draw, name: str) -> Drawn:
    """Over the last two axes; `axis` puts the rows elsewhere."""
    batch, (m, k, n) = (
        draw.shape(0, 2, 3),
        (draw.integer(1, 4) for _ in range(3)),
    )
    first, second = draw.maybe(True, False), draw.maybe(True, False)
    a = (k, m) if first is True else (m, k)
    b = (n, k) if second is True else (k, n)
    moved = OMIT
    if batch and draw.chance(0.3):
        moved = len(batch) - 1
        shapes = [
            (*batch[:-1], rows, batch[-1], columns)
            for rows, columns in (a, b, (m, n))
        ]
    else:
        moved = draw.maybe(-2)
        shapes = [(*batch, *matrix) for matrix in (a, b, (m, n))]
    attributes = {
        "transpose_a": first,
        "transpose_b": second,
        "alpha": draw.maybe(1.0, draw.real(-2, 2)),
        "axis": moved,
    }
    if not name.endswith("2"):
        attributes["beta"] = draw.maybe(1.0, draw.real(-2, 2))
    return Drawn(
        [
            draw.data(shape)
            for shape in (shapes[:2] if name.endswith("2") else shapes)
        ],
        attributes,
    )


@maker("linalg_syrk", "_linalg_syrk", cases=8)
def syrk(draw: Draw, name: str) -> Drawn:
    return Drawn(
        [draw.data(draw.shape(2, 4))],
        {
            "transpose": draw.maybe(True, False),
            "alpha": draw.maybe(draw.real(-2, 2)),
        },
    )


@maker("_contrib_div_sqrt_dim", cases=6)
def div_sqrt_dim(draw: Draw, name: str) -> Drawn:
    return Drawn([draw.data(draw.shape(1, 4, 6))])


@maker("_contrib_arange_like", cases=12)
def arange_like(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4)
    attributes = {
        "start": draw.maybe(0.0, draw.real(-3, 3)),
        "step": draw.maybe(1.0, draw.real(0.1, 2)),
        "repeat": draw.maybe(1) if draw.chance(0.3) else OMIT,
        "ctx": draw.maybe("cpu(0)") if draw.chance(0.2) else OMIT,
        "axis": draw.maybe(None, draw.axis(len(shape)), draw.axis(len(shape))),
    }
    return Drawn([draw.data(shape)], attributes)


@maker(
    "_contrib_interleaved_matmul_selfatt_qk",
    "_contrib_interleaved_matmul_selfatt_valatt",
    cases=8,
)
def self_attention(draw: Draw, name: str) -> Drawn:
    length, batch, heads, width = (draw.integer(1, 4) for _ in range(4))
    whole = draw.data((length, batch, heads * width * 3))
    weights = (
        [draw.data((batch * heads, length, length))]
        if name.endswith("valatt")
        else []
    )
    return Drawn([whole, *weights], {"heads": heads})


@maker(
    "_contrib_interleaved_matmul_encdec_qk",
    "_contrib_interleaved_matmul_encdec_valatt",
    cases=8,
)
def encoder_attention(draw: Draw, name: str) -> Drawn:
    queries, keys, batch, heads, width = (draw.integer(1, 4) for _ in range(5))
    both = draw.data((keys, batch, heads * width * 2))
    if name.endswith("qk"):
        return Drawn(
            [draw.data((queries, batch, heads * width)), both], {"heads": heads}
        )
    return Drawn(
        [both, draw.data((batch * heads, queries, keys))], {"heads": heads}
    )
