"""Convolutions between which channels stay apart: what is done to a channel of the first can be made good behind the last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

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

CLIPS = ("Relu", "Clip")


@dataclass(frozen=True)
class Chain:
    """Convolutions that only clips and max pools lie between, the first of all channels, more by channel.

    `readers` mix the channels again.
    """

    convolutions: tuple[ir.Node, ...]
    clipped: tuple[ir.Value, ...]  # behind each of them
    pooled: tuple[ir.Value, ...]  # what pools make of those
    readers: tuple[ir.Node, ...]

    @property
    def name(self) -> str:
        """That of the first clipped value."""
        return str(self.clipped[0].name)

    @property
    def channels(self) -> int:
        """How many there are."""
        return len(weights_of(self.convolutions[0]))


def channel_chains(model: ir.Model) -> Iterator[Chain]:
    """Each chain that begins with a convolution of all channels, as long as it goes."""
    for node in nodes(model, "Conv"):
        if _is_convolution(node) and int_attribute(node, "group", 1) == 1:
            chain = _chain(node)
            if chain is not None:
                yield chain


def _chain(node: ir.Node) -> Chain | None:
    convolutions, clipped, pooled = [node], [], []
    while True:
        clip = sole_user(convolutions[-1].outputs[0])
        if clip is None or clip.op_type not in CLIPS:
            return None
        value = clip.outputs[0]
        clipped.append(value)
        while (
            (pool := sole_user(value)) is not None
            and pool.op_type == "MaxPool"
            and len(pool.outputs) == 1
        ):
            value = pool.outputs[0]
            pooled.append(value)
        readers = tuple(use.node for use in value.uses())
        if (
            not readers
            or value.is_graph_output()
            or not all(
                use.idx == 0 and _is_convolution(use.node) for use in value.uses()
            )
        ):
            return None
        if all(int_attribute(reader, "group", 1) == 1 for reader in readers):
            return Chain(tuple(convolutions), tuple(clipped), tuple(pooled), readers)
        if len(readers) > 1 or not _is_by_channel(readers[0]):
            return None
        convolutions.append(readers[0])


def _is_convolution(node: ir.Node) -> bool:
    return node.op_type == "Conv" and all(
        constant(operand(node, index)) is not None for index in (1, 2)
    )


def _is_by_channel(node: ir.Node) -> bool:
    shape = shape_of(node.inputs[1])
    return (
        shape is not None
        and shape[1] == 1
        and shape[0] == int_attribute(node, "group", 1)
    )


def weights_of(node: ir.Node) -> Array:
    """[O,C/groups,..] of a convolution of a chain."""
    return _array(node, 1)


def bias_of(node: ir.Node) -> Array:
    """[O] of a convolution of a chain."""
    return _array(node, 2)


def _array(node: ir.Node, index: int) -> Array:
    array = constant(operand(node, index))
    assert array is not None
    return array


def set_weights(node: ir.Node, weights: Array, bias: Array) -> None:
    """Give a convolution other weights and another bias."""
    graph, name = node.graph, node.outputs[0].name
    assert isinstance(graph, ir.Graph)
    node.replace_input_with(1, add_constant(graph, weights, f"{name}.weight"))
    node.replace_input_with(2, add_constant(graph, bias, f"{name}.bias"))
