"""Makes programs of equal branches with constants of their own, as unrolled networks and tree ensembles have them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cvm.program import Input, Meaning, Program, TensorType
from mrt.quantize.builder import Handle, ProgramBuilder

STEPS = (
    *("dense", "rescale", "table", "own_table", "add"),
    *("greater", "slice", "gather"),
)


@dataclass
class Branches:
    """Branches that all take the same steps: integers of i8 between them, of any width."""

    seed: int
    builder: ProgramBuilder = field(default_factory=ProgramBuilder)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def program(
        self, count: int, steps: list[str], *, one_input: bool, chained: bool
    ) -> Program:
        """So many branches of these steps, each an output of its own, or all of them one sum after another."""
        given = [
            self._input(f"x{i}", 7) for i in range(1 if one_input else count)
        ]
        ends = []
        for index in range(count):
            value = given[index % len(given)]
            for step in steps:
                value = getattr(self, f"_{step}")(value)
            ends.append(self._wide(value))
        if chained:
            ends = [self._sum(ends)]
        for index, value in enumerate(ends):
            self.builder.annotate(value, Meaning(0.5, 0, f"end {index}"))
            self.builder.output(f"y{index}", value, Meaning(1.0, 0))
        return self.builder.finish({"made": "for tests"}, ["a label"])

    def _input(self, name: str, width: int) -> Handle:
        item = Input(name, TensorType("i8", (1, width)), -128, 127)
        return self.builder.input(item, Meaning(0.25, 0))

    def _numbers(
        self, low: int, high: int, *shape: int, dtype: str = "int32"
    ) -> Handle:
        array = self.random.integers(low, high, shape).astype(dtype)
        return self.builder.constant(array)

    def _width(self, value: Handle) -> int:
        return self.builder.types[value].shape[-1]

    def _wide(self, value: Handle) -> Handle:
        return self.builder.emit("cast", value, dtype="i32")

    def _narrow(self, value: Handle, channels: int) -> Handle:
        return self.builder.emit(
            "rescale",
            value,
            self._numbers(2**30, 2**31 - 1, channels),
            self._numbers(36, 39, channels, dtype="int8"),
            input_zp=0,
            output_zp=3,
            dtype="i8",
        )

    def _dense(self, value: Handle) -> Handle:
        width = int(self.random.choice([5, 6, 6]))
        weights = self._numbers(
            -127, 128, width, self._width(value), dtype="int8"
        )
        bias = self._numbers(-999, 999, width)
        total = self.builder.emit("dense", value, weights, bias, input_zp=0)
        return self._narrow(total, width)

    def _rescale(self, value: Handle) -> Handle:
        return self._narrow(self._wide(value), 1)

    def _table(self, value: Handle) -> Handle:
        entries = np.random.default_rng(7).integers(-128, 128, 256)
        table = self.builder.constant(entries.astype("int8"))
        return self.builder.emit("table", value, table)

    def _own_table(self, value: Handle) -> Handle:
        table = self._numbers(-128, 128, 256, dtype="int8")
        return self.builder.emit("table", value, table)

    def _add(self, value: Handle) -> Handle:
        own = self._numbers(-99, 99, 1, self._width(value))
        total = self.builder.emit("add", self._wide(value), own)
        return self._narrow(total, self._width(value))

    def _greater(self, value: Handle) -> Handle:
        own = self._numbers(-99, 99, 1, self._width(value))
        told = self.builder.emit("greater", self._wide(value), own)
        return self.builder.emit("cast", told, dtype="i8")

    def _slice(self, value: Handle) -> Handle:
        width = self._width(value)
        start = int(self.random.integers(0, 2)) if width > 3 else 0
        size = max(1, width - 2)
        return self.builder.emit(
            "slice", value, start=(0, start), size=(1, size)
        )

    def _gather(self, value: Handle) -> Handle:
        width = self._width(value)
        column = self.builder.emit("reshape", value, shape=(1, width, 1))
        places = self._numbers(0, width, 1, 6)
        found = self.builder.emit("gather", column, places)
        return self.builder.emit("reshape", found, shape=(1, 6))

    def _sum(self, ends: list[Handle]) -> Handle:
        """One after another, rounded in between, each cut to the narrowest."""
        width = min(map(self._width, ends))
        total = None
        for end in ends:
            part = self.builder.emit(
                "slice", end, start=(0, 0), size=(1, width)
            )
            if total is not None:
                total = self.builder.emit("add", total, part)
                part = self._wide(self._narrow(total, 1))
            total = part
        assert total is not None
        return self.builder.emit("negate", total, input_zp=0, output_zp=0)
