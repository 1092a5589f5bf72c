"""Invented weights: the same bits everywhere, of the right size, and deep networks neither explode nor fade."""

import hashlib

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from mrt.errors import BadModel, BadOption, Unsupported
from mrt.frontend import load
from mrt.frontend.mxnet import ModelSource, read_mxnet
from mrt.frontend.mxnet.random_weights import draw
from tests.support.mxnet_files import node, variable, write_symbol

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645  # of PCG64, from its paper


def pcg64(what: str, count: int) -> list[int]:
    """The generator by its definition: a linear congruence of 128 bits; halves combined, rotated by the top six bits."""
    digest = hashlib.sha256(what.encode()).digest()
    state = int.from_bytes(digest[:16], "little")
    increment = int.from_bytes(digest[16:], "little") | 1
    words = []
    for _ in range(count):
        state = (state * MULTIPLIER + increment) % 2**128
        mixed, turn = (state >> 64) ^ (state & (2**64 - 1)), state >> 122
        words.append((mixed >> turn | mixed << (64 - turn)) % 2**64)
    return words


def test_the_numbers_are_those_of_pcg64_by_its_definition():
    sums = [
        sum(word >> shift & 0xFFFF for shift in (0, 16, 32, 48)) - 131070
        for word in pcg64("7 w", 6)
    ]
    unit = 0.5 / ((2**32 - 1) / 3) ** 0.5
    expected = np.array(
        [1 + total * unit for total in sums], np.float32
    ).reshape(2, 3)
    assert draw("7 w", (2, 3), 1.0, 0.5).tolist() == expected.tolist()
    above = np.array(
        [1 + abs(total) * unit for total in sums], np.float32
    ).reshape(2, 3)
    assert draw("7 w", (2, 3), 1.0, 0.5, above=True).tolist() == above.tolist()


def test_they_are_nearly_normal():
    numbers = draw("0 w", (200_000,), 0.0, 2.0)
    assert abs(numbers.mean()) < 0.02
    assert numbers.std() == pytest.approx(2, rel=0.01)
    assert np.mean(np.abs(numbers) < 2) == pytest.approx(
        0.6827, abs=0.02
    )  # within one deviation
    assert np.abs(numbers).max() < 7


def test_blocks_do_not_show():
    assert (
        draw("0 w", (2**18 + 3,), 0.0, 1.0)[: 2**18].tolist()
        == draw("0 w", (2**18,), 0.0, 1.0).tolist()
    )


def layer(
    nodes: list[dict],
    operator: str,
    name: str,
    data: int,
    parameters: list[str],
    **attributes: str,
) -> int:
    """Append a node behind its parameters; its number."""
    first = len(nodes)
    nodes += [variable(f"{name}_{word}") for word in parameters]
    nodes.append(
        node(
            operator,
            name,
            [data, *range(first, first + len(parameters))],
            **attributes,
        )
    )
    return len(nodes) - 1


STATISTICS = ["gamma", "beta", "moving_mean", "moving_var"]


def residual_network(blocks: int) -> list[dict]:
    """Convolution, BatchNorm, sum, Relu: without help, each block would double the power of what goes through."""
    nodes = [variable("data", __shape__="(1, 16, 8, 8)")]
    last = 0
    for index in range(blocks):
        shape = {
            "kernel": "(3, 3)",
            "pad": "(1, 1)",
            "num_filter": "16",
            "no_bias": "True",
        }
        convolved = layer(
            nodes, "Convolution", f"conv{index}", last, ["weight"], **shape
        )
        normal = layer(
            nodes,
            "BatchNorm",
            f"bn{index}",
            convolved,
            STATISTICS,
            fix_gamma="False",
        )
        nodes.append(node("elemwise_add", f"add{index}", [last, normal]))
        nodes.append(
            node(
                "Activation", f"relu{index}", [len(nodes) - 1], act_type="relu"
            )
        )
        last = len(nodes) - 1
    return nodes


