"""`--fast-on avx2`: no pair of neighbouring weights sums to more than 128, so that two products of bytes fit 16 bits."""

from __future__ import annotations

import numpy as np
import pytest

from cvm.program import IntArray, Program
from cvm.proof.validate import validate
from cvm.runtime import native
from cvm.runtime.native import Engine
from mrt.quantize import QuantizeOptions
from tests.support.float_models import FloatModel, convert

FAST = QuantizeOptions(fast_on="avx2")


def network(kernel: int, stride: int, channels: int = 8) -> FloatModel:
    """Return a convolution and a dense layer."""
    random = np.random.default_rng(kernel)
    model = FloatModel(x=(1, channels, 9, 9))
    weights = random.normal(size=(16, channels, kernel, kernel))
    value = model.conv("x", weights, np.zeros(16), strides=[stride, stride])
    length = 16 * ((9 - kernel) // stride + 1) ** 2
    flat = model.add("Reshape", model.add("Relu", value), np.array([1, length]))
    model.gemm(flat, random.normal(size=(10, length)), np.zeros(10))
    return model


def program_of(model: FloatModel, options: QuantizeOptions) -> Program:
    return convert(model, f"v{len(model._nodes) - 1}", options=options)


def weights_of(program: Program) -> list[IntArray]:
    """Return the weights of every sum of products."""
    found = []
    for item in program.instructions:
        if item.name in ("conv2d", "dense"):
            place = item.operands[1] - program.first_constant
            found.append(program.constants[place])
    return found


def greatest_pair(weights: IntArray) -> int:
    """Return the greatest sum of like signs in a pair of neighbours of a row."""
    rows = weights.reshape(len(weights), -1).astype(int)
    if rows.shape[1] % 2:
        rows = np.pad(rows, ((0, 0), (0, 1)))
    pairs = rows.reshape(len(rows), -1, 2)
    sums = [np.maximum(sign * pairs, 0).sum(axis=2).max() for sign in (1, -1)]
    return int(max(sums))


@pytest.mark.parametrize("channels", [3, 8])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 2), (5, 1)])
def test_pairs_hold(kernel, stride, channels):
    model = network(kernel, stride, channels)
    plain, fast = (
        [greatest_pair(weights) for weights in weights_of(program_of(model, o))]
        for o in (QuantizeOptions(), FAST)
    )
    assert min(plain) > 128
    assert max(fast) <= 128


def test_small_windows_keep_their_weights():
    """AVX2 multiplies 3x3 windows of stride 1 by Winograd's method."""
    model = network(3, 1)
    plain, fast = (
        weights_of(program_of(model, options))
        for options in (QuantizeOptions(), FAST)
    )
    assert np.array_equal(plain[0], fast[0])
    assert not np.array_equal(plain[1], fast[1])


def test_each_output_gives_up_no_more_than_its_pairs_ask():
    """The greatest pair of an output comes within a step of the limit, or its greatest weight of 127."""
    for weights in weights_of(program_of(network(1, 1), FAST)):
        for row in weights:
            reached = greatest_pair(row[None]) >= 126
            assert reached or np.abs(row.astype(int)).max() >= 126


@pytest.mark.skipif("avx2" not in native.isas(), reason="needs AVX2")
def test_the_engine_multiplies_them_as_bytes():
    form = validate(program_of(network(1, 1, 64), FAST))
    kinds = Engine(form, isa="avx2").core.products()
    assert [kind for kind in kinds if kind] == ["bytes", "bytes"]
