"""Symbol files: every way the versions write the same graph, and every lie refused naming the node."""

import json
from collections.abc import Callable

import pytest

from mrt.errors import BadModel
from mrt.frontend.mxnet.literals import (
    parse_flag,
    parse_integers,
    parse_optional_integers,
    parse_real,
)
from mrt.frontend.mxnet.symbol import Edge, read_symbol
from tests.support.mxnet_files import node, symbol_json, variable
from tests.support.shared_data import SHARED, needs_shared


def dense(**changes) -> dict:
    """x and its weight into fc."""
    fc = node("FullyConnected", "fc", [0, 1], num_hidden="4", no_bias="True")
    return symbol_json(
        [variable("x", __shape__="(0, 3)"), variable("w"), fc | changes]
    )


def read(top: dict | str):
    return read_symbol(
        (top if isinstance(top, str) else json.dumps(top)).encode(), "m.json"
    )


def test_a_graph_is_read():
    symbol = read(dense())
    assert symbol.order == (0, 1, 2)
    assert symbol.heads == (Edge(2, 0),)
    assert symbol.version == 10901
    assert symbol.nodes[0].operator is None
    assert symbol.nodes[0].hidden == {"shape": "(0, 3)"}
    assert symbol.nodes[2].name == "fc"
    assert symbol.nodes[2].operator == "FullyConnected"
    assert symbol.nodes[2].attributes == {"num_hidden": "4", "no_bias": "True"}
    assert symbol.nodes[2].inputs == (Edge(0, 0), Edge(1, 0))


@pytest.mark.parametrize("key", ["attrs", "attr", "param"])
def test_attributes_may_stand_under_any_of_three_keys(key):
    top = dense()
    top["nodes"][2][key] = top["nodes"][2].pop("attrs")
    assert read(top).nodes[2].attributes == {
        "num_hidden": "4",
        "no_bias": "True",
    }


def test_attr_holds_against_param():
    top = dense(
        param={"num_hidden": "4", "flatten": "True"}, attr={"num_hidden": "5"}
    )
    del top["nodes"][2]["attrs"]
    assert read(top).nodes[2].attributes == {
        "num_hidden": "5",
        "flatten": "True",
    }


def test_hidden_and_user_keys_are_no_attributes():
    top = dense(
        attrs={
            "num_hidden": "4",
            "__lr_mult__": "2",
            "weight_lr_mult": "1.2",
            "ctx_group": "a",
            "wd_mult": "0",
        }
    )
    assert read(top).nodes[2].attributes == {"num_hidden": "4"}


def test_inputs_and_heads_of_two_numbers_are_read():
    top = dense(inputs=[[0, 0], [1, 0]])
    top["heads"] = [[2, 0]]
    assert read(top).nodes[2].inputs == (Edge(0, 0), Edge(1, 0))
    assert read(top).heads == (Edge(2, 0),)


def test_a_forward_reference_is_put_in_order():
    relu = node("relu", "r", [1])
    symbol = read(
        symbol_json([relu, node("relu", "s", [2]), variable("x")], heads=[0])
    )
    assert symbol.order == (2, 1, 0)


def test_several_heads_and_repeated_node_names_are_kept():
    symbol = read(
        symbol_json(
            [variable("x"), node("relu", "r", [0]), node("relu", "r", [1])],
            heads=[2, 1],
        )
    )
    assert symbol.heads == (Edge(2, 0), Edge(1, 0))
    assert [symbol.nodes[index].name for index in symbol.order] == [
        "x",
        "r",
        "r",
    ]


def batch_norm_of_three_inputs() -> dict:
    variables = [variable(name) for name in ("x", "g", "b")]
    return symbol_json([*variables, node("BatchNorm", "bn", [0, 1, 2])])


def test_version_0_8_gets_the_inputs_it_does_not_write():
    top = batch_norm_of_three_inputs()
    del top["attrs"]
    symbol = read(top)
    assert symbol.version == 800
    assert [symbol.nodes[edge.node].name for edge in symbol.nodes[3].inputs] == [
        "x", "g", "b", "bn_moving_mean", "bn_moving_var",
    ]  # fmt: skip
    assert symbol.order.index(5) < symbol.order.index(3)


