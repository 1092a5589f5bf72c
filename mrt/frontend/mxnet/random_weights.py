"""Draw seeded, well-scaled numbers for a symbol without parameters.

They are for shapes, speed and tests, not for accuracy.

Weights are close to normal with variance 2 / fan-in (He). Gammas and the ratio of stored
to true variance lie a little above 1; biases and means are small. The variance that a
BatchNorm stores is made from an estimate of its input's, as training would leave it.
Without that, each residual block would double the power of what passes through it.

The numbers are the same on every machine and with every numpy: bits of PCG64, added as
integers and scaled by one product. A parameter's numbers depend on the seed, its name, its
role and the estimated variance there, not on the numbers of other parameters.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.errors import BadModel, BadOption
from mrt.frontend.mxnet.build import Built, ConversionPlan
from mrt.frontend.mxnet.fill import set_numbers, set_ones
from mrt.frontend.mxnet.operators.registry import PARAMETER_SLOTS
from mrt.frontend.mxnet.params import Array
from mrt.frontend.mxnet.power import powers
from mrt.graph.open_shapes import Shape

MAX_SEED = 2**63 - 1
MAX_NUMBERS = 2**29  # 2 GB of float32
BLOCK = 2**18  # numbers drawn together
SMALL = 0.1
GLUON_CONSTANT = "Constant_"  # how __init__ of such a variable begins; its name and a number follow
MAX_NAMED = 8


@dataclass(frozen=True)
class Role:
    """The first input slot that a parameter fills, and the attributes of its operator."""

    operator: str
    slot: str
    groups: int = 1
    strides: int = 1  # their product


def seed_digest(seed: int) -> bytes:
    """Return a digest for these weights, in the place of a parameter file's SHA-256."""
    return hashlib.sha256(f"random weights {seed}".encode()).digest()


def check_seed(seed: int) -> None:
    """Raise BadOption when a number is outside the range of seeds."""
    if not 0 <= seed <= MAX_SEED:
        raise BadOption(
            f"--random-weights {seed}: expected a seed from 0 to 2^63 - 1"
        )


def fill_randomly(built: Built, conversion: ConversionPlan, seed: int) -> None:
    """Give every parameter of the graph its numbers."""
    _refuse_constants(built, conversion)
    roles = _roles(conversion)
    variances = _variances(built)
    for name, shape in _shapes(built).items():
        parameter = built.builder.parameters[name]
        role = roles.get(name, Role("", _slot_by_name(name)))
        middle, spread, above = _scale(
            role, shape, variances.get(parameter.value, 1.0)
        )
        set_numbers(
            parameter.value,
            draw(f"{seed} {name}", shape, middle, spread, above=above),
        )
    set_ones(built)


def _refuse_constants(built: Built, conversion: ConversionPlan) -> None:
    """Refuse a Gluon Constant (anchors, offsets, image scales), because it cannot be random."""
    initializers = {
        node.name: node.hidden.get("init", "")
        for node in conversion.symbol.nodes.values()
    }
    constants = [
        name
        for name in built.builder.parameters
        if initializers.get(name, "").startswith(GLUON_CONSTANT)
    ]
    if constants:
        named = ", ".join(repr(name) for name in constants[:MAX_NAMED])
        more = (
            f" and {len(constants) - MAX_NAMED} more"
            if len(constants) > MAX_NAMED
            else ""
        )
        raise BadModel(
            f"--random-weights: {named}{more}: fixed numbers of the model (a Gluon Constant), which cannot be invented; "
            "give the parameter file, or end before they are used with --outputs"
        )


def _shapes(built: Built) -> dict[str, Shape]:
    """Return the shapes of all parameters.

    Raise BadModel when a shape is unknown, or when the numbers would not fit memory.
    """
    shapes: dict[str, Shape] = {}
    for name, parameter in built.builder.parameters.items():
        shape = parameter.shape or (
            parameter.expected[0] if parameter.expected else None
        )
        if shape is None:
            raise BadModel(
                f"--random-weights: nothing says the shape of parameter {name!r}"
            )
        shapes[name] = shape
    total = sum(math.prod(shape) for shape in shapes.values())
    if total > MAX_NUMBERS:
        raise BadModel(
            f"--random-weights: the parameters have {total} numbers in all; at most {MAX_NUMBERS} are invented"
        )
    return shapes


