"""Explains shapes that do not fit together where an open batch was taken as 1.

Some models reshape to a batch of their own, such as 4 views of one picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from mrt.errors import BadModel, Unsupported
from mrt.frontend.onnx.read.library import (
    WRONG_TYPES,
    with_shapes_in_front,
)
from mrt.graph.open_shapes import Shape
from mrt.graph.values import (
    constant_integers,
    first,
    int_attribute,
    nodes,
    operand,
    shape_of,
)


@dataclass(frozen=True)
class WrongReshape:
    """A Reshape whose operand does not have the number of elements of its constant shape."""

    node: ir.Node
    found: Shape
    wanted: Shape

    @property
    def batch(self) -> int | None:
        """The batch with which it fits, if the number of elements grows with the batch."""
        elements = math.prod(self.found)
        product = math.prod(size for size in self.wanted if size > 0)
        if not elements or not product:
            return None
        for batch in (self.wanted[0], product // math.gcd(elements, product)):
            if batch > 1 and fits(elements * batch, self.wanted):
                return batch
        return None

    def __str__(self) -> str:
        name = self.node.name or self.node.outputs[0].name
        return (
            f"{name} (Reshape): its operand {list(self.found)} "
            f"does not fit the shape {list(self.wanted)}"
        )


def fits(elements: int, shape: Shape) -> bool:
    """Whether so many elements have this shape, in which -1 is what remains."""
    product = math.prod(size for size in shape if size >= 0)
    if -1 in shape and product:
        return elements % product == 0
    return elements == product


def explained(
    problem: BadModel | Unsupported,
    model: ir.Model,
    path: Path,
    assumed: Mapping[str, Shape],
) -> BadModel | Unsupported:
    """Return the error for shapes that do not fit together, with the batch that may fit.

    `assumed` are the shapes of the inputs whose open batch was taken as 1. No batch makes
    values of another type.
    """
    if WRONG_TYPES in str(problem):
        return problem
    wrong = _wrong_reshape(model) if assumed else None
    if not assumed or (wrong is None and isinstance(problem, Unsupported)):
        return problem
    batch = None if wrong is None else wrong.batch
    names = ", ".join(f"'{name}'" for name in assumed)
    shapes = " ".join(
        f"--shape {name}={','.join(map(str, (batch or 'N', *shape[1:])))}"
        for name, shape in assumed.items()
    )
    reason = str(problem) if wrong is None else f"{path}: {wrong}"
    return BadModel(
        f"{reason}; the open batch of {names} was taken as 1, another may fit: {shapes}"
    )


def _wrong_reshape(model: ir.Model) -> WrongReshape | None:
    """Return the first Reshape that does not fit, by the shapes in front of it."""
    for node in nodes(with_shapes_in_front(model), "Reshape"):
        shape = shape_of(first(node))
        target = constant_integers(operand(node, 1))
        if shape is None or target is None:
            continue
        if 0 in target and not int_attribute(node, "allowzero", 0):
            target = tuple(
                size or (*shape, *target)[place]
                for place, size in enumerate(target)
            )
        if not fits(math.prod(shape), target):
            return WrongReshape(node, shape, target)
    return None
