"""Which tensors hold bytes without sign: TOSA has one type for both, and a RESCALE that takes them for one or the other."""

from __future__ import annotations

from cvm.tosa.graph import TosaGraph

MOVEMENT = {
    *("CONCAT", "PAD", "RESHAPE", "REVERSE", "SLICE", "TILE"),
    *("TRANSPOSE", "IDENTITY", "GATHER"),
}


def without_sign(graph: TosaGraph) -> set[str]:
    """Names of tensors that a RESCALE takes for unsigned, at once or after they were moved; INT16 ones are refused later."""
    found: set[str] = set()
    for item in reversed(graph.operators):
        moved = item.name in MOVEMENT and found & set(item.outputs)
        rescaled = item.name == "RESCALE" and item.attributes.get(
            "input_unsigned", False
        )
        if moved or rescaled:
            found |= set(item.inputs[:1])
        if moved and item.name == "CONCAT":
            found |= set(item.inputs)
        if moved and item.name == "PAD":
            found |= set(item.inputs[2:])
    return found
