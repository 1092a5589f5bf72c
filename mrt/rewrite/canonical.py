"""What `rewrite` promises and `quantize` relies on: the operators left in a float graph, and the form each has.

All: opset 20, default domain, float32 activations, every shape static and known, constants as initializers,
no duplicate value names, no subgraphs, attributes always written out.
"""

CANONICAL_OPERATORS: dict[str, str] = {
    # sums of products; weights and biases are initializers and biases always present
    "Conv": "2-D, (x, W[O,C/group,KH,KW], b[O]); pads [t,l,b,r], strides, dilations, group; no auto_pad",
    "ConvTranspose": "2-D, (x, W[C,O/group,KH,KW], b[O]); pads, strides, group, output_padding; dilations 1",
    "Gemm": "(x[M,K], W[N,K], b[N]); transA 0, transB 1, alpha 1, beta 1",
    "MatMul": "both operands computed, or rank above 2",
    # element by element; the second operand of Add, Sub, Mul may be an initializer of broadcastable shape
    "Add": "", "Sub": "", "Mul": "", "Max": "two operands", "Min": "two operands",
    "Relu": "", "Clip": "(x, min, max), both scalar initializers",
    # functions of one element, each to become a table
    **dict.fromkeys(
        ("Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Erf", "Elu", "Selu", "Celu", "Neg", "Abs", "Reciprocal", "Softplus",
         "Softsign", "HardSigmoid", "HardSwish", "Gelu", "Mish", "Floor", "Ceil", "Sign", "Pow", "Div"),
        "one computed operand; any other operand is a scalar initializer",
    ),
    # windows and reductions
    "MaxPool": "2-D, one output; kernel_shape, strides, pads; ceil_mode 0 (pads extended at the end instead), dilations 1",
    "AveragePool": "2-D, count_include_pad 0 and some padding; otherwise it was rewritten to Conv",
    "ReduceSum": "(x, axes[]), keepdims 1", "ReduceMax": "(x, axes[]), keepdims 1", "ReduceMin": "(x, axes[]), keepdims 1",
    "Softmax": "axis",
    # movement
    "Concat": "axis >= 0", "Reshape": "(x, shape[]) with every dimension written out", "Transpose": "perm",
    "Slice": "(x, starts[], ends[], axes[], steps[]); steps 1 or more, starts and ends normalised to 0..dimension",
    "Pad": "(x, pads[], value), mode constant",
}  # fmt: skip
