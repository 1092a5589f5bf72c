"""Finds, for every row of `instructions.toml`, its three functions in the family module that the row names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from cvm.instructions import INSTRUCTIONS
from cvm.program import IntArray, TensorType
from cvm.program.bounds import Bounds
from cvm.reference.call import Call


@dataclass(frozen=True)
class Rule:
    """`check` returns the result type or raises Invalid, `bound` its interval or Unproven, `run` the integers."""

    check: Callable[[Call], TensorType]
    bound: Callable[[Call], Bounds]
    run: Callable[..., IntArray]


def _find(name: str, family: str) -> Rule:
    module = import_module(f"cvm.reference.{family}")
    run_name = {"abs": "abs_", "slice": "slice_"}.get(
        name, name
    )  # two names that Python has taken
    return Rule(
        getattr(module, f"check_{name}"),
        getattr(module, f"bound_{name}"),
        getattr(module, run_name),
    )


RULES: Mapping[str, Rule] = {
    name: _find(name, spec.family) for name, spec in INSTRUCTIONS.items()
}
