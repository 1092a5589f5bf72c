"""The registry of targets: for each a name, one sentence, the instructions that it can express, and its writer."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from cvm.export import c, cortex, mlir, onnx, stablehlo, web
from cvm.export.artifact import Artifact
from cvm.export.refusals import require_expressible
from cvm.instructions import INSTRUCTIONS
from cvm.proof.validate import Proven


@dataclass(frozen=True)
class Target:
    """What a program can be written as."""

    summary: str
    instructions: Container[str]
    write: Callable[[Proven, str], Artifact]


TARGETS: Mapping[str, Target] = {
    "c": Target("C99 source without dependencies", c.TABLE, c.write),
    "cortex": Target(
        "the pair of files of CortexFoundation's runtime",
        INSTRUCTIONS,  # its writer refuses by intervals, too, and names all at once
        cortex.write,
    ),
    "mlir": Target("MLIR of TOSA operators", mlir.TABLE, mlir.write),
    "onnx": Target(
        "a graph of integer operators for onnxruntime", onnx.TABLE, onnx.write
    ),
    "stablehlo": Target(
        "StableHLO for jax and all that XLA compiles for",
        INSTRUCTIONS,
        stablehlo.write,
    ),
    "web": Target("WebAssembly, an ES module, a page", c.TABLE, web.write),
}


def export(form: Proven, target: str, name: str) -> Artifact:
    """The program as files for a target; `name` is a base for file names and identifiers."""
    chosen = TARGETS[target]
    require_expressible(form.program, target, chosen.instructions)
    return chosen.write(form, name)
