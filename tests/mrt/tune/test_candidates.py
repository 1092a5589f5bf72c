"""What may be raised: values by the formats they really have, weights by the numbers they share."""

import numpy as np

from cvm.proof.validate import validate
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from mrt.tune.candidates import Candidate, find_candidates, raised
from tests.support.float_models import FloatModel, calibrated, f32

RNG = np.random.default_rng(3)


def candidates(
    model: FloatModel, output: str, options: QuantizeOptions
) -> list[Candidate]:
    graph, table = calibrated(model.proto(output), model.inputs, 3)
    return find_candidates(
        graph, validate(quantize(graph, table, options)), options
    )


def network() -> tuple[FloatModel, str]:
    """conv, relu, pool, conv: the pool's result is the relu's integers."""
    model = FloatModel(x=(1, 3, 8, 8))
    first = model.conv(
        "x", RNG.normal(size=(4, 3, 3, 3)), np.zeros(4), name="first"
    )
    relu = model.add("Relu", first, name="relu")
    window = {
        "kernel_shape": [2, 2],
        "strides": [2, 2],
        "pads": [0] * 4,
        "dilations": [1, 1],
        "ceil_mode": 0,
    }
    pool = model.add("MaxPool", relu, name="pool", **window)
    return model, model.conv(
        pool, RNG.normal(size=(5, 4, 1, 1)), np.zeros(5), name="second"
    )


def test_a_pool_goes_with_the_value_whose_integers_it_passes_on():
    found = candidates(*network(), QuantizeOptions())
    assert {frozenset(item.names) for item in found if not item.weights} == {
        frozenset({"x"}),
        frozenset({"relu", "pool"}),
    }
    assert {item.names for item in found if item.weights} == {
        ("first",),
        ("second",),
    }
    assert {(item.before, item.after) for item in found} == {(8, 16), (8, 11)}


def test_what_is_under_8_bits_goes_to_8_first():
    options = QuantizeOptions(4, 8)
    found = candidates(*network(), options)
    assert {(item.weights, item.before, item.after) for item in found} == {
        (True, 4, 8)
    }
    then = candidates(*network(), raised(options, found))
    assert {(item.weights, item.before, item.after) for item in then} == {
        (True, 8, 11),
        (False, 8, 16),
    }
    at_last = candidates(*network(), raised(options, [*found, *then]))
    assert {(item.weights, item.before, item.after) for item in at_last} == {
        (True, 11, 15)
    }


def test_nothing_is_left_when_all_is_raised():
    assert candidates(*network(), QuantizeOptions(15, 16)) == []


def test_layers_that_share_their_weights_are_one_candidate():
    model = FloatModel(x=(1, 3, 5, 5))
    weights, bias = model._name(f32(RNG.normal(size=(3, 3, 1, 1)))), np.zeros(3)
    attributes = {
        "pads": [0] * 4,
        "strides": [1, 1],
        "dilations": [1, 1],
        "group": 1,
    }
    first = model.add(
        "Conv", "x", weights, f32(bias), name="first", **attributes
    )
    model.add("Conv", first, weights, f32(bias), name="second", **attributes)
    found = candidates(model, "second", QuantizeOptions())
    assert [item.names for item in found if item.weights] == [
        ("first", "second")
    ]


def test_raising_leaves_what_a_layer_was_told_before():
    options = QuantizeOptions(layers={"a": LayerBits(activation_bits=4)})
    assert raised(options, [Candidate(True, ("a", "b"), 8, 15)]).layers == {
        "a": LayerBits(15, 4),
        "b": LayerBits(15),
    }
