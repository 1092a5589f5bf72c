"""What onnxruntime's optimiser writes means what onnxruntime computes."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.frontend.onnx.opsets import few_bits as few_bits_module
from mrt.rewrite import canonical, rewrite
from tests.support.graphs import assert_same, build, node, run, seeded

RNG = np.random.default_rng(8)
DOMAIN = "com.microsoft"
ROUNDINGS = 1e-5


def weights(*shape):
    return RNG.normal(size=shape).astype(np.float32)


CONV = {"w": weights(4, 3, 3, 3), "b": weights(4)}
ROWS = {"s": weights(6), "t": weights(6)}
FORMS = {
    "Gelu": ("Gelu", {}, {}),
    "FastGelu": ("FastGelu", {}, {}),
    "FastGelu of a bias": ("FastGelu", {"b": weights(6)}, {}),
    "BiasGelu": ("BiasGelu", {"b": weights(6)}, {}),
    "QuickGelu": ("QuickGelu", {}, {"alpha": 1.5}),
    "FusedMatMul": ("FusedMatMul", {"w": weights(5, 6)}, {"transB": 1, "alpha": 0.5}),
    "FusedMatMul of a transposed": ("FusedMatMul", {"w": weights(7, 4)}, {"transA": 1}),
    "FusedMatMul as it is": ("FusedMatMul", {"w": weights(6, 4)}, {}),
    "FusedConv": ("FusedConv", CONV, {"activation": "Relu", "pads": [1, 1, 1, 1], "strides": [2, 1]}),
    "FusedConv LeakyRelu": ("FusedConv", CONV, {"activation": "LeakyRelu", "activation_params": [0.3]}),
    "FusedConv Clip": ("FusedConv", CONV, {"activation": "Clip", "activation_params": [0.0, 6.0]}),
    "FusedConv HardSigmoid": ("FusedConv", CONV, {"activation": "HardSigmoid", "activation_params": [0.1, 0.4]}),
    "FusedConv of a sum": ("FusedConv", CONV | {"z": weights(1, 4, 5, 4)}, {"activation": "Relu"}),
    "SkipLayerNormalization": ("SkipLayerNormalization", {"k": weights(1, 3, 7, 6)[0], **ROWS}, {"epsilon": 0.01}),
    "SkipLayerNormalization of a bias": (
        "SkipLayerNormalization", {"k": weights(3, 7, 6), **ROWS, "b": weights(6)}, {}
    ),
    "SkipSimplifiedLayerNormalization": ("SkipSimplifiedLayerNormalization", {"k": weights(3, 7, 6), "s": weights(6)}, {}),
}  # fmt: skip


def model_of(
    operator, arrays, attributes, *, opset=14, domain=DOMAIN, shape=(1, 3, 7, 6)
):
    made = helper.make_node(
        operator, ["x", *arrays], ["y"], name="one", domain=domain, **attributes
    )
    values = [
        helper.make_tensor_value_info(name, 1, dims)
        for name, dims in (("x", shape), ("y", None))
    ]
    held = [
        numpy_helper.from_array(array, name) for name, array in arrays.items()
    ]
    graph = helper.make_graph([made], "g", values[:1], values[1:], held)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("name", FORMS)
def test_it_means_what_onnxruntime_computes(name, tmp_path):
    shape = (3, 7, 6) if name.startswith("Skip") else (1, 3, 7, 6)
    proto = model_of(*FORMS[name], shape=shape)
    feeds = seeded({"x": shape})
    expected = run(proto, feeds)
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(expected, run(model, feeds), ROUNDINGS)
    rewrite(model)
    assert_same(expected, run(model, feeds), ROUNDINGS)
    assert all(
        entry.op_type in canonical.CANONICAL_OPERATORS for entry in model.graph
    )


@pytest.mark.parametrize(
    "operator", ["LayerNormalization", "SimplifiedLayerNormalization"]
)
def test_norms_that_the_optimiser_leaves_in_the_default_domain(
    operator, tmp_path
):
    arrays = {"s": weights(6)} | (
        {"t": weights(6)} if operator == "LayerNormalization" else {}
    )
    proto = model_of(
        operator, arrays, {"axis": -1, "epsilon": 0.01}, opset=14, domain=""
    )
    feeds = seeded({"x": (1, 3, 7, 6)})
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, feeds), run(model, feeds), ROUNDINGS)


def test_the_sum_under_a_norm_may_be_read(tmp_path):
    proto = model_of(
        "SkipLayerNormalization",
        {"k": weights(3, 7, 6), **ROWS},
        {},
        shape=(3, 7, 6),
    )
    proto.graph.node[0].output.extend(["", "", "total"])
    proto.graph.output.append(
        helper.make_tensor_value_info("total", 1, (3, 7, 6))
    )
    feeds = seeded({"x": (3, 7, 6)})
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, feeds), run(model, feeds), ROUNDINGS)


@pytest.mark.parametrize(
    ("operator", "place", "allowed"),
    [
        ("SkipLayerNormalization", 1, "1 and 4"),
        ("SkipLayerNormalization", 2, "1 and 4"),
        ("SimplifiedLayerNormalization", 1, "1"),
    ],
)
def test_what_a_norm_computes_for_training_cannot_be_read(
    operator, place, allowed, tmp_path
):
    arrays = {"s": weights(6)}
    if operator.startswith("Skip"):
        arrays = {"k": weights(3, 7, 6), **ROWS}
    proto = model_of(operator, arrays, {}, shape=(3, 7, 6))
    proto.graph.node[0].output.extend(["m", "i"][:place])
    read = proto.graph.node[0].output[place]
    proto.graph.output.append(helper.make_tensor_value_info(read, 1, None))
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(Unsupported) as caught:
        load_onnx(tmp_path / "m.onnx")
    assert caught.value.problems == [
        f"one ({operator}): its output {place + 1}, '{read}', is read; expected readers of output {allowed} alone"
    ]


def test_a_model_that_onnxruntime_optimised_is_read(tmp_path):
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c g b m v", "n"),
        node("LeakyRelu", "n", "a", alpha=0.2),
        node("Conv", "a w2", "d"),
        node("Sigmoid", "d", "y"),
    ]
    four = {name: np.abs(weights(4)) + np.float32(0.5) for name in "gmv"}
    proto = build(
        nodes,
        {"x": (1, 3, 7, 6)},
        {**CONV, **four, "w2": weights(5, 4, 1, 1)},
        opset=13,
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    )
    options.optimized_model_filepath = str(tmp_path / "m.onnx")
    onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    assert "FusedConv" in [
        entry.op_type for entry in onnx.load(tmp_path / "m.onnx").graph.node
    ]
    model, _ = load_onnx(tmp_path / "m.onnx")
    feeds = seeded({"x": (1, 3, 7, 6)})
    assert_same(run(proto, feeds), run(model, feeds), ROUNDINGS)


@pytest.mark.parametrize(
    "attributes", [{}, {"metric": "sqeuclidean"}, {"metric": "euclidean"}]
)
def test_distances_between_the_rows_of_two_tables(attributes, tmp_path):
    """As skl2onnx writes nearest neighbours with optim="cdist", and minisom2onnx its maps."""
    proto = model_of("CDist", {"w": weights(5, 3)}, attributes, shape=(4, 3))
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    feeds = seeded({"x": (4, 3)})
    assert_same(run(proto, feeds), run(model, feeds), ROUNDINGS)


def few_bits(bits, inputs, size, *, zeros="none", bias=False):
    """Return the operands and attributes of a MatMulNBits with four outputs."""
    blocks = -(-inputs // size)
    arrays = {
        "w": RNG.integers(0, 256, (4, blocks, size * bits // 8)).astype(
            np.uint8
        ),
        "s": RNG.uniform(0.01, 0.1, 4 * blocks).astype(np.float32),
    }
    if zeros == "packed":
        length = -(-blocks * bits // 8)
        arrays["z"] = RNG.integers(0, 256, 4 * length).astype(np.uint8)
    if zeros == "reals":
        arrays["z"] = RNG.uniform(0, 2**bits, 4 * blocks).astype(np.float32)
    if bias:
        arrays |= {"z": arrays.get("z"), "g": None, "b": weights(4)}
    attributes = {"K": inputs, "N": 4, "bits": bits, "block_size": size}
    return arrays, attributes


def product_of(arrays, attributes, inputs):
    held = {name: it for name, it in arrays.items() if it is not None}
    proto = model_of("MatMulNBits", held, attributes, shape=(2, 3, inputs))
    del proto.graph.node[0].input[1:]
    names = [name if it is not None else "" for name, it in arrays.items()]
    proto.graph.node[0].input.extend(names)
    return proto


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("bits", "inputs", "size", "zeros"),
    [
        (4, 64, 32, "none"),
        (4, 48, 16, "packed"),
        (4, 40, 32, "packed"),
        (4, 40, 32, "reals"),
        (8, 64, 32, "none"),
        (8, 40, 32, "packed"),
    ],
)
def test_weights_of_a_few_bits(
    bits, inputs, size, zeros, bias, tmp_path, monkeypatch
):
    monkeypatch.setattr(few_bits_module, "AT_ONCE", 3)  # of four outputs
    proto = product_of(
        *few_bits(bits, inputs, size, zeros=zeros, bias=bias), inputs
    )
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    feeds = seeded({"x": (2, 3, inputs)})
    assert_same(run(proto, feeds), run(model, feeds), ROUNDINGS)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"bits": 3}, "bits=3; expected 2, 4, 8"),
        ({"block_size": 0}, "K, N or block_size is less than 1"),
        (
            {"N": 5},
            "not constants of the sizes that K, N, bits and block_size state",
        ),
        ({"K": 2**40}, "it has more than 268,435,456 weights"),
        ({"K": 2**62, "N": 8}, "it has more than 268,435,456 weights"),
    ],
)
def test_weights_of_a_few_bits_that_do_not_fit_are_refused(
    change, problem, tmp_path
):
    arrays, attributes = few_bits(4, 64, 32)
    onnx.save(product_of(arrays, attributes | change, 64), tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match=rf"one \(MatMulNBits\): .*{problem}"):
        load_onnx(tmp_path / "m.onnx")


def test_inputs_in_an_order_of_their_own_are_refused(tmp_path):
    arrays, attributes = few_bits(4, 64, 32, zeros="packed")
    arrays["g"] = np.arange(64, dtype=np.int32) // 32
    onnx.save(product_of(arrays, attributes, 64), tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match="an order of their own"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("operator", "arrays", "attributes", "problem"),
    [
        (
            "CDist",
            {"w": weights(5, 6)},
            {"metric": "cosine"},
            "metric=cosine; expected euclidean or sqeuclidean",
        ),
        (
            "FusedConv",
            CONV,
            {"activation": "Softmax"},
            "activation=Softmax; expected Clip, HardSigmoid, LeakyRelu, Relu",
        ),
        (
            "FusedMatMul",
            {"w": weights(6, 4)},
            {"transBatchA": 1},
            "transBatchA or transBatchB is 1; expected 0",
        ),
        (
            "FusedMatMul",
            {"w": weights(6, 4)},
            {"alpha": "much"},
            "with operands or attributes that it does not have",
        ),
        (
            "FusedMatMul",
            {},
            {},
            "with operands or attributes that it does not have there",
        ),
        (
            "Attention",
            {},
            {},
            "one of onnxruntime's own; if its optimiser wrote it, convert the model from before that",
        ),
        (
            "Solve",
            {},
            {},
            "one of onnxruntime's own; .*; if not, end in front of it with --outputs",
        ),
        (
            "GatherBlockQuantized",
            {},
            {},
            "with operands or attributes that it does not have there",
        ),
    ],
)
def test_other_forms_are_refused(
    operator, arrays, attributes, problem, tmp_path
):
    onnx.save(model_of(operator, arrays, attributes), tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match=rf"one \({operator}\): .*{problem}"):
        load_onnx(tmp_path / "m.onnx")
