"""The engine's Python side: finds `cvm._engine`, plans a proven program, hands it over, runs samples.

`CVM_ISA` names the instruction set to use (portable; avx2, avxvnni, avx512vnni, amx; neon, dotprod, i8mm); the default is
the fastest that the processor has.
`CVM_ENGINE` names a built extension file to use in place of the installed one, to compare builds.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from cvm.errors import BadInput
from cvm.plan.channel_order import order_channels
from cvm.plan.encode import operands_of_ends, step_tuple
from cvm.plan.fuse import fused
from cvm.plan.steps import Plan
from cvm.plan.unfused import unfused
from cvm.program import DTYPES, IntArray
from cvm.proof.validate import Proven

ADDS_PAIRS = frozenset(("avx2",))
"""The instruction sets whose kernels add products of two neighbours in 16 bits."""
ValueCallback = Callable[[int, IntArray], None]  # value number, value


@cache
def _module() -> ModuleType | None:
    path = os.environ.get("CVM_ENGINE")
    try:
        return (
            importlib.import_module("cvm._engine")
            if path is None
            else _built(path)
        )
    except ModuleNotFoundError:
        return None
    except ImportError as problem:
        raise BadInput(
            f"the engine cannot be loaded ({problem}); the reference does without"
        ) from None


def _built(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_engine", path)
    if spec is None or spec.loader is None or not os.path.exists(path):
        raise BadInput(f"CVM_ENGINE names {path}, which is not a built engine")
    module = importlib.util.module_from_spec(spec)
    sys.modules["_engine"] = module
    spec.loader.exec_module(module)
    return module


def available() -> bool:
    """Whether the engine was built."""
    return _module() is not None


def isas() -> list[str]:
    """The instruction sets that the engine and this processor have, slowest first; none without the engine."""
    module = _module()
    return [] if module is None else list(module.isas())


def chosen_isa() -> str:
    """The instruction set named by `CVM_ISA`, else the fastest one; BadInput if the processor lacks it."""
    supported, requested = isas(), os.environ.get("CVM_ISA", "")
    if requested and requested not in supported:
        raise BadInput(
            f"CVM_ISA={requested}: this machine and build have {', '.join(supported)}"
        )
    return requested or supported[-1]


def peak(threads: int = 1) -> float:
    """Giga-multiply-accumulates a second of dot products in registers, on this number of threads."""
    module, isa, rounds = _module(), chosen_isa(), 1000
    if module is None:
        raise BadInput("the native engine is not installed")
    while True:  # long enough to measure: 10 ms
        count, nanoseconds = module.peak(isa, threads, rounds)
        if nanoseconds >= 10_000_000:
            return float(count / nanoseconds)
        rounds *= 4


def ordered_for(form: Proven, isa: str) -> Proven:
    """Return the program with its channels in the order in which this instruction set multiplies fastest.

    The outputs stay as they are, on every other set, too.
    """
    module = _module()
    if module is None:
        raise BadInput(
            "the native engine, which orders channels, is not installed"
        )
    if isa not in ADDS_PAIRS:
        return form
    return order_channels(form, module.paired_channels)


class Engine:
    """A proven program packed for one instruction set. Safe to use from several Python threads at once.

    Only a `traceable` engine computes every value in a step of its own, for `observe` to see.
    """

    def __init__(
        self, form: Proven, *, isa: str = "", traceable: bool = False
    ) -> None:
        module = _module()
        if module is None:
            raise BadInput("the native engine is not installed")
        isa = isa or chosen_isa()
        self.form = form
        if not traceable:
            form = ordered_for(form, isa)
        self.plan: Plan = unfused(form) if traceable else fused(form)
        inputs, outputs = operands_of_ends(self.plan)
        constants = [
            np.require(array, requirements=["C", "A"])
            for array in form.program.constants
        ]
        steps = [step_tuple(self.plan, step) for step in self.plan.steps]
        self.core: Any = module.make(
            inputs,
            outputs,
            constants,
            self.plan.arena_bytes,
            steps,
            isa,
        )

    def run(
        self, sample: Mapping[str, IntArray], *, threads: int = 1
    ) -> dict[str, IntArray]:
        """One sample, in arrays of the declared dtypes and shapes, to outputs by name."""
        inputs, outputs = self._buffers(sample)
        self.core.run(inputs, list(outputs.values()), threads)
        return outputs

    def observe(
        self,
        sample: Mapping[str, IntArray],
        observe: ValueCallback,
        *,
        threads: int = 1,
    ) -> dict[str, IntArray]:
        """As run; `observe` is called with the value of every step that is an instruction's, in order."""
        inputs, outputs = self._buffers(sample)
        values = len(self.form.types)

        def note(step: int, content: bytes) -> None:
            number = self.plan.steps[step].result
            if number < values:
                type_ = self.form.types[number]
                observe(
                    number,
                    np.frombuffer(content, DTYPES[type_.dtype]).reshape(
                        type_.shape
                    ),
                )

        self.core.observed(inputs, list(outputs.values()), threads, note)
        return outputs

    def timed(
        self, sample: Mapping[str, IntArray], *, threads: int = 1
    ) -> list[int]:
        """The nanoseconds that each step of the plan took in one run."""
        inputs, outputs = self._buffers(sample)
        return list(self.core.timed(inputs, list(outputs.values()), threads))

    def _buffers(
        self, sample: Mapping[str, IntArray]
    ) -> tuple[list[IntArray], dict[str, IntArray]]:
        program, types = self.form.program, self.form.types
        inputs = [
            np.require(sample[port.name], DTYPES[port.type.dtype], ["C", "A"])
            for port in program.inputs
        ]
        outputs = {
            port.name: np.empty(
                types[port.value].shape, DTYPES[types[port.value].dtype]
            )
            for port in program.outputs
        }
        return inputs, outputs
