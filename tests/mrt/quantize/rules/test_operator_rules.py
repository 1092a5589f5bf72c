"""Every operator of the canonical set, as a model of one or a few nodes: the program's reals are close to onnxruntime's floats.

16-bit activations leave the 8-bit weights as the only coarse thing, so 40 dB is far below what a right rule gives and far above
what a wrong one does. Curves are tables of 256 entries here (of 65536 they take seconds each), so 28 dB must do for them.
"""

import numpy as np
import pytest

from mrt.exact.functions import CURVED, ELEMENTWISE
from mrt.quantize import QuantizeOptions
from mrt.quantize.rules import INTEGER_RULES, OWN_RULES, RULES
from mrt.rewrite.canonical_operators import CANONICAL_OPERATORS, OWN_OPERATORS
from tests.support.float_models import FloatModel, f32, snr_db

RNG = np.random.default_rng(7)
IMAGE = (1, 4, 7, 6)


def normal(*shape: int) -> np.ndarray:
    return f32(RNG.normal(size=shape))


def conv(**attributes):
    def build(m: FloatModel) -> str:
        group = attributes.get("group", 1)
        return m.conv(
            "x",
            normal(8, 4 // group, 3, 3),
            normal(8),
            **({"pads": (1, 1, 1, 1)} | attributes),
        )

    return build


def conv_transpose(group: int, **attributes):
    def build(m: FloatModel) -> str:
        defaults = {
            "strides": [2, 2],
            "dilations": [1, 1],
            "pads": [0, 0, 0, 0],
            "output_padding": [0, 0],
            "group": group,
        }
        return m.add(
            "ConvTranspose",
            "x",
            normal(4, 6 // group, 3, 3),
            normal(6),
            **(defaults | attributes),
        )

    return build


def node(operator: str, *constants, **attributes):
    return lambda m: m.add(operator, "x", *constants, **attributes)


def pool(operator: str, kernel, strides, pads, **attributes):
    return node(
        operator,
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        ceil_mode=0,
        **attributes,
    )


def leaky(m: FloatModel) -> str:
    x = m.conv("x", normal(8, 4, 3, 3), normal(8))
    below = m.add(
        "Mul",
        m.add("Relu", m.add("Neg", x)),
        f32(np.linspace(0, 0.5, 8).reshape(8, 1, 1)),
    )
    return m.add("Sub", m.add("Relu", x), below)


def attention(m: FloatModel) -> str:
    rows = m.add("Reshape", "x", np.array([1, 4, 42]))
    scores = m.add("MatMul", rows, m.add("Transpose", rows, perm=[0, 2, 1]))
    return m.add(
        "MatMul",
        m.add("Softmax", m.add("Mul", scores, f32(0.1)), axis=-1),
        rows,
    )


def concat(m: FloatModel) -> str:
    a = m.add("Relu", m.conv("x", normal(3, 4, 1, 1), normal(3)))
    return m.add(
        "Concat", a, m.conv("x", normal(5, 4, 1, 1) * 3, normal(5)), "x", axis=1
    )


def residual(m: FloatModel) -> str:
    return m.add(
        "Relu",
        m.add(
            "Add",
            m.conv("x", normal(4, 4, 3, 3), normal(4), pads=(1, 1, 1, 1)),
            "x",
        ),
    )


def fused_pair(operator: str):
    return lambda m: m.add(
        operator, m.conv("x", normal(4, 4, 1, 1), normal(4)), "x"
    )


def pointwise(operator: str, *constants, **attributes):
    """A curve on positive numbers only, so that Log and Sqrt are defined."""
    return lambda m: m.add(
        operator,
        m.add("Clip", "x", f32(0.25), f32(4.0)),
        *constants,
        **attributes,
    )


def within(operator: str, low: float, high: float):
    return lambda m: m.add(operator, m.add("Clip", "x", f32(low), f32(high)))


def over_a_sum(operator: str):
    """Of a sum of squares of 0.5 .. 50, which no narrow form holds as exactly as its accumulator does."""

    def build(m: FloatModel) -> str:
        spread = m.add(
            "Mul", "x", f32(np.geomspace(0.2, 2, 4).reshape(4, 1, 1))
        )
        total = m.add(
            "ReduceSum",
            m.add("Mul", spread, spread),
            np.array([2, 3]),
            keepdims=1,
        )
        return (
            m.add("Div", spread, m.add("Sqrt", total))
            if operator == "Div"
            else m.add(operator, total)
        )

    return build


ROWS = {
    "Conv": [conv(), conv(strides=[2, 2]), conv(strides=[3, 2], pads=(0, 1, 2, 0)), conv(dilations=[2, 2]),
             conv(group=2), conv(group=4), conv(pads=(0, 0, 0, 0), strides=[2, 3])],
    "ConvTranspose": [conv_transpose(1), conv_transpose(2, pads=[1, 0, 1, 1], output_padding=[1, 0]),
                      conv_transpose(1, strides=[1, 3])],
    "Gemm": [lambda m: m.gemm(m.add("Reshape", "x", np.array([1, 168])), normal(10, 168), normal(10))],
    "MatMul": [attention],
    "Add": [residual, node("Add", normal(4, 1, 1)), node("Add", normal(1, 4, 7, 6)), fused_pair("Add")],
    "Sub": [leaky, fused_pair("Sub"), lambda m: m.add("Sub", f32(1.0), "x")],
    "Mul": [fused_pair("Mul"), node("Mul", f32(-3.0)), node("Mul", normal(4, 1, 1)), node("Mul", normal(7, 6)),
            lambda m: m.add("Mul", m.add("Clip", "x", f32(-0.5), f32(1)), f32(np.arange(4).reshape(4, 1, 1)))],
    "Max": [fused_pair("Max"), node("Max", f32(0.3))],
    "Min": [fused_pair("Min")],
    "Relu": [node("Relu")],
    "Clip": [node("Clip", f32(-0.5), f32(1.0)), lambda m: m.add("Clip", m.add("Relu", "x"), f32(-1.0), f32(0.75))],
    "Neg": [node("Neg"), lambda m: m.add("Neg", m.add("Relu", "x"))],
    "MaxPool": [pool("MaxPool", [3, 3], [2, 2], [1, 1, 1, 1]), pool("MaxPool", [2, 2], [2, 2], [0, 0, 0, 0])],
    "AveragePool": [pool("AveragePool", [3, 3], [2, 2], [1, 1, 1, 1], count_include_pad=0)],
    "ReduceSum": [node("ReduceSum", np.array([2, 3]), keepdims=1), node("ReduceSum", np.array([1]), keepdims=1)],
    "ReduceMax": [node("ReduceMax", np.array([1, 3]), keepdims=1)],
    "ReduceMin": [node("ReduceMin", np.array([2]), keepdims=1)],
    "Softmax": [node("Softmax", axis=-1), lambda m: m.add("Add", m.add("Softmax", "x", axis=-1), f32(0.5))],
    "Concat": [concat, lambda m: m.add("Concat", "x", normal(1, 2, 7, 6), axis=1)],
    "Reshape": [lambda m: m.add("Reshape", m.conv("x", normal(3, 4, 1, 1), normal(3)), np.array([1, 3, 6, 7]))],
    "Transpose": [node("Transpose", perm=[0, 3, 1, 2]),
                  lambda m: m.add("Transpose", m.conv("x", normal(3, 4, 2, 2), normal(3)), perm=[0, 2, 3, 1])],
    "Slice": [node("Slice", np.array([1, 0]), np.array([6, 6]), np.array([2, 3]), np.array([2, 3])),
              node("Slice", np.array([1, 0]), np.array([4, 5]), np.array([1, 3]), np.array([2, 2])),
              lambda m: m.add("Slice", m.add("Relu", "x"), *(np.array([v]) for v in (1, 3, 1, 1)))],
    "Pad": [node("Pad", np.array([0, 1, 2, 0, 0, 0, 1, 3]), f32(0.5))],
    "Div": [node("Div", f32(3.0)), lambda m: m.add("Div", f32(2.0), m.add("Clip", "x", f32(0.5), f32(4))), over_a_sum("Div"),
            lambda m: m.add("Div", "x", m.add("Add", m.conv("x", normal(4, 4, 1, 1), normal(4)), f32(20.0)))],
    "Pow": [node("Pow", f32(2.0)), pointwise("Pow", f32(0.3)), node("Pow", f32(3.0))],
    "Elu": [node("Elu", alpha=0.7)], "Celu": [node("Celu", alpha=0.7)],
    "Selu": [node("Selu", alpha=1.6732632, gamma=1.050701)],
    "HardSigmoid": [node("HardSigmoid", alpha=0.2, beta=0.5)],
    "Gelu": [node("Gelu", approximate="none"), node("Gelu", approximate="tanh")],
    "Sigmoid": [node("Sigmoid"), lambda m: m.add("Mul", "x", m.add("Sigmoid", "x"))],
    "Log": [pointwise("Log")], "Sqrt": [pointwise("Sqrt"), over_a_sum("Sqrt")],
    "Reciprocal": [pointwise("Reciprocal"), over_a_sum("Reciprocal")],
    **{name: [node(name)] for name in ("Tanh", "Exp", "Erf", "Abs", "Softplus", "Softsign", "HardSwish", "Mish", "Sin", "Cos",
                                       "Atan", "Sinh", "Cosh", "Asinh")},
    **{name: [within(name, -0.9, 0.9)] for name in ("Asin", "Acos", "Atanh", "Tan")},
    "Acosh": [within("Acosh", 1.1, 4.0)],
    "Shrink": [node("Shrink", lambd=0.5, bias=0.5)],
    "LayerNormalization": [node("LayerNormalization", normal(7, 6), normal(7, 6), axis=2, epsilon=1e-5, stash_type=1)],
    "InstanceNormalization": [node("InstanceNormalization", normal(4), normal(4), epsilon=1e-5)],
    "LRN": [node("LRN", size=3, alpha=0.5, beta=0.75, bias=1.0)],
    "LogSoftmax": [node("LogSoftmax", axis=-1)],
}  # fmt: skip
STEPS = {  # not continuous: a rounded input may step elsewhere
    **{name: [node(name)] for name in ("Floor", "Ceil", "Sign", "Round")},
    "ThresholdedRelu": [node("ThresholdedRelu", alpha=0.5)],
}


BOOLEANS_AND_INTEGER_NUMBERS = {  # test_whole_models.py has their rows
    "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Not", "Where", "Cast", "ArgMax", "TopK",
    "Gather", "GatherElements", "Mod", "Resize",
}  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "index"),
    [(name, i) for name, rows in ROWS.items() for i in range(len(rows))],
)
@pytest.mark.parametrize("scales", ["real", "shift"])
def test_the_program_means_what_the_operator_means(operator, index, scales):
    model = FloatModel(x=IMAGE)
    output = ROWS[operator][index](model)
    bits = 8 if operator in CURVED else 16
    found = snr_db(
        model, output, options=QuantizeOptions(8, bits, scales=scales)
    )[output]
    assert found > (28 if bits == 8 else 40) - (6 if scales == "shift" else 0)


