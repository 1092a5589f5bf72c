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
        lowering, who = program.lowering, program.parties
        self.client = LoweredProgram(lowering, who.client)

    def run(self, inputs: Mapping[str, IntArray]) -> dict[str, IntArray]:
        """Outputs by name, for one sample inside the declared intervals."""
        program, who = self.program, self.program.parties
        form = program.lowering.form
        known = dict(program.lowering.known)
        named = (inputs[item.name] for item in form.program.inputs)
        known.update(enumerate(named))
        self.client.compute(who.head, known)
        stored = [_stored(program.of[n], known[n]) for n in who.encrypted]
        for step in program.steps:
            made = computed(step, stored)
            assert made.shape == program.values[len(stored)].shape
            stored.append(made)
        for number in who.decrypted:
            value, type_ = program.of[number], form.types[number]
            found = _meant(value, stored[value.number])
            dtype = DTYPES[type_.dtype]
            known[number] = found.reshape(type_.shape).astype(dtype)
        self.client.compute(who.tail, known)
        return {item.name: known[item.value] for item in form.program.outputs}


def computed(step: SecretStep, values: list[IntArray]) -> IntArray:
    """What a step makes of the values before it."""
    if isinstance(step, Take):
        parts = [values[number].reshape(-1) for number in step.operands]
        return np.append(np.concatenate(parts), 0)[step.places]
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
    found: IntArray = step.tables[classes, index >> step.dropped]
    return found


def convolved(x: IntArray, step: Convolve) -> IntArray:
    """The sums of products of a convolution, tap by tap."""
    weights, groups = step.weights, step.groups
    each = len(weights) // groups
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
        here = [
            slice(a, a + (n - 1) * s + 1, s)
            for a, n, s in zip(first, size, step.stride, strict=True)
        ]
        taps = weights[:, :, row, column].reshape(groups, each, -1)
        products = np.einsum(
            "ngchw,goc->ngohw", images[..., here[0], here[1]], taps
        )
        total = total + products
    return total.reshape(len(x), len(weights), *size)


def _stored(value: SecretValue, x: IntArray) -> IntArray:
    """What is encrypted of a value of the program."""
    above = x.astype(np.int64).reshape(value.shape) - value.stored.offset
    return above // np.maximum(value.stored.factor, 1)


def _meant(value: SecretValue, stored: IntArray) -> IntArray:
    """What decrypted integers stand for."""
    assert (stored >= value.stored.low).all()
    assert (stored <= value.stored.high).all()
    return stored * value.stored.factor + value.stored.offset
