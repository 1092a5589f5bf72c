"""The registry of targets: for each a name, one sentence, the instructions that it can express, and its writer."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from cvm.errors import BadInput
from cvm.export import (
    c,
    concrete,
    cortex,
    mlir,
    onnx,
    r1cs,
    stablehlo,
    tosa,
    web,
)
from cvm.export.artifact import Artifact
from cvm.export.refusals import require_expressible
from cvm.instructions import INSTRUCTIONS
from cvm.proof.validate import Proven


@dataclass(frozen=True)
class ExportTarget:
    """What a program can be written as."""

    summary: str
    instructions: Container[str]
    write: Callable[[Proven, str], Artifact]


TARGETS: Mapping[str, ExportTarget] = {
    "c": ExportTarget("C99 source without dependencies", c.TABLE, c.write),
    "concrete": ExportTarget(
        "steps for Concrete, a compiler of homomorphic encryption",
        INSTRUCTIONS,  # a function of one value may hold any
        concrete.write,
    ),
    "cortex": ExportTarget(
        "the pair of files of CortexFoundation's runtime",
        INSTRUCTIONS,  # its writer refuses by intervals, too, and names all at once
        cortex.write,
    ),
    "mlir": ExportTarget("MLIR of TOSA operators", mlir.TABLE, mlir.write),
    "onnx": ExportTarget(
        "a graph of integer operators for onnxruntime", onnx.TABLE, onnx.write
    ),
    "r1cs": ExportTarget(
        "constraints of a proof system",
        INSTRUCTIONS,  # a function of one value may hold any
        r1cs.write,
    ),
    "stablehlo": ExportTarget(
        "StableHLO for jax and all that XLA compiles for",
        INSTRUCTIONS,
        stablehlo.write,
    ),
    "tosa": ExportTarget(
        "a file of Arm's Tensor Operator Set", tosa.TABLE, tosa.write
    ),
    "web": ExportTarget(
        "WebAssembly, an ES module, a page", c.TABLE, web.write
    ),
}


WITH_RANGES = "mlir"
"""The target that has a place for what calibration met."""


def export(
    form: Proven,
    target: str,
    name: str,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Artifact:
    """The program as files for a target; `name` is a base for file names and identifiers.

    `ranges` are those of float values that calibration met, for the target mlir alone.
    """
    chosen = TARGETS[target]
    require_expressible(form.program, target, chosen.instructions)
    if ranges is None:
        return chosen.write(form, name)
    if target != WITH_RANGES:
        raise BadInput(
            f"the target {target} has no place for ranges of a calibration table; {WITH_RANGES} has"
        )
    return mlir.write(form, name, ranges)
