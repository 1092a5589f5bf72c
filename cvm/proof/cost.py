"""The cost of a program: one number from shapes alone, the same on every machine (`cvm/SPEC.md`, "Cost")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cvm.errors import BadInput
from cvm.program import DTYPES, Instruction, TensorType
from cvm.proof.validate import WellFormed

WEIGHTS_VERSION = 1
WEIGHTS = {
    "multiply_accumulates": 1,
    "table_reads": 8,
    "element_operations": 4,
    "bytes_moved": 1,
}


@dataclass(frozen=True)
class Work:
    """The four counts of one instruction, or their sums."""

    multiply_accumulates: int = 0
    table_reads: int = 0
    element_operations: int = 0
    bytes_moved: int = 0

    @property
    def cost(self) -> int:
        """The counts, each times its weight."""
        return sum(
            weight * getattr(self, kind) for kind, weight in WEIGHTS.items()
        )

    def __add__(self, other: Work) -> Work:
        return Work(
            *(getattr(self, kind) + getattr(other, kind) for kind in WEIGHTS)
        )


@dataclass(frozen=True)
class CostReport:
    """The work of each instruction in order, for one sample."""

    instructions: tuple[Work, ...]

    @property
    def work(self) -> Work:
        """The sums over all instructions."""
        return sum(self.instructions, Work())

    @property
    def total(self) -> int:
        """The cost of one sample."""
        return self.work.cost


def cost(form: WellFormed) -> CostReport:
    """The static cost of running one sample."""
    first, program = form.program.first_instruction, form.program
    return CostReport(
        tuple(
            work_of(
                instruction,
                [form.types[value] for value in instruction.operands],
                form.types[first + index],
            )
            for index, instruction in enumerate(program.instructions)
        )
    )


def memory(form: WellFormed) -> int:
    """The most bytes that the values of one sample hold at once; outputs are held to the end."""
    program = form.program
    sizes = [
        type_.elements * DTYPES[type_.dtype].itemsize for type_ in form.types
    ]
    last_use = program.last_uses()
    kept = {reader.value for reader in program.outputs}
    held = most = sum(sizes[: program.first_instruction])
    for index, reader in enumerate(program.instructions):
        held += sizes[program.first_instruction + index]
        most = max(most, held)
        held -= sum(
            sizes[value]
            for value in set(reader.operands) - kept
            if last_use[value] == index
        )
    return most


@dataclass(frozen=True)
class Allowance:
    """The cost and memory that a caller allows for one sample; None allows any."""

    cost: int | None = None
    memory: int | None = None

    def require(self, form: WellFormed) -> None:
        """BadInput, before anything runs, if the program takes more."""
        for what, needed, allowed in (
            ("one sample costs", cost(form).total, self.cost),
            (
                "the bytes that one sample's values hold at once are",
                memory(form),
                self.memory,
            ),
        ):
            if allowed is not None and needed > allowed:
                raise BadInput(f"{what} {needed:,}; allowed are {allowed:,}")


def as_json(form: WellFormed, report: CostReport) -> dict[str, Any]:
    """The report for other programs."""
    numbered = enumerate(
        zip(form.program.instructions, report.instructions, strict=True),
        form.program.first_instruction,
    )
    return {
        "weights_version": WEIGHTS_VERSION,
        "weights": WEIGHTS,
        "instructions": [
            {"value": n, "name": instruction.name, **_counts(work)}
            for n, (instruction, work) in numbered
        ],
        "total": _counts(report.work),
        "memory": memory(form),
    }


def _counts(work: Work) -> dict[str, int]:
    return {**asdict(work), "cost": work.cost}


def work_of(
    instruction: Instruction, operands: Sequence[TensorType], result: TensorType
) -> Work:
    """The counts of one instruction: its own by the table below, and every operand read and the result written once."""
    moved = sum(
        type_.elements * DTYPES[type_.dtype].itemsize
        for type_ in (*operands, result)
    )
    counts = {
        kind: rule(instruction, operands, result)
        for kind, rule in RULES[instruction.name].items()
    }
    return Work(bytes_moved=moved, **counts)


Count = Callable[[Instruction, Sequence[TensorType], TensorType], int]


def _convolution(
    _: Instruction, operands: Sequence[TensorType], result: TensorType
) -> int:
    return result.elements // result.shape[-1] * operands[1].elements


def _transposed_convolution(
    _: Instruction, operands: Sequence[TensorType], __: TensorType
) -> int:
    x, weights = operands[0], operands[1]
    return x.elements // x.shape[-1] * weights.elements


def _dense(
    _: Instruction, operands: Sequence[TensorType], __: TensorType
) -> int:
    return operands[0].shape[0] * operands[1].elements


def _matmul(
    _: Instruction, operands: Sequence[TensorType], __: TensorType
) -> int:
    return operands[0].elements * operands[1].shape[-1]


def _per_result(operations: int) -> Count:
    return lambda _, __, result: operations * result.elements


def _per_operand(
    _: Instruction, operands: Sequence[TensorType], __: TensorType
) -> int:
    return operands[0].elements


def _per_index(
    _: Instruction, operands: Sequence[TensorType], __: TensorType
) -> int:
    return operands[1].elements


def _sorting(
    _: Instruction, operands: Sequence[TensorType], __: TensorType
) -> int:
    x = operands[0]
    return x.elements * max(1, (x.shape[-1] - 1).bit_length())


def _suppressing(
    instruction: Instruction, operands: Sequence[TensorType], result: TensorType
) -> int:
    candidates = instruction.integer("candidates")
    return (
        _sorting(instruction, operands[1:], result)
        + 16 * candidates * result.elements
    )


def _pooling(extra: int) -> Count:
    def count(
        instruction: Instruction, _: Sequence[TensorType], result: TensorType
    ) -> int:
        kernel = instruction.integers("kernel")
        return result.elements * (kernel[0] * kernel[1] + extra)

    return count


def _resizing(
    instruction: Instruction, _: Sequence[TensorType], result: TensorType
) -> int:
    return (
        4 * result.elements
        if instruction.attributes["mode"] == "bilinear"
        else 0
    )


def _elements(rule: Count, *names: str) -> dict[str, dict[str, Count]]:
    return {name: {"element_operations": rule} for name in names}


RULES: dict[str, dict[str, Count]] = {
    "conv2d": {"multiply_accumulates": _convolution},
    "conv2d_transpose": {"multiply_accumulates": _transposed_convolution},
    "dense": {"multiply_accumulates": _dense},
    "matmul": {"multiply_accumulates": _matmul},
    "table": {"table_reads": _per_result(1)},
    "gather": {"table_reads": _per_index},
    "interpolate": {
        "table_reads": _per_result(2),
        "element_operations": _per_result(4),
    },
    "argsort": {"element_operations": _sorting},
    "max_pool2d": {"element_operations": _pooling(0)},
    "avg_pool2d": {"element_operations": _pooling(4)},
    "resize": {"element_operations": _resizing},
    "nms": {"element_operations": _suppressing},
    **_elements(
        _per_operand, "reduce_sum", "reduce_max", "reduce_min", "argmax"
    ),
    **_elements(
        _per_result(1),
        "clamp",
        "cast",
        "add",
        "sub",
        "maximum",
        "minimum",
        "abs",
        "negate",
        "clz",
    ),
    **_elements(
        _per_result(1),
        "equal",
        "greater",
        "greater_equal",
        "logical_and",
        "logical_or",
        "logical_not",
    ),
    **_elements(_per_result(1), "select", "shift_left", "shift_right"),
    **_elements(_per_result(2), "mul"),
    **_elements(_per_result(4), "rescale"),
    **_elements(_per_result(8), "intdiv"),
    **_elements(_per_result(32), "isqrt"),
    **{
        name: {}
        for name in (
            "reshape",
            "transpose",
            "concat",
            "slice",
            "pad",
            "tile",
            "reverse",
        )
    },
}
