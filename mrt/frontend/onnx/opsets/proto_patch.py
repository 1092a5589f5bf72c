"""New nodes in the place of one node, for the steps that still work on protobufs.

`mrt.graph.patch` does the same on graphs of onnx_ir.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mrt.graph.names import Names
from mrt.graph.values import Array

DEFAULT_OPSET = 10


class ProtoPatch:
    """The nodes that replace one node, in operators of this opset; the last has its output."""

    def __init__(
        self,
        node: onnx.NodeProto,
        taken: Names,
        of_one_axis: Collection[str] = (),
        opset: int = DEFAULT_OPSET,
    ) -> None:
        self.node = node
        self.x = node.input[0]
        self._taken = taken
        self.of_one_axis = of_one_axis
        self.opset = opset
        self.added: list[onnx.NodeProto] = []
        self.notes: list[str] = []
        self.texts: dict[str, list[str]] = {}  # initializers of text

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one output and return the output's name."""
        base_name = f"{self.node.output[0]}.{operator.lower()}"
        name = self._taken.first_free(base_name)
        added = helper.make_node(
            operator, inputs, [name], name=name, **attributes
        )
        self.added.append(added)
        return name

    def constant(self, array: Array) -> str:
        """Add a Constant node."""
        return self.add("Constant", value=numpy_helper.from_array(array))

    def real(self, *values: float, axes: int = 0) -> str:
        """Add one number as float32, or one for each channel followed by so many axes of 1."""
        if not axes:
            return self.constant(np.array(values[0], np.float32))
        column = (-1, *(1,) * axes)
        return self.constant(np.array(values, np.float32).reshape(column))

    def add_axis(self, x: str) -> str:
        """Append one axis of 1."""
        return self._along("Unsqueeze", 13, x, -1)

    def reduce(self, operator: str, x: str, axis: int) -> str:
        """Add a reduction of one axis, which is kept."""
        since = 13 if operator == "ReduceSum" else 18
        return self._along(operator, since, x, axis, keepdims=1)

    def _along(
        self, operator: str, since: int, x: str, axis: int, **attributes: int
    ) -> str:
        """Add a node with an axis, an operand since this opset and an attribute before."""
        if self.opset < since:
            return self.add(operator, x, axes=[axis], **attributes)
        axes = self.constant(np.array([axis], np.int64))
        return self.add(operator, x, axes, **attributes)

    def finish(self) -> list[onnx.NodeProto]:
        """Return the nodes; the last of them takes over the old one's name and output."""
        last = self.added[-1]
        last.output[0], last.name = self.node.output[0], self.node.name
        return self.added
