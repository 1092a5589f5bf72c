"""Symbol files made to take time or memory before anything is checked: each is read, or refused, at once."""

import json
import os
import signal
import time

import numpy as np
import pytest

from mrt.errors import BadModel, Unsupported
from mrt.frontend.mxnet import ModelSource, read_mxnet
from mrt.frontend.mxnet.files import read_parameters
from mrt.frontend.mxnet.graph_builder import GraphBuilder
from mrt.frontend.mxnet.literals import parse_bound
from mrt.frontend.mxnet.operators.resize import _bins
from mrt.frontend.mxnet.symbol import read_symbol
from tests.support.mxnet_files import (
    array_bytes,
    node,
    params_bytes,
    symbol_json,
    variable,
    write_symbol,
)

SECONDS = 20  # what took time with the square of a length took minutes


@pytest.fixture(autouse=True)
def in_time():
    """Ends what would go on for hours."""

    def give_up(number, frame):
        raise TimeoutError(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def read(folder, nodes, heads=None):
    write_symbol(folder / "m-symbol.json", nodes, heads)
    return read_mxnet(
        ModelSource(folder / "m-symbol.json", random_weights=1)
    ).model


def test_a_head_listed_many_times_is_refused_at_once(tmp_path):
    with pytest.raises(Unsupported, match="output 0 of r is listed twice"):
        read(
            tmp_path,
            [variable("x", __shape__="(1, 4)"), node("relu", "r", [0])],
            heads=[1] * 20_000,
        )


def test_a_key_repeated_among_many_is_refused_at_once():
    many = ",".join(f'"{number}": 0' for number in range(100_000))
    with pytest.raises(BadModel, match="key '99999' occurs twice"):
        read_symbol(f'{{"nodes": {{{many}, "99999": 1}}}}'.encode(), "m.json")


def test_a_long_unknown_key_is_shown_by_its_beginning():
    with pytest.raises(BadModel) as refusal:
        read_symbol(
            json.dumps(
                {**symbol_json([variable("x")]), "k" * 100_000: 1}
            ).encode(),
            "m.json",
        )
    assert len(str(refusal.value)) < 300


def test_many_nodes_of_one_name_are_numbered_at_once(tmp_path):
    chain = [
        variable("x", __shape__="(1, 4)"),
        *(node("relu", "r", [index]) for index in range(1_000)),
    ]
    names = [item.name for item in read(tmp_path, chain).graph]
    assert len(set(names)) == 1_000
    assert names[:3] == [
        "r_2",
        "r_3",
        "r_4",
    ]  # the output of the model chose first
    assert names[-1] == "r"


def test_names_are_claimed_in_a_time_that_does_not_grow_with_their_number():
    builder = GraphBuilder()
    for _ in range(50_000):
        builder.claim("x")
    assert builder.claim("x") == "x_50001"


def test_a_released_name_is_the_next_one_given():
    builder = GraphBuilder()
    assert [builder.claim("x") for _ in range(4)] == ["x", "x_2", "x_3", "x_4"]
    builder.release("x_3")
    builder.release("x_2")
    assert [builder.claim("x") for _ in range(3)] == ["x_2", "x_3", "x_5"]
    builder.release("x")
    assert [builder.claim("x") for _ in range(2)] == ["x", "x_6"]


@pytest.mark.parametrize(
    "nodes",
    [
        [
            node("_full", f"z{index}", [], shape="(134217728,)", value="1")
            for index in range(1000)
        ],
        [
            node("_zeros", f"z{index}", [], shape="(134217728,)")
            for index in range(1000)
        ],
        [
            node(
                "_linspace",
                f"z{index}",
                [],
                start="0",
                stop="1",
                num="134217728",
            )
            for index in range(1000)
        ],
        [
            node("_arange", f"z{index}", [], start="0", stop="134217728")
            for index in range(1000)
        ],
        [node("_eye", f"z{index}", [], N="11000") for index in range(1000)],
    ],
    ids=lambda nodes: nodes[0]["op"],
)
def test_all_constants_together_are_bounded(tmp_path, nodes, monkeypatch):
    """Room for one of them is left, so that the test itself takes little."""
    monkeypatch.setattr("mrt.frontend.mxnet.graph_builder.MAX_ELEMENTS", 1000)
    many = [*nodes, node("add_n", "sum", list(range(1000)), num_args="1000")]
    with pytest.raises(
        Unsupported,
        match=r"z0 \(.*\): .*numbers, with which all constants would have more than 2\^28",
    ):
        read(tmp_path, many)


def test_positions_along_one_of_many_axes_take_the_memory_of_the_result(
    tmp_path,
):
    shape = (2,) * 14
    model = read(
        tmp_path,
        [
            variable("x", __shape__=str(shape)),
            node("_contrib_index_array", "i", [0], axes="(13, 0)"),
        ],
    )
    (numbers,) = (
        value.const_value.numpy() for value in model.graph.initializers.values()
    )
    assert numbers.dtype == np.float32
    assert numbers.shape == (*shape, 2)
    assert np.array_equal(numbers[..., 0], np.broadcast_to(np.arange(2), shape))
    assert np.array_equal(numbers[(1, *(0,) * 12, 1)], [1, 1])


def test_a_digit_too_many_is_seen_at_once():
    start = time.monotonic()
    with pytest.raises(ValueError, match="expected a number"):
        parse_bound("1" * 9_999 + "x")
    assert time.monotonic() - start < 0.2
    assert parse_bound("12.") == 12
    assert parse_bound("1.5e2") == 150


def test_bins_of_an_average_are_made_all_together():
    assert _bins(1, 2**20).shape == (1, 2**20)
    assert _bins(3, 2).tolist() == [[0.5, 0], [0.5, 0.5], [0, 0.5]]


def test_nodes_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("mrt.frontend.mxnet.graph_builder.MAX_NODES", 20)
    with pytest.raises(
        Unsupported, match=r"s \(SliceChannel\): more than 20 nodes of ONNX"
    ):
        read(
            tmp_path,
            [
                variable("x", __shape__="(1, 30)"),
                node("SliceChannel", "s", [0], num_outputs="30"),
            ],
        )


def test_a_deep_recurrent_network_places_its_weights(tmp_path):
    layers = 30
    nodes = [
        variable("x", __shape__="(2, 1, 3)"),
        variable("p"),
        variable("s", __shape__=f"({layers}, 1, 2)"),
        node(
            "RNN",
            "r",
            [0, 1, 2],
            mode="rnn_relu",
            state_size="2",
            num_layers=str(layers),
        ),
    ]
    model = read(tmp_path, nodes)
    # weights: 2 x (3 + 2) in the first layer, 2 x (2 + 2) in each other one; two biases of 2 in each
    assert model.graph.initializers["p"].shape.numpy() == (
        10 + 29 * 8 + 30 * 4,
    )


@pytest.mark.skipif(
    not os.path.exists("/dev/zero"), reason="no endless file here"
)
def test_an_endless_file_is_not_read_to_its_end(tmp_path):
    for name in ("m-symbol.json", "m.params"):
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(BadModel, match="more than 67108864 bytes"):
        read_mxnet(ModelSource(tmp_path / "m-symbol.json"))
    with pytest.raises(
        BadModel, match="is a device; expected a parameter file"
    ):
        read_parameters(tmp_path / "m.params")


@pytest.fixture
def gluon_files(tmp_path):
    """Two dense layers of one shape whose numbers have thousands of digits."""
    long = "9" * 5_000
    (tmp_path / "m.params").write_bytes(
        params_bytes(
            [array_bytes(np.ones((2, 2), np.float32))] * 2,
            ["a.weight", "b.weight"],
        )
    )
    nodes = [
        variable("x", __shape__="(1, 2)"),
        variable(f"d{long}_weight"),
        variable(f"d{long}1_weight"),
    ]
    nodes += [
        node("FullyConnected", "f", [0, 1], num_hidden="2", no_bias="True")
    ]
    nodes += [
        node("FullyConnected", "g", [0, 2], num_hidden="2", no_bias="True")
    ]
    write_symbol(tmp_path / "m-symbol.json", nodes, heads=[3, 4])
    return tmp_path


def test_a_parameter_name_of_many_digits_is_no_number(gluon_files):
    with pytest.raises(BadModel, match="nothing tells their order"):
        read_mxnet(ModelSource(gluon_files / "m-symbol.json"))


def test_names_of_gluon_are_matched_among_so_many_parameters_only(
    gluon_files, monkeypatch
):
    monkeypatch.setattr("mrt.frontend.mxnet.gluon_names.MAX_PARAMETERS", 2)
    with pytest.raises(
        BadModel, match="it has 3 variables, and at most 2 are compared"
    ):
        read_mxnet(ModelSource(gluon_files / "m-symbol.json"))


@pytest.mark.parametrize("number", ["1e300", "-3.5e38", "9" * 400])
def test_a_number_beyond_float32_is_refused_before_it_becomes_infinite(
    tmp_path, number
):
    with pytest.raises(
        Unsupported,
        match=r"expected a (finite number|number that fits float32)",
    ):
        read(tmp_path, [node("_full", "z", [], shape="(2,)", value=number)])


def test_a_bound_beyond_float32_bounds_nothing(tmp_path):
    chain = [
        variable("x", __shape__="(1, 4)"),
        node("clip", "c", [0], a_min="-1e300", a_max="6"),
    ]
    (clip,) = read(tmp_path, chain).graph
    assert clip.inputs[1] is None
    assert clip.inputs[2].const_value.numpy() == 6
