"""For every row of `instructions.toml` its function, from the module of its family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from cvm.instructions import INSTRUCTIONS
from cvm.xla.arrays import Operand

Lowering = Callable[..., Operand]  # operands in order, attributes by name
TAKEN = {"abs": "abs_", "slice": "slice_"}  # names that Python has, too


def _find(name: str, family: str) -> Lowering:
    module = import_module(f"cvm.xla.{family}")
    lowering: Lowering = getattr(module, TAKEN.get(name, name))
    return lowering


LOWERINGS: Mapping[str, Lowering] = {
    name: _find(name, spec.family) for name, spec in INSTRUCTIONS.items()
}
