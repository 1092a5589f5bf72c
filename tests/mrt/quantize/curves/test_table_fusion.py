"""Which values become lookup tables."""

import time

import numpy as np
import onnx_ir as ir
import pytest

from cvm.proof.validate import validate
from mrt.quantize.curves import table_fusion
from mrt.quantize.curves.table_fusion import LONGEST, find_curves
from tests.support.float_models import FloatModel, convert
from tests.support.graphs import graph_of, node


def chain(*operators: str) -> list[ir.Node]:
    names = ["x", *(f"v{index}" for index in range(1, len(operators))), "y"]
    nodes = [
        node(operator, names[index], names[index + 1])
        for index, operator in enumerate(operators)
    ]
    return list(graph_of(nodes, {"x": (1, 4)}).graph)


def test_a_chain_is_one_curve_of_its_input():
    curves = find_curves(chain("Relu", "Sigmoid", "Tanh"))
    assert list(curves) == ["v2", "y"]
    assert curves["y"].root.name == "x"
    assert len(curves["y"].nodes) == 3


def test_a_longer_chain_is_several_tables():
    curves = find_curves(chain(*["Sigmoid"] * (LONGEST + 2)))
    assert curves[f"v{LONGEST}"].root.name == "x"
    assert curves[f"v{LONGEST + 1}"].root.name == f"v{LONGEST}"
    assert curves["y"].root.name == f"v{LONGEST}"


def test_two_operands_end_a_curve_that_would_become_too_long(monkeypatch):
    monkeypatch.setattr(table_fusion, "LONGEST", 2)
    nodes = [
        node("Sigmoid", "x", "a"),
        node("Tanh", "x", "b"),
        node("Mul", "a b", "y"),
    ]
    assert list(find_curves(list(graph_of(nodes, {"x": (1, 4)}).graph))) == [
        "a",
        "b",
    ]


@pytest.mark.parametrize("operator", ["Relu", "Sigmoid"])
def test_long_chains_take_no_quadratic_time(operator):
    """Each value of a chain held all nodes before it: 20,000 took a minute and gigabytes."""
    nodes = chain(*[operator] * 20_000)
    started = time.process_time()
    find_curves(nodes)
    assert time.process_time() - started < 6


def test_a_curve_of_reals_keeps_its_bits_though_its_numbers_are_integers():
    """Scaled by 10^4, every integer but 0 is clipped to 0 or to 1, its own root."""
    model = FloatModel(x=(1, 8))
    great = model.add("Mul", "x", np.float32(1e4))
    held = model.add("Clip", great, np.float32(0), np.float32(1))
    root = model.add("Sqrt", held)
    output = model.gemm(root, np.ones((2, 8)), np.zeros(2))
    form = validate(convert(model, output))
    (curve,) = [
        number
        for number, item in enumerate(
            form.program.instructions, form.program.first_instruction
        )
        if item.name == "table"
    ]
    assert form.types[curve].dtype == "i8"
