"""Refuse graphs that MXNet quantized or fused for one machine, and advise what to do instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mrt.errors import Unsupported
from mrt.frontend.mxnet.symbol import SymbolNode

QUANTIZED = (
    "_contrib_quantize",
    "_contrib_requantize",
    "_contrib_dequantize",
    "_contrib_calibrate_entropy",
)
FUSED = ("_sg_", "_FusedOp", "_TensorRT")
SHOWN = 8


def is_for_a_machine(operator: str) -> bool:
    """Whether only MXNet's quantizer or one of its backends writes this operator."""
    return operator.startswith(QUANTIZED + FUSED)


def refuse_machine_graphs(nodes: Iterable[SymbolNode]) -> None:
    """Raise Unsupported once for the whole graph, rather than once for each node."""
    counts = Counter(
        node.operator
        for node in nodes
        if node.operator and is_for_a_machine(node.operator)
    )
    if not counts:
        return
    shown = [
        f"{operator} ({count})" for operator, count in sorted(counts.items())
    ]
    names = ", ".join(
        shown[:SHOWN]
        + ([f"and {len(shown) - SHOWN} more"] if len(shown) > SHOWN else [])
    )
    if any(operator.startswith(QUANTIZED) for operator in counts):
        conversion = "MXNet quantized this graph to int8"
        way = (
            "convert the float symbol and the float parameters that quantize_model or quantize_net was given; "
            "ranges are measured again with --data (MXNet's own are the min_calib_range and max_calib_range of its nodes)"
        )
    else:
        conversion = "an MXNet backend fused this graph for one kind of machine"
        way = "export the symbol again without MXNET_SUBGRAPH_BACKEND, optimize_for and get_backend_symbol"
    raise Unsupported([f"{conversion}: {names}"], way)