def size_of_answer(tmp_path, nodes: list[dict]) -> float:
    """The root of the mean square of what the network makes of normal numbers."""
    write_symbol(tmp_path / "m.json", nodes)
    model = load(tmp_path / "m.json", random_weights=1).model
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    x = np.random.default_rng(0).normal(size=(1, 16, 8, 8)).astype(np.float32)
    (y,) = session.run(None, {"data": x})
    return float(np.sqrt(np.square(y).mean()))


def test_forty_residual_blocks_keep_their_size(tmp_path):
    assert 0.5 < size_of_answer(tmp_path, residual_network(40)) < 20


def hard_swish(nodes: list[dict], name: str, last: int) -> int:
    """x * clip(x + 3, 0, 6) / 6, as Gluon writes it; its number."""
    nodes.append(node("_plus_scalar", f"{name}_plus", [last], scalar="3"))
    nodes.append(
        node("clip", f"{name}_clip", [len(nodes) - 1], a_min="0", a_max="6")
    )
    nodes.append(
        node("_div_scalar", f"{name}_div", [len(nodes) - 1], scalar="6")
    )
    nodes.append(node("elemwise_mul", f"{name}_mul", [last, len(nodes) - 1]))
    return len(nodes) - 1


def test_forty_hard_swishes_keep_their_size(tmp_path):
    nodes, last = [variable("data", __shape__="(1, 16, 8, 8)")], 0
    for index in range(40):
        shape = {
            "kernel": "(3, 3)",
            "pad": "(1, 1)",
            "num_filter": "16",
            "no_bias": "True",
        }
        convolved = layer(
            nodes, "Convolution", f"conv{index}", last, ["weight"], **shape
        )
        last = hard_swish(
            nodes,
            f"act{index}",
            layer(nodes, "BatchNorm", f"bn{index}", convolved, STATISTICS),
        )
    assert 0.05 < size_of_answer(tmp_path, nodes) < 2


def numbers(path, **options) -> dict[str, np.ndarray]:
    graph = load(path, **options).model.graph
    return {
        name: value.const_value.numpy()
        for name, value in graph.initializers.items()
    }


def test_each_role_has_its_scale(tmp_path):
    write_symbol(tmp_path / "m.json", residual_network(2))
    found = numbers(tmp_path / "m.json", random_weights=5)
    assert found["conv0_weight"].std() == pytest.approx(
        (2 / 144) ** 0.5, rel=0.05
    )  # 16 channels of 9
    assert found["bn0_gamma"].min() >= 1
    assert found["bn0_gamma"].max() < 1.4
    assert (
        found["bn0_moving_var"].min() >= 2
    )  # the power of the input, 1, doubled by the convolution
    assert found["bn0_moving_var"].max() < 2.8
    assert np.abs(found["bn0_beta"]).max() < 0.4


def test_a_parameter_depends_on_seed_and_name_but_not_on_what_follows(tmp_path):
    write_symbol(tmp_path / "short.json", residual_network(1))
    write_symbol(tmp_path / "long.json", residual_network(2))
    short, long = (
        numbers(tmp_path / f"{name}.json", random_weights=5)
        for name in ("short", "long")
    )
    other = numbers(tmp_path / "short.json", random_weights=6)
    assert all(short[name].tolist() == long[name].tolist() for name in short)
    assert short["conv0_weight"].tolist() != other["conv0_weight"].tolist()
    assert long["conv0_weight"].tolist() != long["conv1_weight"].tolist()


def test_the_hash_of_the_model_follows_the_seed(tmp_path):
    write_symbol(tmp_path / "m.json", residual_network(1))
    hashes = {
        load(tmp_path / "m.json", random_weights=seed).sha256
        for seed in (1, 1, 2)
    }
    assert len(hashes) == 2


def test_the_model_says_that_its_weights_mean_nothing(tmp_path):
    write_symbol(tmp_path / "m.json", residual_network(1))
    assert (
        "random numbers of seed 4"
        in load(tmp_path / "m.json", random_weights=4).notes[0]
    )


