"""Notes on values: typed in memory, text in a file, and nothing of a stranger's file but what can be parsed."""

import onnx_ir as ir
import pytest

from mrt.graph.notes import (
    compared_of,
    duplicates_of,
    indices_of,
    picture_layout_of,
    read_from_metadata,
    set_compared,
    set_duplicates,
    set_indices,
    set_picture_layout,
    set_shared_range,
    shared_range_of,
    write_to_metadata,
)

READERS = {
    "mrt.one_range": shared_range_of,
    "mrt.bytes": picture_layout_of,
    "mrt.indices": indices_of,
    "mrt.compared": compared_of,
    "mrt.twins": duplicates_of,
}


def model() -> ir.Model:
    x = ir.Value(
        name="x", shape=ir.Shape([1]), type=ir.TensorType(ir.DataType.FLOAT)
    )
    node = ir.node("Relu", [x], name="relu")
    node.outputs[0].name = "y"
    graph = ir.Graph([x], node.outputs, nodes=[node], opset_imports={"": 20})
    return ir.Model(graph, ir_version=10)


def test_every_note_survives_a_file_as_text():
    before = model()
    value = before.graph[0].outputs[0]
    set_shared_range(value, "state.1")
    set_picture_layout(value, "NHWC")
    set_indices(value, (-7, 6))
    set_compared(value, (0, 3))
    set_duplicates(value, ((4, 1), (5, 0)))
    write_to_metadata(before)
    assert dict(value.metadata_props) == {
        "mrt.one_range": "state.1",
        "mrt.bytes": "NHWC",
        "mrt.indices": "-7 6",
        "mrt.compared": "0 3",
        "mrt.twins": "4:1 5:0",
    }
    after = ir.from_proto(ir.to_proto(before))
    read = after.graph[0].outputs[0]
    assert [reader(read) for reader in READERS.values()] == [
        None,
        None,
        None,
        None,
        (),
    ]
    read_from_metadata(after)
    assert shared_range_of(read) == "state.1"
    assert picture_layout_of(read) == "NHWC"
    assert (indices_of(read), compared_of(read)) == ((-7, 6), (0, 3))
    assert duplicates_of(read) == ((4, 1), (5, 0))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("mrt.bytes", "CHW"),
        ("mrt.indices", "a b"),
        ("mrt.indices", "1"),
        ("mrt.indices", f"0 {'9' * 5000}"),
        ("mrt.compared", "1 2 3"),
        ("mrt.compared", "0 ٣"),
        ("mrt.twins", "1:-2"),
        ("mrt.twins", "1:2:3"),
        ("mrt.twins", f"1:{'9' * 5000}"),
        ("mrt.twins", "1:2 " * 10),
        ("mrt.one_range", "x" * (2**20 + 1)),
    ],
)
def test_a_strangers_text_that_is_no_note_is_left_out(key, text):
    lying = model()
    lying.graph.inputs[0].metadata_props[key] = text
    read_from_metadata(lying)
    assert READERS[key](lying.graph.inputs[0]) in (None, ())
    assert key not in lying.graph.inputs[0].metadata_props


def test_a_clone_has_the_notes():
    before = model()
    set_indices(before.graph.inputs[0], (0, 9))
    assert indices_of(before.clone().graph.inputs[0]) == (0, 9)