def _roles(conversion: ConversionPlan) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    for use in conversion.uses:
        for edge, slot in zip(use.node.inputs, use.slots, strict=True):
            node = conversion.symbol.nodes[edge.node]
            if slot in PARAMETER_SLOTS and node.operator is None:
                groups = use.values.get("num_group", 1)
                strides = use.values.get("stride", ())
                steps = (
                    [step for step in strides if step]
                    if isinstance(strides, tuple)
                    else []
                )
                role = Role(
                    use.operator.name,
                    slot,
                    groups if isinstance(groups, int) else 1,
                    math.prod(steps),
                )
                roles.setdefault(node.name, role)
    return roles


def _slot_by_name(name: str) -> str:
    """Return the usual slot of a parameter with this name."""
    return next(
        (slot for slot in ("weight", "gamma") if name.endswith(slot)), "bias"
    )


def _variances(built: Built) -> dict[ir.Value, float]:
    """Return the estimated variance at each BatchNormalization.

    The keys are the parameters that store its mean and its variance.
    """
    nodes = built.builder.graph
    powers_by_value = powers(
        nodes,
        {
            parameter.value: SMALL * SMALL
            for parameter in built.builder.parameters.values()
        },
    )
    variances: dict[ir.Value, float] = {}
    for node in nodes:
        if node.op_type != "BatchNormalization" or node.inputs[0] is None:
            continue
        power = powers_by_value.get(node.inputs[0], 1.0)
        for value in node.inputs[3:5]:
            if value is not None:
                variances.setdefault(value, power)
    return variances


def _scale(
    role: Role, shape: Shape, variance: float
) -> tuple[float, float, bool]:
    """Return the middle, the spread, and whether the numbers lie above the middle only."""
    match role.slot:
        case "moving_var":
            return variance, SMALL * variance, True
        case "moving_mean":
            return 0.0, SMALL * math.sqrt(variance), False
        case "gamma":
            return (
                (0.25, 0.05, True)
                if role.operator == "LeakyReLU"
                else (1.0, SMALL, True)
            )
        case "weight" if role.operator == "Embedding":
            return 0.0, 1.0, False
        case "weight":
            return 0.0, math.sqrt(2 / _fan_in(role, shape)), False
    return 0.0, SMALL, False


def _fan_in(role: Role, shape: Shape) -> float:
    """Return the number of products in one result."""
    if role.operator == "Deconvolution":
        return max(
            shape[0] / role.groups * math.prod(shape[2:]) / role.strides, 1.0
        )
    return math.prod(shape[1:]) if len(shape) > 1 else shape[0]


def draw(
    what: str,
    shape: Shape,
    middle: float,
    spread: float,
    *,
    above: bool = False,
) -> Array:
    """Draw float32 numbers middle + spread * n, where n is nearly normal and within 3.5.

    With `above`, n is replaced by its magnitude.
    """
    source = _generator(what)
    count = math.prod(shape)
    result = np.empty(count, np.float32)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        # The sum of four uniform numbers of 16 bits has mean 131070 and variance (2^32 -
        # 1) / 3.
        words = (
            source.random_raw(size).astype("<u8").view("<u2").reshape(size, 4)
        )
        sums = (
            words[:, 0].astype(np.int64)
            + words[:, 1]
            + words[:, 2]
            + words[:, 3]
            - 131070
        )
        normal = (np.abs(sums) if above else sums) * (
            spread / math.sqrt((2**32 - 1) / 3)
        )
        result[start : start + size] = middle + normal
    return result.reshape(shape)


def _generator(what: str) -> np.random.PCG64:
    """Return a PCG64 with a state set directly, so that numpy's handling of seeds has no effect."""
    digest = hashlib.sha256(what.encode()).digest()
    state = int.from_bytes(digest[:16], "little")
    increment = int.from_bytes(digest[16:], "little") | 1
    source = np.random.PCG64(0)
    source.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": increment},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return source