def test_a_variable_that_gluon_marked_as_a_parameter_is_one(tmp_path):
    nodes = [
        variable("data", __shape__="(1, 3)"),
        variable("s", __shape__="(1, 3)", __lr_mult__="1.0"),
    ]
    write_symbol(
        tmp_path / "m.json", [*nodes, node("broadcast_mul", "y", [0, 1])]
    )
    model = load(tmp_path / "m.json", random_weights=0).model
    assert [value.name for value in model.graph.inputs] == ["data"]
    assert [value.name for value in model.graph.initializers.values()] == ["s"]


@pytest.mark.parametrize(
    ("option", "value"), [("params", "p.params"), ("epoch", 3)]
)
def test_weights_are_invented_or_read_but_not_both(tmp_path, option, value):
    write_symbol(tmp_path / "m.json", residual_network(1))
    with pytest.raises(
        BadOption,
        match=rf"--random-weights and --{option} {value}: .* give one of the two",
    ):
        read_mxnet(
            ModelSource(
                tmp_path / "m.json", random_weights=0, **{option: value}
            )
        )


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_has_63_bits(tmp_path, seed):
    write_symbol(tmp_path / "m.json", residual_network(1))
    with pytest.raises(BadOption, match="expected a seed from 0"):
        load(tmp_path / "m.json", random_weights=seed)


def test_an_onnx_model_has_weights_already(tmp_path):
    (tmp_path / "m.onnx").touch()
    with pytest.raises(
        BadOption,
        match=r"--random-weights 0: an \.onnx file holds its own parameters",
    ):
        load(tmp_path / "m.onnx", random_weights=0)


def test_a_file_that_is_missing_is_said_with_the_way_round(tmp_path):
    write_symbol(tmp_path / "m.json", residual_network(1))
    with pytest.raises(BadModel, match="--random-weights SEED"):
        load(tmp_path / "m.json")


def test_the_memory_for_weights_is_bounded(tmp_path):
    huge = node(
        "FullyConnected", "fc", [0, 1], num_hidden="2000000000", no_bias="True"
    )
    write_symbol(
        tmp_path / "m.json",
        [variable("data", __shape__="(1, 1)"), variable("w"), huge],
    )
    with pytest.raises((BadModel, Unsupported), match="2000000000"):
        load(tmp_path / "m.json", random_weights=0)
    many = [variable("data", __shape__="(1, 30000)"), variable("w")]
    many.append(
        node("FullyConnected", "fc", [0, 1], num_hidden="30000", no_bias="True")
    )
    write_symbol(tmp_path / "m.json", many)
    with pytest.raises(
        BadModel,
        match="900000000 numbers in all; at most 536870912 are invented",
    ):
        load(tmp_path / "m.json", random_weights=0)


def with_anchors() -> list[dict]:
    """A Relu, and anchors as Gluon writes them added to it."""
    return [
        variable("data", __shape__="(1, 4)"),
        node("relu", "last", [0]),
        variable(
            "anchors_0",
            __shape__="(1, 4)",
            __init__="Constant_anchors_0_139734278739344",
        ),
        node("broadcast_add", "boxes", [1, 2]),
    ]


def test_constants_of_gluon_are_not_invented(tmp_path):
    write_symbol(tmp_path / "m.json", with_anchors())
    with pytest.raises(
        BadModel,
        match=r"--random-weights: 'anchors_0': fixed numbers of the model \(a Gluon Constant\)",
    ):
        load(tmp_path / "m.json", random_weights=0)


def test_what_ends_before_constants_of_gluon_has_random_weights(tmp_path):
    write_symbol(tmp_path / "m.json", with_anchors())
    graph = load(
        tmp_path / "m.json", random_weights=0, outputs=("last",)
    ).model.graph
    assert [value.name for value in graph.outputs] == ["last"]
