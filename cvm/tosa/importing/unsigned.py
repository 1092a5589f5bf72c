"""Which tensors hold bytes without sign: TOSA has one type for both, and a RESCALE that takes them for one or the other."""

from __future__ import annotations

from cvm.tosa.graph import TosaGraph

MOVEMENT = {
    *("CONCAT", "PAD", "RESHAPE", "REVERSE", "SLICE", "TILE"),
    *("TRANSPOSE", "IDENTITY", "GATHER"),
}


def without_sign(graph: TosaGraph) -> set[str]:
    """Names of tensors that a RESCALE takes for unsigned, at once or after they were moved; INT16 ones are refused later."""
    names: set[str] = set()
    for operator in reversed(graph.operators):
        moved = operator.name in MOVEMENT and names & set(operator.outputs)
        rescaled = operator.name == "RESCALE" and operator.attributes.get(
            "input_unsigned", False
        )
        if moved or rescaled:
            names |= set(operator.inputs[:1])
        if moved and operator.name == "CONCAT":
            names |= set(operator.inputs)
        if moved and operator.name == "PAD":
            names |= set(operator.inputs[2:])
    return names
