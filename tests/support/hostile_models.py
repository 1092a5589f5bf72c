"""Models of strangers: small files, or long ones of nothing, that ask for much time or memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.mxnet_files import node as mxnet_node
from tests.support.mxnet_files import variable, write_symbol

FLOAT = TensorProto.FLOAT
IMAGE = (1, 3, 8, 8)
LONG = 5000  # the nodes of a chain in the fast tests


def node(
    operator: str, inputs: str, output: str, **more: Any
) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), output.split(), **more)


def model(
    nodes: Sequence[onnx.NodeProto],
    weights: dict[str, Any] | None = None,
    shape: Sequence[int] = IMAGE,
) -> bytes:
    """Return an ONNX file; nothing in it is checked or inferred."""
    arrays = [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in (weights or {}).items()
    ]
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", FLOAT, list(shape))],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        arrays,
    )
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return bytes(proto.SerializeToString())


def chain(
    length: int, make: Callable[[str, str], onnx.NodeProto]
) -> list[onnx.NodeProto]:
    names = ["x", *(f"v{index}" for index in range(1, length)), "y"]
    return [make(old, new) for old, new in pairwise(names)]


def of_one_operator(operator: str, length: int, **attributes: Any) -> bytes:
    return model(chain(length, lambda x, y: node(operator, x, y, **attributes)))


def doublings(count: int) -> bytes:
    """A list joined with itself again and again."""
    names = ["k", *(f"c{index}" for index in range(count))]
    nodes = [
        node("Concat", f"{old} {old}", new, axis=0)
        for old, new in pairwise(names)
    ]
    nodes += [node("ReduceSum", names[-1], "s", keepdims=0)]
    return model([*nodes, node("Add", "x s", "y")], {"k": np.ones(1000, "f4")})


def fibonacci(count: int) -> bytes:
    """Constants each of which joins the two before it."""
    nodes, old, new = [], "k", "l"
    for index in range(count):
        nodes.append(node("Concat", f"{old} {new}", f"c{index}", axis=1))
        old, new = new, f"c{index}"
    nodes += [node("ReduceMax", new, "s", keepdims=0), node("Add", "x s", "y")]
    weights = {"k": np.ones((1, 999), "f4"), "l": np.ones((1, 999), "f4")}
    return model(nodes, weights)


def wide(count: int) -> bytes:
    """One operator that reads as many values as there are others."""
    names = [f"v{index}" for index in range(count)]
    nodes = [node("Relu", "x", name) for name in names]
    return model([*nodes, node("Sum", " ".join(names), "y")])


def constants(count: int) -> bytes:
    """A Constant node for each of many numbers, of which one is used."""
    one = numpy_helper.from_array(np.float32(1))
    nodes = [node("Constant", "", f"k{i}", value=one) for i in range(count)]
    return model([*nodes, node("Add", "x k0", "y")])


def many_unsupported(count: int) -> bytes:
    return of_one_operator("Det", count)


def large_pieces(count: int) -> bytes:
    """Many constants of nearly the largest size that is computed beforehand."""
    nodes = []
    for index in range(count):
        nodes.append(node("ConstantOfShape", "n", f"c{index}"))
        nodes.append(node("ReduceMax", f"c{index}", f"m{index}", keepdims=0))
    total = " ".join(f"m{index}" for index in range(count))
    nodes += [node("Sum", total, "s"), node("Add", "x s", "y")]
    return model(nodes, {"n": np.array([1 << 22])})


def forks(count: int) -> bytes:
    """Splits whose parts meet again, so that there are twice as many ways behind each."""
    nodes, last = [], "x"
    for index in range(count):
        joined = f"j{index}" if index < count - 1 else "y"
        nodes.append(node("Split", last, f"p{index} q{index}", axis=2))
        pair = f"q{index} p{index}"
        nodes.append(node("Concat", pair, joined, axis=2))
        last = joined
    return model(nodes)


def resize(factor: float) -> bytes:
    scales = np.array([1, 1, factor, factor], np.float32)
    return model(
        [helper.make_node("Resize", ["x", "", "s"], ["y"])], {"s": scales}
    )


def nested_loops(depth: int, steps: int) -> bytes:
    def body(level: int, inner: onnx.GraphProto | None) -> onnx.GraphProto:
        step = node("Relu", f"v{level}", f"w{level}")
        if inner is not None:
            step = node("Loop", f"m t v{level}", f"w{level}", body=inner)
        info = helper.make_tensor_value_info
        begins = [
            info(f"i{level}", TensorProto.INT64, []),
            info(f"c{level}", TensorProto.BOOL, []),
            info(f"v{level}", FLOAT, None),
        ]
        ends = [
            info(f"d{level}", TensorProto.BOOL, []),
            info(f"w{level}", FLOAT, None),
        ]
        nodes = [step, node("Identity", f"c{level}", f"d{level}")]
        return helper.make_graph(nodes, f"b{level}", begins, ends)

    inner = None
    for level in range(depth):
        inner = body(level, inner)
    weights = {"m": np.array(steps), "t": np.array(True)}
    return model([node("Loop", "m t x", "y", body=inner)], weights)


def huge_input() -> bytes:
    return model([node("Relu", "x", "y")], shape=(1, 3, 2**31, 2**31))


SMALL = {
    "doublings": lambda: doublings(40),
    "fibonacci": lambda: fibonacci(60),
    "huge input": huge_input,
    "huge resize": lambda: resize(1e6),
    "large resize": lambda: resize(100),
    "nested loops": lambda: nested_loops(8, 10),
    "clips": lambda: model(
        chain(2000, lambda x, y: node("Clip", f"{x} low high", y)),
        {"low": np.float32(0), "high": np.float32(6)},
    ),
    "splits that meet again": lambda: forks(700),
    "fewer splits that meet again": lambda: forks(40),
    "large pieces": lambda: large_pieces(60),
    "wide": lambda: wide(2000),
    "unsupported": lambda: many_unsupported(LONG),
    "constants": lambda: constants(LONG),
    "too many nodes": lambda: of_one_operator("Relu", 131_072),
}
"""Files, by what is hostile in them, that must be converted or refused within seconds."""


def long_chains(length: int) -> dict[str, Callable[[], bytes]]:
    """Return files with operators that vanish, or nearly so, one after another."""
    swap = {"perm": [0, 1, 3, 2]}
    one = {"k": np.float32(1)}
    return {
        "Relu": lambda: of_one_operator("Relu", length),
        "Neg": lambda: of_one_operator("Neg", length),
        "Sigmoid": lambda: of_one_operator("Sigmoid", length),
        "Identity": lambda: of_one_operator("Identity", length),
        "Transpose": lambda: of_one_operator("Transpose", length, **swap),
        "Add": lambda: model(
            chain(length, lambda x, y: node("Add", f"{x} k", y)), one
        ),
    }


def write_mxnet_chain(folder: Path, length: int) -> Path:
    """Write an MXNet symbol of so many relus, one after another."""
    nodes = [variable("data")]
    for index in range(length):
        relu = mxnet_node("Activation", f"r{index}", [index], act_type="relu")
        nodes.append(relu)
    path = folder / "m-symbol.json"
    write_symbol(path, nodes, [length])
    return path
