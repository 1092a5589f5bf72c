"""Which files belong together, and graphs that MXNet made for one machine."""

import os
from pathlib import Path

import numpy as np
import pytest

from mrt.errors import BadModel, BadOption, Unsupported
from mrt.frontend import load
from mrt.frontend.mxnet import find_params
from tests.support.mxnet_files import node, variable, write_params, write_symbol

DENSE = [
    variable("x", __shape__="(1, 2)"),
    variable("w"),
    node("FullyConnected", "fc", [0, 1], num_hidden="1", no_bias="True"),
]


@pytest.fixture
def folder(tmp_path):
    write_symbol(tmp_path / "m-symbol.json", DENSE)
    for epoch in (3, 12345):
        write_params(
            tmp_path / f"m-{epoch:04d}.params",
            {"arg:w": np.full((1, 2), epoch, np.float32)},
        )
    return tmp_path


@pytest.mark.parametrize("epoch", [3, 12345])
def test_an_epoch_is_a_file(folder, epoch):
    model = load(folder / "m-symbol.json", epoch=epoch).model
    assert model.graph.initializers["w"].const_value.numpy().tolist() == [
        [epoch, epoch]
    ]


def test_an_epoch_that_is_not_there_lists_what_is(folder):
    with pytest.raises(
        BadModel,
        match=r"--epoch 7 is m-0007\.params, .* there is m-0003\.params, m-12345\.params",
    ):
        find_params(folder / "m-symbol.json", 7)


def test_an_epoch_and_a_file_are_one_too_many(folder):
    with pytest.raises(BadOption, match="both name a parameter file; give one"):
        load(folder / "m-symbol.json", epoch=3, params=folder / "m-0003.params")


def test_the_hash_is_the_same_however_the_file_was_chosen(folder):
    named = load(folder / "m-symbol.json", params=folder / "m-0003.params")
    assert load(folder / "m-symbol.json", epoch=3).sha256 == named.sha256
    assert load(folder / "m-symbol.json", epoch=12345).sha256 != named.sha256


def test_parameters_may_come_from_what_has_no_size(folder):
    read, write = os.pipe()
    os.write(write, (folder / "m-0003.params").read_bytes())
    os.close(write)
    try:
        model = load(
            folder / "m-symbol.json", params=Path(f"/dev/fd/{read}")
        ).model
    finally:
        os.close(read)
    assert model.graph.initializers["w"].const_value.numpy().tolist() == [
        [3, 3]
    ]


# What quantize_net of MXNet 1.9.1 writes for a small network: these operators, convolutions with a subgraph.
QUANTIZED = [
    variable("x", __shape__="(1, 2)"),
    node(
        "_contrib_quantize_v2",
        "q",
        [0],
        out_type="auto",
        min_calib_range="-3",
        max_calib_range="3",
    ),
    {
        **node("_sg_mkldnn_conv", "conv", [1], quantized="true"),
        "subgraphs": [{"nodes": []}],
    },
    node("_contrib_quantized_pooling", "pool", [2]),
    node("_contrib_dequantize", "d", [3]),
]


def test_an_int8_graph_is_refused_once_with_the_way_round(tmp_path):
    write_symbol(tmp_path / "m.json", QUANTIZED)
    with pytest.raises(Unsupported) as refused:
        load(tmp_path / "m.json")
    assert refused.value.problems == [
        "MXNet quantized this graph to int8: _contrib_dequantize (1), _contrib_quantize_v2 (1), "
        "_contrib_quantized_pooling (1), _sg_mkldnn_conv (1)"
    ]
    assert "convert the float symbol" in str(refused.value)


def test_a_fused_graph_says_how_to_export_another(tmp_path):
    fused = {
        **node("_sg_mkldnn_conv", "conv", [0]),
        "subgraphs": [{"nodes": []}],
    }
    write_symbol(tmp_path / "m.json", [variable("x"), fused])
    with pytest.raises(
        Unsupported,
        match="export the symbol again without MXNET_SUBGRAPH_BACKEND",
    ):
        load(tmp_path / "m.json")


def test_what_comes_before_the_int8_part_can_be_had(tmp_path):
    write_symbol(
        tmp_path / "m.json",
        [
            variable("x", __shape__="(1, 2)"),
            node("relu", "r", [0]),
            node("_contrib_quantize_v2", "q", [1]),
        ],
    )
    model = load(tmp_path / "m.json", outputs=["r"]).model
    assert [item.op_type for item in model.graph] == ["Relu"]
