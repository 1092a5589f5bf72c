"""The text of a function being written: operations in order, each constant once, the type of every value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvm.program import IntArray

ELEMENTS = {"bool": "i1", "i8": "i8", "u8": "i8", "i16": "i16", "i32": "i32"}
CODES = {"b1": "i1", "i1": "i8", "u1": "i8", "i2": "i16", "i4": "i32"}
CODES |= {"i8": "i64"}
STORAGE = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


@dataclass(frozen=True)
class MlirValue:
    """A tensor of MLIR: its name, its element type, its shape."""

    name: str
    element: str
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        """As MLIR writes it: tensor<1x8xi32>."""
        return tensor(self.element, self.shape)


def tensor(element: str, shape: Sequence[int]) -> str:
    """The type of a tensor with static shape."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def array(kind: str, values: Sequence[int]) -> str:
    """An attribute that is a dense array."""
    listed = ", ".join(str(int(value)) for value in values)
    return f"array<{kind}: {listed}>"


def dense(values: IntArray) -> str:
    """An attribute with these elements: one that stands for all, a list of booleans, or bytes in hexadecimal."""
    if values.size and (values == values.flat[0]).all():
        return f"dense<{json.dumps(values.flat[0].item())}>"
    if values.dtype == np.bool_:
        return f"dense<{json.dumps(values.tolist())}>"
    little = values.astype(values.dtype.newbyteorder("<"))
    return f'dense<"0x{little.tobytes().hex().upper()}">'


def properties(given: Mapping[str, str]) -> str:
    """The attributes that belong to an operation."""
    listed = ", ".join(f"{name} = {text}" for name, text in given.items())
    return f" <{{{listed}}}>" if listed else ""


@dataclass
class Text:
    """Lines of a function's body. Every operation has one result; `last_lines` has, by its name, the last line that writes it."""

    lines: list[str] = field(default_factory=list)
    interned: dict[tuple[Any, ...], MlirValue] = field(default_factory=dict)
    shapes: dict[tuple[int, ...], str] = field(default_factory=dict)
    last_lines: dict[str, int] = field(default_factory=dict)
    count: int = 0

    def operation(
        self,
        operator: str,
        operands: Sequence[MlirValue],
        element: str,
        shape: Sequence[int],
        **attributes: str,
    ) -> MlirValue:
        """Add an operation on tensors."""
        names = [operand.name for operand in operands]
        types = [operand.type for operand in operands]
        result = MlirValue(self._fresh(), element, tuple(shape))
        self.add(operator, names, types, result, attributes)
        return result

    def shaped(
        self,
        operator: str,
        operand: MlirValue,
        lists: Sequence[Sequence[int]],
        shape: Sequence[int],
        rest: Sequence[MlirValue] = (),
    ) -> MlirValue:
        """Add an operation of TOSA with lists of sizes as operands after its first one."""
        names = [operand.name, *map(self.sizes, lists)]
        types = [operand.type]
        types += [f"!tosa.shape<{len(sizes)}>" for sizes in lists]
        names += [value.name for value in rest]
        types += [value.type for value in rest]
        result = MlirValue(self._fresh(), operand.element, tuple(shape))
        self.add(operator, names, types, result, {})
        return result

    def generic(
        self,
        operands: Sequence[MlirValue],
        result: tuple[str, tuple[int, ...]],
        maps: tuple[str, ...],
        iterators: Sequence[str],
        body: Sequence[str],
    ) -> MlirValue:
        """Add a linalg.generic whose result begins with zeros; `body` of two operands reads %a, %b and the result's %sum."""
        start = self.constant(np.zeros(result[1], STORAGE[result[0]]))
        all_operands = [*operands, start]
        names = ["%a", "%b", "%sum"]
        arguments = ", ".join(
            f"{name}: {operand.element}"
            for name, operand in zip(names, all_operands, strict=True)
        )
        listed = ", ".join(f"affine_map<{text}>" for text in maps)
        kinds = ", ".join(f"#linalg.iterator_type<{k}>" for k in iterators)
        attributes = {
            "indexing_maps": f"[{listed}]",
            "iterator_types": f"[{kinds}]",
            "operandSegmentSizes": array("i32", [len(operands), 1]),
        }
        value = MlirValue(self._fresh(), *result)
        types = ", ".join(operand.type for operand in all_operands)
        read = ", ".join(operand.name for operand in all_operands)
        head = f'{value.name} = "linalg.generic"({read})'
        self.lines.append(f"{head}{properties(attributes)} ({{")
        self.lines.append(f"  ^bb0({arguments}):")
        self.lines += [f"    {line}" for line in body]
        self.last_lines[value.name] = len(self.lines)
        self.lines.append(f"  }}) : ({types}) -> {value.type}")
        return value

    def add(
        self,
        operator: str,
        names: Sequence[str],
        types: Sequence[str],
        result: MlirValue,
        attributes: Mapping[str, str],
    ) -> None:
        """Add one line."""
        self.last_lines[result.name] = len(self.lines)
        self.lines.append(
            f'{result.name} = "{operator}"({", ".join(names)}){properties(attributes)} : '
            f"({', '.join(types)}) -> {result.type}"
        )

    def constant(self, values: IntArray) -> MlirValue:
        """A constant; equal ones exist once."""
        values = np.asarray(values)
        key = (values.dtype.str, values.shape, values.tobytes())
        if key not in self.interned:
            element = CODES[values.dtype.str[1:]]
            value = MlirValue(self._fresh(), element, values.shape)
            text = f"{dense(values)} : {value.type}"
            wide = element == "i64"  # which TOSA lacks
            operator = "arith.constant" if wide else "tosa.const"
            name = "value" if wide else "values"
            self.add(operator, [], [], value, {name: text})
            self.interned[key] = value
        return self.interned[key]

    def splat(
        self, value: int, element: str, shape: Sequence[int]
    ) -> MlirValue:
        """A constant of equal elements."""
        return self.constant(np.full(tuple(shape), value, STORAGE[element]))

    def one(self, value: int, element: str) -> MlirValue:
        """A constant with one element, as TOSA takes zero points."""
        return self.splat(value, element, (1,))

    def sizes(self, values: Sequence[int]) -> str:
        """The name of a constant of TOSA's shapes."""
        key = tuple(map(int, values))
        if key not in self.shapes:
            name = self.shapes[key] = self._fresh()
            listed = f"dense<{list(key)}> : tensor<{len(key)}xindex>"
            self.lines.append(
                f'{name} = "tosa.const_shape"() <{{values = {listed}}}> : () -> !tosa.shape<{len(key)}>'
            )
        return self.shapes[key]

    def reshape(self, x: MlirValue, shape: Sequence[int]) -> MlirValue:
        """The same elements in another shape."""
        if x.shape == tuple(shape):
            return x
        return self.shaped("tosa.reshape", x, [shape], shape)

    def _fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"
