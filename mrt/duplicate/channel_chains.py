"""Finds chains of convolutions in which every channel stays apart from the others.

A change to a channel of the first convolution can be undone behind the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.operators import CLIPS
from mrt.graph.patch import add_constant
from mrt.graph.values import (
    Array,
    constant,
    int_attribute,
    nodes,
    operand,
    shape_of,
    sole_user,
)


@dataclass(frozen=True)
class Chain:
    """Convolutions with only clips and max pools between them, or a stream with sums besides (`channel_streams`).

    The first one mixes all channels, the others of a chain keep each apart. `rounded` are
    the values that become integers, in a chain the clips' outputs behind each convolution.
    `moved` are others, as those of max pools, and `readers` the convolutions behind the
    chain that mix the channels again.
    """

    convolutions: tuple[ir.Node, ...]
    rounded: tuple[ir.Value, ...]
    moved: tuple[ir.Value, ...]
    readers: tuple[ir.Node, ...]

    @property
    def name(self) -> str:
        """The name of the first rounded value."""
        return str(self.rounded[0].name)

    @property
    def channels(self) -> int:
        """The number of channels."""
        return len(weights_of(self.convolutions[0]))


def channel_chains(model: ir.Model) -> Iterator[Chain]:
    """Yield each chain that begins with a convolution of all channels, at its full length."""
    for node in nodes(model, "Conv"):
        if is_convolution(node) and mixes_channels(node):
            chain = _chain(node)
            if chain is not None:
                yield chain


def _chain(node: ir.Node) -> Chain | None:
    convolutions, clipped, pooled = [node], [], []
    while True:
        clip = sole_user(convolutions[-1].outputs[0])
        if clip is None or clip.op_type not in CLIPS:
            return None
        clipped.append(clip.outputs[0])
        pools = _pools_behind(clip.outputs[0])
        pooled.extend(pools)
        readers = _readers(pools[-1] if pools else clip.outputs[0])
        if not readers:
            return None
        if all(map(mixes_channels, readers)):
            return Chain(
                tuple(convolutions), tuple(clipped), tuple(pooled), readers
            )
        if len(readers) > 1 or not is_depthwise(readers[0]):
            return None
        convolutions.append(readers[0])


def _pools_behind(value: ir.Value) -> list[ir.Value]:
    """Return the outputs of max pools, each the only reader of the value before it."""
    pooled: list[ir.Value] = []
    while True:
        pool = sole_user(value)
        if pool is None or pool.op_type != "MaxPool" or len(pool.outputs) != 1:
            return pooled
        value = pool.outputs[0]
        pooled.append(value)


def _readers(value: ir.Value) -> tuple[ir.Node, ...]:
    """Return the convolutions that read the value; none if it has any other use."""
    if value.is_graph_output():
        return ()
    for use in value.uses():
        if use.idx != 0 or not is_convolution(use.node):
            return ()
    return tuple(use.node for use in value.uses())


def is_convolution(node: ir.Node) -> bool:
    """Whether a node is a Conv with constant weights and bias."""
    if node.op_type != "Conv":
        return False
    return all(constant(operand(node, index)) is not None for index in (1, 2))


def mixes_channels(node: ir.Node) -> bool:
    """Whether each output of a convolution reads all channels."""
    return int_attribute(node, "group", 1) == 1


def is_depthwise(node: ir.Node) -> bool:
    """Whether each output of a convolution reads one channel, and each channel has one output."""
    shape = shape_of(node.inputs[1])
    if shape is None:
        return False
    return shape[1] == 1 and shape[0] == int_attribute(node, "group", 1)


def weights_of(node: ir.Node) -> Array:
    """Return the weights of a convolution of a chain, [O,C/groups,..]."""
    return _array(node, 1)


def bias_of(node: ir.Node) -> Array:
    """Return the bias of a convolution of a chain, [O]."""
    return _array(node, 2)


def _array(node: ir.Node, index: int) -> Array:
    array = constant(operand(node, index))
    assert array is not None
    return array


def set_weights(node: ir.Node, weights: Array, bias: Array) -> None:
    """Replace the weights and the bias of a convolution."""
    graph, name = node.graph, node.outputs[0].name
    assert isinstance(graph, ir.Graph)
    node.replace_input_with(1, add_constant(graph, weights, f"{name}.weight"))
    node.replace_input_with(2, add_constant(graph, bias, f"{name}.bias"))
