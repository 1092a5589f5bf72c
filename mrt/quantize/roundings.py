"""Lists where onnxruntime rounds another way than the program of a model that is quantized already.

Values that have the file's integers in both executions are not listed, such as those behind
a reshape.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.graph.operators import SUMS_OF_PRODUCTS
from mrt.graph.values import source_of_moves
from mrt.quantize.file_formats import NAME, ORDERLY, format_of_node

PRODUCTS = (
    "sums of products: onnxruntime multiplies the sum by a float32 number and rounds ties to even; "
    "the program multiplies it by an integer of 31 bits and rounds ties up"
)
SUMS = (
    "sums: onnxruntime adds in float32 and rounds ties to even; the program adds integers in steps "
    "2^22 times as fine, or fewer where these would not fit, and rounds ties up"
)
SOFTMAX = "Softmax: onnxruntime computes exponentials in float32; the program takes them from a table of 15 bits"
FUNCTIONS = (
    "functions: onnxruntime computes in float32; the program rounds exact values, "
    "or computes with integers of up to 16 bits"
)
INPUT = (
    "inputs: onnxruntime divides in float32 and rounds ties to even; "
    "programs take integers, and `cvm run --real` rounds ties up"
)
MOVED = "another scale: onnxruntime multiplies in float32 and rounds ties to even; the program rounds ties up"


AVERAGES = (
    "averages: onnxruntime adds in float32 and rounds ties to even; the program adds integers, and "
    "rounds ties to even too where the scales make ties common (a ratio that is a power of two); "
    "onnxruntime's QLinearAveragePool adds the zero point first, so that an odd one turns its ties round"
)


def roundings(model: ir.Model) -> dict[str, list[str]]:
    """Return, by reason, the values of a rewritten model that onnxruntime may round another way."""
    values_by_reason: dict[str, list[str]] = {}
    for node in model.graph:
        if node.op_type != NAME:
            continue
        maker = _maker(node.inputs[0])
        if _has_same_integers(maker, node):
            continue
        operator = "input" if maker is None else maker.op_type
        place = f"{name_of(node.outputs[0])} ({operator})"
        values_by_reason.setdefault(_reason(maker), []).append(place)
    return values_by_reason


def others(rounded: Iterable[str], measured: Iterable[str]) -> list[str]:
    """Return a line for each layer and value whose numbers are not those of the file."""
    layers = [
        f"{name}: its weights are no integers of the file, or a rewrite changed them; rounded anew"
        for name in rounded
    ]
    values = [
        f"{name}: the file gives no scale; its range was measured"
        for name in sorted(measured)
    ]
    return [*layers, *values]


def _has_same_integers(maker: ir.Node | None, node: ir.Node) -> bool:
    if maker is None or maker.op_type != NAME:
        return False
    return format_of_node(maker) == format_of_node(node)


def _maker(value: ir.Value | None) -> ir.Node | None:
    """Return the node that computes a value, behind those that only move or clip numbers."""
    return None if value is None else source_of_moves(value, ORDERLY).producer()


def _reason(maker: ir.Node | None) -> str:
    if maker is None:
        return INPUT
    if _is_average(maker):
        return AVERAGES
    if maker.op_type in SUMS_OF_PRODUCTS:
        return PRODUCTS
    return _REASONS.get(maker.op_type, FUNCTIONS)


def _is_average(node: ir.Node) -> bool:
    """Whether a node multiplies a sum by a number, or is a Conv whose weights are all equal."""
    if node.op_type == "Conv":
        weights = constant_of(node.inputs[1])
        return weights is not None and bool(np.ptp(weights) == 0)
    before = node.inputs[0].producer() if node.inputs[0] else None
    is_sum = before is not None and before.op_type == "ReduceSum"
    return node.op_type == "Mul" and is_sum


_REASONS = {
    NAME: MOVED,
    "MatMul": PRODUCTS,
    "Mul": PRODUCTS,
    "Add": SUMS,
    "Sub": SUMS,
    "Softmax": SOFTMAX,
}
