"""Channels that can say nothing give their place to twins of others, whose readers then take half of each.

Training leaves channels that no input can raise above their clip at 0. In float a twin changes nothing; as integers the two
are rounded half a step apart (`mrt.quantize.twins`), so that together they are twice as fine, at no cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.rewrite.channel_reach import Floats, Reach, channel_reach
from mrt.rewrite.edit import add_constant, constant, integer, integers, nodes, operand, shape_of, sole_user
from mrt.sums import row_sums
from mrt.words import TWINS

_CLIPS = ("Relu", "Clip")


@dataclass(frozen=True)
class _Chain:
    """Convolutions that only clips lie between, the first of all channels, more by channel; `readers` mix the channels again."""

    convolutions: tuple[ir.Node, ...]
    clipped: tuple[ir.Value, ...]  # behind each of them
    readers: tuple[ir.Node, ...]


def fill_silent_channels(model: ir.Model) -> int:
    """Fill the places of silent channels, the loudest of the others first; how many."""
    known = channel_reach(model.graph)
    chains = (_chain(node) for node in nodes(model, "Conv"))
    return sum(_fill(chain, known) for chain in chains if chain is not None)


def _chain(node: ir.Node) -> _Chain | None:
    """The longest chain that begins with a convolution of all channels."""
    convolutions, clipped = [node], []
    if not _is_convolution(node) or integer(node, "group", 1) != 1:
        return None
    while True:
        clip = sole_user(convolutions[-1].outputs[0])
        if clip is None or clip.op_type not in _CLIPS:
            return None
        value = clip.outputs[0]
        clipped.append(value)
        readers = tuple(use.node for use in value.uses())
        if (
            not readers
            or value.is_graph_output()
            or not all(use.idx == 0 and _is_convolution(use.node) for use in value.uses())
        ):
            return None
        if all(integer(reader, "group", 1) == 1 for reader in readers):
            return _Chain(tuple(convolutions), tuple(clipped), readers)
        if len(readers) > 1 or not _is_by_channel(readers[0]):
            return None
        convolutions.append(readers[0])


def _is_convolution(node: ir.Node) -> bool:
    return node.op_type == "Conv" and all(constant(operand(node, index)) is not None for index in (1, 2))


def _is_by_channel(node: ir.Node) -> bool:
    shape = shape_of(node.inputs[1])
    return shape is not None and shape[1] == 1 and shape[0] == integer(node, "group", 1)


def _fill(chain: _Chain, known: Mapping[str, Reach]) -> int:
    reach = known.get(str(chain.clipped[-1].name))
    if reach is None or reach[0].size == 1:
        return 0
    padded = any(any(integers(reader, "pads") or ()) for reader in chain.readers)
    silent = (reach[0] == reach[1]) & ((reach[1] == 0) | (not padded))
    loudness = np.where(silent, -1.0, _loudness(chain, reach[1]))
    places = np.flatnonzero(silent)[: np.count_nonzero(~silent)]
    if not places.size:
        return 0
    twins = np.argsort(-loudness, kind="stable")[: places.size]
    for node in chain.convolutions:
        _replace(node, *(_with_rows(_array(node, index), places, twins) for index in (1, 2)))
    for reader in chain.readers:
        _replace(reader, *_with_halves(_array(reader, 1), _array(reader, 2), places, twins, reach[1][places]))
    word = " ".join(f"{place}:{twin}" for place, twin in zip(places, twins, strict=True))
    for value in chain.clipped:
        value.metadata_props[TWINS] = word
    return int(places.size)


def _loudness(chain: _Chain, greatest: Floats) -> Floats:
    """[C]: what the readers make of an error that is as large as the channel may be."""
    weights = [np.moveaxis(_array(reader, 1).astype(np.float64), 1, 0) for reader in chain.readers]
    squares = sum(row_sums((item * item).reshape(len(item), -1)) for item in weights)
    return np.asarray(squares * np.square(np.minimum(greatest, np.finfo(np.float32).max)))


def _with_rows(array: Floats, places: npt.NDArray[np.int64], twins: npt.NDArray[np.int64]) -> Floats:
    array = array.copy()
    array[places] = array[twins]
    return array


def _with_halves(
    weights: Floats, bias: Floats, places: npt.NDArray[np.int64], twins: npt.NDArray[np.int64], said: Floats
) -> tuple[Floats, Floats]:
    """The reader's weights, halved for both, and its bias with what the silent channels always said."""
    met = weights[:, places].astype(np.float64).reshape(len(weights), len(places), -1) * said[:, None]
    added = row_sums(met.reshape(len(weights), -1))
    weights = weights.copy()
    weights[:, twins] /= 2
    weights[:, places] = weights[:, twins]
    return weights, (bias + added).astype(bias.dtype)


def _array(node: ir.Node, index: int) -> Floats:
    array = constant(operand(node, index))
    assert array is not None
    return array


def _replace(node: ir.Node, weights: Floats, bias: Floats) -> None:
    graph, name = node.graph, node.outputs[0].name
    assert isinstance(graph, ir.Graph)
    node.replace_input_with(1, add_constant(graph, weights, f"{name}.weight"))
    node.replace_input_with(2, add_constant(graph, bias, f"{name}.bias"))