def test_later_versions_write_all_inputs():
    assert len(read(batch_norm_of_three_inputs()).nodes[3].inputs) == 3


def test_a_deep_graph_needs_no_recursion():
    nodes = [
        variable("x"),
        *(node("relu", f"r{index}", [index]) for index in range(20_000)),
    ]
    assert len(read(symbol_json(nodes)).order) == 20_001


def changed(change: Callable[[dict], object]) -> dict:
    top = dense()
    change(top)
    return top


FC = "node 2 'fc': "
LIES = [
    ("", "the file is empty"),
    ("[]", "the file: expected an object, found list"),
    ('"text"', "the file: expected an object, found str"),
    ("[" * 100_000, "nested too deeply"),
    ('{"nodes": NaN}', "NaN is not JSON"),
    ('{"nodes": [], "nodes": []}', "key 'nodes' occurs twice in one object"),
    ('{"nodes": ' + "9" * 5000 + "}", "not JSON"),
    (changed(lambda top: top.update(extra=1)), "the file: unknown key 'extra'"),
    (changed(lambda top: top.pop("arg_nodes")), "the file: key 'arg_nodes' is missing"),
    (changed(lambda top: top.pop("heads")), "the file: key 'heads' is missing"),
    (changed(lambda top: top.update(heads=[])), "no heads"),
    (changed(lambda top: top.update(heads=[[3, 0, 0]])), "heads: node 3 does not exist; there are 3"),
    (changed(lambda top: top.update(arg_nodes=7)), "arg_nodes: expected a list, found int"),
    (changed(lambda top: top.update(attrs={"mxnet_version": ["int", 20000]})), "mxnet_version is 20000"),
    (changed(lambda top: top.update(attrs={"mxnet_version": 10901})), 'expected ["int", number]'),
    (changed(lambda top: top["attrs"].update(is_np_shape=["int", 1])), "numpy semantics (is_np_shape)"),
    (changed(lambda top: top.update(nodes=[0] * 65_537)), "65537 nodes (a node of more than 32 operands counts as several)"),
    (dense(extra=1), "node 2: unknown key 'extra'"),
    (changed(lambda top: top["nodes"][2].pop("op")), "node 2: key 'op' is missing"),
    (changed(lambda top: top["nodes"].append(5)), "node 3: expected an object, found int"),
    (dense(name=5), "node 2: name: expected text, found int"),
    (dense(name="n" * 10_001), "node 2: name: 10001 characters"),
    (dense(name="\ud800"), "node 2: name: half a character"),
    (dense(attrs={"num_hidden": 4}), FC + "attrs 'num_hidden': expected text, found int"),
    (dense(attrs=[]), FC + "attrs: expected an object, found list"),
    (dense(subgraphs=[{}]), FC + "subgraphs are not supported"),
    (dense(control_deps=[0]), FC + "control_deps are not supported"),
    (dense(inputs=[[0], [1, 0]]), FC + "inputs: expected [node, output, version], found [0]"),
    (dense(inputs=[[0, 0, 0, 0]]), FC + "inputs: expected [node, output, version]"),
    (dense(inputs=[0, 1]), FC + "inputs: expected a list, found int"),
    (dense(inputs=[[0, -1, 0]]), FC + "inputs: expected [node, output, version], found [0, -1, 0]"),
    (dense(inputs=[[0, True, 0]]), FC + "inputs: expected [node, output, version]"),
    (dense(inputs=[[0, 0.0, 0]]), FC + "inputs: expected [node, output, version]"),
    (dense(inputs=[[3, 0, 0]]), FC + "inputs: node 3 does not exist; there are 3"),
    (dense(inputs=[[2, 0, 0]]), "node 2 'fc' depends on itself (a cycle)"),
    (dense(op="null"), FC + "a variable has inputs"),
    (symbol_json([variable("x"), variable("x")]), "nodes 0 and 1 are both variables named 'x'"),
    (symbol_json([variable("x"), node("a", "a", [0, 2]), node("b", "b", [1])]), "node 1 'a' depends on itself"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("top", "problem"), LIES, ids=[problem[:50] for _, problem in LIES]
)
def test_a_lie_is_refused_naming_where_it_stands(top, problem):
    with pytest.raises(BadModel) as refused:
        read(top)
    assert str(refused.value).startswith("m.json: ")
    assert problem in str(refused.value)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(BadModel, match=r"^m\.json: not UTF-8 text"):
        read_symbol(b"\x12\x01\xff", "m.json")


def test_a_file_of_more_than_64_mib_is_refused_unread():
    with pytest.raises(
        BadModel, match="more than 67108864 bytes, which is the most"
    ):
        read_symbol(b" " * (2**26 + 1), "m.json")


@pytest.mark.parametrize("text", ["True", "true", "TRUE", "1", " True "])
def test_true_has_several_spellings(text):
    assert parse_flag(text) is True


@pytest.mark.parametrize("text", ["False", "false", "FALSE", "0"])
def test_false_has_several_spellings(text):
    assert parse_flag(text) is False


@pytest.mark.parametrize(
    ("text", "value"),
    [("(3,4)", (3, 4)), ("[3,4]", (3, 4)), ("(3, 4)", (3, 4)), ("(3,4,)", (3, 4)), ("(3L, 4L)", (3, 4)),
     ("3", (3,)), ("(3,)", (3,)), ("()", ()), ("[]", ()), (" ( -1 , 0 ) ", (-1, 0))],
)  # fmt: skip
def test_tuples_have_several_spellings(text, value):
    assert parse_integers(text) == value


def test_items_may_be_none_where_that_is_allowed():
    assert parse_optional_integers("(None, 3, None)") == (None, 3, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-05", 1e-5), ("6", 6.0), ("6.0", 6.0), (".5", 0.5), ("-1.", -1.0)],
)
def test_numbers_have_several_spellings(text, value):
    assert parse_real(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [(parse_flag, "yes"), (parse_flag, ""), (parse_flag, "2"),
     (parse_integers, "(3.0,3)"), (parse_integers, "(3,3"), (parse_integers, "(3,,3)"), (parse_integers, ""),
     (parse_integers, "(None,)"), (parse_integers, "(9223372036854775808,)"), (parse_integers, "(1,) + (2,)"),
     (parse_integers, "(" + "1," * 10_000 + ")"), (parse_integers, "((1, 2), 3)"), (parse_integers, "(1_0,)"),
     (parse_real, "nan"), (parse_real, "inf"), (parse_real, "1e400"), (parse_real, "0x10"), (parse_real, "1_0"),
     (parse_real, "__import__('os')")],
)  # fmt: skip
def test_other_literals_are_refused(parse, text):
    with pytest.raises(ValueError, match=r"expected|too long"):
        parse(text)


@needs_shared
def test_the_file_of_version_0_8_is_read():
    symbol = read_symbol(
        (SHARED / "mxnet" / "format" / "save_000800.json").read_bytes(),
        "m.json",
    )
    norm = next(
        node for node in symbol.nodes.values() if node.operator == "BatchNorm"
    )
    assert [symbol.nodes[edge.node].name for edge in norm.inputs][3:] == [
        "batchnorm0_moving_mean", "batchnorm0_moving_var",
    ]  # fmt: skip
    dense_layer = next(
        node for node in symbol.nodes.values() if node.name == "fc1"
    )
    assert dense_layer.attributes == {"no_bias": "False", "num_hidden": "128"}


@pytest.mark.parametrize(
    ("version", "kept"),
    [(904, {}), (905, {"axis": "-1"}), (10901, {"axis": "-1"})],
)
def test_an_axis_of_minus_1_meant_none_up_to_0_9_4(version, kept):
    """MXNet 1.9.1 gives argmax of shape (2, 3) the shape (1,) for such an old file, (2,) for a newer one."""
    top = symbol_json([variable("x"), node("argmax", "y", [0], axis="-1")])
    top["attrs"]["mxnet_version"] = ["int", version]
    assert read(top).nodes[1].attributes == kept
