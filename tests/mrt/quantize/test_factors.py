"""Factors have 16 bits where products of computed values and sums alone read them."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.samples import synthetic_samples
from mrt.evaluate import evaluate
from mrt.quantize import QuantizeOptions
from mrt.quantize.options import LayerBits
from tests.support.calibrated import calibrated_program
from tests.support.float_models import FloatModel

INPUTS = {"x": (1, 3, 8, 8)}
WEIGHTS = np.random.default_rng(2).normal(size=(2, 6, 3, 1, 1))


def gated(reader: str = "") -> ir.Model:
    """A convolution times the sigmoid of another, which something else may read, too."""
    model = FloatModel(**INPUTS)
    left = model.conv("x", WEIGHTS[0], np.zeros(6), name="left")
    right = model.conv("x", WEIGHTS[1], np.zeros(6))
    gate = model.add("Sigmoid", right, name="gate")
    outputs = [model.add("Mul", left, gate, name="y")]
    if reader == "Conv":
        outputs += [model.conv(left, np.ones((1, 6, 1, 1)), [0], name="z")]
    if reader == "Sqrt":
        absolute = model.add("Abs", left)
        outputs += [model.add("Sqrt", absolute, name="z")]
    return ir.from_proto(model.proto(*outputs))


def program_of(graph: ir.Model, options: QuantizeOptions | None = None):
    return calibrated_program(graph, INPUTS, options)


def snr(form) -> float:
    others = synthetic_samples(INPUTS, 40, 1)
    return float(evaluate(gated(), form, others).to_json()["snr_db"])


def dtype_of_left(form) -> str:
    values = form.program.metadata.values
    numbers = [n for n, of in values.items() if of.source == "left"]
    return form.types[max(numbers)].dtype


def test_both_factors_have_16_bits():
    form = program_of(gated())
    assert dtype_of_left(form) == "i16"
    tables = [i for i in form.program.instructions if i.name == "table"]
    assert len(tables) == 1
    own = LayerBits(activation_bits=8)
    given = QuantizeOptions(layers={"left": own, "gate": own})
    assert snr(form) > snr(program_of(gated(), given)) + 3


@pytest.mark.parametrize("reader", ["Conv", "Sqrt"])
def test_what_a_product_of_weights_or_a_table_reads_has_8(reader):
    assert dtype_of_left(program_of(gated(reader))) == "i8"


@pytest.mark.parametrize(
    "options",
    [
        {"activation_bits": 4},
        {"sum_bits": 12},
        {"layers": {"left": LayerBits(activation_bits=8)}},
    ],
    ids=str,
)
def test_few_bits_and_bits_of_a_layer_stay(options):
    form = program_of(gated(), QuantizeOptions(**options))
    assert dtype_of_left(form) == "i8"
