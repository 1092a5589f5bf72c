"""Tests uses of MXNet operators, one row for each.

A row has attributes as in a file, numbers in, and the numbers expected from MXNet.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from mrt.errors import Unsupported
from mrt.frontend.mxnet import load_mxnet
from tests.support.mxnet_files import node, variable, write_params, write_symbol

TOLERANCE = 2e-5  # float32 sums in another order


@dataclass(frozen=True)
class Row:
    operator: str
    inputs: list
    expected: np.ndarray
    attributes: dict = field(default_factory=dict)
    parameters: list = field(default_factory=list)
    labels: int = 0
    output: int = 0


def row(
    operator, inputs, expected, parameters=(), labels=0, output=0, **attributes
) -> Row:
    inputs = inputs if isinstance(inputs, list) else [inputs]
    return Row(
        operator,
        inputs,
        np.asarray(expected, np.float32),
        attributes,
        list(parameters),
        labels,
        output,
    )


def import_row(folder: Path, case: Row) -> ir.Model:
    """Import a symbol of one operator.

    Its inputs are the variables x0, x1, ..., then p0, ... in the parameter file, then
    labels.
    """
    inputs = [f"x{index}" for index in range(len(case.inputs))]
    parameters = {
        f"p{index}": array for index, array in enumerate(case.parameters)
    }
    names = [
        *inputs,
        *parameters,
        *(f"label{index}" for index in range(case.labels)),
    ]
    head = node(case.operator, "result", range(len(names)), **case.attributes)
    write_symbol(
        folder / "m.json",
        [*map(variable, names), head],
        [(len(names), case.output)],
    )
    write_params(folder / "m.params", parameters)
    shapes = {
        name: array.shape
        for name, array in zip(inputs, case.inputs, strict=True)
    }
    return load_mxnet(folder / "m.json", folder / "m.params", shapes)


def compute(model: ir.Model, arrays: list[np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    feed = {
        value.name: array
        for value, array in zip(model.graph.inputs, arrays, strict=True)
    }
    return session.run(None, feed)[0]


def check_row(folder: Path, case: Row) -> None:
    """Require the expected numbers in the expected shape from the imported operator."""
    model = import_row(folder, case)
    result = compute(model, case.inputs)
    assert (
        result.shape
        == case.expected.shape
        == tuple(model.graph.outputs[0].shape)
    )
    np.testing.assert_allclose(
        result, case.expected, rtol=TOLERANCE, atol=TOLERANCE
    )


def check_refusal(folder: Path, case: Row, expected: str) -> None:
    """Require that the operator is refused by name, with a sentence that gives the reason."""
    with pytest.raises(Unsupported) as refused:
        import_row(folder, case)
    (problem,) = refused.value.problems
    assert problem.startswith(f"result ({case.operator}): ")
    assert expected in problem


def names(cases: list) -> list[str]:
    """Return an id for every row, or for every row with the refusal expected of it."""
    rows = [case if isinstance(case, Row) else case[0] for case in cases]
    return [f"{index}-{case.operator}" for index, case in enumerate(rows)]
