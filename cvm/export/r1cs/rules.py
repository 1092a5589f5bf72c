"""The rows of each instruction, by its name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvm.export.r1cs import elements, sums
from cvm.export.r1cs.instruction import NoRows, SecretInstruction, Writer
from cvm.export.r1cs.secret import Secret, constant
from cvm.export.refusals import Refusal

RULES: Mapping[str, Writer] = {**elements.RULES, **sums.RULES}


def written(
    instruction: SecretInstruction, value: int
) -> tuple[Secret, list[Refusal]]:
    """The result of an instruction; zeros and a refusal if there are no rows for it."""
    try:
        if instruction.name not in RULES:
            raise NoRows("it has no rows")
        return RULES[instruction.name](instruction), []
    except NoRows as reason:
        zeros = constant(np.zeros(instruction.result.shape, np.int64))
        return zeros, [Refusal(instruction.name, value, str(reason))]
