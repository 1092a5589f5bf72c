"""Operators of opset 20 in older opsets, each against the operator itself in onnxruntime."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import TensorProto, helper

from mrt.errors import Unsupported
from mrt.export.opset import to_opset

X = np.random.default_rng(0).normal(size=(2, 6, 4, 5)).astype(np.float32)
LAST = {"axis": -1}
SCALE = np.linspace(0.5, 2, 5, dtype=np.float32)
BIAS = np.linspace(-1, 1, 5, dtype=np.float32)
TWO = np.array([0.5, 2], np.float32)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


# Operator, its operands behind x (None: left out), attributes.
CASES = [
    ("Gelu", [], {}),
    ("Gelu", [], {"approximate": "tanh"}),
    ("HardSwish", [], {}),
    ("Mish", [], {}),
    ("ReduceMean", [ints(1, -1)], {"keepdims": 0}),
    ("ReduceL2", [ints(2)], {}),
    ("ReduceSum", [ints(0)], {}),
    ("ReduceMax", [], {}),
    ("Squeeze", [], {}),
    ("Unsqueeze", [ints(0, 2)], {}),
    ("Split", [], {"num_outputs": 2, "axis": 1}),
    ("Split", [ints(1, 4)], {"axis": 3}),
    ("Pad", [ints(1, 2), None, ints(3)], {}),
    ("Pad", [ints(1, 0, 1, 2), np.array(7, np.float32), ints(-1, 0)], {}),
    ("Softmax", [], {"axis": 1}),
    ("LogSoftmax", [], LAST),
    ("LayerNormalization", [SCALE, BIAS], LAST),
    ("LayerNormalization", [SCALE], LAST),
    ("GroupNormalization", [TWO, TWO], {"num_groups": 2}),
    ("Resize", [None, None, ints(8, 10)], {"axes": [2, 3], "mode": "linear"}),
    ("Resize", [None, np.array([1, 1, 2, 2], np.float32)], {"mode": "nearest"}),
    ("AveragePool", [], {"kernel_shape": [2, 2], "dilations": [1, 1]}),
    ("Reshape", [ints(0, -1)], {"allowzero": 0}),
]


def model_of(operator: str, operands: list, attributes: dict) -> ir.Model:
    names = [
        "x",
        *(
            f"c{index}" if operand is not None else ""
            for index, operand in enumerate(operands)
        ),
    ]
    outputs = ["y", "z"] if operator == "Split" else ["y"]
    item = helper.make_node(operator, names, outputs, "n", **attributes)
    shape = (
        X.shape if operator == "GroupNormalization" else None
    )  # the one that ONNX does not infer
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name in outputs
    ]
    constants = [onnx.numpy_helper.from_array(array, name) for array, name in zip(operands, names[1:], strict=True)
                 if array is not None]  # fmt: skip
    graph = helper.make_graph(
        [item],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        values,
        constants,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10
    )
    return ir.from_proto(onnx.shape_inference.infer_shapes(model))


def run(model: ir.Model) -> list[np.ndarray]:
    data = ir.to_proto(model).SerializeToString()
    return onnxruntime.InferenceSession(
        data, providers=["CPUExecutionProvider"]
    ).run(None, {"x": X})


@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize(
    ("operator", "operands", "attributes"),
    CASES,
    ids=[f"{n}-{c[0]}" for n, c in enumerate(CASES)],
)
def test_a_lowered_operator_means_the_same(
    operator, operands, attributes, opset
):
    expected = run(model_of(operator, operands, attributes))
    lowered = model_of(operator, operands, attributes)
    to_opset(lowered, opset)
    onnx.checker.check_model(ir.to_proto(lowered), full_check=True)
    for found, right in zip(run(lowered), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_axes_that_are_computed_have_no_older_form():
    model = model_of("ReduceMean", [ints(1)], {})
    axes = model.graph.initializers.pop("c0")
    axes.const_value = None
    model.graph.inputs.append(axes)
    with pytest.raises(
        Unsupported, match=r"n \(ReduceMean\): its axes are computed"
    ):
        to_opset(model, 17)


def test_functions_are_expanded():
    body = helper.make_node("Relu", ["a"], ["b"])
    function = helper.make_function(
        "mrt", "Twice", ["a"], ["b"], [body], [helper.make_opsetid("", 20)]
    )
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, X.shape)
        for name in "xy"
    ]
    graph = helper.make_graph(
        [helper.make_node("Twice", ["x"], ["y"], "t", domain="mrt")],
        "g",
        values[:1],
        values[1:],
    )
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("mrt", 1)]
    model = ir.from_proto(
        helper.make_model(
            graph, functions=[function], opset_imports=imports, ir_version=10
        )
    )
    to_opset(model, 17)
    assert [(item.domain, item.op_type) for item in model.graph] == [
        ("", "Relu")
    ]
    assert run(model)[0].tolist() == np.maximum(X, 0).tolist()
