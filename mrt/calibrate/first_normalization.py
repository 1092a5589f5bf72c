"""Compares samples with what a model's first BatchNormalization was trained on.

Its running mean and variance are those of its input in training. Where only linear operators lie
between it and the model's input, samples prepared in another way, such as bytes in place of
numbers up to 1, stand out by a factor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.samples import Sample
from mrt.calibrate.session import FloatSession, model_inputs
from mrt.graph.choose_outputs import end_in
from mrt.graph.values import constant, float_attribute, operand

Array = npt.NDArray[Any]
SAMPLES = 16  # enough for a factor
LINEAR = frozenset({"Conv", "Gemm", "MatMul", "Add", "Sub", "Mul", "Div"})
MOVING = frozenset({"Identity", "Cast", "Transpose", "Pad", "Dropout", "Slice"})
_LONGEST = 12  # nodes in between
_DEAD = 1e-3  # of the median deviation


@dataclass(frozen=True)
class Normalization:
    """The first normalization behind an input: its name, what it reads, and the statistics of training by channel."""

    name: str
    value: str
    mean: Array
    deviation: Array


@dataclass(frozen=True)
class Spread:
    """How samples compare with those of training: their deviation over that of training, the median of the channels."""

    name: str  # of the normalization
    ratio: float


def first_normalization(model: ir.Model) -> Normalization | None:
    """The first BatchNormalization that only linear operators separate from an input; None if there is none, or it is untrained."""
    for value in model_inputs(model):
        for _ in range(_LONGEST):
            users = tuple(value.uses())
            if len(users) != 1:
                break
            node, place = users[0]
            if node.op_type == "BatchNormalization" and place == 0:
                return _statistics_of(node)
            if not _is_linear(node) or len(node.outputs) == 0:
                break
            value = node.outputs[0]
    return None


def _is_linear(node: ir.Node) -> bool:
    if node.op_type in MOVING:
        return True
    operands = [value for value in node.inputs if value is not None]
    constants = [value for value in operands if constant(value) is not None]
    return node.op_type in LINEAR and len(constants) == len(operands) - 1


def _statistics_of(node: ir.Node) -> Normalization | None:
    mean, variance = (constant(operand(node, place)) for place in (3, 4))
    value = operand(node, 0)
    if mean is None or variance is None or value is None or not value.name:
        return None
    # As they are before training: they describe no data.
    if np.all(mean == 0) and np.ptp(variance) == 0:
        return None
    variance = variance.astype(np.float64)
    epsilon = float_attribute(node, "epsilon", 1e-5)
    deviation = np.sqrt(np.maximum(variance, 0) + epsilon)
    name = node.name or str(node.outputs[0].name)
    return Normalization(name, value.name, mean.astype(np.float64), deviation)


def measure(
    model: ir.Model, normalization: Normalization, samples: Iterable[Sample]
) -> Spread | None:
    """Run what lies between the input and the normalization, and return the spread; None if it cannot be measured."""
    alive = normalization.deviation > _DEAD * np.median(normalization.deviation)
    session = FloatSession(
        _beginning(model, normalization.value), [normalization.value]
    )
    count = 0
    total = squares = np.zeros(normalization.mean.shape)
    for sample in samples:
        values = session.run(sample)[normalization.value].astype(np.float64)
        axes = (0, *range(2, values.ndim))
        # Centred on the means of training, or squares would cancel.
        shape = [-1 if axis == 1 else 1 for axis in range(values.ndim)]
        with np.errstate(all="ignore"):
            values = values - normalization.mean.reshape(shape)
            total = total + values.sum(axes)
            squares = squares + (values**2).sum(axes)
        count += values.size // values.shape[1]
    if count < 2:
        return None
    with np.errstate(all="ignore"):  # of a model whose numbers overflow
        deviation = np.sqrt(
            np.maximum(squares / count - (total / count) ** 2, 0)
        )
        ratio = float(np.median((deviation / normalization.deviation)[alive]))
    return Spread(normalization.name, ratio) if np.isfinite(ratio) else None


def _beginning(model: ir.Model, name: str) -> ir.Model:
    """Return a copy of the model that ends in this value."""
    copy = model.clone()
    values = {
        value.name: value for node in copy.graph for value in node.outputs
    }
    values |= {value.name: value for value in copy.graph.inputs}
    end_in(copy, [values[name]])
    return copy
