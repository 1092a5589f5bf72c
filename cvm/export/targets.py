"""The registry of targets: for each a name, one sentence, the instructions that it can express, and its writer."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field

from cvm.errors import BadInput
from cvm.export import (
    c,
    concrete,
    cortex,
    cuda,
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
    write: Callable[..., Artifact]
    """Of a proven program and a name; of options, too, where there are any."""
    options: Mapping[str, str] = field(default_factory=dict)
    """For each option of the command its keyword."""


TARGETS: Mapping[str, ExportTarget] = {
    "c": ExportTarget("C99 source without dependencies", c.TABLE, c.write),
    "concrete": ExportTarget(
        "steps for Concrete, a compiler of homomorphic encryption",
        INSTRUCTIONS,  # a function of one value may hold any
        concrete.write,
        {"--hide-thresholds": "hide_thresholds"},
    ),
    "cortex": ExportTarget(
        "the pair of files of CortexFoundation's runtime",
        INSTRUCTIONS,  # its writer refuses by intervals, too, and names all at once
        cortex.write,
    ),
    "cuda": ExportTarget("kernels for GPUs", cuda.TABLE, cuda.write),
    "mlir": ExportTarget(
        "MLIR of TOSA operators", mlir.TABLE, mlir.write, {"--table": "ranges"}
    ),
    "onnx": ExportTarget(
        "a graph of integer operators for onnxruntime", onnx.TABLE, onnx.write
    ),
    "r1cs": ExportTarget(
        "constraints of a proof system",
        INSTRUCTIONS,  # a function of one value may hold any
        r1cs.write,
        {"--public": "public"},
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


def export(
    form: Proven,
    target: str,
    name: str,
    options: Mapping[str, object] | None = None,
) -> Artifact:
    """The program as files for a target; `name` is a base for file names and identifiers. `options` go by the command's names."""
    chosen = TARGETS[target]
    keywords = {}
    for option, value in (options or {}).items():
        if option not in chosen.options:
            raise BadInput(f"the target {target} has no option {option}")
        keywords[chosen.options[option]] = value
    require_expressible(form.program, target, chosen.instructions)
    return chosen.write(form, name, **keywords)
