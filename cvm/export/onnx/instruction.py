"""One instruction as the writers of ONNX see it: the graph, the names of its operands, the types around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cvm.export.onnx.graph import OnnxGraph
from cvm.program import Attribute, IntArray, TensorType, WithAttributes


@dataclass(frozen=True)
class OnnxInstruction(WithAttributes):
    """What a writer is given. `names` and `constants` go by value number; constants are stored when they are read."""

    graph: OnnxGraph
    operands: tuple[int, ...]
    types: tuple[TensorType, ...]
    intervals: tuple[tuple[int, int], ...]
    result: TensorType
    attributes: Mapping[str, Attribute]
    names: dict[int, str]
    constants: Mapping[int, IntArray]

    def operand(self, index: int, dtype: str = "") -> str:
        """The name of an operand, in its own dtype or in another."""
        number = self.operands[index]
        if number not in self.names:
            self.names[number] = self.graph.constant(self.constants[number])
        name = self.names[number]
        return self.graph.cast(name, dtype) if dtype else name

    def constant(self, index: int) -> IntArray:
        """The integers of an operand that the list of instructions calls constant."""
        return self.constants[self.operands[index]]
