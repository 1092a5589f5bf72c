"""GatherBlockQuantized of onnxruntime's domain, with onnxruntime as the judge."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.frontend.onnx.quantized import block_tables
from tests.support.graphs import run

RNG = np.random.default_rng(11)
TYPES = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "uint8": np.uint8}


def integers(kind, shape):
    """Return random integers of all that the type holds."""
    least, count = (0, 256) if kind == "uint8" else (0, 16)
    least = -8 if kind == "int4" else least
    drawn = RNG.integers(least, least + count, shape)
    return drawn.astype(TYPES[kind])


def saved(folder, arrays, attributes, opset=21):
    """Save a model that looks up rows [2, 3] of a table."""
    held = [numpy_helper.from_array(it, name) for name, it in arrays.items()]
    table, *others = arrays
    made = helper.make_node(
        "GatherBlockQuantized",
        [table, "ids", *others],
        ["y"],
        name="one",
        domain="com.microsoft",
        **attributes,
    )
    ports = [
        helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, (2, 3)),
        helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None),
    ]
    graph = helper.make_graph([made], "g", ports[:1], ports[1:], held)
    domains = [
        helper.make_opsetid(domain, version)
        for domain, version in (("", opset), ("com.microsoft", 1))
    ]
    proto = helper.make_model(graph, opset_imports=domains, ir_version=10)
    onnx.save(proto, folder / "m.onnx")
    return proto


def arrays_of(kind, shape, blocks, *, bits=4, zeros=False):
    """Return a table, its scales and, perhaps, zero points."""
    scales = RNG.uniform(0.01, 0.1, blocks).astype(np.float32)
    arrays = {"t": integers(kind, shape), "s": scales}
    if zeros:
        in_byte = 8 // bits if kind == "uint8" else 1
        packed = (*blocks[:-1], -(-blocks[-1] // in_byte))
        arrays["z"] = integers(kind, packed)
    return arrays


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("kind", "shape", "blocks", "attributes"),
    [
        ("uint8", (7, 32), (7, 2), {"block_size": 32}),
        ("uint8", (7, 24), (7, 3), {"block_size": 16}),
        ("uint8", (7, 48), (7, 3), {"block_size": 16, "bits": 8}),
        ("uint8", (7, 5, 8), (7, 5, 1), {"quantize_axis": -1}),
        ("int4", (7, 64), (7, 2), {"block_size": 32}),
        ("uint4", (7, 40), (7, 2), {"block_size": 32}),
        ("int4", (20, 6), (2, 6), {"block_size": 16, "quantize_axis": 0, "gather_axis": 1}),
        ("uint4", (3, 7, 18), (3, 7, 2), {"block_size": 16, "quantize_axis": 2, "gather_axis": 1}),
    ],
)  # fmt: skip
def test_rows_of_a_table_are_onnxruntimes(
    kind, shape, blocks, attributes, zeros, tmp_path, monkeypatch
):
    monkeypatch.setattr(block_tables, "AT_ONCE", 3)
    bits = attributes.get("bits", 4)
    arrays = arrays_of(kind, shape, blocks, bits=bits, zeros=zeros)
    proto = saved(tmp_path, arrays, attributes)
    model, _ = load_onnx(tmp_path / "m.onnx")
    feeds = {"ids": np.array([[0, 3, 5], [5, 2, 1]])}
    assert (run(model, feeds)["y"] == run(proto, feeds)["y"]).all()


def test_two_bits_have_four_integers_in_a_byte(tmp_path):
    """Of a zero point of 2, which none of the file states: 0b11_10_01_00 is -2, -1, 0, 1."""
    arrays = {
        "t": np.full((2, 4), 0b11100100, np.uint8),
        "s": np.float32([[0.5], [4]]),
    }
    saved(tmp_path, arrays, {"block_size": 16, "bits": 2})
    model, _ = load_onnx(tmp_path / "m.onnx")
    rows = run(model, {"ids": np.array([[0, 1, 0], [1, 1, 0]])})["y"]
    assert rows[0, 0].tolist() == [-1, -0.5, 0, 0.5] * 4
    assert rows[0, 1].tolist() == [-8, -4, 0, 4] * 4


@pytest.mark.parametrize(
    ("kind", "shape", "attributes", "problem"),
    [
        ("uint8", (7, 32), {"bits": 3}, "bits=3; expected 2, 4, 8"),
        ("int4", (7, 64), {"bits": 8}, "bits=8; expected 2, 4, 8, of int4"),
        ("uint8", (7, 32), {"block_size": 0}, "block_size is less than 1"),
        ("uint8", (7, 32), {"quantize_axis": 5}, "none of its table's axes"),
        ("uint8", (7, 32), {"quantize_axis": 0}, "another axis than the last"),
        ("uint8", (7, 32), {"block_size": 16}, "not of the sizes"),
    ],
)
def test_forms_that_do_not_fit_are_refused(
    kind, shape, attributes, problem, tmp_path
):
    arrays = arrays_of(kind, shape, (7, 2), zeros=True)
    saved(tmp_path, arrays, {"block_size": 32} | attributes)
    with pytest.raises(
        Unsupported, match=rf"one \(GatherBlockQuantized\): .*{problem}"
    ):
        load_onnx(tmp_path / "m.onnx")


def test_zero_points_of_another_size_are_refused(tmp_path):
    arrays = arrays_of("uint8", (7, 32), (7, 2), zeros=True)
    arrays["z"] = np.zeros((7, 2), np.uint8)
    saved(tmp_path, arrays, {"block_size": 32})
    with pytest.raises(Unsupported, match="zero points are not of the sizes"):
        load_onnx(tmp_path / "m.onnx")


def test_a_computed_table_is_refused(tmp_path):
    arrays = arrays_of("uint8", (7, 32), (7, 2))
    proto = saved(tmp_path, arrays, {"block_size": 32})
    proto.graph.node[0].input[0] = "made"
    made = helper.make_node("Cast", ["ids"], ["made"], to=2)
    proto.graph.node.insert(0, made)
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match="computed; expected constants"):
        load_onnx(tmp_path / "m.onnx")


def test_more_weights_than_memory_should_hold_are_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(block_tables, "MOST_ELEMENTS", 447)
    arrays = arrays_of("uint8", (7, 32), (7, 2))
    saved(tmp_path, arrays, {"block_size": 32})
    with pytest.raises(Unsupported, match="it has more than 447 weights"):
        load_onnx(tmp_path / "m.onnx")
