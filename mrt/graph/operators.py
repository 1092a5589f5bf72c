"""Families of ONNX operators that several packages treat alike, each listed once.

All but one are sets for membership; none defines an order.
"""

from __future__ import annotations

CLIPS = frozenset({"Relu", "Clip"})
"""Operators that stop every element at constant bounds."""

CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
"""Sums of products over a sliding window, with weights as the second operand."""

SUMS_OF_PRODUCTS = CONVOLUTIONS | {"Gemm"}
"""Layers with weights and a bias: the second and the third operand."""

WEIGHT_OPERANDS = {
    "Conv": (1,),
    "ConvTranspose": (1,),
    "Gemm": (1,),
    "MatMul": (0, 1),
}
"""Which operands of a layer may be its weights."""

GREATEST_OF = frozenset({"Max", "MaxPool", "ReduceMax"})
"""Operators whose result is the greatest of several numbers."""

LEAST_OF = frozenset({"Min", "ReduceMin"})
"""Operators whose result is the least of several numbers."""

POOLS = frozenset({"MaxPool", "AveragePool"})
"""Operators that reduce a sliding window without weights."""

COMPARISONS = frozenset(
    {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
)
"""Operators that compare two operands element by element and return booleans."""

LOGIC = frozenset({"And", "Or", "Not"})
"""Operators from booleans to booleans, element by element."""

BOOLEANS = COMPARISONS | LOGIC
"""All operators whose result is boolean in the canonical graph."""

REDUCTIONS = frozenset({"ReduceSum", "ReduceMax", "ReduceMin"})
"""The reductions of the canonical graph; all others are lowered to these."""

ROUNDINGS = frozenset({"Floor", "Ceil", "Round"})
"""Operators that round every element to an integer."""

REARRANGEMENTS = frozenset({"Identity", "Reshape", "Transpose"})
"""Operators of one tensor that keep every element, at most in another order."""

MOVES_OF_ONE = frozenset({"Reshape", "Transpose", "Slice"})
"""Operators that move the elements of one operand and add none."""

MOVEMENT = MOVES_OF_ONE | {"Concat", "Pad"}
"""Canonical operators that move elements without a lookup."""

LOOKUPS = frozenset({"Gather", "GatherElements"})
"""Canonical operators that select elements of a tensor at the indices in another."""

ARITHMETIC_OF_INTEGER_NUMBERS = frozenset(
    {
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Mod",
        "Max",
        "Min",
        "Neg",
        "Abs",
        "Sign",
        "Clip",
        "Relu",
        "ReduceSum",
        "ReduceMax",
        "ReduceMin",
    }
)
"""Arithmetic and bounds that canonical operators have for integers, too."""
