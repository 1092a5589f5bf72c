"""An ONNX graph being written: nodes in order, constants each once, the dtype of every value."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from cvm.program import IntArray

OPSET, IR_VERSION = 20, 9
NUMPY_NAMES = {
    "bool": "bool",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u64": "uint64",
}
NAMES = {name: dtype for dtype, name in NUMPY_NAMES.items()}


def element_type(dtype: str) -> int:
    """The dtype as ONNX numbers it."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY_NAMES[dtype])))


@dataclass
class OnnxGraph:
    """Nodes and constants. `taken` are the names of inputs and outputs, which no value of ours may have."""

    taken: Container[str]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    dtypes: dict[str, str] = field(default_factory=dict)
    interned: dict[tuple[Any, ...], str] = field(default_factory=dict)
    count: int = 0

    def node(
        self, operator: str, *operands: str, dtype: str = "", **attributes: Any
    ) -> str:
        """Add a node; its result has the first operand's dtype unless one is given."""
        (result,) = self.results(
            operator, operands, (dtype or self.dtypes[operands[0]],), attributes
        )
        return result

    def results(
        self,
        operator: str,
        operands: tuple[str, ...],
        dtypes: tuple[str, ...],
        attributes: dict[str, Any],
    ) -> list[str]:
        """Add a node with one result of each dtype."""
        names = [self._fresh() for _ in dtypes]
        self.nodes.append(
            helper.make_node(operator, operands, names, **attributes)
        )
        self.dtypes.update(zip(names, dtypes, strict=True))
        return names

    def constant(self, array: IntArray) -> str:
        """The name of a constant; equal ones exist once."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self.interned:
            name = self.interned[key] = self._fresh()
            self.constants.append(numpy_helper.from_array(array, name))
            self.dtypes[name] = NAMES[array.dtype.name]
        return self.interned[key]

    def number(self, value: int, dtype: str) -> str:
        """A scalar constant."""
        return self.constant(np.array(value, NUMPY_NAMES[dtype]))

    def integers(self, values: Any) -> str:
        """A list of sizes, indices or axes."""
        return self.constant(np.array(values, np.int64))

    def cast(self, value: str, dtype: str) -> str:
        """The same integers in another dtype, each value once."""
        if self.dtypes[value] == dtype:
            return value
        key = (value, dtype)
        if key not in self.interned:
            to = element_type(dtype)
            self.interned[key] = self.node("Cast", value, dtype=dtype, to=to)
        return self.interned[key]

    def reshape(self, value: str, shape: tuple[int, ...]) -> str:
        """The same elements in another shape."""
        return self.node("Reshape", value, self.integers(shape))

    def _fresh(self) -> str:
        self.count += 1
        while f"v{self.count}" in self.taken:
            self.count += 1
        return f"v{self.count}"
