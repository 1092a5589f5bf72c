"""Operators that came, or changed, after opset 20, spelled out in operators of opset 20."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir


class Spelling:
    """New nodes in front of the one that they stand for, which becomes the last of them."""

    def __init__(self, node: ir.Node) -> None:
        assert isinstance(node.graph, ir.Graph)
        self.node, self.graph, self.count = node, node.graph, 0
        self.x = node.inputs[0]
        taken = {value.name for other in self.graph for value in other.outputs} | set(
            self.graph.initializers
        )
        self.base = f"{node.outputs[0].name}.spelled"
        while any(name is not None and name.startswith(self.base) for name in taken):
            self.base += "_"

    def add(
        self, operator: str, *inputs: ir.Value | None, **attributes: Any
    ) -> ir.Value:
        """A node of one output."""
        name = f"{self.base}{self.count}"
        self.count += 1
        made = ir.node(operator, list(inputs), attributes, name=name)
        made.outputs[0].name = name
        self.graph.insert_before(self.node, made)
        return made.outputs[0]

    def constant(self, array: npt.NDArray[Any]) -> ir.Value:
        """A Constant node."""
        return self.add("Constant", value=ir.tensor(array))

    def integers(self, *values: int) -> ir.Value:
        """A constant list of integers."""
        return self.constant(np.array(values, np.int64))

    def finish(self, operator: str, *inputs: ir.Value | None) -> None:
        """Turn the node itself into the last one, so that its output keeps its name."""
        self.node.op_type = operator
        self.node.attributes.clear()
        self.node.resize_inputs(len(inputs))
        for index, value in enumerate(inputs):
            self.node.replace_input_with(index, value)


def _epsilon(node: ir.Node) -> float:
    return (
        node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else 1e-5
    )


def decompose_group_norm(node: ir.Node) -> None:
    """Since opset 21 scale and bias have one entry for each channel; before, one for each group."""
    s, groups = Spelling(node), node.attributes["num_groups"].as_int()
    scale, bias = node.inputs[1], node.inputs[2]
    shape = s.add("Shape", s.x)
    grouped = s.add("Reshape", s.x, s.integers(0, groups, -1))
    ones, zeros = (s.constant(np.full(groups, value, np.float32)) for value in (1, 0))
    normal = s.add(
        "InstanceNormalization", grouped, ones, zeros, epsilon=_epsilon(node)
    )
    rows = s.add("Reshape", s.add("Reshape", normal, shape), s.integers(0, 0, -1))
    column = s.integers(-1, 1)
    scaled = s.add("Mul", rows, s.add("Reshape", scale, column))
    s.finish("Reshape", s.add("Add", scaled, s.add("Reshape", bias, column)), shape)


def decompose_rms_norm(node: ir.Node) -> None:
    """x / Sqrt(mean of x * x + epsilon) * scale, over the axes from `axis` on, which are first made one."""
    s, scale = Spelling(node), node.inputs[1]
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else -1
    rows = s.x if axis == -1 else s.add("Flatten", s.x, axis=axis)
    mean = s.add("ReduceMean", s.add("Mul", rows, rows), s.integers(-1))
    root = s.add(
        "Sqrt", s.add("Add", mean, s.constant(np.array(_epsilon(node), np.float32)))
    )
    normal = s.add("Div", rows, root)
    s.finish(
        "Mul",
        normal if axis == -1 else s.add("Reshape", normal, s.add("Shape", s.x)),
        scale,
    )


def decompose_swish(node: ir.Node) -> None:
    """x * Sigmoid(alpha * x)."""
    s, alpha = Spelling(node), node.attributes.get("alpha")
    scaled = (
        s.x
        if alpha is None
        else s.add("Mul", s.x, s.constant(np.array(alpha.as_float(), np.float32)))
    )
    s.finish("Mul", s.x, s.add("Sigmoid", scaled))


def decompose_space_to_depth(node: ir.Node) -> None:
    """Since opset 28 it may leave the channels in front of the places of their block, which is a Transpose behind."""
    mode = node.attributes.pop("mode", None)
    if mode is None or mode.as_string() != "CRD":
        return
    s, size = Spelling(node), node.attributes["blocksize"].as_int()
    blocks = s.add("SpaceToDepth", s.x, blocksize=size)
    shape = s.add("Shape", blocks)
    image = s.add("Slice", shape, s.integers(2), s.integers(4))
    apart = s.add(
        "Reshape",
        blocks,
        s.add("Concat", s.integers(0, size * size, -1), image, axis=0),
    )
    s.finish("Reshape", s.add("Transpose", apart, perm=[0, 2, 1, 3, 4]), shape)


def decompose_range(node: ir.Node) -> None:
    """Since opset 27 it says how it counts in float16; float32 and whole numbers count as they did."""
    node.attributes.pop("stash_type", None)


AFTER_20: dict[str, tuple[int, Callable[[ir.Node], None]]] = {
    "GroupNormalization": (21, decompose_group_norm),
    "RMSNormalization": (23, decompose_rms_norm),
    "Range": (27, decompose_range),
    "SpaceToDepth": (28, decompose_space_to_depth),
    "Swish": (24, decompose_swish),
}
