"""QONNX's Quant, BipolarQuant and Trunc keep their integers; expected numbers are from QONNX's definitions."""

import numpy as np
import onnx
import pytest
from onnx import helper

from cvm.runtime.executable import Executable
from mrt import pipeline
from mrt.config import Config, ModelSettings
from mrt.errors import Unsupported
from tests.support.graphs import node

X = np.array([[-9.0, -0.8, -0.2, 0.3, 0.7, 1.1, 2.6, 9.0]], np.float32)
DOMAINS = ("qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas")


def number(value):
    return np.array(value, np.float32)


def build(nodes, x, arrays):
    """A model of these nodes; the nodes of QONNX import no domain, as in many of its files."""
    initializers = [
        onnx.numpy_helper.from_array(array, name)
        for name, array in arrays.items()
    ]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", x), ("y", None))
    ]
    graph = helper.make_graph(nodes, "test", ends[:1], ends[1:], initializers)
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def quant(domain, scale, zero, bits, **attributes):
    quantizer = node("Quant", "x s z b", "y", **attributes)
    quantizer.domain = domain
    arrays = {"s": number(scale), "z": number(zero), "b": number(bits)}
    return build([quantizer], X.shape, arrays)


def run(proto, folder, x=X):
    onnx.save(proto, folder / "m.onnx")
    config = Config(model=ModelSettings(path=folder / "m.onnx"))
    result = pipeline.convert(config, table=None, progress=lambda *_: None)
    program = Executable.of(result.proven)
    name = program.inputs[0].name
    integers = program.run(program.quantize({name: x}))
    return result, next(iter(program.dequantize(integers).values()))


@pytest.mark.filterwarnings("ignore::cvm.errors.ClippedInput")
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize(
    ("scale", "zero", "bits", "attributes", "expected"),
    [
        (1, 0, 3, {"signed": 1, "narrow": 0}, [-4, -1, 0, 0, 1, 1, 3, 3]),
        (1, 0, 3, {"signed": 1, "narrow": 1}, [-3, -1, 0, 0, 1, 1, 3, 3]),
        (0.5, 0, 2, {"signed": 0, "narrow": 0}, [0, 0, 0, 0.5, 0.5, 1, 1.5, 1.5]),
        (0.5, 0, 2, {"signed": 0, "narrow": 1}, [0, 0, 0, 0.5, 0.5, 1, 1, 1]),
        (1, 2, 4, {"signed": 0, "narrow": 0}, [-2, -1, 0, 0, 1, 1, 3, 9]),
        (0.25, 0, 8, {"signed": 1, "narrow": 0}, [-9, -0.75, -0.25, 0.25, 0.75, 1, 2.5, 9]),
        (2**-8, 0, 12, {"signed": 1, "narrow": 0}, [item / 256 for item in (-2048, -205, -51, 77, 179, 282, 666, 2047)]),
    ],
)  # fmt: skip
def test_a_quant_of_a_value(
    domain, scale, zero, bits, attributes, expected, tmp_path
):
    model = quant(domain, scale, zero, bits, **attributes)
    result, found = run(model, tmp_path)
    assert found.reshape(-1).tolist() == expected
    assert not result.synthetic


def layer(operator, inputs, numbers):
    """y = Quant(x) times weights that `operator` quantizes."""
    of_x = node("Quant", "x s z b", "q", signed=1, narrow=0)
    of_weights = node(operator, inputs, "wq")
    for item in (of_x, of_weights):
        item.domain = DOMAINS[0]
    nodes = [of_x, of_weights, node("MatMul", "q wq", "p"), node("Quant", "p s2 z b2", "y", signed=1, narrow=0)]  # fmt: skip
    nodes[-1].domain = DOMAINS[0]
    common = {"s": number(1), "z": number(0), "b": number(3), "s2": number(0.5), "b2": number(8)}  # fmt: skip
    return build(nodes, (1, 3), {**common, **numbers})


def test_weights_of_a_quant(tmp_path):
    weights = np.array([[0.9, -2], [0.1, 0.6], [-0.4, 0.3]], np.float32)
    model = layer("Quant", "w ws z wb", {"w": weights, "ws": number(0.5), "wb": number(2)})  # fmt: skip
    x = np.array([[3, -2, 1]], np.float32)
    # The weights are [[0.5, -1], [0, 0.5], [-0.5, 0.5]]: 0.9 and -2 are clipped, 0.6 and 0.3 rounded.
    result, found = run(model, tmp_path, x)
    assert found.reshape(-1).tolist() == [1.0, -3.5]
    held = [item.tolist() for item in result.proven.program.constants]
    assert [[1, 0, -1], [-2, 1, 1]] in held


