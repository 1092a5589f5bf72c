"""A program as modules of StableHLO, whose bytes hold no path of the machine that wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax
from jax import export

from cvm.errors import BadInput
from cvm.proof.validate import Proven
from cvm.xla.function import outputs_of
from cvm.xla.machine import types_of

PLATFORMS = (
    "cpu",
)  # where the bytes are tested; GPUs give others (docs/how_to/stablehlo.md)
MOST_CONSTANT_BYTES = 2**30  # MLIR's files hold sections below 2^31 bytes


def portable(form: Proven) -> bytes:
    """One function `main` of the inputs in order, as a portable artifact of StableHLO."""
    return _exported(form).mlir_module_serialized


def for_jax(form: Proven) -> bytes:
    """What `jax.export.deserialize` reads."""
    return bytes(_exported(form).serialize())


def _exported(form: Proven) -> export.Exported:
    _require_small_constants(form)
    with jax.enable_x64(True), _without_locations():
        function = jax.jit(outputs_of(form))
        return export.export(function, platforms=PLATFORMS)(*types_of(form))


@contextmanager
def _without_locations() -> Iterator[None]:
    """jax writes beside each operation which line of which file made it."""
    name = "jax_traceback_in_locations_limit"
    before = getattr(jax.config, name)
    jax.config.update(name, 0)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        jax.config.update(name, before)  # type: ignore[no-untyped-call]


def _require_small_constants(form: Proven) -> None:
    size = sum(array.nbytes for array in form.program.constants)
    if size > MOST_CONSTANT_BYTES:
        raise BadInput(
            f"the constants have {size:,} bytes; the target stablehlo takes at most {MOST_CONSTANT_BYTES:,}"
        )
