"""Lists the operators of a canonical graph with their forms, and operator families."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.operators import ARITHMETIC_OF_INTEGER_NUMBERS, BOOLEANS

CANONICAL_OPERATORS: dict[str, str] = {
    # sums of products; weights and biases are initializers, and no bias is absent
    "Conv": "2-D, (x, W[O,C/group,KH,KW], b[O]); pads [t,l,b,r], strides, dilations, group; no auto_pad",
    "ConvTranspose": "2-D, (x, W[C,O/group,KH,KW], b[O]); pads, strides, group, output_padding; dilations 1",
    "Gemm": "(x[M,K], W[N,K], b[N]); transA 0, transB 1, alpha 1, beta 1",
    "MatMul": "both operands computed, or rank above 2",
    # element-wise; the second operand of Add, Sub, Mul may be an initializer that broadcasts
    "Add": "", "Sub": "", "Mul": "", "Max": "two operands", "Min": "two operands",
    "Relu": "", "Clip": "(x, min, max), both scalar initializers",
    # functions of one element, each of which becomes a lookup table
    **dict.fromkeys(
        ("Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Erf", "Elu", "Selu", "Celu", "Neg", "Abs", "Reciprocal", "Softplus",
         "Softsign", "HardSigmoid", "HardSwish", "Gelu", "Mish", "Floor", "Ceil", "Sign", "Pow", "Round",
         "ThresholdedRelu", "Shrink", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"),
        "one computed operand; any other operand is a scalar initializer",
    ),
    "Div": "two operands, one of them computed; an initializer is of broadcastable shape",
    # normalization; scale and shift are initializers
    "LayerNormalization": "(x, scale, shift), both of the shape of x from axis >= 0 on; one output",
    "InstanceNormalization": "(x, scale[C], shift[C])",
    "LRN": "rank 4; size odd, alpha >= 0, beta, bias > 0",
    # windows and reductions
    "MaxPool": "2-D, one output; kernel_shape, strides, pads (not ceil_mode: pads extended at the end), dilations 1",
    "AveragePool": "2-D, count_include_pad 0 and some padding, dilations 1; otherwise it was rewritten to Conv",
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin"), "(x, axes[]), keepdims 1"),
    "Softmax": "axis, the last one", "LogSoftmax": "axis, the last one",
    # movement
    "Concat": "axis >= 0", "Reshape": "(x, shape[]) with every dimension written out", "Transpose": "perm",
    "Slice": "(x, starts[], ends[], axes[], steps[]); steps 1 or more, starts and ends normalised to 0..dimension; "
             "or a whole axis reversed: starts -1, ends -2^63, steps -1",
    "Pad": "(x, pads[], value), mode constant, no pad negative",
    # comparisons of floats or of integers, and logic; a constant operand comes second
    **dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or"),
                    "two operands, the first one computed"),
    "Not": "one computed operand", "Where": "(booleans, x, y), at least one of them computed",
    "Cast": "to float, bool or an integer type", "Mod": "of integers, or of floats by a scalar, fmod 1",
    # indices: integers
    "ArgMax": "(x), axis >= 0, select_last_index 0; of equals the first",
    "TopK": "(x, k), axis >= 0, sorted 1; values and indices",
    "Gather": "(x, indices), axis >= 0; at least one of them computed",
    "GatherElements": "(x, indices), axis >= 0; at least one of them computed",
    # images
    "Resize": "linear, (N,C,H,W) to sizes of H and W; align_corners, half_pixel or asymmetric by size / size",
}  # fmt: skip

OWN_OPERATORS = {
    "NonMaxSuppression": "(boxes[B,N,4], scores[B,N], classes[B,N]); keep, candidates, least_score, overlap, inclusive, "
                         "gaps, background; indices, N for none",
    "FakeQuantize": "(x); scale, zero_point, least, most: the nearest number of a grid that the model's file gives",
}  # fmt: skip

MOVE_ANYTHING = frozenset(
    {
        "Concat",
        "Reshape",
        "Transpose",
        "Slice",
        "Pad",
        "Where",
        "Cast",
        "Gather",
        "GatherElements",
        "TopK",
    }
)
GIVE_OTHERS = (
    BOOLEANS | ARITHMETIC_OF_INTEGER_NUMBERS | MOVE_ANYTHING | {"ArgMax"}
)
INTEGER_NUMBERS = frozenset(
    {ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8, ir.DataType.UINT16,
     ir.DataType.UINT32, ir.DataType.UINT64}
)  # fmt: skip

BACKWARDS = -(2**63)
"""The end of a Slice that reverses an axis: -1 would mean the last element."""

MOST_DIMENSIONS = 6  # of a program's tensors
