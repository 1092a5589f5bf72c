"""Steps of a recurrence store their weights once, or as often as the proof may read them."""

import numpy as np
import onnx
import pytest

import mrt
from mrt.quantize import rounding
from mrt.refine import shared_weights

STEPS, INPUTS, HIDDEN = 40, 6, 8


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An LSTM of 40 steps, 39 of which read a state."""
    rng = np.random.default_rng(0)
    initializers = [
        onnx.numpy_helper.from_array(
            rng.normal(0, 0.4, shape).astype(np.float32), name
        )
        for name, shape in (
            ("w", (1, 4 * HIDDEN, INPUTS)),
            ("r", (1, 4 * HIDDEN, HIDDEN)),
            ("b", (1, 8 * HIDDEN)),
        )
    ]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=HIDDEN)],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [STEPS, 1, INPUTS])],
        [onnx.helper.make_tensor_value_info("y", 1, [STEPS, 1, 1, HIDDEN])],
        initializers,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("model") / "m.onnx"
    onnx.save(
        onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 17)]
        ),
        path,
    )
    return path


@pytest.mark.parametrize(
    ("allowance", "copies"), [(2**25, 1), (8 * 4 * HIDDEN * HIDDEN, 2), (0, 3)]
)
def test_copies_of_the_weights_of_a_state(
    allowance, copies, model, monkeypatch
):
    """16 layers read one copy, and more while the allowance lasts: 39 = 16 + 16 + 7 = 16 + 8 + 15."""
    monkeypatch.setattr(
        shared_weights.SharedWeights.__init__, "__defaults__", (allowance,)
    )
    rng = np.random.default_rng(1)
    x = rng.normal(size=(96, STEPS, 1, INPUTS)).astype(np.float32)
    converted = mrt.convert(model, {"x": x[:64]})
    found = [
        constant.shape
        for constant in converted.program.program.constants
        if constant.shape == (4 * HIDDEN, HIDDEN)
    ]
    assert len(found) == copies
    assert converted.evaluate({"x": x[64:]}).worst_snr_db > 30


def test_steps_that_a_file_unrolled_share_their_weights(tmp_path):
    """Each product by the one matrix becomes a Gemm with a transposed copy of its own."""
    rng = np.random.default_rng(3)
    r = rng.normal(0, 0.4, (HIDDEN, HIDDEN)).astype(np.float32)
    bodies = [
        f"p{step} = MatMul(h{step}, r) s{step} = Add(p{step}, x) h{step + 1} = Clip(s{step}, low, high)"
        for step in range(5)
    ]
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g'
        f"(float[1, {HIDDEN}] x) => (float[1, {HIDDEN}] h5)"
        f"<float[{HIDDEN}, {HIDDEN}] r> {{"
        " low = Constant <value_float = 0.0> () high = Constant <value_float = 1.0> ()"
        f" h0 = Clip(x, low, high) {' '.join(bodies)} }}"
    )
    del proto.graph.input[1:]
    proto.graph.initializer.append(onnx.numpy_helper.from_array(r, "r"))
    onnx.save(proto, tmp_path / "m.onnx")
    x = rng.normal(0, 2, (64, 1, HIDDEN)).astype(np.float32)
    converted = mrt.convert(tmp_path / "m.onnx", {"x": x})
    constants = converted.program.program.constants
    assert [c.shape for c in constants].count(r.shape) == 1


@pytest.mark.parametrize(("few", "copies"), [(0, 1), (2**16, 5)])
def test_steps_of_other_ranges_and_biases_share_many_weights(
    few, copies, tmp_path, monkeypatch
):
    """Each state is greater than the one before, so that its scale is another."""
    monkeypatch.setattr(shared_weights, "FEW", few)
    rng = np.random.default_rng(4)
    arrays = {"r": rng.normal(0, 0.6, (HIDDEN, HIDDEN)).astype(np.float32)}
    bodies = []
    for step in range(5):
        arrays[f"b{step}"] = rng.normal(0, 3, HIDDEN).astype(np.float32)
        bodies.append(
            f"p{step} = MatMul(h{step}, r) s{step} = Add(p{step}, b{step}) h{step + 1} = Relu(s{step})"
        )
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g'
        f"(float[1, {HIDDEN}] h0) => (float[1, {HIDDEN}] h5)"
        f"<{', '.join(f'float{shape} {name}' for name, shape in shapes.items())}>"
        f"{{ {' '.join(bodies)} }}"
    )
    del proto.graph.input[1:]
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name)
        for name, array in arrays.items()
    )
    onnx.save(proto, tmp_path / "m.onnx")
    x = rng.normal(0, 2, (96, 1, HIDDEN)).astype(np.float32)
    converted = mrt.convert(tmp_path / "m.onnx", {"h0": x[:64]})
    constants = converted.program.program.constants
    assert [c.shape for c in constants].count(arrays["r"].shape) == copies
    assert converted.evaluate({"h0": x[64:]}).worst_snr_db > 30


def test_steps_round_their_weights_once(model, monkeypatch):
    """Two arrays of weights, of the inputs and of the state, which 39 steps read."""
    calls, rounded = [], rounding._rounded

    def counted(layer, means):
        calls.append(layer.name)
        return rounded(layer, means)

    monkeypatch.setattr(rounding, "_rounded", counted)
    x = np.zeros((4, STEPS, 1, INPUTS), np.float32)
    mrt.convert(model, {"x": x + 1}, refine="none")
    assert 2 <= len(calls) < 10  # a program is written, and others as advice


def test_sums_take_the_accumulators_of_the_steps_inputs(model):
    """In 8 bits their product would be rounded before the state's is added to it."""
    x = np.random.default_rng(2).normal(size=(8, STEPS, 1, INPUTS))
    form = mrt.convert(model, {"x": x.astype(np.float32)}).program
    products, taken = set(), []
    for number, instruction in enumerate(
        form.program.instructions, form.program.first_instruction
    ):
        if instruction.name == "dense":
            products.add(number)
        if instruction.name == "slice" and instruction.operands[0] in products:
            taken.append(form.types[number].dtype)
    assert taken == ["i32"] * STEPS
