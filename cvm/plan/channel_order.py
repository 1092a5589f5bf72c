"""Orders channels so that kernels that add two products of bytes in 16 bits overflow less often.

AVX2 adds the products of neighbouring channels in 16 bits, which hold them if the two
weights, of one sign, sum to 128 at most. What exceeds that costs a step of its own. So
channels become neighbours that rarely have great weights in the same outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from cvm.plan.channel_groups import ChannelGroup, channel_groups
from cvm.program import Instruction, IntArray
from cvm.proof.validate import Proven, WellFormed

PANEL = 16  # outputs whose weights are in one step
LEAST_CHANNELS = 8

Pairing = Callable[[IntArray], IntArray]
"""The order of channels for their weights, int8 `[channels, rows]`; each `PANEL` rows are of one step."""


def order_channels(form: Proven, pairing: Pairing) -> Proven:
    """Return the program with other orders of channels inside; its inputs and outputs stay as they are.

    The proof holds for any order: it has one interval for all channels of a value.
    """
    constants = list(form.program.constants)
    # From the last group to the first: the outputs of a group's readers are in order by then,
    # unless a shortcut joins them to an earlier group.
    for group in reversed(channel_groups(form)):
        weights = [*_weights_of_readers(form, group, constants)]
        if not weights:
            continue
        order = pairing(np.concatenate(weights, axis=1))
        for index, axis in group.constants:
            constants[index] = np.take(constants[index], order, axis)
    program = replace(form.program, constants=tuple(constants))
    return replace(form, program=program)


def _weights_of_readers(
    form: WellFormed, group: ChannelGroup, constants: list[IntArray]
) -> Iterator[IntArray]:
    """Yield the weights of each reader of bytes, int8 `[channels, rows]`; once where readers share them."""
    readers = {reader.operands[1]: reader for reader in group.readers}
    for reader in readers.values():
        x, number, _ = reader.operands
        weights = constants[number - form.program.first_constant]
        channels = weights.shape[-1]
        if (
            form.types[x].dtype == "i8"
            and channels >= LEAST_CHANNELS
            and len(weights) >= PANEL
            and not _is_transformed(reader, weights)
        ):
            taps = weights.reshape(len(weights), -1, channels)
            missing = -len(taps) % PANEL
            panels = np.pad(taps, ((0, missing), (0, 0), (0, 0))).reshape(
                -1, PANEL, taps.shape[1], channels
            )
            yield panels.transpose(3, 0, 2, 1).reshape(channels, -1)


def _is_transformed(reader: Instruction, weights: IntArray) -> bool:
    """Whether the engine may transform this convolution (Winograd), and then reads no pairs of channels."""
    if reader.name == "dense":
        return False
    steps = (*reader.integers("stride"), *reader.integers("dilation"))
    return weights.shape[1:3] == (3, 3) and set(steps) == {1}
