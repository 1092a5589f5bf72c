"""Reads the parameters of an LSTM, GRU or RNN node, for each direction.

Returns the reason instead where the node cannot be unrolled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    float_attribute,
    inputs_behind,
    int_attribute,
    operand,
    shape_of,
    string_attribute,
)

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
MOST_STEPS = 1024
_DEFAULTS = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "GRU": ("Sigmoid", "Tanh"),
    "RNN": ("Tanh",),
}
_PLAIN = ("Relu", "Sigmoid", "Tanh", "Softsign", "Softplus")
_WITH_ALPHA = {
    "Elu": 1.0,
    "LeakyRelu": 0.01,
    "HardSigmoid": 0.2,
    "Affine": 1.0,
    "ScaledTanh": 1.0,
}
_WITH_BETA = {"HardSigmoid": 0.5, "Affine": 0.0, "ScaledTanh": 1.0}

Function = Callable[[Patch, ir.Value], ir.Value]


@dataclass(frozen=True)
class Direction:
    """The parameters of one direction; gates are concatenated along the first axis."""

    weights: Array  # [gates * hidden, inputs]
    recurrence: Array  # [gates * hidden, hidden]
    bias: Array  # [2, gates * hidden]: of the weights, of the recurrence
    peepholes: Array | None  # [3, hidden]: input, output and forget gate
    activations: tuple[Function, ...]
    reverse: bool


@dataclass(frozen=True)
class Recurrent:
    """A node that can be unrolled.

    Its operand is [steps, batch, inputs], or has the batch first if `batches_first`.
    """

    node: ir.Node
    steps: int
    batch: int
    inputs: int
    hidden: int
    batches_first: bool
    clip: (
        float | None
    )  # gates are clipped to -clip..clip before their activation
    directions: tuple[Direction, ...]


def read_recurrent(node: ir.Node) -> Recurrent | str:
    """Return the node's parameters, or a sentence on what is not supported."""
    shape = shape_of(first(node))
    weights = constant(operand(node, 1))
    recurrence = constant(operand(node, 2))
    if shape is None or len(shape) != 3:
        return "the shape of its operand is not known to have three axes; fix it with --shape"
    if weights is None or recurrence is None or recurrence.ndim != 3:
        return "its weights are computed; expected constants"
    batches_first = bool(int_attribute(node, "layout", 0))
    steps, batch = shape[:2] if not batches_first else (shape[1], shape[0])
    direction = string_attribute(node, "direction", "forward")
    if direction not in DIRECTIONS:
        return f"direction={direction}; expected {', '.join(DIRECTIONS)}"
    count, hidden = DIRECTIONS[direction], recurrence.shape[2]
    rows = GATES[node.op_type] * hidden
    if weights.shape != (count, rows, shape[2]) or recurrence.shape != (
        count,
        rows,
        hidden,
    ):
        return f"weights {list(weights.shape)} and {list(recurrence.shape)} do not fit its operand {list(shape)}"
    problem = _problem(node, steps, count * rows)
    problem = problem or _of_states(node, (count, batch, hidden))
    if problem is not None:
        return problem
    functions = _activations(node, count)
    if isinstance(functions, str):
        return functions
    directions = _directions(node, weights, recurrence, functions)
    clip = (
        float_attribute(node, "clip", 0.0)
        if "clip" in node.attributes
        else None
    )
    return Recurrent(
        node, steps, batch, shape[2], hidden, batches_first, clip, directions
    )


def _of_states(node: ir.Node, sizes: tuple[int, int, int]) -> str | None:
    """Return why the initial states do not fit the directions, the batch and the hidden size."""
    count, batch, hidden = sizes
    expected = (
        (batch, count, hidden) if int_attribute(node, "layout", 0) else sizes
    )
    for role, place in (("initial_h", 5), ("initial_c", 6)):
        value = operand(node, place)
        shape = None if value is None else shape_of(value)
        if shape is not None and shape != expected:
            return f"its {role} is {list(shape)}; expected {list(expected)}"
    return None