def test_a_curve_on_16_bits_is_a_table_of_65536():
    model = FloatModel(x=IMAGE)
    output = model.add("Sigmoid", "x")
    assert snr_db(model, output, options=QuantizeOptions(8, 16))[output] > 60


@pytest.mark.parametrize("operator", STEPS)
def test_a_step_function_is_right_wherever_the_input_is_not_at_a_step(operator):
    model = FloatModel(x=(1, 50))
    output = STEPS[operator][0](model)
    assert snr_db(model, output, options=QuantizeOptions(8, 16))[output] > 25


@pytest.mark.parametrize(
    "operator",
    sorted(
        ROWS.keys()
        & {
            "Conv",
            "Gemm",
            "Add",
            "Concat",
            "MaxPool",
            "Mul",
            "MatMul",
            "Softmax",
        }
    ),
)
def test_eight_bits_everywhere_stay_close(operator):
    model = FloatModel(x=IMAGE)
    output = ROWS[operator][0](model)
    assert snr_db(model, output)[output] > 28


def test_every_canonical_operator_has_a_row_here_and_a_rule_there():
    assert (
        set(CANONICAL_OPERATORS)
        == ROWS.keys() | STEPS.keys() | BOOLEANS_AND_INTEGER_NUMBERS
    )
    assert set(CANONICAL_OPERATORS) == RULES.keys() | ELEMENTWISE
    assert OWN_OPERATORS.keys() == OWN_RULES.keys()
    assert INTEGER_RULES.keys() <= set(CANONICAL_OPERATORS)
