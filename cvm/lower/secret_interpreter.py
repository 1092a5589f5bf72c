"""Runs the steps for an engine on secrets, in clear: the answer that the engine must give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvm.lower.interpreter import LoweredProgram
from cvm.lower.secret_program import SecretProgram
from cvm.lower.secret_steps import (
    Convolve,
    Dot,
    SecretStep,
    SecretValue,
    Sum,
    Take,
)
from cvm.program import DTYPES, IntArray


class SecretInterpreter:
    """Runs both parties' parts; the client's by the lowered program."""

    def __init__(self, program: SecretProgram) -> None:
        self.program = program
        lowering, parties = program.lowering, program.parties
        self.client = LoweredProgram(lowering, parties.client)

    def run(self, inputs: Mapping[str, IntArray]) -> dict[str, IntArray]:
        """Outputs by name, for one sample inside the declared intervals."""
        program, parties = self.program, self.program.parties
        form = program.lowering.form
        values = dict(program.lowering.constant_values)
        named = (inputs[port.name] for port in form.program.inputs)
        values.update(enumerate(named))
        self.client.compute(parties.head, values)
        stored = [
            _stored(program.by_number[n], values[n]) for n in parties.encrypted
        ]
        for step in program.steps:
            result = computed(step, stored)
            assert result.shape == program.values[len(stored)].shape
            stored.append(result)
        for number in parties.decrypted:
            value, type_ = program.by_number[number], form.types[number]
            integers = _meant(value, stored[value.number])
            dtype = DTYPES[type_.dtype]
            values[number] = integers.reshape(type_.shape).astype(dtype)
        self.client.compute(parties.tail, values)
        return {port.name: values[port.value] for port in form.program.outputs}


def computed(step: SecretStep, values: list[IntArray]) -> IntArray:
    """What a step makes of the values before it."""
    if isinstance(step, Take):
        flattened = [values[number].reshape(-1) for number in step.operands]
        return np.append(np.concatenate(flattened), 0)[step.places]
    if isinstance(step, Sum):
        total = step.constant
        for number, factor in zip(step.operands, step.factors, strict=True):
            total = total + values[number] * factor
        return total
    x = values[step.operand]
    if isinstance(step, Dot):
        rows = x.reshape(-1, len(step.weights)) @ step.weights
        return rows.reshape(step.shape)
    if isinstance(step, Convolve):
        return convolved(x, step)
    classes = np.broadcast_to(step.classes, x.shape)
    index = x * step.factors[classes] + step.constants[classes]
    assert index.min() >= 0 and index.max() < 1 << step.bits
    entries: IntArray = step.tables[classes, index >> step.dropped]
    return entries


def convolved(x: IntArray, step: Convolve) -> IntArray:
    """The sums of products of a convolution, tap by tap."""
    weights, groups = step.weights, step.groups
    group_size = len(weights) // groups
    images = x.reshape(len(x), groups, -1, *x.shape[2:])
    kernel = weights.shape[2:]
    total = np.zeros((), np.int64)
    size = [
        (x.shape[2 + i] - (kernel[i] - 1) * step.dilation[i] - 1)
        // step.stride[i]
        + 1
        for i in (0, 1)
    ]
    for row, column in np.ndindex(*kernel):
        first = row * step.dilation[0], column * step.dilation[1]
        positions = [
            slice(a, a + (n - 1) * s + 1, s)
            for a, n, s in zip(first, size, step.stride, strict=True)
        ]
        taps = weights[:, :, row, column].reshape(groups, group_size, -1)
        products = np.einsum(
            "ngchw,goc->ngohw", images[..., positions[0], positions[1]], taps
        )
        total = total + products
    return total.reshape(len(x), len(weights), *size)


def _stored(value: SecretValue, x: IntArray) -> IntArray:
    """The integers of a program's value that are encrypted."""
    above = x.astype(np.int64).reshape(value.shape) - value.stored.offset
    return above // np.maximum(value.stored.factor, 1)


def _meant(value: SecretValue, stored: IntArray) -> IntArray:
    """What decrypted integers stand for."""
    assert (stored >= value.stored.low).all()
    assert (stored <= value.stored.high).all()
    return stored * value.stored.factor + value.stored.offset