def test_weights_of_a_bipolar_quant(tmp_path):
    weights = np.array([[0.9, -2], [0, 0.6], [-0.4, 0.3]], np.float32)
    model = layer("BipolarQuant", "w ws", {"w": weights, "ws": number(0.5)})
    _, found = run(model, tmp_path, np.array([[3, -2, 1]], np.float32))
    # 0.5 * (3 - 2 - 1), 0.5 * (-3 - 2 + 1)
    assert found.reshape(-1).tolist() == [0.0, -2.0]


def test_a_trunc_drops_the_last_bits(tmp_path):
    """4 of 6 bits: floor(q / 4), at the same scale."""
    of_x = node("Quant", "x s z b", "q", signed=0, narrow=0)
    trunc = node("Trunc", "q s z b o", "y", rounding_mode="FLOOR")
    of_x.domain = trunc.domain = DOMAINS[0]
    arrays = {"s": number(0.5), "z": number(0), "b": number(6), "o": number(4)}
    x = np.array([[0, 1.5, 2, 7.5, 31.5, 13.5]], np.float32)
    model = build([of_x, trunc], x.shape, arrays)
    _, found = run(model, tmp_path, x)
    assert found.reshape(-1) == pytest.approx([0, 0, 0.5, 1.5, 7.5, 3], abs=1e-3)  # fmt: skip


def test_a_bipolar_quant_of_a_value(tmp_path):
    """Quant first, so that the sign is that of the file's integers."""
    of_x = node("Quant", "x s z b", "q", signed=1, narrow=0)
    sign = node("BipolarQuant", "q t", "y")
    of_x.domain = sign.domain = DOMAINS[0]
    arrays = {"s": number(0.25), "z": number(0), "b": number(8), "t": number(2)}
    _, found = run(build([of_x, sign], X.shape, arrays), tmp_path)
    assert found.reshape(-1) == pytest.approx([-2, -2, -2, 2, 2, 2, 2, 2], rel=1e-3)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"s": np.ones((1, 8), np.float32)}, "scales of channels"),
        ({"b": number(24)}, "expected 2 to 16"),
        ({"b": number(2.5)}, "no integer"),
        ({"s": number(-1)}, "no usable numbers"),
    ],
)
def test_what_a_program_has_no_integers_for_is_refused(
    change, reason, tmp_path
):
    model = quant(DOMAINS[0], 1, 0, 3, signed=1, narrow=0)
    for item in model.graph.initializer:
        if item.name in change:
            item.CopyFrom(onnx.numpy_helper.from_array(change[item.name], item.name))  # fmt: skip
    with pytest.raises(Unsupported, match=reason):
        run(model, tmp_path)


def test_other_roundings_are_refused(tmp_path):
    model = quant(DOMAINS[0], 1, 0, 3, signed=1, narrow=0)
    rounding = helper.make_attribute("rounding_mode", "CEIL")
    model.graph.node[0].attribute.append(rounding)
    with pytest.raises(Unsupported, match="rounding_mode CEIL"):
        run(model, tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ws": np.ones((3, 5), np.float32)}, "do not fit its weights"),
        ({"ws": np.ones((0,), np.float32)}, "no usable numbers"),
        ({"w": np.ones((3, 2), np.int64)}, "expected floats"),
    ],
)
def test_weights_of_no_sense_are_refused(change, reason, tmp_path):
    numbers = {"w": np.ones((3, 2), np.float32), "ws": number(1), "wb": number(2)}  # fmt: skip
    model = layer("Quant", "w ws z wb", numbers | change)
    with pytest.raises(Unsupported, match=reason):
        run(model, tmp_path, np.ones((1, 3), np.float32))


def test_an_attribute_of_another_type_is_refused(tmp_path):
    model = quant(DOMAINS[0], 1, 0, 3, narrow=0)
    model.graph.node[0].attribute.append(helper.make_attribute("signed", "x"))
    with pytest.raises(Unsupported, match="another type"):
        run(model, tmp_path)
