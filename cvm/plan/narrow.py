"""What a proof tells the engine about a rescale: that no result leaves 32 bits before it saturates, so 32 bits suffice."""

from __future__ import annotations

import numpy as np

from cvm import arithmetic
from cvm.plan.steps import Integers, attributes
from cvm.program import DTYPE_RANGES, Instruction
from cvm.validate import Proven, WellFormed


def stage_attributes(form: WellFormed, instruction: Instruction) -> dict[str, Integers]:
    """An instruction's attributes, and `narrow` for a rescale of which a proof says so."""
    own = attributes(instruction)
    if instruction.name == "rescale" and isinstance(form, Proven) and _is_narrow(form, instruction):
        own["narrow"] = (1,)
    return own


def _is_narrow(form: Proven, instruction: Instruction) -> bool:
    """Monotone in x, so the ends of its interval decide, whatever the channel."""
    x, multiplier, shift = instruction.operands
    first, zero_point = form.program.first_constant, instruction.attributes["input_zp"]
    assert isinstance(zero_point, int)
    factors = [form.program.constants[value - first].astype(np.int64) for value in (multiplier, shift)]
    low, high = DTYPE_RANGES["i32"]
    results = [arithmetic.rescale(np.array(end - zero_point, np.int64), *factors) for end in form.intervals[x]]
    return all(low <= int(found.min()) and int(found.max()) <= high for found in results)