def _problem(node: ir.Node, steps: int, rows: int) -> str | None:
    lengths = operand(node, 4)
    bias = operand(node, 3)
    peepholes = operand(node, 7)
    if steps > MOST_STEPS:
        return f"{steps} steps; at most {MOST_STEPS} are unrolled"
    if float_attribute(node, "clip", 1.0) <= 0:
        return (
            f"clip={float_attribute(node, 'clip', 1.0)}; expected more than 0"
        )
    if int_attribute(node, "input_forget", 0):
        return "input_forget=1; expected 0"
    if lengths is not None and (problem := _of_lengths(lengths, steps)):
        return problem
    for role, value, size in (
        ("bias", bias, 2 * rows),
        ("peepholes", peepholes, 3 * rows // 4),
    ):
        array = constant(value)
        if value is not None and (array is None or array.size != size):
            return f"its {role} is not a constant of {size} numbers"
    return None


def _of_lengths(lengths: ir.Value, steps: int) -> str | None:
    """Return what is wrong with the lengths of the sequences, which must all be `steps`."""
    numbers, expected = constant(lengths), f"expected all {steps} steps of each"
    if numbers is None:
        names = inputs_behind(lengths)
        listed = ", ".join(f"'{name}'" for name in names)
        fix = "end in front of it with --outputs"
        if len(names) == 1:
            fix = (
                f"--value {names[0]}={steps} makes it a constant, so that each sequence is read to its end, padding too, "
                f"and the program does not ask for '{names[0]}'"
            )
        origin = f" from input {listed}" if names else ""
        return f"the lengths of its sequences are computed{origin}; {expected}: {fix}"
    if np.any(numbers != steps):
        span = f"{numbers.min()} to {numbers.max()} steps"
        return f"sequences of different lengths, {span}; {expected}"
    return None


def _directions(
    node: ir.Node, weights: Array, recurrence: Array, functions: list[Function]
) -> tuple[Direction, ...]:
    count, rows, hidden = recurrence.shape
    biases, peepholes = constant(operand(node, 3)), constant(operand(node, 7))
    bias = (
        np.zeros((count, 2, rows))
        if biases is None
        else biases.astype(np.float64).reshape(count, 2, rows)
    )
    per_direction = len(functions) // count
    return tuple(
        Direction(
            weights[index],
            recurrence[index],
            bias[index],
            None
            if peepholes is None
            else peepholes.reshape(count, 3, hidden)[index],
            tuple(
                functions[index * per_direction : (index + 1) * per_direction]
            ),
            reverse=index == 1
            or string_attribute(node, "direction", "forward") == "reverse",
        )
        for index in range(count)
    )


def _activations(node: ir.Node, directions: int) -> list[Function] | str:
    """Return the functions in the order of the node's list.

    A function with an alpha or beta takes the next number of activation_alpha or
    activation_beta, if one is left.
    """
    attribute = node.attributes.get("activations")
    names = (
        list(attribute.as_strings())
        if attribute is not None
        else [*_DEFAULTS[node.op_type]] * directions
    )
    count = len(_DEFAULTS[node.op_type]) * directions
    if len(names) != count:
        return f"{len(names)} activations; expected {count}"
    canonical = {name.lower(): name for name in (*_PLAIN, *_WITH_ALPHA)}
    numbers = {
        key: _reals(node, f"activation_{key}") for key in ("alpha", "beta")
    }
    functions = []
    for written in names:
        name = canonical.get(written.lower())
        if name is None:
            return f"activation {written}; expected one of {', '.join(sorted(canonical.values()))}"
        alpha = (
            numbers["alpha"].pop(0)
            if name in _WITH_ALPHA and numbers["alpha"]
            else _WITH_ALPHA.get(name, 0.0)
        )
        beta = (
            numbers["beta"].pop(0)
            if name in _WITH_BETA and numbers["beta"]
            else _WITH_BETA.get(name, 0.0)
        )
        functions.append(_function(name, alpha, beta))
    return functions


def _reals(node: ir.Node, name: str) -> list[float]:
    attribute = node.attributes.get(name)
    return [] if attribute is None else list(attribute.as_floats())


def _function(name: str, alpha: float, beta: float) -> Function:
    def scaled(patch: Patch, x: ir.Value, factor: float) -> ir.Value:
        return (
            x
            if factor == 1
            else patch.add(
                "Mul", x, patch.constant(np.array(factor, np.float32), "factor")
            )
        )

    def emit(patch: Patch, x: ir.Value) -> ir.Value:
        if name == "Affine":
            return patch.add(
                "Add",
                scaled(patch, x, alpha),
                patch.constant(np.array(beta, np.float32), "beta"),
            )
        if name == "ScaledTanh":
            return scaled(
                patch, patch.add("Tanh", scaled(patch, x, beta)), alpha
            )
        attributes = {"alpha": alpha} if name in _WITH_ALPHA else {}
        attributes |= {"beta": beta} if name in _WITH_BETA else {}
        return patch.add(name, x, **attributes)

    return emit
