"""Gluon's own parameter files: matched to the symbol as real MXNet wrote both, or refused with what to do.

Names and orders are those that gluon 1.9.1 writes: children in the order in which they were added, numbers in the order
in which they were made.
"""

import numpy as np
import pytest

from mrt.errors import BadModel
from mrt.frontend.mxnet import load_mxnet
from tests.support.mxnet_files import node, variable, write_params, write_symbol


def dense(nodes: list[dict], name: str, data: int) -> int:
    nodes += [variable(f"{name}_weight"), variable(f"{name}_bias")]
    nodes.append(
        node(
            "FullyConnected",
            f"{name}_fwd",
            [data, len(nodes) - 2, len(nodes) - 1],
            num_hidden="2",
        )
    )
    return len(nodes) - 1


def write(
    folder, layers: list[str], file: dict[str, float], *, chained: bool = True
) -> None:
    """Dense layers of 2 to 2 in a chain (or side by side, summed), and a file of constant arrays."""
    nodes = [variable("data", __shape__="(1, 2)")]
    ends = [0]
    for name in layers:
        ends.append(dense(nodes, name, ends[-1] if chained else 0))
    if not chained:
        nodes.append(node("add_n", "sum", ends[1:], num_args=str(len(layers))))
    write_symbol(folder / "m-symbol.json", nodes)
    shapes = {"weight": (2, 2), "bias": (2,)}
    arrays = {name: np.full(shapes[name.rpartition(".")[2].rpartition("_")[2]], value, np.float32)
              for name, value in file.items()}  # fmt: skip
    write_params(folder / "m-0000.params", arrays)


def loaded(folder) -> tuple[dict[str, float], str]:
    model = load_mxnet(folder / "m-symbol.json")
    constants = model.graph.initializers.items()
    numbers = {
        name: float(value.const_value.numpy().flat[0])
        for name, value in constants
    }
    return numbers, model.metadata_props["mrt_notes"]


def structured(*stems: str) -> dict[str, float]:
    return {f"{stem}.{word}": 10 * index + part for index, stem in enumerate(stems) for part, word in
            enumerate(("weight", "bias"))}  # fmt: skip


def test_layers_that_follow_one_another_are_matched(tmp_path):
    write(
        tmp_path,
        ["net0_dense0", "net0_dense1"],
        structured("features.0", "output"),
    )
    numbers, note = loaded(tmp_path)
    expected = {
        "net0_dense0_weight": 0,
        "net0_dense0_bias": 1,
        "net0_dense1_weight": 10,
        "net0_dense1_bias": 11,
    }
    assert numbers == expected
    assert "4 parameters with names of Gluon's save_parameters matched" in note


def test_numbers_tell_the_order_where_use_does_not(tmp_path):
    """A shortcut is used before the body that was made before it, as in a residual block."""
    write(
        tmp_path,
        ["net0_dense10", "net0_dense9"],
        structured("body", "shortcut"),
        chained=False,
    )
    assert loaded(tmp_path)[0]["net0_dense9_weight"] == 0
    assert loaded(tmp_path)[0]["net0_dense10_weight"] == 10


def test_words_that_no_number_orders_are_ordered_by_use(tmp_path):
    write(
        tmp_path,
        ["net0_stage1_dense0", "net0_dense0"],
        structured("features.0.0", "features.1"),
    )
    assert loaded(tmp_path)[0]["net0_stage1_dense0_weight"] == 0


@pytest.mark.parametrize(
    ("layers", "file", "problem"),
    [
        (
            ["net0_left", "net0_right"],
            structured("a", "b"),
            "nothing tells their order",
        ),
        (
            ["net0_dense0", "net0_dense1"],
            structured("a"),
            "the file has 1 layers with bias (2,), weight (2, 2)",
        ),
        (
            ["net0_dense0"],
            structured("a", "b"),
            "the file has 2 layers with bias (2,), weight (2, 2), the symbol 1",
        ),
        (
            ["net0_dense0"],
            {"a.weight": 1},
            "the symbol's 'net0_dense0_bias' ends like none",
        ),
    ],
)
def test_doubt_is_refused_with_the_way_out(tmp_path, layers, file, problem):
    write(tmp_path, layers, file, chained=False)
    with pytest.raises(BadModel) as refused:
        load_mxnet(tmp_path / "m-symbol.json")
    assert problem in str(refused.value)
    assert (
        "net.load_parameters('m-0000.params'), one forward pass, net.export('prefix')"
        in str(refused.value)
    )


def test_numbers_against_the_order_of_use_are_no_proof(tmp_path):
    write(tmp_path, ["net0_dense1", "net0_dense0"], structured("a", "b"))
    with pytest.raises(
        BadModel, match="have the same shapes, and nothing tells their order"
    ):
        load_mxnet(tmp_path / "m-symbol.json")


def test_names_without_the_prefix_get_it_back(tmp_path):
    write(tmp_path, ["net0_dense0"], {"dense0_bias": 1, "dense0_weight": 2})
    numbers, note = loaded(tmp_path)
    assert numbers == {"net0_dense0_weight": 2, "net0_dense0_bias": 1}
    assert "'net0_' was put in front of each" in note
