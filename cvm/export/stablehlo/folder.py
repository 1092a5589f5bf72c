"""The files of an export to StableHLO: both modules, a sample, a test, README."""

from __future__ import annotations

from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.tested_artifact import tested_artifact
from cvm.proof.validate import Proven
from cvm.runtime.machine import HOW_TO_GET_JAX


def write(form: Proven, name: str) -> Artifact:
    """The program as StableHLO, answering with the bytes of the reference machine."""
    try:
        from cvm.export.stablehlo import modules
    except ImportError:
        raise BadInput(
            f"the target stablehlo needs jax; {HOW_TO_GET_JAX}"
        ) from None
    base = base_name(name)
    portable, for_jax = modules.portable(form), modules.for_jax(form)
    facts = {
        "instructions": len(form.program.instructions),
        "module_bytes": len(portable),
    }
    modules_by_name = {
        f"{base}.stablehlo": portable,
        f"{base}.jax": for_jax,
    }
    written = Artifact({}, facts, modules_by_name)
    return tested_artifact(form, "stablehlo", base, written)
