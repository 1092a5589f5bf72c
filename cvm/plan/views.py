"""Values that need no step: the elements of an earlier value, in the same order, in another shape."""

from __future__ import annotations

from cvm.program import Instruction, TensorType
from cvm.proof.validate import WellFormed


def find_views(form: WellFormed) -> dict[int, int]:
    """Each such value, and the value, itself not one of them, whose elements it holds.

    Safe because a value is written once, and over another only when nobody will read that one or a view of it: a step
    that reads one reads the bytes of the other.
    """
    views: dict[int, int] = {}
    for number, instruction in enumerate(
        form.program.instructions, form.program.first_instruction
    ):
        if _keeps_order(
            instruction, form.types[instruction.operands[0]], form.types[number]
        ):
            views[number] = views.get(
                instruction.operands[0], instruction.operands[0]
            )
    return views


def _keeps_order(
    instruction: Instruction, x: TensorType, result: TensorType
) -> bool:
    if instruction.name == "reshape":
        return True
    if instruction.name == "transpose":
        perm = instruction.integers("perm")
        moved = [axis for axis in perm if x.shape[axis] != 1]
        return moved == sorted(moved)
    return (
        instruction.name in ("slice", "pad", "tile") and x.shape == result.shape
    )
