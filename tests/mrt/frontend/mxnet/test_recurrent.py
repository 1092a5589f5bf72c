"""RNN in every mode, with the numbers that MXNet 1.9.1 gave, and the forms in which files hold its parameters."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.errors import Unsupported
from mrt.frontend.mxnet import load_mxnet
from tests.support.mxnet_files import node, variable, write_params, write_symbol
from tests.support.mxnet_rows import TOLERANCE, compute

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
STEPS, SIZE = 2, 2  # of the inputs too


def numbers(*shape):
    """Integers from -5 to 5 in no order: -5, 2, -2, 5, 1, -3, 4, 0, -4, 3, -1, and again."""
    return (
        (np.arange(np.prod(shape, dtype=int)) * 7 % 11 - 5)
        .astype(np.float32)
        .reshape(shape)
    )


def length_of_parameters(mode, layers, directions):
    """Weights for the input and for the state, then a bias of each."""
    widths = [SIZE, *[SIZE * directions] * (layers - 1)]
    return sum(
        directions * GATES[mode] * SIZE * (width + SIZE + 2) for width in widths
    )


def recurrent(mode, *, layers=1, directions=1, states=False):
    """Attributes as a file has them."""
    return {
        "mode": mode, "state_size": str(SIZE), "num_layers": str(layers), "bidirectional": str(directions == 2),
        "state_outputs": str(states), "p": "0.5", "projection_size": "None", "use_sequence_length": "False",
    }  # fmt: skip


def last_states(mode, layers, directions, batch=1):
    states = numbers(layers * directions, batch, SIZE) / 4
    return [states, states[::-1].copy()] if mode == "lstm" else [states]


ONE, TWO = {"layers": 1, "directions": 1}, {"layers": 2, "directions": 2}
MEASURED = [
    ("lstm", ONE, 0, [0.01776865, 0.1772369, 0.1095745, -0.01108118]),
    (
        "lstm",
        TWO,
        0,
        [
            -0.03820807,
            0.407565,
            -0.1120477,
            -0.02768418,
            0.02979962,
            0.137012,
            -0.1538535,
            -0.02113931,
        ],
    ),
    (
        "lstm",
        TWO,
        1,
        [
            0.229959,
            -0.2459558,
            0.07580014,
            -0.5177979,
            0.02979962,
            0.137012,
            -0.1120477,
            -0.02768418,
        ],
    ),
    (
        "lstm",
        TWO,
        2,
        [
            0.4004638,
            -0.9954528,
            0.09073371,
            -0.9723697,
            0.1852887,
            0.1944305,
            -0.293775,
            -0.03611093,
        ],
    ),
    ("gru", ONE, 0, [-0.4571998, 0.3416731, 0.1955584, -0.2843122]),
    (
        "gru",
        TWO,
        0,
        [
            0.05433431,
            -0.217406,
            0.6371017,
            -0.5602984,
            -0.03586953,
            -0.03298612,
            0.8099565,
            -0.6334593,
        ],
    ),
    (
        "gru",
        TWO,
        1,
        [
            0.07481102,
            -0.1157509,
            0.07470369,
            0.5764347,
            -0.03586953,
            -0.03298612,
            0.6371017,
            -0.5602984,
        ],
    ),
    ("rnn_tanh", ONE, 0, [-0.2390346, -0.3583574, -0.02049243, 0.3412289]),
    (
        "rnn_tanh",
        TWO,
        0,
        [
            -0.5668218,
            0.5320489,
            0.3207712,
            -0.6520131,
            0.7231697,
            0.04482441,
            0.6544902,
            -0.8240547,
        ],
    ),
    (
        "rnn_tanh",
        TWO,
        1,
        [
            0.8315189,
            0.3964514,
            -0.3949067,
            0.3588591,
            0.7231697,
            0.04482441,
            0.3207712,
            -0.6520131,
        ],
    ),
    ("rnn_relu", ONE, 0, [0, 0, 0, 0.475]),
    (
        "rnn_relu",
        TWO,
        0,
        [0, 0.4130859, 0.3777832, 0, 0.686792, 0, 0.5386719, 0],
    ),
    (
        "rnn_relu",
        TWO,
        1,
        [0.9695312, 0.4781251, 0, 0.7679688, 0.686792, 0, 0.3777832, 0],
    ),
]


@pytest.mark.parametrize(("mode", "size", "output", "expected"), MEASURED)
def test_rnn_gives_the_numbers_of_mxnet(mode, size, output, expected, tmp_path):
    states = last_states(mode, **size)
    names = ["x", "parameters", *["h", "c"][: len(states)]]
    head = node(
        "RNN",
        "rnn",
        range(len(names)),
        **recurrent(mode, **size, states=output > 0),
    )
    write_symbol(
        tmp_path / "m.json",
        [*map(variable, names), head],
        [(len(names), output)],
    )
    write_params(
        tmp_path / "m.params",
        {"parameters": numbers(length_of_parameters(mode, **size)) / 8},
    )
    shapes = {
        "x": (STEPS, 1, SIZE),
        **dict.fromkeys(names[2:], states[0].shape),
    }
    model = load_mxnet(tmp_path / "m.json", tmp_path / "m.params", shapes)
    result = compute(model, [numbers(STEPS, 1, SIZE) / 5, *states])
    shape = states[0].shape if output else (STEPS, 1, SIZE * size["directions"])
    assert result.shape == shape == tuple(model.graph.outputs[0].shape)
    np.testing.assert_allclose(
        result.ravel(), expected, rtol=TOLERANCE, atol=TOLERANCE
    )


def gluon_nodes(layers, mode="lstm"):
    """As gluon writes a layer: every parameter reshaped to a vector, all joined, first states of zeros."""
    kinds = [
        f"l{layer}_{part}_{kind}"
        for kind in ("weight", "bias")
        for layer in range(layers)
        for part in PARTS
    ]
    nodes = [variable("data"), *map(variable, kinds)]
    nodes += [
        node("Reshape", f"flat_{kind}", [index + 1], shape="-1")
        for index, kind in enumerate(kinds)
    ]
    flat = range(1 + len(kinds), 1 + 2 * len(kinds))
    nodes.append(
        node(
            "_rnn_param_concat", "all", flat, dim="0", num_args=str(len(kinds))
        )
    )
    zeros = [
        node(
            "_zeros",
            f"begin{i}",
            [],
            shape=f"({layers}, 0, {SIZE})",
            dtype="float32",
        )
        for i in range(2)
    ]
    nodes += zeros
    nodes.append(node("RNN", "rnn", [0, len(nodes) - 3, len(nodes) - 2, len(nodes) - 1],
                      **recurrent(mode, layers=layers, states=True)))  # fmt: skip
    return kinds, nodes


PARTS = ("i2h", "h2h")


def test_parameters_of_gluon_are_joined_and_first_states_have_the_batch_of_the_input(
    tmp_path,
):
    kinds, nodes = gluon_nodes(2)
    shapes = {
        kind: (4 * SIZE, SIZE) if kind.endswith("weight") else (4 * SIZE,)
        for kind in kinds
    }
    whole = numbers(length_of_parameters("lstm", 2, 1)) / 8
    pieces = np.split(
        whole, np.cumsum([np.prod(shape) for shape in shapes.values()])[:-1]
    )
    arrays = {
        kind: piece.reshape(shape)
        for (kind, shape), piece in zip(shapes.items(), pieces, strict=True)
    }
    write_symbol(tmp_path / "m.json", nodes, [(len(nodes) - 1, 0)])
    write_params(tmp_path / "m.params", arrays)
    x = np.concatenate(
        [numbers(STEPS, 1, SIZE) / 5, numbers(STEPS, 1, SIZE) / 7], 1
    )
    joined = compute(
        load_mxnet(
            tmp_path / "m.json", tmp_path / "m.params", {"data": x.shape}
        ),
        [x],
    )

    head = node("RNN", "rnn", range(4), **recurrent("lstm", layers=2))
    write_symbol(
        tmp_path / "v.json",
        [*map(variable, ["data", "vector", "h", "c"]), head],
    )
    write_params(tmp_path / "v.params", {"vector": whole})
    states = np.zeros((2, 2, SIZE), np.float32)
    sizes = {"data": x.shape, "h": states.shape, "c": states.shape}
    vector = compute(
        load_mxnet(tmp_path / "v.json", tmp_path / "v.params", sizes),
        [x, states, states],
    )
    assert joined.shape == (STEPS, 2, SIZE)
    assert np.abs(joined).max() > 0.01
    assert joined.tolist() == vector.tolist()


def test_an_unrolled_cell_starts_from_zeros_with_the_bias_alone(tmp_path):
    nodes = [
        node("_zeros", "begin", [], shape="(0, 3)"),
        *map(variable, ["weight", "bias", "x"]),
        node("FullyConnected", "h2h", [0, 1, 2], num_hidden="2"),
        node("elemwise_add", "sum", [4, 3]),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    write_params(
        tmp_path / "m.params", {"weight": numbers(2, 3), "bias": numbers(2)}
    )
    model = load_mxnet(
        tmp_path / "m.json", tmp_path / "m.params", {"x": (1, 2)}
    )
    assert [
        node.op_type for node in model.graph if node.op_type == "Gemm"
    ] == []
    assert compute(model, [np.float32([[1, 1]])]).tolist() == [[-4, 3]]


REFUSALS = [
    (
        {"projection_size": "3"},
        "attribute projection_size='3': not supported; supported: None",
    ),
    (
        {"use_sequence_length": "True"},
        "attribute use_sequence_length='True': not supported; supported: False",
    ),
    (
        {"lstm_state_clip_min": "-1"},
        "attribute lstm_state_clip_min='-1': not supported; supported: None",
    ),
    (
        {"mode": "lstmp"},
        "attribute mode='lstmp': not supported; supported: lstm, gru, rnn_tanh, rnn_relu",
    ),
    ({"num_layers": "2"}, "input 'h' has shape (1, 1, 2); expected (2, 1, 2)"),
    ({"mode": "gru"}, "4 inputs; expected 3 (data, parameters, state)"),
]


def write_lstm(folder, **changed):
    head = node("RNN", "rnn", range(4), **{**recurrent("lstm"), **changed})
    write_symbol(
        folder / "m.json", [*map(variable, ["x", "parameters", "h", "c"]), head]
    )
    write_params(
        folder / "m.params",
        {"parameters": numbers(length_of_parameters("lstm", 1, 1))},
    )


def load_lstm(folder, x) -> ir.Model:
    return load_mxnet(
        folder / "m.json",
        folder / "m.params",
        {"x": x, "h": (1, 1, SIZE), "c": (1, 1, SIZE)},
    )


@pytest.mark.parametrize(("changed", "expected"), REFUSALS)
def test_what_onnx_has_no_form_for_is_refused(changed, expected, tmp_path):
    write_lstm(tmp_path, **changed)
    with pytest.raises(Unsupported) as refused:
        load_lstm(tmp_path, (STEPS, 1, SIZE))
    assert refused.value.problems == [f"rnn (RNN): {expected}"]


def test_data_without_a_batch_is_refused(tmp_path):
    write_lstm(tmp_path)
    with pytest.raises(
        Unsupported,
        match="input of shape \\(2, 2\\) has 2 dimensions; expected 3",
    ):
        load_lstm(tmp_path, (STEPS, SIZE))
