"""IREE as a machine for programs, on one thread of this processor."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvm.export.mlir.model import module_of
from cvm.program import IntArray
from cvm.proof.validate import Proven

OPTIONS = [
    "--iree-llvmcpu-target-cpu=host",
    "--iree-hal-local-target-device-backends=llvm-cpu",
]


class Iree:
    """A program compiled from its MLIR, which takes seconds to minutes; ImportError without IREE."""

    def __init__(self, form: Proven) -> None:
        from iree import compiler, runtime

        binary = compiler.compile_str(
            module_of(form),
            target_backends=["llvm-cpu"],
            input_type="auto",
            extra_args=OPTIONS,
        )
        config = runtime.Config("local-sync")
        module = runtime.VmModule.copy_buffer(config.vm_instance, binary)
        self._main = runtime.load_vm_module(module, config)["main"]
        self._form = form

    def run(self, inputs: Mapping[str, IntArray]) -> dict[str, IntArray]:
        """The outputs by name; bytes without sign pass as those with the same bits."""
        program, types = self._form.program, self._form.types
        arrays = [_signed(inputs[port.name]) for port in program.inputs]
        results = self._main(*arrays)
        result_arrays = (
            results if isinstance(results, tuple | list) else [results]
        )
        outputs = {}
        for port, array in zip(program.outputs, result_arrays, strict=True):
            values = np.asarray(array.to_host())
            is_unsigned = types[port.value].dtype == "u8"
            outputs[port.name] = (
                values.view(np.uint8) if is_unsigned else values
            )
        return outputs


def _signed(array: IntArray) -> IntArray:
    return array.view(np.int8) if array.dtype == np.uint8 else array
