"""The texts of the source: kernels, and the calls that start them one after the other."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from cvm.export.c.constants import Constants
from cvm.export.c.helpers import needed
from cvm.export.c.identifiers import comment
from cvm.export.c.instruction import C_TYPES
from cvm.export.c.nest import indented
from cvm.export.c.program import CFunction, CProgram, plan
from cvm.export.c.source import Ports
from cvm.export.cuda.kernels import SCRATCH, Kernel, kernel_of
from cvm.export.cuda.layout import SampleLayout, lay_out, packed
from cvm.program import dtype_name
from cvm.proof.validate import Proven

WIDTH = 116
HEADERS = (
    "threads.cuh",
    "arithmetic.cuh",
    "tensor_cores.cuh",
    "products.cuh",
    "matrices.cuh",
    "windows.cuh",
    "along.cuh",
    "resize.cuh",
    "on_cpu.h",
    "warp_on_cpu.h",
)
OWN_HELPERS = (
    "floor_shift",
    "shift_half_up",
    "scaled",
    "scaled_in_32_bits",
    "leading_zeros",
)  # in arithmetic.cuh


@dataclass(frozen=True)
class CudaSource:
    """The kernels of a program by name, the lines that start them, and all constants in one run of bytes."""

    plan: CProgram
    ports: Ports
    layout: SampleLayout
    kernels: dict[str, str]
    headers: list[str]
    calls: list[str]
    constants: bytes

    @classmethod
    def of(cls, form: Proven) -> CudaSource:
        """The program in CUDA. Equal kernels exist once."""
        steps, constants = plan(form), Constants()
        layout = lay_out(steps)
        step_kernels = [
            kernel_of(steps, step, constants) for step in steps.steps
        ]
        offsets, data = packed(constants.arrays)
        places = _places(constants, offsets)
        names: dict[str, str] = {}
        calls = []
        for step, kernel in zip(steps.steps, step_kernels, strict=True):
            text = kernel.text(layout.size)
            first = steps.node(step.values[0]).name
            name = names.setdefault(text, f"{first}_{len(names) + 1}")
            calls.append(_call(steps, step, name, kernel, layout, places))
        headers = sorted({k.work.header for k in step_kernels if k.work.header})
        kernels = {name: text for text, name in names.items()}
        ports = Ports.of(form)
        return cls(steps, ports, layout, kernels, headers, calls, data)

    def texts(self) -> dict[str, str]:
        """The texts for the places in the template of the source."""
        bodies = [
            f"static __global__ void {name}{text}"
            for name, text in self.kernels.items()
        ]
        read = [device_text(name) for name in self.headers]
        helpers = [
            text.replace("static ", "static __device__ ")
            for text in needed([*bodies, *read], without=OWN_HELPERS)
        ]
        includes = [f'#include "{name}"' for name in self.headers]
        return {
            "HELPERS": "\n\n".join(helpers),
            "INCLUDES": "\n".join(includes),
            "KERNELS": "\n\n".join(bodies),
            "SAMPLE_BYTES": str(self.layout.size),
            "CHECKS": _indented(self.ports.checks()),
            "COPY_IN": _indented(self._to_gpu()),
            "LAUNCHES": _indented(self.calls),
            "COPY_OUT": _indented(self._from_gpu()),
        }

    def _to_gpu(self) -> Iterator[str]:
        for number, field in enumerate(self.ports.inputs):
            place = self.layout.values[number]
            yield f"if (!to_gpu({place}, &inputs->{field}, sizeof inputs->{field}, count)) return false;"

    def _from_gpu(self) -> Iterator[str]:
        outputs = self.plan.form.program.outputs
        for field, output in zip(self.ports.outputs, outputs, strict=True):
            place = self.layout.values[output.value]
            yield f"if (!from_gpu(&outputs->{field}, {place}, sizeof outputs->{field}, count)) return false;"


def device_text(name: str) -> str:
    """One of the headers that every export contains."""
    place = files("cvm.export.cuda").joinpath("device", name)
    return place.read_text(encoding="ascii")


def _places(constants: Constants, offsets: Sequence[int]) -> dict[str, str]:
    """Where the host finds each constant on the GPU."""
    named = zip(constants.names.values(), constants.arrays, strict=True)
    return {
        name: f"constant<{C_TYPES[dtype_name(array)]}>({offset})"
        for (name, array), offset in zip(named, offsets, strict=True)
    }


def _call(
    steps: CProgram,
    step: CFunction,
    name: str,
    kernel: Kernel,
    layout: SampleLayout,
    places: dict[str, str],
) -> str:
    function, arguments = kernel.function, []
    for parameter, argument in zip(
        function.parameters, function.arguments, strict=True
    ):
        if isinstance(argument, str):
            arguments.append(places[argument])
            continue
        c_type = parameter.rpartition(" ")[0]
        if argument == SCRATCH:
            offset = layout.scratch[step.values[0]]
        else:
            offset = layout.values[steps.root(argument)]
        arguments.append(f"value<{c_type}>({offset})")
    defined = [f"%{v} {steps.node(v).name}" for v in step.values]
    launch = "launch_warps" if kernel.work.meets else "launch"
    line = f"{launch}({kernel.work.threads}, count, {name}, {', '.join(arguments)});"
    call = textwrap.fill(line, WIDTH, subsequent_indent="    ")
    return f"/* {comment(', '.join(defined))} */\n{call}"


def _indented(blocks: Iterable[str]) -> str:
    """The lines of all blocks, one step further in."""
    return "\n".join(
        indented([line for block in blocks for line in block.splitlines()])
    )
